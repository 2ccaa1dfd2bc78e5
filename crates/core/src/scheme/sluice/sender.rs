//! The sender: every channel at its rate over a cycle, with bursts that tell receivers what would fit (those of a start: `start_up.rs`).

mod start_up;

use alloc::vec::Vec;
use core::time::Duration;

use weir_units::{Bytes, Ecn, Rate, Time};
use weir_wire::probe::{Flooded, Starting, Verdict, Wanted};
use weir_wire::{CciForm, Layered, Probe};

use super::announce;
use super::ceiling::{self, Ceiling};
use super::config::{Config, Offer};
use super::cycle::{self, CYCLE, SLOT, Shown, StartUpBurst};
use super::demand::Demand;
use super::pace::Pace;
use super::part::EIGHTHS;
use super::starters::Starters;
use crate::definition::Session;
use crate::endpoint::{Action, ChannelId, Destination, Endpoint, Event, Header, Packet};
use crate::layers::Ladder;
use crate::observation::{Audience, Observation};
use crate::outbox::Outbox;
use crate::probing::{self, Announcement};

/// Sends each period, in channel order, what receivers of each level lack: so the packets of every level are as even as if it
/// were one stream, to within three packets, and a burst is what it should be at each of them.
///
/// A packet's `slot` has the slot's place in the cycle and an announcement; its `signal` is set in bursts. A deadline that comes late is
/// made up for by at most four periods' packets; what is older is not sent.
#[derive(Debug)]
pub struct Sender {
    channels: Vec<Channel>,
    ladder: Ladder,
    packet_size: Bytes,
    margin: f64,
    form: CciForm,
    period: Duration,
    start: Option<Time>,
    next_period: Option<Time>,
    /// The slot that is being sent.
    slot: u64,
    starters: Starters,
    /// When the latest start-up burst ends.
    start_up_ends: Option<Time>,
    /// To whom this cycle shows the next level.
    shown: Shown,
    announcement: Announcement,
    /// How many levels this cycle tells to be withheld.
    told_withheld: usize,
    ceiling: Ceiling,
    pace: Pace,
    /// What receivers want; `None` if all is sent whatever they want.
    demand: Option<Demand>,
    /// When it was last looked which receivers there are, and which there were.
    told_audience: (Time, Option<Audience>),
    answers: Outbox,
    /// The channel whose packets are being emitted; beyond the last when there is nothing to emit.
    emitting: usize,
    /// Slot and clock of what is being emitted.
    stamp: Layered,
}

#[derive(Debug)]
struct Channel {
    rate: Rate,
    /// Packets that receivers of the level whose topmost channel this is should have been sent, less what they have been.
    lacking: f64,
    /// What they were sent ahead when a start-up burst began, until it is over; not positive.
    ahead: f64,
    /// Packets to send now, and whether they are of a burst.
    due: u32,
    in_burst: bool,
    /// In this cycle's burst, and how long that is; `None` if it leaves the channel out.
    next_level: Option<(f64, Duration)>,
    /// Outside of bursts. It makes up for the burst of the cycle before, whose queue is then gone before the next burst.
    plain_factor: f64,
    /// Its latest start-up burst, and when that began.
    start_up: Option<(Time, StartUpBurst)>,
    /// The wire number of its next packet, before truncation.
    sequence: u32,
}

impl Channel {
    /// What it is sent at, as a factor of its rate, `within` a slot; and whether that is a burst.
    fn factor(&self, shows_next_level: bool, due: Time, within: Duration) -> (f64, bool) {
        match self.next_level {
            Some((factor, length)) if shows_next_level && within < length => (factor, true),
            _ => (self.plain_factor * self.start_up_factor(due).unwrap_or(1.0), false),
        }
    }

    /// What its latest start-up burst makes of its rate; `None` once that is made up for.
    fn start_up_factor(&self, due: Time) -> Option<f64> {
        self.start_up.and_then(|(begun, burst)| burst.factor(due.since(begun)))
    }
}

