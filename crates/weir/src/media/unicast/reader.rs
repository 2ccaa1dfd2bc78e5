//! A viewer of layered media: how far it has got in each layer, and which part it gets next, by RAP's layer manager. A state machine without
//! clock or socket.

use std::collections::VecDeque;
use std::time::Duration;

use weir_core::observation::{LayersCause, Observation, PayloadFate};
use weir_core::scheme::rap::quality::{Carried, LayerManager, QualityConfig, Turn};
use weir_units::{Bytes, Time};
use weir_wire::rtp::{Origin, Part as WirePart, Rtp};

use super::shelf::{Part, Shelf};
use crate::live::{LayersProgress, Next};

/// See the module's documentation.
pub(super) struct Reader {
    manager: LayerManager,
    packet_size: Bytes,
    /// What it gets may begin there; its first key picture is at this or later.
    from: Duration,
    /// Where it began in the programme, once there is a key picture to begin with.
    began: Option<Duration>,
    /// When its first packet went.
    zero: Option<Time>,
    /// For each layer, the number of the next part, and whether anything of it went since it was added.
    next: Vec<u64>,
    has_joined: Vec<bool>,
    /// For each layer, up to where in the viewer's time pictures went.
    covered: Vec<Duration>,
    is_live: bool,
    /// From when a part goes until it plays, if it goes at its time, and until it is of no use any more.
    delay: Duration,
    useful: Duration,
    /// The next part that goes.
    ready: Option<Ready>,
    /// Pictures that went, all of them.
    sent: Sent,
    /// Parts that may go again, by the manager's numbers, which begin with `kept_from`.
    kept: VecDeque<(usize, Part)>,
    kept_from: u64,
    /// The manager's number of each payload that congestion control may still tell of; the first is payload `told_from`.
    under_way: VecDeque<u64>,
    told_from: u64,
    /// Nothing is wanted before.
    rests_until: Option<Time>,
    counts: Counts,
}

/// What became of a viewer's layers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) added: u64,
    pub(super) left: u64,
    pub(super) underflows: u64,
    /// Pictures that did not go though their layer does: too late, or needing one that did not.
    pub(super) dropped: u64,
}

impl Counts {
    /// These and others.
    pub(super) fn plus(self, other: Counts) -> Counts {
        Counts {
            added: self.added + other.added,
            left: self.left + other.left,
            underflows: self.underflows + other.underflows,
            dropped: self.dropped + other.dropped,
        }
    }
}

/// A part that goes next.
struct Ready {
    number: u64,
    layer: usize,
    part: Part,
    is_again: bool,
}

/// Which pictures went, of the latest.
struct Sent([Option<u16>; LATEST]);

impl Sent {
    fn note(&mut self, number: u16) {
        self.0[usize::from(number) % LATEST] = Some(number);
    }

    fn contains(&self, number: u16) -> bool {
        self.0[usize::from(number) % LATEST] == Some(number)
    }
}

impl Reader {
    /// A viewer who gets packets of this size, from the first key picture at `from` on.
    pub(super) fn new(config: QualityConfig, packet_size: Bytes, from: Duration) -> Reader {
        Reader {
            manager: LayerManager::new(config),
            packet_size,
            from,
            began: None,
            zero: None,
            next: vec![0; config.layers.as_slice().len()],
            has_joined: vec![false; config.layers.as_slice().len()],
            covered: vec![Duration::ZERO; config.layers.as_slice().len()],
            delay: config.start_up_delay,
            useful: config.start_up_delay * if config.live.is_some() { 2 } else { 1 },
            is_live: config.live.is_some(),
            ready: None,
            sent: Sent([None; LATEST]),
            kept: VecDeque::new(),
            kept_from: 0,
            under_way: VecDeque::new(),
            told_from: 0,
            rests_until: None,
            counts: Counts::default(),
        }
    }

    /// Finds what goes next, if nothing is there.
    pub(super) fn refill(&mut self, now: Time, shelf: &Shelf) {
        if self.ready.is_some() || self.rests_until.is_some_and(|until| now < until) {
            return;
        }
        let Some(began) = self.begin(shelf) else { return };
        self.rests_until = None;
        // Every turn goes on in a layer, so that there is an end.
        loop {
            let next = &self.next;
            let has_new = |layer: usize| shelf.from(layer, next[layer]).is_some();
            match self.manager.next(now, has_new) {
                Some(Turn::Again { layer, number }) => self.ready = self.again(layer, number),
                Some(Turn::New { layer, from }) => self.ready = self.fresh(now, shelf, began, layer, from),
                None => {
                    let wanted = self.manager.wants_at(now, has_new);
                    self.rests_until = wanted.map(|wanted| wanted.max(now + LEAST_REST));
                    break;
                }
            }
            if self.ready.is_some() {
                break;
            }
        }
        self.look();
    }

