//! The sender: every channel at its rate, whoever listens.

use alloc::vec::Vec;
use core::time::Duration;

use weir_units::{Bytes, Ecn, Rate, Time};
use weir_wire::{CciForm, Layered};

use super::config::Config;
use super::schedule::{Credit, Due};
use crate::definition::Session;
use crate::endpoint::{Action, ChannelId, Destination, Endpoint, Event, Header, Packet};

/// Sends each period what each channel has earned, in channel order, and marks slots and signals (AVMRC §3.3, §4.2).
///
/// Slots are counted from the start; every n_add-th is signalled, the first among them. `clock_micros` is the driver's time
/// in microseconds. A deadline that comes late is made up for by at most four periods' packets; what is older is not sent.
#[derive(Debug)]
pub struct Sender {
    channels: Vec<Channel>,
    packet_size: Bytes,
    form: CciForm,
    small_packets: bool,
    period: Duration,
    tau: Duration,
    n_add: u64,
    start: Option<Time>,
    next_period: Option<Time>,
    /// The channel whose packets are being emitted; beyond the last when there is nothing to emit.
    emitting: usize,
    /// Slot, signal and clock of what is being emitted.
    stamp: Layered,
}

#[derive(Debug)]
struct Channel {
    rate: Rate,
    credit: Credit,
    due: Due,
    /// The wire number of its next packet, before truncation.
    sequence: u32,
}

impl Sender {
    /// A sender of `session`.
    pub fn new(session: &Session, config: &Config) -> Sender {
        let channels: Vec<Channel> = (0..session.ladder.levels())
            .map(|channel| Channel {
                rate: session.ladder.channel_rate(channel),
                credit: match config.small_packets {
                    true => Credit::default(),
                    false => Credit::staggered(channel, session.packet_size),
                },
                due: Due::default(),
                sequence: 0,
            })
            .collect();
        Sender {
            emitting: channels.len(),
            channels,
            packet_size: session.packet_size,
            form: session.form,
            small_packets: config.small_packets,
            period: config.period,
            tau: config.tau,
            n_add: config.n_add,
            start: None,
            next_period: None,
            stamp: Layered::default(),
        }
    }

    fn on_start(&mut self, now: Time) {
        self.start = Some(now);
        self.schedule(now, 1);
        self.next_period = Some(now + self.period);
    }

    fn on_deadline(&mut self, now: Time) {
        let Some(due) = self.next_period.filter(|due| *due <= now) else { return };
        let missed = (now.since(due).as_nanos() / self.period.as_nanos()) as u64;
        self.schedule(now, (1 + missed).min(MOST_PERIODS_AT_ONCE) as u32);
        self.next_period = Some(due + Duration::from_nanos((missed + 1).saturating_mul(self.period.as_nanos() as u64)));
    }

    /// Makes due what the channels earn in `periods`.
    fn schedule(&mut self, now: Time, periods: u32) {
        let start = self.start.unwrap_or(now);
        let slot = (now.since(start).as_nanos() / self.tau.as_nanos()) as u64;
        self.stamp = Layered {
            signal: slot.is_multiple_of(self.n_add),
            slot: (slot & ((1 << self.form.slot_bits()) - 1)) as u16,
            clock_micros: now.as_micros(),
            ..Layered::default()
        };
        for channel in &mut self.channels {
            channel.credit.earn(channel.rate, self.period * periods);
            // What the driver did not fetch since the last time is not sent twice as late.
            channel.due = channel.credit.spend(self.packet_size, self.small_packets);
        }
        self.emitting = 0;
    }
}

impl Endpoint for Sender {
    fn handle(&mut self, now: Time, event: Event<'_>) {
        match event {
            Event::Start if self.start.is_none() => self.on_start(now),
            Event::Deadline => self.on_deadline(now),
            Event::Finish => {
                self.next_period = None;
                self.emitting = self.channels.len();
            }
            _ => {}
        }
    }

    fn poll(&mut self, _now: Time) -> Option<Action> {
        loop {
            let channel = self.channels.get_mut(self.emitting)?;
            let size = if channel.due.full > 0 {
                channel.due.full -= 1;
                self.packet_size
            } else if channel.due.tail > Bytes::ZERO {
                core::mem::take(&mut channel.due.tail)
            } else {
                self.emitting += 1;
                continue;
            };
            let sequence = channel.sequence & (u32::MAX >> (32 - self.form.sequence_bits()));
            channel.sequence = channel.sequence.wrapping_add(1);
            let header = Header::Layered(Layered { channel: self.emitting as u16, sequence, ..self.stamp });
            let to = Destination::Channel(ChannelId(self.emitting as u16));
            return Some(Action::send_fresh(to, Packet { header, size, ecn: Ecn::NotEct }));
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.next_period
    }
}

/// A stalled sender catches up by this much at most: more would be a burst that no queue expects.
const MOST_PERIODS_AT_ONCE: u64 = 4;

#[cfg(test)]
mod tests {
    use super::super::config::Model;
    use super::*;
    use crate::definition::Habitat;
    use crate::layers::Ladder;