impl Sender {
    /// A sender of `session`.
    pub fn new(session: &Session, config: &Config) -> Sender {
        let ladder = &session.ladder;
        let channel = |number: usize| Channel {
            rate: ladder.channel_rate(number),
            lacking: 0.0,
            ahead: 0.0,
            due: 0,
            in_burst: false,
            next_level: cycle::next_level_burst(ladder, number, config.margin, Shown::All, session.packet_size),
            plain_factor: 1.0,
            start_up: None,
            sequence: 0,
        };
        Sender {
            channels: (0..ladder.levels()).map(channel).collect(),
            emitting: ladder.levels(),
            ladder: ladder.clone(),
            packet_size: session.packet_size,
            margin: config.margin,
            form: session.form,
            period: config.period,
            start: None,
            next_period: None,
            slot: 0,
            starters: Starters::new(config.start_up),
            start_up_ends: None,
            shown: Shown::All,
            announcement: Announcement::new(config.probes_per_sec),
            told_withheld: 0,
            ceiling: Ceiling::new(ladder),
            pace: Pace::new(ladder),
            demand: (config.offer == Offer::Wanted).then(|| Demand::new(ladder, session.packet_size)),
            told_audience: (Time::ZERO, None),
            answers: Outbox::default(),
            stamp: Layered::default(),
        }
    }

    fn on_start(&mut self, now: Time) {
        self.start = Some(now);
        self.starters.on_start(now);
        if let Some(demand) = &mut self.demand {
            demand.on_start(now);
        }
        self.begin_slot(now, 0);
        self.schedule(now, now, 1);
        self.next_period = Some(now + self.period);
    }

    fn on_deadline(&mut self, now: Time) {
        let Some(due) = self.next_period.filter(|due| *due <= now) else { return };
        let missed = (now.since(due).as_nanos() / self.period.as_nanos()) as u64;
        let periods = (1 + missed).min(MOST_PERIODS_AT_ONCE);
        if let Some(cause) = self.pace.on_periods(now, &self.ladder, 1 + missed, periods) {
            self.tell(Some((self.ladder.level_rate(self.offered()), cause)));
        }
        self.announcement.on_time(now);
        let interval = self.announcement.interval();
        if self.demand.as_mut().is_some_and(|demand| demand.on_time(now, interval)) {
            self.silence_above();
        }
        self.schedule(now, due, periods as u32);
        self.next_period = Some(due + Duration::from_nanos((missed + 1).saturating_mul(self.period.as_nanos() as u64)));
        let change = self.ceiling.on_time(now, self.levels());
        self.tell(change);
        self.tell_audience(now);
    }

    /// Tells which receivers there are, when that has changed: at once if none was known, as an application may ask them what they lack, else now and then.
    fn tell_audience(&mut self, now: Time) {
        let (looked, told) = self.told_audience;
        if told.is_some() && now.since(looked) < AUDIENCE_INTERVAL {
            return;
        }
        let audience = self.demand.as_ref().and_then(Demand::audience);
        self.told_audience = (now, audience);
        if audience != told {
            self.answers.push(Action::Observe(Observation::Audience(audience)));
        }
    }