    /// Where it begins in the programme.
    fn begin(&mut self, shelf: &Shelf) -> Option<Duration> {
        if self.began.is_none() {
            let entry = shelf.entry(self.from)?;
            self.next.clone_from(&entry.parts);
            self.began = Some(entry.at);
        }
        self.began
    }

    /// What was lost, again.
    fn again(&self, layer: usize, number: u64) -> Option<Ready> {
        let (_, part) = self.kept.get(usize::try_from(number.checked_sub(self.kept_from)?).ok()?)?;
        Some(Ready { number, layer, part: part.clone(), is_again: true })
    }

    /// The next part of a layer that plays at `from` or later, and can be decoded. What another layer has to bring first goes first.
    fn fresh(&mut self, now: Time, shelf: &Shelf, began: Duration, layer: usize, from: Duration) -> Option<Ready> {
        let mut margin = Duration::ZERO;
        loop {
            let part = self.part(shelf, layer)?;
            let plays = part.at.saturating_sub(began);
            // A layer that has joined goes on where it is, as long as that comes in time.
            let is_late = match self.has_joined[layer] {
                true => plays + part.span / 2 < self.manager.reach(now + margin, layer),
                false => plays + part.span <= from,
            };
            let place = part.place;
            let needed = place.number.wrapping_sub(place.needs.into());
            let is_met = !place.is_start || place.needs == 0 || self.sent.contains(needed);
            if !is_late && is_met {
                self.next[layer] += 1;
                self.has_joined[layer] = true;
                let number = self.kept_from + self.kept.len() as u64;
                return Some(Ready { number, layer, part, is_again: false });
            }
            if !is_late && let Some(below) = self.layer_behind(shelf, layer, part.at) {
                return self.fresh(now, shelf, began, below, self.manager.reach(now, below));
            }
            if is_late {
                margin = self.margin(layer);
            }
            self.pass_over(shelf, layer, place.number);
            self.counts.dropped += u64::from(self.has_joined[layer]);
        }
    }

    /// How much earlier than just in time a picture has to go. An upper layer of a live programme that is behind sends what is new, rather
    /// than what would come at the last moment.
    fn margin(&self, layer: usize) -> Duration {
        if self.is_live && layer > 0 { self.delay / 3 } else { Duration::ZERO }
    }

    /// The next part of a layer.
    fn part(&mut self, shelf: &Shelf, layer: usize) -> Option<Part> {
        let (number, part) = shelf.from(layer, self.next[layer])?;
        self.next[layer] = number;
        Some(part.clone())
    }

    /// A lower layer that has not got to this time yet.
    fn layer_behind(&self, shelf: &Shelf, layer: usize, at: Duration) -> Option<usize> {
        (0..layer).find(|below| shelf.from(*below, self.next[*below]).is_some_and(|(_, part)| part.at <= at))
    }

    /// Nothing more of a picture goes.
    fn pass_over(&mut self, shelf: &Shelf, layer: usize, number: u16) {
        while shelf.from(layer, self.next[layer]).is_some_and(|(_, part)| part.place.number == number) {
            self.next[layer] += 1;
        }
    }

    /// How many payloads wait.
    pub(super) fn waiting(&self) -> u64 {
        u64::from(self.ready.is_some())
    }

    /// The part that goes at `now`.
    pub(super) fn take(&mut self, now: Time) -> Option<Next> {
        let Ready { number, layer, part, is_again } = self.ready.take()?;
        let zero = *self.zero.get_or_insert(now);
        let plays = part.at.saturating_sub(self.began.unwrap_or_default());
        if !is_again {
            // Where nothing was left out, pictures follow one another whatever their timestamps are rounded to.
            let covered = self.covered[layer];
            let from = if plays > covered + part.span { plays } else { plays.min(covered) };
            let end = if part.marker { plays + part.span } else { from };
            let span = end.saturating_sub(from);
            self.manager.on_sent(now, &Carried { number, layer, from, span, bytes: self.packet_size });
            self.covered[layer] = covered.max(end);
            if part.marker {
                self.sent.note(part.place.number);
            }
            if part.marker && part.place.is_key {
                self.manager.on_entry(now);
            }
            self.kept.push_back((layer, part.clone()));
        }
        self.under_way.push_back(number);
        self.forget(now);
        let at = zero + plays;
        let lead = at.since(now).as_millis() as i64 - now.since(at).as_millis() as i64;
        let lead_ms = lead.clamp(i64::from(i16::MIN), i64::from(i16::MAX)) as i16;
        let wire = WirePart { picture: part.place, sequence: part.sequence, lead_ms };
        let origin = Some(Origin { micros: now.as_micros() as u32, part: Some(wire), ..Origin::default() });
        let header = Rtp { marker: part.marker, timestamp: part.timestamp, origin, ..Rtp::default() };
        Some(Next { header, payload: part.payload, is_again })
    }

