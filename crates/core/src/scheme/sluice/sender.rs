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
/// were one stream, to within three packets, and a burst is what it should be at each of them. The packets of a period are spread over its
/// length, because small switches buffer few.
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
    /// When the next packets of this one are due.
    next_part: Option<Time>,
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
    /// Packets to send until the period is over, and now; and whether they are of a burst.
    planned: u32,
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
            planned: 0,
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
            next_part: None,
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
        self.emit_part(now);
    }

    fn on_deadline(&mut self, now: Time) {
        self.begin_period(now);
        if self.next_part.is_some_and(|at| at <= now) {
            self.emit_part(now);
        }
    }

    fn begin_period(&mut self, now: Time) {
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
        self.next_part = Some(now);
        let change = self.ceiling.on_time(now, self.levels());
        self.tell(change);
        self.tell_audience(now);
    }

    /// Tells which receivers there are, when that has changed: at once if there was none, as an application may ask them what they lack, else now and then.
    fn tell_audience(&mut self, now: Time) {
        let (looked, told) = self.told_audience;
        if told.is_some_and(|told| told.receivers > 0) && now.since(looked) < AUDIENCE_INTERVAL {
            return;
        }
        let audience = self.demand.as_ref().and_then(Demand::audience);
        self.told_audience = (now, audience);
        if audience != told {
            self.answers.push(Action::Observe(Observation::Audience(audience)));
        }
    }

    /// Plans to send what the channels earn in the `periods` that begin at `due`.
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
            let due = channel.lacking.max(0.0) as u32;
            channel.planned += due;
            channel.lacking -= f64::from(due);
            channel.in_burst = in_burst;
            sent += due;
        }
    }

    /// Makes the next part of the plan due, in equal shares at every level, so that all of it is sent by the end of the period. A start-up burst is not split:
    /// hosts are late now and then, and receivers would miss its last packets.
    fn emit_part(&mut self, now: Time) {
        let rest = self.next_period.map_or(Duration::ZERO, |next| next.since(now));
        let spans = rest.as_nanos().div_ceil(PART.as_nanos()).max(1) as u32;
        let all: u32 = self.channels.iter().map(|channel| channel.planned).sum();
        let is_start_up = self.start_up_ends.is_some_and(|end| now < end);
        let parts = if is_start_up { 1 } else { all.div_ceil(SMALLEST_PART).clamp(1, spans) };
        let (mut planned, mut sent) = (0, 0);
        for channel in &mut self.channels {
            planned += channel.planned;
            // What the driver did not fetch since the last time is not sent twice as late.
            channel.due = planned.div_ceil(parts).saturating_sub(sent).min(channel.planned);
            channel.planned -= channel.due;
            sent += channel.due;
        }
        self.next_part = (sent < all).then(|| now + rest.saturating_sub(PART * (spans - 1)));
        self.stamp.clock_micros = now.as_micros();
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
                match self.ceiling.tests_share_of() {
                    Some((level, tested)) => Shown::Folded(level, tested.min(level + announce::MOST_STEPS)),
                    None => cycle::shown_to(number, &levels, owed),
                }
            }
            None => cycle::shown(number, self.levels().min(announce::MOST_TOLD)),
        };
        // Nobody may have more than the ceiling, and where a switch floods a burst of more fills a path that just carries it.
        let highest = self.offered();
        self.shown = match shown {
            Shown::All if highest < self.ladder.levels() => Shown::UpTo((highest - 1).clamp(1, announce::MOST_TOLD)),
            shown => shown,
        };
        if let (Shown::Folded(level, _), Some(demand)) = (self.shown, &mut self.demand) {
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
            (channel.lacking, channel.ahead) = (0.0, 0.0);
            (channel.planned, channel.due) = (0, 0);
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
            let interval = self.announcement.interval().span();
            let change = match report.carried {
                Some(carried) => self.ceiling.on_report(now, report.receiver, carried, interval),
                None => {
                    let wanted = self.demand.as_ref().and_then(|demand| demand.wanted_by(report.receiver));
                    wanted.and_then(|wanted| self.ceiling.on_share(now, report.receiver, wanted, sent, interval))
                }
            };
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
                (self.next_period, self.next_part) = (None, None);
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
        self.next_period.map(|next| self.next_part.map_or(next, |part| part.min(next)))
    }
}

/// From one look at the audience to the next, for people.
const AUDIENCE_INTERVAL: Duration = Duration::from_millis(500);
/// Small switches can buffer what is sent in a millisecond, and hosts can keep to such times.
const PART: Duration = Duration::from_millis(1);
/// Every switch can buffer this many packets, so smaller parts would gain nothing.
const SMALLEST_PART: u32 = 8;
/// A stalled sender catches up by this much at most: more would be a burst that no queue expects.
const MOST_PERIODS_AT_ONCE: u64 = 4;

#[cfg(test)]
mod tests;