    /// Makes due what the channels earn in the `periods` that begin at `due`.
    fn schedule(&mut self, now: Time, due: Time, periods: u32) {
        let since = now.since(self.start.unwrap_or(now)).as_nanos();
        let number = (since / SLOT.as_nanos()) as u64;
        if number != self.slot {
            self.begin_slot(now, number);
        }
        let since_due = due.since(self.start.unwrap_or(due)).as_nanos();
        let within = Duration::from_nanos((since_due % SLOT.as_nanos()) as u64);
        let shows_next_level = cycle::shows_next_level(number);
        self.begin_start_up_burst(due, within);
        let in_start_up_burst = self.start_up_ends.is_some_and(|end| due < end);
        self.stamp = Layered {
            slot: announce::field(number, self.announcement.interval(), self.told_withheld, self.shown),
            clock_micros: now.as_micros(),
            ..Layered::default()
        };
        let span = (self.period * periods).as_secs_f64();
        let (levels, mut earned, mut sent) = (self.levels(), 0.0, 0);
        let part = self.part_of_next_step(now);
        for (number, channel) in self.channels[..levels].iter_mut().enumerate() {
            let (factor, in_next_level) = channel.factor(shows_next_level, due, within);
            let in_burst = in_next_level || in_start_up_burst;
            earned += channel.rate.packets_per_sec(self.packet_size) * factor * span;
            if number + 1 == levels && !in_burst {
                earned += part.packets_per_sec(self.packet_size) * span;
            }
            channel.lacking += earned - f64::from(sent);
            if !in_start_up_burst {
                channel.lacking += core::mem::take(&mut channel.ahead);
            }
            // What the driver did not fetch since the last time is not sent twice as late.
            channel.due = channel.lacking.max(0.0) as u32;
            channel.lacking -= f64::from(channel.due);
            channel.in_burst = in_burst;
            sent += channel.due;
        }
        self.emitting = 0;
    }

    fn begin_slot(&mut self, now: Time, number: u64) {
        if number / CYCLE != self.slot / CYCLE {
            self.begin_cycle(now, number / CYCLE);
        }
        self.slot = number;
        self.starters.on_time(now);
        if announce::begins_withheld(number) {
            self.told_withheld = self.ladder.levels() - self.offered();
        }
    }

    fn begin_cycle(&mut self, now: Time, number: u64) {
        let before = self.shown;
        let shown = match self.demand.as_ref().and_then(Demand::known) {
            Some(mut levels) => {
                levels.retain(|level| *level <= self.levels());
                let is_starting = self.starters.are_there(now);
                let owed = self.demand.as_ref().and_then(Demand::owed).filter(|_| !is_starting);
                cycle::shown_to(number, &levels, owed)
            }
            None => cycle::shown(number, self.levels().min(announce::MOST_TOLD)),
        };
        // Nobody may have more than the ceiling, and where a switch floods a burst of more fills a path that just carries it.
        let highest = self.offered();
        self.shown = match shown {
            Shown::All if highest < self.ladder.levels() => Shown::UpTo((highest - 1).clamp(1, announce::MOST_TOLD)),
            shown => shown,
        };
        if let (Shown::Folded(level), Some(demand)) = (self.shown, &mut self.demand) {
            demand.on_folded(level);
        }
        for (number, channel) in self.channels.iter_mut().enumerate() {
            let (ladder, margin, size) = (&self.ladder, self.margin, self.packet_size);
            channel.plain_factor = cycle::plain_factor_after(ladder, number, margin, before, size);
            channel.next_level = cycle::next_level_burst(ladder, number, margin, self.shown, size);
        }
    }

    /// The ceiling is another from here on.
    fn tell(&mut self, change: ceiling::Change) {
        let Some((rate, cause)) = change else { return };
        self.silence_above();
        self.answers.push(Action::Observe(Observation::Ceiling { rate, cause }));
    }

    /// Channels that are not sent any more owe nobody anything.
    fn silence_above(&mut self) {
        let levels = self.levels();
        for channel in &mut self.channels[levels..] {
            (channel.lacking, channel.ahead, channel.due) = (0.0, 0.0, 0);
        }
    }

    /// The levels that receivers may have. They need not hear of what is not sent because nobody wants it: who wants it tells.
    fn offered(&self) -> usize {
        self.ceiling.levels().min(self.pace.levels())
    }

    /// The levels that are sent.
    fn levels(&self) -> usize {
        self.demand.as_ref().map_or(usize::MAX, Demand::levels).min(self.offered())
    }

