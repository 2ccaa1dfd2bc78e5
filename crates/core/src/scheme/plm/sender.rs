//! The sender: every channel at its rate, in pairs or with a train now and then.

use alloc::vec::Vec;
use core::time::Duration;

use weir_units::{Bytes, Ecn, Random, Rate, Time};
use weir_wire::{CciForm, Layered};

use super::config::Config;
use crate::definition::Session;
use crate::endpoint::{Action, ChannelId, Destination, Endpoint, Event, Header, Packet, Payload};

/// Sends bursts of packets back to back, each channel on its own (ns-2's `CBR_PP`, once for each layer).
///
/// The header of a packet says what burst it is of: `signal` is set on the first one, and `slot` counts those that follow, as
/// far as it has room. A lone packet is one that is not first and that nothing follows.
#[derive(Debug)]
pub struct Sender {
    channels: Vec<Channel>,
    packet_size: Bytes,
    form: CciForm,
    config: Config,
    random: Random,
    started: bool,
    /// The channel whose packets are being emitted.
    emitting: usize,
}

#[derive(Debug)]
struct Channel {
    rhythm: Rhythm,
    /// When the next packets are due; `None` before the start and after the end.
    due: Option<Time>,
    /// When the next burst may be.
    next_burst: Time,
    sending: Sending,
    /// The wire number of its next packet, before truncation.
    sequence: u32,
}

/// When a channel sends how much.
#[derive(Debug, Clone, Copy)]
struct Rhythm {
    /// Packets of a burst.
    burst: u32,
    /// From a burst to the next one, at least.
    every: Duration,
    /// Packets that are sent at once where there is no burst.
    lone: u32,
    /// From a burst, and from what is no burst, to what comes next.
    gaps: [Duration; 2],
}

impl Rhythm {
    /// Bursts make up all that a channel sends. Or, where they are to be some time apart, at most half of it, and the rest is spread
    /// evenly, so that a slow channel is not silent after each.
    fn new(config: &Config, rate: Rate, packet_size: Bytes) -> Rhythm {
        let packet_time = (packet_size / rate).max(Duration::from_nanos(1));
        let packets = |span: Duration| (span.as_nanos() / packet_time.as_nanos()).min(1 << 20) as u32;
        let burst = config.burst_packets as u32;
        if config.burst_every.is_zero() {
            return Rhythm { burst, every: Duration::ZERO, lone: 1, gaps: [packet_time * burst, packet_time] };
        }
        let burst = burst.max(packets(LONGEST_TRAIN).min(MOST_IN_A_TRAIN));
        let every = config.burst_every.max(packet_time * burst * 2);
        let lone = packets(BATCH).clamp(1, MOST_IN_A_BATCH);
        let all = every.as_secs_f64() / packet_time.as_secs_f64();
        let gap = (packet_time * lone).mul_f64(all / (all - f64::from(burst)));
        Rhythm { burst, every, lone, gaps: [gap; 2] }
    }
}

/// What is left of the packets that are being emitted.
#[derive(Debug, Clone, Copy, Default)]
struct Sending {
    packets: u32,
    is_burst: bool,
    is_first: bool,
    /// The rest of a packet that was cut.
    rest: Bytes,
}

impl Sender {
    /// A sender of `session`.
    pub fn new(session: &Session, config: Config, random: Random) -> Sender {
        let channel = |rate: Rate| Channel {
            rhythm: Rhythm::new(&config, rate, session.packet_size),
            due: None,
            next_burst: Time::ZERO,
            sending: Sending::default(),
            sequence: 0,
        };
        let channels: Vec<Channel> = session.ladder.channel_rates().map(channel).collect();
        Sender {
            emitting: channels.len(),
            channels,
            packet_size: session.packet_size,
            form: session.form,
            config,
            random,
            started: false,
        }
    }

    fn on_start(&mut self, now: Time) {
        self.started = true;
        let count = self.channels.len() as u32;
        for (i, channel) in (0..count).zip(&mut self.channels) {
            channel.due = Some(now);
            // The trains of different channels are apart.
            channel.next_burst = now + channel.rhythm.every * i / count;
        }
        self.schedule(now);
    }

