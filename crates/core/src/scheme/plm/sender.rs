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
        let gap = (packet_time * lone).mul_f64(all / (all - f64::from(burst) + f64::from(lone)));
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
                // On a grid, unless the driver was away for longer.
                let next = channel.next_burst + every;
                channel.next_burst = if next < now { now + every } else { next };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Habitat;
    use crate::layers::Ladder;

    fn session(habitat: Habitat, kbps: [u64; 2]) -> Session {
        let ladder = Ladder::from_rates(kbps.map(Rate::from_kbps).into()).expect("rising");
        Session { ladder, packet_size: Bytes::new(1024), form: CciForm::Short, habitat }
    }

    /// What is sent until `secs`: when, what the header says, how large, and whether the next one follows at once.
    fn sent(session: &Session, config: Config, secs: u64) -> Vec<(Time, Layered, u64, bool)> {
        let mut sender = Sender::new(session, config, Random::new(1, "sender"));
        let mut all = Vec::new();
        let mut tell = |sender: &mut Sender, now: Time, event: Event<'_>| {
            sender.handle(now, event);
            while let Some(action) = sender.poll(now) {
                let Action::Send { packet, with_next, .. } = action else { panic!("a sender only sends") };
                let Header::Layered(layered) = packet.header else { panic!("its packets are of channels") };
                all.push((now, layered, packet.size.count(), with_next));
            }
        };
        tell(&mut sender, Time::ZERO, Event::Start);
        while let Some(at) = sender.deadline().filter(|at| *at < Time::from_secs(secs)) {
            tell(&mut sender, at, Event::Deadline);
        }
        all
    }

    #[test]
    fn a_pair_leaves_at_once_and_its_first_packet_says_so() {
        let session = session(Habitat::Lab, [150, 200]);
        let sent = sent(&session, Config::new(Habitat::Lab), 60);
        let base: Vec<_> = sent.iter().filter(|(_, layered, ..)| layered.channel == 0).collect();
        for pair in base.chunks_exact(2) {
            let ([first, second], told) = ([pair[0], pair[1]], |of: &Layered| (of.signal, of.slot));
            assert_eq!((first.0, first.3, second.3), (second.0, true, false));
            assert_eq!((told(&first.1), told(&second.1)), ((true, 1), (false, 0)));
        }
        let numbers = base.iter().map(|(_, layered, ..)| layered.sequence);
        assert!(numbers.eq(0..base.len() as u32), "numbers of a channel have no gap");
        // 150 kbit/s for 60 s are 1098 packets; gaps vary by half, so that their mean is good to 2 %.
        assert!((1_060..1_140).contains(&base.len()), "{}", base.len());
    }

    #[test]
    fn cut_packets_leave_as_ns_2_s_do_with_both_parts_of_the_first_marked() {
        let session = session(Habitat::Lab, [150, 200]);
        let config = Config { cut: true, ..Config::new(Habitat::Lab) };
        let first: Vec<_> = sent(&session, config, 1).into_iter().filter(|(_, l, ..)| l.channel == 0).take(4).collect();
        let told: Vec<_> = first.iter().map(|(_, layered, size, _)| (*size, layered.signal)).collect();
        assert_eq!(told, [(1000, true), (24, true), (1000, false), (24, false)]);
    }

    #[test]
    fn trains_are_a_second_apart_and_at_most_half_of_what_a_channel_sends() {
        let session = session(Habitat::Sockets, [256, 1_000]);
        let sent = sent(&session, Config::new(Habitat::Sockets), 60);
        for (channel, kbps) in [(0, 256), (1, 744)] {
            let own: Vec<_> = sent.iter().filter(|(_, layered, ..)| layered.channel == channel).collect();
            let packets = kbps * 60_000 / (1024 * 8);
            assert!(own.len().abs_diff(packets) * 50 < packets, "{} of {packets} packets", own.len());
            let begin: Vec<Time> = own.iter().filter(|(_, layered, ..)| layered.signal).map(|(at, ..)| *at).collect();
            let is_apart = |pair: &[Time]| pair[1].since(pair[0]) > Duration::from_millis(900);
            assert!(begin.windows(2).all(is_apart), "channel {channel}");
            assert!(begin.len() > 40 && begin.len() * 16 * 2 <= packets + 16, "{} trains", begin.len());
            // Between trains there is never as much time as one is worth.
            let longest = own.windows(2).map(|pair| pair[1].0.since(pair[0].0)).max().expect("packets");
            assert!(longest < Duration::from_millis(130), "channel {channel} is silent for {longest:?}");
        }
    }

    #[test]
    fn a_driver_that_comes_late_does_not_get_a_flood() {
        let session = session(Habitat::Sockets, [256, 1_000]);
        let mut sender = Sender::new(&session, Config::new(Habitat::Sockets), Random::new(1, "sender"));
        let emitted = |sender: &mut Sender, now: Time, event: Event<'_>| {
            sender.handle(now, event);
            core::iter::from_fn(|| sender.poll(now)).count()
        };
        emitted(&mut sender, Time::ZERO, Event::Start);
        assert!(emitted(&mut sender, Time::from_secs(60), Event::Deadline) <= 32, "one burst of each channel");
        let mut soon = 0;
        while let Some(at) = sender.deadline().filter(|at| *at < Time::from_millis(60_100)) {
            soon += emitted(&mut sender, at.max(Time::from_secs(60)), Event::Deadline);
        }
        assert!(soon <= 32 + 15, "{soon} packets: more than a burst of each channel and what 120 ms are worth");
        assert_eq!(emitted(&mut sender, Time::from_secs(61), Event::Finish), 0);
        assert_eq!(sender.deadline(), None);
    }
}