    /// What the topmost channel sends on top of its rate, as all receivers of the highest level want it. Bursts are what they are without it, and
    /// while somebody starts there is none.
    fn part_of_next_step(&self, now: Time) -> Rate {
        let (levels, part) = (self.levels(), self.demand.as_ref().map_or(0, Demand::part));
        if part == 0 || self.starters.are_there(now) || levels >= self.offered() {
            return Rate::ZERO;
        }
        self.ladder.channel_rate(levels).scale(f64::from(part) / f64::from(EIGHTHS))
    }

    fn on_wanted(&mut self, now: Time, wanted: Wanted) {
        let Some(demand) = self.demand.as_mut().filter(|_| self.start.is_some()) else { return };
        if demand.on_report(now, wanted, self.announcement.interval()) {
            self.silence_above();
        }
    }

    /// A receiver reports a flood. That does not count if all receivers want all that is sent: then other traffic fills the path.
    fn on_report(&mut self, now: Time, report: Flooded) {
        if self.start.is_some() {
            self.announcement.on_probe(now);
            let sent = self.levels();
            if self.demand.as_ref().is_some_and(|demand| !demand.is_unwanted(sent)) {
                return;
            }
            let change = self.ceiling.on_report(now, report, self.announcement.interval().span());
            self.tell(change);
        }
    }

    /// A receiver tells whether its path is empty since so much is withheld.
    fn on_verdict(&mut self, now: Time, verdict: Verdict) {
        if self.start.is_some() {
            let change = self.ceiling.on_verdict(now, verdict, self.pace.levels());
            self.tell(change);
        }
    }

    /// A receiver tells what it has, and that it starts, or that its start is over.
    fn on_starting(&mut self, now: Time, starting: Starting) {
        if self.start.is_some() {
            self.starters.on_report(now, starting, self.levels());
            let level = usize::from(starting.level).min(self.ladder.levels());
            if level > 0 {
                self.answers.push(Action::Observe(Observation::Reached { level }));
            }
        }
    }

    fn on_probe(&mut self, now: Time, asked: Probe) {
        if self.start.is_none() {
            return;
        }
        if self.announcement.on_probe(now) {
            self.answers.push(probing::answer(asked));
        }
    }
}

impl Endpoint for Sender {
    fn handle(&mut self, now: Time, event: Event<'_>) {
        match event {
            Event::Start if self.start.is_none() => self.on_start(now),
            Event::Deadline => self.on_deadline(now),
            Event::Packet { .. } => {
                if let Some(asked) = probing::asked(&event) {
                    self.on_probe(now, asked);
                } else if let Some(report) = probing::reported(&event) {
                    self.on_report(now, report);
                } else if let Some(verdict) = probing::judged(&event) {
                    self.on_verdict(now, verdict);
                } else if let Some(wanted) = probing::wanted(&event) {
                    self.on_wanted(now, wanted);
                } else if let Some(starting) = probing::starting(&event) {
                    self.on_starting(now, starting);
                }
            }
            Event::Finish => {
                self.start = None;
                self.next_period = None;
                self.emitting = self.channels.len();
            }
            _ => {}
        }
    }

    fn poll(&mut self, _now: Time) -> Option<Action> {
        if let Some(answer) = self.answers.pop() {
            return Some(answer);
        }
        loop {
            let number = self.emitting as u16;
            let channel = self.channels.get_mut(self.emitting)?;
            if channel.due == 0 {
                self.emitting += 1;
                continue;
            }
            channel.due -= 1;
            let sequence = channel.sequence & (u32::MAX >> (32 - self.form.sequence_bits()));
            channel.sequence = channel.sequence.wrapping_add(1);
            let layered = Layered { signal: channel.in_burst, channel: number, sequence, ..self.stamp };
            let packet = Packet { header: Header::Layered(layered), size: self.packet_size, ecn: Ecn::NotEct };
            return Some(Action::send_fresh(Destination::Channel(ChannelId(number)), packet));
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.next_period
    }
}

/// From one look at the audience to the next, for people.
const AUDIENCE_INTERVAL: Duration = Duration::from_millis(500);
/// A stalled sender catches up by this much at most: more would be a burst that no queue expects.
const MOST_PERIODS_AT_ONCE: u64 = 4;

#[cfg(test)]
mod tests {
    use super::super::config::StartUp;
    use super::*;
    use crate::definition::Habitat;
    use crate::endpoint::Origin;
    use crate::probing::PROBE_SIZE;
    use weir_wire::probe;

