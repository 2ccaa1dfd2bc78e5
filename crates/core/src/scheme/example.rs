//! An example of a scheme, compiled for tests only: once a second a receiver takes one more channel, or gives one up if a packet
//! in fifty was lost. CONTRIBUTING.md, *A scheme in a hundred lines*, says how it would be registered.

use alloc::boxed::Box;
use core::time::Duration;

use weir_units::{Bytes, Rate, Time};

use super::avmrc;
use crate::definition::{Layered, OfferedRates, Parties, Scheme, Session};
use crate::endpoint::{Action, Endpoint, Event, Header, Origin};
use crate::estimate::{DelayWindow, QueuingDelay};
use crate::membership::{Memberships, Received, Rejoin, Reordering};
use crate::observation::{LevelCause, Observation, SlotReport};
use crate::outbox::Outbox;
use crate::settings;

/// The scheme.
const STEPS: Scheme = Scheme {
    name: "steps",
    summary: "Receivers take one more channel a second, and give one up after loss",
    suits: "An example",
    paper: "an example",
    parties: Parties::Layered(Layered {
        channels: |session, _| Ok(session.ladder.channel_rates().collect()),
        levels: |session, _| Ok(session.ladder.rates().to_vec()),
        base_channel: true,
        probes: false,
        each_arrival: false,
        rates: OfferedRates { low: Rate::from_kbps(256), high: Rate::from_mbps(100), ratio: 1.5 },
        sender: |session, settings, _random| {
            settings::read("steps", &[], (), settings)?;
            // AVMRC's sender does what this scheme needs: it sends on each channel at the channel's rate.
            Ok(Box::new(avmrc::Sender::new(session, &avmrc::Config::new(avmrc::Model::Reno, session.habitat))))
        },
        receiver: |session, settings, _random| {
            settings::read("steps", &[], (), settings)?;
            Ok(Box::new(Receiver::new(session)))
        },
    }),
    settings: || settings::help(&[], (), ()),
};

#[derive(Debug)]
struct Receiver {
    session: Session,
    memberships: Memberships,
    delay: QueuingDelay,
    level: usize,
    /// The highest level that a manager allots.
    most: usize,
    received: u64,
    lost: u64,
    next_step: Option<Time>,
    actions: Outbox,
}

impl Receiver {
    fn new(session: &Session) -> Receiver {
        Receiver {
            memberships: Memberships::new(session.ladder.channel_rates(), session.packet_size, session.form, |_| {
                Reordering::fixed(3)
            }),
            delay: QueuingDelay::new(0.25, 0.05, DelayWindow::Everything),
            level: 0,
            most: usize::MAX,
            received: 0,
            lost: 0,
            next_step: None,
            actions: Outbox::default(),
            session: session.clone(),
        }
    }

    /// A step is over: up, down, or nothing above the top and below the base.
    fn step(&mut self, now: Time, first: bool) {
        let (received, lost) = (core::mem::take(&mut self.received), core::mem::take(&mut self.lost));
        self.report(received, lost);
        let is_lossy = lost * 50 > received + lost;
        if !is_lossy && self.level < self.most.min(self.session.ladder.levels()) && (first || received > 0) {
            self.memberships.join(now, self.level, &mut self.actions);
            self.observe(self.level + 1, if first { LevelCause::Start } else { LevelCause::Add });
        } else if is_lossy && self.level > 1 {
            self.memberships.leave(self.level - 1, &mut self.actions);
            self.observe(self.level - 1, LevelCause::Drop);
        }
        self.memberships.rejoin_silent(now, Rejoin::BaseFirst, &mut self.actions);
        self.next_step = Some(now + STEP);
    }

    /// For progress displays, the laboratory's measures and the conformance scenarios.
    fn report(&mut self, received: u64, lost: u64) {
        let bytes = Bytes::new(received * self.session.packet_size.count());
        self.actions.push(Action::Observe(Observation::Slot(SlotReport {
            level: self.level,
            received_rate: bytes.per(STEP),
            received_packets: received,
            lost_packets: lost,
            host_dropped_packets: 0,
            queuing_delay: [self.delay.short_term(), self.delay.long_term()],
            loss_event_rate: None,
            target_rate: None,
            vegas_beta_packets: None,
        })));
    }