    /// Makes due what is to be sent by now.
    fn schedule(&mut self, now: Time) {
        for channel in &mut self.channels {
            let Some(due) = channel.due.filter(|due| *due <= now) else { continue };
            let is_burst = channel.next_burst <= due;
            let Rhythm { burst, every, lone, gaps } = channel.rhythm;
            let (packets, gap) = if is_burst { (burst, gaps[0]) } else { (lone, gaps[1]) };
            if is_burst {
                channel.next_burst = due + every;
            }
            channel.sending = Sending { packets, is_burst, is_first: true, rest: Bytes::ZERO };
            let factor = 1.0 + self.config.jitter * self.random.uniform(-1.0, 1.0);
            let next = due + gap.mul_f64(factor);
            // What the driver was too late for is not made up for beyond a little.
            channel.due = Some(next.max(now - CATCH_UP.min(now.since(Time::ZERO))));
        }
        self.emitting = 0;
    }

    /// The next packet of a channel's burst.
    fn next_packet(&mut self, now: Time, number: usize) -> Option<Action> {
        let form = self.form;
        let channel = &mut self.channels[number];
        let sending = &mut channel.sending;
        let (size, is_rest) = match (sending.packets, sending.rest) {
            (0, Bytes::ZERO) => return None,
            (_, rest) if rest > Bytes::ZERO => (core::mem::take(&mut sending.rest), true),
            _ => {
                sending.packets -= 1;
                let size = if self.config.cut { self.packet_size.min(NS2_PACKET) } else { self.packet_size };
                sending.rest = self.packet_size.saturating_sub(size);
                (size, false)
            }
        };
        let is_last = sending.packets == 0 && sending.rest == Bytes::ZERO;
        let most = (1 << form.slot_bits()) - 1;
        let following = if sending.is_burst { sending.packets.min(most) as u16 } else { 0 };
        // ns-2 flags both parts of the first packet.
        let signal = sending.is_burst && sending.is_first;
        if is_rest || sending.rest == Bytes::ZERO {
            sending.is_first = false;
        }
        let sequence = channel.sequence & (u32::MAX >> (32 - form.sequence_bits()));
        channel.sequence = channel.sequence.wrapping_add(1);
        let (slot, channel, clock_micros) = (following, number as u16, now.as_micros());
        let layered = Layered { signal, slot, channel, sequence, clock_micros };
        Some(Action::Send {
            to: Destination::Channel(ChannelId(number as u16)),
            packet: Packet { header: Header::Layered(layered), size, ecn: Ecn::NotEct },
            payload: Payload::Fresh,
            with_next: !is_last,
        })
    }
}

impl Endpoint for Sender {
    fn handle(&mut self, now: Time, event: Event<'_>) {
        match event {
            Event::Start if !self.started => self.on_start(now),
            Event::Deadline => self.schedule(now),
            Event::Finish => {
                for channel in &mut self.channels {
                    (channel.due, channel.sending) = (None, Sending::default());
                }
            }
            _ => {}
        }
    }

    fn poll(&mut self, now: Time) -> Option<Action> {
        while self.emitting < self.channels.len() {
            let packet = self.next_packet(now, self.emitting);
            if packet.is_some() {
                return packet;
            }
            self.emitting += 1;
        }
        None
    }

    fn deadline(&self) -> Option<Time> {
        self.channels.iter().filter_map(|channel| channel.due).min()
    }
}

/// What ns-2's UDP agent sends at most in a packet.
const NS2_PACKET: Bytes = Bytes::new(1000);

/// A channel's trains are as long as what it sends in this time, where that is more packets than the setting's: a receiver of a
/// fast channel is behind a fast link, whose bucket may be large (decision 6).
const LONGEST_TRAIN: Duration = Duration::from_millis(100);

/// But no longer than this.
const MOST_IN_A_TRAIN: u32 = 120;

/// Fast channels send what falls due in this time at once, where that is no burst.
const BATCH: Duration = Duration::from_millis(2);

/// And no more than this.
const MOST_IN_A_BATCH: u32 = 16;

/// A driver that is late by more than this does not catch up.
const CATCH_UP: Duration = Duration::from_millis(20);