    const SIZE: Bytes = Bytes::new(1484);

    fn ladder() -> Ladder {
        Ladder::geometric(Rate::from_kbps(256), Rate::from_mbps(50), 1.15).expect("valid")
    }

    fn sender(start_up: StartUp) -> Sender {
        let session = Session { ladder: ladder(), packet_size: SIZE, form: CciForm::Short, habitat: Habitat::Sockets };
        Sender::new(&session, &Config { start_up, offer: Offer::All, ..Config::default() })
    }

    /// A sender that sends what receivers want.
    fn wanted_sender() -> Sender {
        let session = Session { ladder: ladder(), packet_size: SIZE, form: CciForm::Short, habitat: Habitat::Sockets };
        Sender::new(&session, &Config::default())
    }

    /// A receiver tells what it wants.
    fn tell(sender: &mut Sender, millis: u64, wanted: Wanted) {
        let packet = Packet { header: Header::Probe(Probe::wanted(wanted)), size: PROBE_SIZE, ecn: Ecn::NotEct };
        sender.handle(Time::from_millis(millis), Event::Packet { from: Origin::Unverified, packet: &packet });
    }

    fn emitted(sender: &mut Sender, now: Time, event: Event<'_>) -> Vec<(Time, Layered)> {
        sender.handle(now, event);
        let actions = core::iter::from_fn(|| sender.poll(now));
        let layered = actions.filter_map(|action| match action {
            Action::Send { packet: Packet { header: Header::Layered(layered), .. }, .. } => Some((now, layered)),
            _ => None,
        });
        layered.collect()
    }

    fn sent(sender: &mut Sender, until: Time) -> Vec<(Time, Layered)> {
        let mut all = match sender.start {
            None => emitted(sender, Time::ZERO, Event::Start),
            Some(_) => Vec::new(),
        };
        while let Some(at) = sender.deadline().filter(|at| *at < until) {
            all.extend(emitted(sender, at, Event::Deadline));
        }
        all
    }

    /// Packets of a level in a span, over what its rate sends in that time.
    fn share(sent: &[(Time, Layered)], level: usize, from: u64, to: u64) -> f64 {
        let span = Time::from_millis(from)..Time::from_millis(to);
        let of_level = |(at, layered): &&(Time, Layered)| span.contains(at) && usize::from(layered.channel) < level;
        let expected = ladder().level_rate(level).packets_per_sec(SIZE) * (to - from) as f64 / 1e3;
        sent.iter().filter(of_level).count() as f64 / expected
    }

    #[test]
    fn every_level_has_its_rate_over_a_cycle_and_numbers_without_a_gap() {
        for start_up in [StartUp::Never, StartUp::Always] {
            let sent = sent(&mut sender(start_up), Time::from_secs(16));
            for level in 1..=ladder().levels() {
                let share = share(&sent, level, 0, 16_000);
                assert!((share - 1.0).abs() < 0.02, "{start_up:?}, level {level}: {share}");
            }
            let numbers = sent.iter().filter(|(_, layered)| layered.channel == 5).map(|(_, layered)| layered.sequence);
            assert!(numbers.enumerate().all(|(count, number)| number == count as u32));
        }
    }