    fn observe(&mut self, level: usize, cause: LevelCause) {
        self.level = level;
        let rate = self.session.ladder.level_rate(level);
        self.actions.push(Action::Observe(Observation::Level { level, rate, cause }));
    }

    fn on_packet(&mut self, now: Time, from: Origin, header: Header) {
        let Header::Layered(header) = header else { return };
        if !self.memberships.is_plausible(from, &header) {
            return;
        }
        let Some(received) = self.memberships.on_packet(now, &header, &mut self.delay) else { return };
        self.delay.on_packet(now, header.channel, header.clock_micros);
        if let Received::Measured { missing, .. } = received {
            self.lost += missing;
        }
        self.received += 1;
        self.actions.deliver(None);
    }

    /// A manager of several sessions says how many levels this one may have; the lowest one always.
    fn allot(&mut self, most: usize) {
        self.most = most.max(1);
        while self.level > self.most {
            self.memberships.leave(self.level - 1, &mut self.actions);
            self.observe(self.level - 1, LevelCause::Allotted);
        }
    }

    fn finish(&mut self) {
        self.next_step = None;
        while self.level > 0 {
            self.memberships.leave(self.level - 1, &mut self.actions);
            self.observe(self.level - 1, LevelCause::Finish);
        }
    }
}

impl Endpoint for Receiver {
    fn handle(&mut self, now: Time, event: Event<'_>) {
        match event {
            Event::Start if self.next_step.is_none() => self.step(now, true),
            Event::Packet { from, packet } if self.next_step.is_some() => self.on_packet(now, from, packet.header),
            Event::Deadline if self.next_step.is_some_and(|at| at <= now) => self.step(now, false),
            Event::Allot(allotment) => self.allot(allotment.level),
            Event::Finish => self.finish(),
            _ => {}
        }
    }

    fn poll(&mut self, _now: Time) -> Option<Action> {
        self.actions.pop()
    }

    fn deadline(&self) -> Option<Time> {
        self.next_step
    }
}

const STEP: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use weir_units::{Ecn, Random};
    use weir_wire::{CciForm, Layered};

    use super::*;
    use crate::definition::Habitat;
    use crate::endpoint::{ChannelId, Packet};
    use crate::layers::Ladder;

    #[test]
    fn a_receiver_climbs_without_loss_and_gives_way_to_it() {
        let ladder = Ladder::geometric(Rate::from_kbps(100), Rate::from_kbps(800), 2.0).expect("four rates");
        let packet_size = Bytes::new(1000);
        let session = Session { ladder, packet_size, form: CciForm::Short, habitat: Habitat::Lab };
        let mut receiver = STEPS.receiver(&session, &[], Random::new(1, "receiver")).expect("no settings");
        let mut levels = Vec::new();
        let mut tell = |receiver: &mut dyn Endpoint, at: u64, event: Event<'_>| {
            receiver.handle(Time::from_millis(at), event);
            while let Some(action) = receiver.poll(Time::from_millis(at)) {
                if let Action::Observe(Observation::Level { level, .. }) = action {
                    levels.push((at, level));
                }
            }
        };
        tell(receiver.as_mut(), 0, Event::Start);
        // A packet of the base channel each 10 ms; from 2 s on every second one is lost.
        for step in 1..=400_u64 {
            let at = step * 10;
            if at < 2_000 || step % 2 == 0 {
                let layered = Layered { sequence: step as u32, clock_micros: at * 1_000, ..Layered::default() };
                let packet = Packet { header: Header::Layered(layered), size: packet_size, ecn: Ecn::NotEct };
                tell(receiver.as_mut(), at, Event::Packet { from: Origin::Channel(ChannelId(0)), packet: &packet });
            }
            if receiver.deadline().is_some_and(|due| due <= Time::from_millis(at)) {
                tell(receiver.as_mut(), at, Event::Deadline);
            }
        }
        assert_eq!(levels, [(0, 1), (1_000, 2), (2_000, 3), (3_000, 2), (4_000, 1)]);
    }
}
