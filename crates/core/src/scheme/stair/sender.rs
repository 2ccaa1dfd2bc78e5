//! The sender: every static layer at its rate, every stair up and down, whoever listens; and answers to probes.

use alloc::vec::Vec;
use core::time::Duration;

use weir_units::{Bytes, Ecn, Rate, Time};
use weir_wire::{CciForm, Layered, Probe};

use super::config::Config;
use super::layout::Layout;
use crate::definition::Session;
use crate::endpoint::{Action, ChannelId, Destination, Endpoint, Event, Header, Packet};
use crate::layers::{Stair, StairPacket};
use crate::outbox::Outbox;
use crate::probing::{self, Announcement};

/// Sends each channel's packets at the times of its exact schedule.
///
/// Stairs all begin when the session does, so that slower ones recycle with faster ones; their packets' slot is the number
/// of the period. Static channels send evenly, each with a phase of its own; their packets' slot announces the interval of
/// probes. What is more than 20 ms late is not sent.
#[derive(Debug)]
pub struct Sender {
    channels: Vec<Channel>,
    packet_size: Bytes,
    form: CciForm,
    period: Duration,
    start: Option<Time>,
    announcement: Announcement,
    answers: Outbox,
    /// The channel whose packet is due next, and when.
    next: Option<(usize, Time)>,
}

#[derive(Debug)]
struct Channel {
    schedule: Schedule,
    /// The wire number of its next packet, before truncation.
    sequence: u32,
}

#[derive(Debug)]
enum Schedule {
    /// Packet `count` is due at (`count` + `phase` / 1000) packet times.
    Even { rate: Rate, phase: u64, count: u64 },
    /// A stair, and its next packet.
    Stair(Stair, StairPacket),
}

impl Sender {
    /// A sender of `session`.
    pub(super) fn new(session: &Session, layout: &Layout, config: &Config) -> Sender {
        let even = layout.hybrid.rates().into_iter().enumerate().map(|(number, units)| Schedule::Even {
            rate: layout.of_units(units),
            // Multiples of the golden ratio, less their whole part, lie as far apart as any (decision 7).
            phase: number as u64 * 618 % 1000,
            count: 0,
        });
        let stairs = layout.stairs.iter().map(|stair| Schedule::Stair(*stair, StairPacket::first_of(0)));
        Sender {
            channels: even.chain(stairs).map(|schedule| Channel { schedule, sequence: 0 }).collect(),
            packet_size: session.packet_size,
            form: session.form,
            period: config.period,
            start: None,
            announcement: Announcement::new(config.probes_per_sec),
            answers: Outbox::default(),
            next: None,
        }
    }

    fn on_start(&mut self, now: Time) {
        self.start = Some(now);
        self.find_next();
    }

    fn on_probe(&mut self, now: Time, asked: Probe) {
        if self.start.is_some() && self.announcement.on_probe(now) {
            self.answers.push(probing::answer(asked));
        }
    }

    /// Drops from the schedules what should have been sent long ago.
    fn skip_stale(&mut self, now: Time) {
        let (Some(start), Some((_, next))) = (self.start, self.next) else { return };
        if now.since(next) > STALE {
            let elapsed = now.since(start);
            self.channels.iter_mut().for_each(|channel| channel.schedule.skip_to(elapsed, self.packet_size));
            self.find_next();
        }
    }

    fn find_next(&mut self) {
        let Some(start) = self.start else { return };
        let dues = self.channels.iter().enumerate();
        let dues = dues.map(|(number, channel)| (number, start + channel.schedule.due(self.packet_size)));
        self.next = dues.min_by_key(|(_, due)| *due);
    }

    /// Stays with a channel while something of it is due: what is behind one another can be handed over together.
    fn go_on(&mut self, now: Time, number: usize) {
        let due = self.start.map(|start| start + self.channels[number].schedule.due(self.packet_size));
        match due.filter(|due| *due <= now) {
            Some(due) => self.next = Some((number, due)),
            None => self.find_next(),
        }
    }