    #[test]
    fn in_the_last_slot_of_a_cycle_each_level_up_to_the_limit_sees_the_next_one_to_within_three_packets() {
        let sent = sent(&mut sender(StartUp::Never), Time::from_secs(8));
        for level in 1..ladder().levels() {
            let rate = ladder().level_rate(level);
            let length = cycle::next_level_length(rate, SIZE).as_millis() as u64;
            for cycle in 0..10 {
                let begins = cycle * 800 + 700;
                let seen = share(&sent, level, begins, begins + length);
                let shown = cycle::shown(cycle, ladder().levels());
                // Above the limit it is a slot as any other.
                let off = if matches!(shown, Shown::UpTo(limit) if level > limit) { 3.5 } else { 3.0 };
                let burst = cycle::next_level_rate(&ladder(), level, 1.03, shown);
                let wanted = burst.bps() as f64 / rate.bps() as f64;
                let packets = rate.packets_per_sec(SIZE) * length as f64 / 1e3;
                assert!((seen - wanted).abs() * packets < off, "level {level}, cycle {cycle}: {seen} and not {wanted}");
            }
        }
        let in_bursts = sent.iter().filter(|(_, layered)| layered.signal);
        assert!(in_bursts.clone().count() > 100 && in_bursts.clone().all(|(_, layered)| layered.slot == 7));
    }

    /// When packets of start-up bursts were sent, in milliseconds.
    fn start_up_bursts(sent: &[(Time, Layered)]) -> Vec<u64> {
        let in_bursts = sent.iter().filter(|(_, layered)| layered.signal && layered.slot & 7 != 7);
        let mut times: Vec<_> = in_bursts.map(|(at, _)| at.as_micros() / 1_000).collect();
        times.dedup();
        times
    }

    fn report(sender: &mut Sender, millis: u64, report: Probe) {
        let packet = Packet { header: Header::Probe(report), size: PROBE_SIZE, ecn: Ecn::NotEct };
        sender.handle(Time::from_millis(millis), Event::Packet { from: Origin::Unverified, packet: &packet });
    }

    #[test]
    fn who_cannot_tell_has_start_up_bursts_in_the_first_seconds_twice_in_a_slot() {
        let mut sender = sender(StartUp::Asked);
        let bursts = start_up_bursts(&sent(&mut sender, Time::from_millis(1_500)));
        assert_eq!(bursts[..8], [0, 5, 10, 15, 50, 55, 60, 65]);
        assert_eq!(start_up_bursts(&sent(&mut sender, Time::from_secs(5))), []);
        report(&mut sender, 5_010, Probe { kind: probe::Kind::Probe, clock_micros: 7 });
        assert_eq!(start_up_bursts(&sent(&mut sender, Time::from_secs(6))), [], "who only measures needs none");
    }

    #[test]
    fn who_tells_what_it_has_in_its_start_has_a_burst_at_once_until_it_tells_that_the_start_is_over() {
        let mut sender = sender(StartUp::Asked);
        sent(&mut sender, Time::from_millis(8_031));
        let tell = |sender: &mut Sender, millis, level| {
            report(sender, millis, Probe::starting(Starting { receiver: 3, level }));
        };
        tell(&mut sender, 8_031, 11);
        let first = sent(&mut sender, Time::from_millis(8_066));
        assert_eq!(start_up_bursts(&first), [8_035, 8_040, 8_045, 8_050]);
        let seen = share(&first, 11, 8_035, 8_055);
        assert!((seen / 4.0 - 1.0).abs() < 0.15, "{seen} of the rate");
        // All that it had is due to send less, and what it has joined makes up for that.
        tell(&mut sender, 8_066, 20);
        let second = sent(&mut sender, Time::from_millis(8_150));
        assert_eq!(start_up_bursts(&second), [8_070, 8_075, 8_080, 8_085]);
        let seen = share(&second, 20, 8_070, 8_090);
        assert!((2.5..3.3).contains(&seen), "{seen} of the rate");
        // Who tells no more has others, as its level may be joined by now.
        let third = start_up_bursts(&sent(&mut sender, Time::from_millis(8_200)));
        assert!(third.first().is_some_and(|at| (8_150..8_175).contains(at)), "{third:?}");
        tell(&mut sender, 8_200, 0);
        assert_eq!(start_up_bursts(&sent(&mut sender, Time::from_secs(12))), []);
    }