    /// Forgets what congestion control cannot tell of any more, and what plays now.
    fn forget(&mut self, now: Time) {
        while self.under_way.len() > MOST_UNDER_WAY {
            self.under_way.pop_front();
            self.told_from += 1;
        }
        let plays_before = self.zero.map_or(Duration::ZERO, |zero| now.since(zero));
        let began = self.began.unwrap_or_default();
        while self.kept.front().is_some_and(|(_, part)| part.at + self.useful < began + plays_before) {
            self.kept.pop_front();
            self.kept_from += 1;
        }
    }

    /// Congestion control has observed something.
    pub(super) fn observe(&mut self, now: Time, observation: &Observation) {
        match observation {
            Observation::Pace(report) => self.manager.on_pace(now, report, self.packet_size),
            Observation::Payload { number, fate } => {
                let index = number.checked_sub(self.told_from).and_then(|index| usize::try_from(index).ok());
                let Some(number) = index.and_then(|index| self.under_way.get(index)).copied() else { return };
                match fate {
                    PayloadFate::Arrived => self.manager.on_acknowledged(now, number),
                    PayloadFate::Lost => {
                        self.manager.on_lost(now, number);
                        self.rests_until = None;
                    }
                }
            }
            _ => return,
        }
        self.look();
    }

    /// Notes what the manager has done.
    fn look(&mut self) {
        while let Some(report) = self.manager.poll_report() {
            self.counts.added += u64::from(report.cause == LayersCause::Add);
            self.counts.left += u64::from(report.cause == LayersCause::Drop);
            self.counts.underflows = report.underflows;
            if report.cause == LayersCause::Add {
                self.rests_until = None;
            }
            self.has_joined[self.manager.active()..].fill(false);
        }
    }

    /// When [`Reader::refill`] may find something though nothing new is on the shelf.
    pub(super) fn deadline(&self) -> Option<Time> {
        match &self.ready {
            Some(_) => None,
            None if self.manager.has_lost() && self.rests_until.is_none() => Some(Time::ZERO),
            None => self.rests_until,
        }
    }

    /// What it may still want begins there.
    pub(super) fn wants_from(&self, now: Time) -> Duration {
        let played = self.zero.map_or(Duration::ZERO, |zero| now.since(zero).saturating_sub(self.useful));
        self.began.map_or(self.from, |began| began + played)
    }

    /// How far ahead it has got in the base layer, in the programme's time.
    pub(super) fn wants_to(&self, now: Time, ahead: Duration) -> Duration {
        let played = self.zero.map_or(Duration::ZERO, |zero| now.since(zero));
        self.began.unwrap_or(self.from) + played + ahead
    }

    /// The programme has ended there: whether all of it has gone, and come.
    pub(super) fn is_served(&self, shelf: &Shelf) -> bool {
        let is_at_end = self.next.iter().enumerate().all(|(layer, next)| shelf.from(layer, *next).is_none());
        let is_under_way = self.manager.accounts().any(|account| account.under_way > 0);
        self.ready.is_none() && is_at_end && !is_under_way && !self.manager.has_lost()
    }

    /// The programme ends at this time.
    pub(super) fn end(&mut self, at: Duration) {
        self.manager.end(at.saturating_sub(self.began.unwrap_or_default()));
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    pub(super) fn progress(&self, now: Time) -> LayersProgress {
        let Counts { added, left, underflows, dropped } = self.counts;
        LayersProgress {
            layers: self.manager.active() as u64,
            of: self.next.len() as u64,
            added,
            left,
            base_ms: self.manager.buffered(now, 0).as_secs_f64() * 1e3,
            underflows,
            dropped_pictures: dropped,
        }
    }
}

/// Pictures that can need one another are fewer apart in the order in which they are sent: 20 s of 60 a second.
const LATEST: usize = 4096;
/// Packets whose fate is open are fewer: RAP tells so many apart.
const MOST_UNDER_WAY: usize = 1 << 15;
/// Nobody is asked again sooner whether he wants something.
const LEAST_REST: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests;