    fn send(&mut self, now: Time, number: usize) -> Action {
        let channel = &mut self.channels[number];
        let (signal, slot) = match &channel.schedule {
            Schedule::Even { .. } => (false, u64::from(self.announcement.interval().to_wire())),
            Schedule::Stair(_, packet) => (packet.is_recycle(), packet.period),
        };
        let layered = Layered {
            signal,
            slot: (slot & ((1 << self.form.slot_bits()) - 1)) as u16,
            channel: number as u16,
            sequence: channel.sequence & (u32::MAX >> (32 - self.form.sequence_bits())),
            clock_micros: now.as_micros(),
        };
        channel.sequence = channel.sequence.wrapping_add(1);
        channel.schedule.advance();
        self.go_on(now, number);
        let packet = Packet { header: Header::Layered(layered), size: self.packet_size, ecn: Ecn::NotEct };
        Action::send_fresh(Destination::Channel(ChannelId(number as u16)), packet)
    }
}

impl Schedule {
    /// When the next packet is due, since the start.
    fn due(&self, packet_size: Bytes) -> Duration {
        match self {
            Schedule::Even { rate, phase, count } => {
                let thousandths = u128::from(*count) * 1000 + u128::from(*phase);
                let nanos = thousandths * nanobits(packet_size) / (u128::from(rate.bps().max(1)) * 1000);
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
            Schedule::Stair(stair, packet) => stair.due(*packet),
        }
    }

    fn advance(&mut self) {
        match self {
            Schedule::Even { count, .. } => *count += 1,
            Schedule::Stair(stair, packet) => *packet = stair.after(*packet),
        }
    }

    /// Goes on from about `elapsed` after the start.
    fn skip_to(&mut self, elapsed: Duration, packet_size: Bytes) {
        match self {
            Schedule::Even { rate, count, .. } => {
                let due = elapsed.as_nanos() * u128::from(rate.bps()) / nanobits(packet_size).max(1);
                *count = (*count).max(u64::try_from(due).unwrap_or(u64::MAX));
            }
            Schedule::Stair(stair, packet) => {
                let periods = elapsed.as_nanos() / stair.period().as_nanos().max(1);
                let period = u64::try_from(periods).unwrap_or(u64::MAX);
                *packet = (*packet).max(StairPacket::first_of(period));
                while stair.due(*packet) < elapsed {
                    *packet = stair.after(*packet);
                }
            }
        }
    }
}

impl Endpoint for Sender {
    fn handle(&mut self, now: Time, event: Event<'_>) {
        self.skip_stale(now);
        match event {
            Event::Start if self.start.is_none() => self.on_start(now),
            Event::Deadline => self.announcement.on_time(now),
            Event::Packet { .. } => {
                if let Some(asked) = probing::asked(&event) {
                    self.on_probe(now, asked);
                }
            }
            Event::Finish => {
                self.start = None;
                self.next = None;
                self.channels.clear();
            }
            _ => {}
        }
    }

    fn poll(&mut self, now: Time) -> Option<Action> {
        if let Some(answer) = self.answers.pop() {
            return Some(answer);
        }
        let (number, _) = self.next.filter(|(_, due)| *due <= now)?;
        Some(self.send(now, number))
    }

    fn deadline(&self) -> Option<Time> {
        let (start, (_, due)) = (self.start?, self.next?);
        let periods = due.since(start).as_nanos().div_ceil(self.period.as_nanos().max(1));
        match self.period.is_zero() {
            true => Some(due),
            false => {
                Some(start + Duration::from_nanos(u64::try_from(periods * self.period.as_nanos()).unwrap_or(u64::MAX)))
            }
        }
    }
}

fn nanobits(size: Bytes) -> u128 {
    u128::from(size.count()) * 8 * 1_000_000_000
}

/// A sender that was held up catches up with this much at most.
const STALE: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use weir_wire::probe;

    use super::super::layout::Kind;
    use super::*;
    use crate::definition::Habitat;
    use crate::endpoint::Origin;
    use crate::layers::Ladder;
    use crate::probing::PROBE_SIZE;

    fn sender(habitat: Habitat) -> (Sender, Layout) {
        let ladder = Ladder::geometric(Rate::from_kbps(512), Rate::from_kbps(512 * 8), 2.0).expect("valid");
        let session = Session { ladder, packet_size: Bytes::new(512), form: CciForm::Short, habitat };
        let config = Config::new(habitat);
        let layout = Layout::new(Kind::Stair, &session, &config).expect("valid");
        (Sender::new(&session, &layout, &config), layout)
    }