    #[test]
    fn bursts_that_nobody_asks_for_go_as_far_as_who_starts_may_have_climbed() {
        let mut sender = wanted_sender();
        tell(&mut sender, 0, Wanted { receiver: 1, level: 25, eighths: 0 });
        sent(&mut sender, Time::from_millis(3_000));
        tell(&mut sender, 3_000, Wanted { receiver: 1, level: 25, eighths: 0 });
        tell(&mut sender, 3_001, Wanted { receiver: 2, level: 16, eighths: 0 });
        report(&mut sender, 3_001, Probe::starting(Starting { receiver: 2, level: 11 }));
        let asked = sent(&mut sender, Time::from_millis(3_050));
        assert!(share(&asked, 11, 3_005, 3_025) > 3.0 && share(&asked, 25, 3_005, 3_025) < 1.5);
        let regular = sent(&mut sender, Time::from_millis(3_300));
        assert_eq!(start_up_bursts(&regular)[..4], [3_050, 3_055, 3_060, 3_065]);
        let of = |channel| share(&regular, channel + 1, 3_050, 3_070) - share(&regular, channel, 3_050, 3_070);
        assert!(share(&regular, 16, 3_050, 3_070) > 1.5, "{}", share(&regular, 16, 3_050, 3_070));
        assert!(of(20).abs() < 0.2, "level 21 has its rate as ever");
    }

    #[test]
    fn reports_of_starts_make_nobody_probe_seldom() {
        let mut sender = wanted_sender();
        sent(&mut sender, Time::from_millis(100));
        let before = sender.announcement.interval();
        for step in 0..6 {
            for receiver in 0..50 {
                let level = 10 + step as u16;
                report(&mut sender, 100 + 20 * step, Probe::starting(Starting { receiver, level }));
            }
            sent(&mut sender, Time::from_millis(120 + 20 * step));
        }
        assert_eq!(sender.announcement.interval(), before);
    }

    #[test]
    fn bursts_that_a_receiver_asks_for_leave_each_level_its_rate_and_the_next_levels_burst_alone() {
        let mut sender = sender(StartUp::Asked);
        let mut all = sent(&mut sender, Time::from_secs(2));
        for step in 0..200 {
            let level = [11, 20, 27, 33][step as usize % 4];
            report(&mut sender, 2_000 + step * 40, Probe::starting(Starting { receiver: 3, level }));
            all.extend(sent(&mut sender, Time::from_millis(2_040 + step * 40)));
        }
        assert!(start_up_bursts(&all).iter().filter(|at| **at > 2_000).count() > 200);
        for level in 1..=ladder().levels() {
            let share = share(&all, level, 2_400, 10_000);
            assert!((share - 1.0).abs() < 0.05, "level {level}: {share}");
        }
        let of_bursts = |at: &u64| at % 800 < 700;
        assert!(start_up_bursts(&all).iter().all(of_bursts));
    }

    #[test]
    fn what_nobody_wants_is_not_sent_and_who_wants_more_has_it_in_the_next_period() {
        let mut sender = wanted_sender();
        let highest = |sent: &[(Time, Layered)]| sent.iter().map(|(_, layered)| layered.channel).max();
        let opened = sent(&mut sender, Time::from_millis(100));
        assert!(highest(&opened) < Some(25), "{:?}", highest(&opened));
        tell(&mut sender, 100, Wanted { receiver: 1, level: 12, eighths: 0 });
        let all = sent(&mut sender, Time::from_secs(9));
        assert_eq!(highest(&all), Some(11));
        assert!((share(&all, 12, 1_000, 9_000) - 1.0).abs() < 0.02, "{}", share(&all, 12, 1_000, 9_000));
        let withheld = |layered: &Layered| layered.slot & 7 == 2 && layered.slot >> 3 != 0;
        assert!(!all.iter().any(|(_, layered)| withheld(layered)), "receivers need not hear of it");
        tell(&mut sender, 9_000, Wanted { receiver: 1, level: 20, eighths: 0 });
        assert_eq!(highest(&sent(&mut sender, Time::from_millis(9_050))), Some(19));
    }