    fn session(habitat: Habitat) -> Session {
        Session {
            ladder: Ladder::geometric(Rate::from_kbps(256), Rate::from_kbps(6561), 1.5).expect("valid"),
            packet_size: Bytes::new(1000),
            form: CciForm::Short,
            habitat,
        }
    }

    fn sender(habitat: Habitat) -> Sender {
        Sender::new(&session(habitat), &Config::new(Model::AdaptiveVegas, habitat))
    }

    fn emitted(sender: &mut Sender, now: Time, event: Event<'_>) -> Vec<(Layered, u64)> {
        sender.handle(now, event);
        core::iter::from_fn(|| sender.poll(now))
            .map(|action| match action {
                Action::Send { packet: Packet { header: Header::Layered(layered), size, .. }, .. } => {
                    (layered, size.count())
                }
                other => panic!("a sender only sends, not {other:?}"),
            })
            .collect()
    }

    #[test]
    fn a_burst_of_the_paper_s_sender_is_88_packets_in_channel_order() {
        let mut sender = sender(Habitat::Lab);
        let burst = emitted(&mut sender, Time::from_secs(1), Event::Start);
        assert_eq!(burst.len(), 88);
        assert!(burst.is_sorted_by_key(|(layered, _)| layered.channel));
        let sizes: Vec<u64> = burst.iter().filter(|(layered, _)| layered.channel == 0).map(|(_, size)| *size).collect();
        assert_eq!(sizes, [1000, 1000, 1000, 200]);
        assert!(
            burst.iter().all(|(layered, _)| layered.signal && layered.slot == 0 && layered.clock_micros == 1_000_000)
        );
    }

    #[test]
    fn slots_wrap_at_the_form_s_width_and_every_twentieth_is_signalled() {
        let mut sender = sender(Habitat::Lab);
        emitted(&mut sender, Time::ZERO, Event::Start);
        for slot in 1..300u64 {
            let burst = emitted(&mut sender, Time::from_millis(slot * 100), Event::Deadline);
            assert!(burst.iter().all(|(layered, _)| u64::from(layered.slot) == slot % 128));
            assert!(burst.iter().all(|(layered, _)| layered.signal == slot.is_multiple_of(20)));
        }
    }

    #[test]
    fn the_rates_hold_over_time_with_full_packets_only() {
        let mut sender = sender(Habitat::Sockets);
        let mut bytes = emitted(&mut sender, Time::ZERO, Event::Start);
        while let Some(at) = sender.deadline().filter(|at| *at < Time::from_secs(10)) {
            bytes.extend(emitted(&mut sender, at, Event::Deadline));
        }
        assert!(bytes.iter().all(|(_, size)| *size == 1000));
        let sent = bytes.len() as f64 * 8000.0 / 10.0;
        assert!((sent / 6_561_000.0 - 1.0).abs() < 0.002, "{sent}");
        let base: Vec<u32> = bytes.iter().filter(|(l, _)| l.channel == 0).map(|(l, _)| l.sequence).collect();
        assert!(base.iter().copied().eq(0..base.len() as u32), "numbers of a channel have no gap");
    }

    #[test]
    fn a_late_deadline_is_made_up_for_by_four_periods_at_most() {
        let mut sender = sender(Habitat::Lab);
        emitted(&mut sender, Time::ZERO, Event::Start);
        let after_a_minute = emitted(&mut sender, Time::from_millis(60_050), Event::Deadline);
        let bytes: u64 = after_a_minute.iter().map(|(_, size)| size).sum();
        assert!(bytes <= 4 * 82_013 && bytes > 3 * 82_013, "{bytes}");
        assert_eq!(sender.deadline(), Some(Time::from_millis(60_100)), "the grid of periods stays");
        assert_eq!(after_a_minute[0].0.slot, (600 % 128) as u16);
    }

    #[test]
    fn early_deadlines_do_nothing_and_finish_ends_everything() {
        let mut sender = sender(Habitat::Lab);
        assert!(emitted(&mut sender, Time::ZERO, Event::Deadline).is_empty());
        emitted(&mut sender, Time::ZERO, Event::Start);
        assert!(emitted(&mut sender, Time::from_millis(99), Event::Deadline).is_empty());
        sender.handle(Time::from_millis(100), Event::Deadline);
        assert!(emitted(&mut sender, Time::from_millis(100), Event::Finish).is_empty());
        assert_eq!(sender.deadline(), None);
    }
}