    fn layered(action: Action) -> Layered {
        match action {
            Action::Send { packet: Packet { header: Header::Layered(layered), .. }, .. } => layered,
            other => panic!("a sender sends, not {other:?}"),
        }
    }

    /// What is sent until `end`, each with its time, in milliseconds.
    fn sent(sender: &mut Sender, end: Time) -> Vec<(Time, Layered)> {
        sender.handle(Time::ZERO, Event::Start);
        let (mut now, mut sent) = (Time::ZERO, Vec::new());
        loop {
            while let Some(action) = sender.poll(now) {
                sent.push((now, layered(action)));
            }
            match sender.deadline().filter(|at| *at < end) {
                Some(at) => now = at,
                None => return sent,
            }
            sender.handle(now, Event::Deadline);
        }
    }

    #[test]
    fn every_channel_has_its_rate_and_numbers_without_a_gap() {
        for habitat in [Habitat::Lab, Habitat::Sockets] {
            let (mut sender, layout) = sender(habitat);
            let sent = sent(&mut sender, Time::from_secs(8));
            for (number, rate) in layout.rates().into_iter().enumerate() {
                let of_channel = sent.iter().filter(|(_, layered)| usize::from(layered.channel) == number);
                let numbers: Vec<u32> = of_channel.map(|(_, layered)| layered.sequence).collect();
                assert!(numbers.iter().copied().eq(0..numbers.len() as u32));
                let expected = match layout.stair(number) {
                    None => rate.packets_per_sec(Bytes::new(512)) * 8.0,
                    // Half of its packets and half a step's, in a whole number of periods.
                    Some(stair) => {
                        let height = layout.stairs[stair].height() as f64;
                        1000.0 * (height + 1.0) / 2.0 / height
                    }
                };
                let error = numbers.len() as f64 / expected - 1.0;
                assert!(error.abs() < 0.03, "channel {number}: {} of {expected}", numbers.len());
            }
        }
    }

    #[test]
    fn a_stair_marks_where_it_recycles_and_numbers_its_periods() {
        let (mut sender, layout) = sender(Habitat::Lab);
        let fastest = (layout.fixed) as u16;
        let sent = sent(&mut sender, Time::from_secs(2));
        let of_stair = sent.iter().filter(|(_, layered)| layered.channel == fastest);
        let marks: Vec<(u64, u16)> = of_stair
            .filter(|(_, layered)| layered.signal)
            .map(|(at, layered)| (at.as_nanos() / 1_000_000, layered.slot))
            .collect();
        let expected: Vec<(u64, u16)> = (0..16).map(|period| (128 * period, period as u16)).collect();
        assert_eq!(marks[..16], expected[..], "SL_32 has four steps of 32 ms");
    }

    #[test]
    fn after_a_stall_it_goes_on_where_it_should_be_by_then() {
        let (mut sender, _) = sender(Habitat::Lab);
        sender.handle(Time::ZERO, Event::Start);
        let late = Time::from_millis(60_050);
        sender.handle(late, Event::Deadline);
        let burst = core::iter::from_fn(|| sender.poll(late)).count();
        assert!(burst <= sender.channels.len(), "{burst} packets");
        assert!(sender.deadline().is_some_and(|at| at > late && at < late + STALE));
    }

    #[test]
    fn probes_are_answered_to_who_asked() {
        let (mut sender, _) = sender(Habitat::Lab);
        sent(&mut sender, Time::from_millis(1));
        let asked = Probe { kind: probe::Kind::Probe, clock_micros: 7 };
        let packet = Packet { header: Header::Probe(asked), size: PROBE_SIZE, ecn: Ecn::NotEct };
        let now = Time::from_millis(1);
        sender.handle(now, Event::Packet { from: Origin::Unverified, packet: &packet });
        let Some(Action::Send { to, packet, .. }) = sender.poll(now) else { panic!("no answer") };
        let echo = Header::Probe(Probe { kind: probe::Kind::Echo, clock_micros: 7 });
        assert_eq!((to, packet.header, packet.size), (Destination::Reply, echo, Bytes::new(40)));
        sender.handle(now, Event::Packet { from: Origin::Unverified, packet: &packet });
        assert!(!matches!(sender.poll(now), Some(Action::Send { to: Destination::Reply, .. })), "echoes end here");
    }
}