    #[test]
    fn the_topmost_channel_has_the_part_of_the_next_step_that_is_wanted_but_not_in_bursts() {
        let mut sender = wanted_sender();
        sent(&mut sender, Time::from_millis(100));
        tell(&mut sender, 100, Wanted { receiver: 1, level: 12, eighths: 4 });
        let starting = sent(&mut sender, Time::from_millis(1_500));
        assert!((share(&starting, 12, 200, 1_500) - 1.0).abs() < 0.03, "while somebody starts there is none");
        tell(&mut sender, 4_000, Wanted { receiver: 1, level: 12, eighths: 4 });
        let all = sent(&mut sender, Time::from_secs(17));
        assert_eq!(all.iter().map(|(_, layered)| layered.channel).max(), Some(11));
        // Half of 15 %, but in one slot of eight.
        let (below, above) = (share(&all, 11, 2_400, 16_800), share(&all, 12, 2_400, 16_800));
        assert!((above - 1.0 - 0.075 * 7.0 / 8.0).abs() < 0.01, "{above}");
        assert!((0.97..1.01).contains(&below), "{below}: all but the topmost channel lose a little to folded bursts");
        let burst = share(&all, 12, 7_100, 7_200);
        assert!((burst - 1.03 * 1.15).abs() < 0.1, "{burst}");
        tell(&mut sender, 17_000, Wanted { receiver: 2, level: 12, eighths: 0 });
        let all = sent(&mut sender, Time::from_secs(20));
        assert!((share(&all, 12, 17_000, 20_000) - 1.0).abs() < 0.02, "another one at the level wants nothing of it");
    }

    #[test]
    fn the_first_receiver_is_told_of_in_the_period_after_its_report_and_another_one_within_half_a_second() {
        let mut sender = wanted_sender();
        let told = |sender: &mut Sender, until: u64| {
            let mut told = Vec::new();
            while let Some(at) = sender.deadline().filter(|at| *at < Time::from_millis(until)) {
                sender.handle(at, Event::Deadline);
                while let Some(action) = sender.poll(at) {
                    if let Action::Observe(Observation::Audience(audience)) = action {
                        told.push((at.as_micros() / 1_000, audience.map(|audience| audience.receivers)));
                    }
                }
            }
            told
        };
        sender.handle(Time::ZERO, Event::Start);
        assert_eq!(told(&mut sender, 112), []);
        tell(&mut sender, 112, Wanted { receiver: 1, level: 12, eighths: 0 });
        assert_eq!(told(&mut sender, 130), [(115, Some(1))]);
        tell(&mut sender, 130, Wanted { receiver: 2, level: 12, eighths: 0 });
        assert_eq!(told(&mut sender, 700), [(615, Some(2))]);
    }

    #[test]
    fn a_late_deadline_is_made_up_for_by_four_periods_at_most() {
        let mut sender = sender(StartUp::Never);
        sent(&mut sender, Time::from_millis(100));
        let late = emitted(&mut sender, Time::from_secs(60), Event::Deadline).len() as f64;
        let periods = late / (Rate::from_mbps(50).packets_per_sec(SIZE) * 5e-3);
        assert!((3.0..5.5).contains(&periods), "{periods} periods");
        assert!(emitted(&mut sender, Time::from_secs(60), Event::Finish).is_empty());
        assert_eq!(sender.deadline(), None);
    }
}
