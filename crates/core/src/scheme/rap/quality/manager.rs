//! The layer manager: which layers are active, and which of them the next packet carries.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use weir_units::{Bytes, Rate, Time};

use super::config::QualityConfig;
use super::deficit::Demand;
use super::layer::{Account, Carried, Layer};
use super::patience::Patience;
use crate::observation::{LayersCause, LayersReport, PaceCause, PaceReport};

/// The layers of a stream on their way to a receiver, who plays them. The receiver's clock does not stop: what is not there when it
/// should play is passed over (decision 16).
#[derive(Debug, Clone)]
pub struct LayerManager {
    config: QualityConfig,
    layers: Vec<Layer>,
    /// What each layer plays, bit/s.
    rates: Vec<f64>,
    active: usize,
    patience: Patience,
    path: Path,
    /// When the receiver begins to play; `None` before it is known to have something.
    plays_from: Option<Time>,
    /// Where the stream ends; `None` while that is not known.
    ends: Option<Duration>,
    reports: VecDeque<LayersReport>,
}

/// What the next packet carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The next of a layer. [`LayerManager::on_sent`] is to be told of it.
    New {
        /// Which, the base being 0.
        layer: usize,
        /// From where in the stream's time on. What plays before that comes too late.
        from: Duration,
    },
    /// What was lost, again. It is taken as sent.
    Again {
        /// Of which layer.
        layer: usize,
        /// Its number.
        number: u64,
    },
}

/// What RAP says of the path.
#[derive(Debug, Clone, Copy)]
struct Path {
    /// The rate that it allows, bit/s.
    rate: f64,
    /// When it was first looked at, and when last.
    looks: Option<(Time, Time)>,
    /// What has come since.
    acknowledged: Bytes,
    /// What comes, averaged, bit/s.
    average: f64,
    /// S, bit/s².
    slope: f64,
    round_trip: Duration,
}

impl LayerManager {
    /// A manager that has sent nothing, over a path of which nothing is known.
    pub fn new(config: QualityConfig) -> LayerManager {
        let rates: Vec<f64> = config.layers.as_slice().iter().map(|rate| rate.bps() as f64).collect();
        // What a live stream brings cannot wait, and its upper layers give way to the lower ones anyway.
        let active = if config.live.is_some() { rates.len() } else { 1 };
        LayerManager {
            config,
            active,
            layers: rates.iter().map(|_| Layer::default()).collect(),
            rates,
            patience: Patience::new(config.live.is_some()),
            path: Path {
                rate: 0.0,
                looks: None,
                acknowledged: Bytes::ZERO,
                average: 0.0,
                slope: 1.0,
                round_trip: Duration::from_secs(1),
            },
            plays_from: None,
            ends: None,
            reports: VecDeque::new(),
        }
    }

    /// RAP has looked at its rate, after a step or because it backs off. The rate grows by a packet of `packet_size` a round trip with
    /// each round trip (Eq. 5).
    pub fn on_pace(&mut self, now: Time, pace: &PaceReport, packet_size: Bytes) {
        let secs = pace.smoothed_round_trip.as_secs_f64().max(LEAST_ROUND_TRIP);
        self.path.rate = pace.rate.bps() as f64;
        self.path.look(now, self.config.average_over);
        self.path.slope = packet_size.count().max(1) as f64 * 8.0 / (secs * secs);
        self.path.round_trip = pace.smoothed_round_trip;
        self.catch_up(now);
        match pace.cause {
            // What a live stream has buffered covers no deficit: its upper layers miss pictures, and go when they get none.
            PaceCause::Loss | PaceCause::Timeout | PaceCause::Mark | PaceCause::Silence
                if self.config.live.is_some() => {}
            PaceCause::Loss | PaceCause::Timeout | PaceCause::Mark | PaceCause::Silence => self.drop_uncovered(now),
            _ if self.may_add(now) => self.add(now),
            _ => {}
        }
        self.report(now, LayersCause::Pace);
    }

    /// What the next packet is to carry; `None` if the buffers are full. Of a layer without `has_new` there is nothing now that was not
    /// sent.
    ///
    /// First, from the base up, what each active layer needs to go on without a pause, lost pieces before new ones. Then, from the base
    /// up, what they need to survive one back-off, two, and so on to K_max. Then more of the lowest whose buffer is below its limit. Once
    /// all active layers have been sent up to the stream's end, another layer is added, as the path has nothing else to carry.
    pub fn next(&mut self, now: Time, has_new: impl Fn(usize) -> bool) -> Option<Turn> {
        self.catch_up(now);
        while self.may_finish(&has_new) && self.patience.is_over(now) {
            self.add(now);
        }
        for layer in 0..self.active {
            let reach = self.reach(now, layer);
            if let Some(number) = self.next_lost(now, layer, reach) {
                return Some(Turn::Again { layer, number });
            }
            if has_new(layer) && self.spare_secs(now, layer) <= 0.0 && !self.layers[layer].is_full() {
                return Some(self.new_piece(layer, reach));
            }
        }
        let layer = self.neediest(now, has_new)?;
        Some(self.new_piece(layer, self.reach(now, layer)))
    }

    /// Whether something that was lost may be worth sending again.
    pub fn has_lost(&self) -> bool {
        self.config.repair.is_some() && self.layers[..self.active].iter().any(Layer::has_lost)
    }

    /// When a packet is wanted, after [`LayerManager::next`] has said that none is; `None` if there is nothing that one could carry.
    pub fn wants_at(&self, now: Time, has_new: impl Fn(usize) -> bool) -> Option<Time> {
        let begins = self.plays_from.unwrap_or(now);
        let open = |layer: usize| self.layers[layer].frontier().saturating_sub(self.config.max_buffer);
        let next = (0..self.active).filter(|layer| has_new(*layer)).map(open).min();
        let more = self.may_finish(has_new).then(|| self.patience.until());
        next.map(|next| begins + next + Duration::from_nanos(1)).or(more)
    }

    /// Whether the active layers have been sent up to the stream's end while there are more layers.
    fn may_finish(&self, has_new: impl Fn(usize) -> bool) -> bool {
        self.ends.is_some() && self.active < self.layers.len() && !(0..self.active).any(has_new)
    }

    /// A packet goes out that was not sent before.
    pub fn on_sent(&mut self, now: Time, carried: &Carried) {
        self.catch_up(now);
        if let Some(layer) = self.layers.get_mut(carried.layer) {
            layer.send(now, carried);
        }
    }

    /// What has this number has come.
    pub fn on_acknowledged(&mut self, now: Time, number: u64) {
        self.catch_up(now);
        if let Some((bytes, sent)) = self.layers.iter_mut().find_map(|layer| layer.on_acknowledged(number)) {
            self.path.acknowledged += Bytes::new(bytes);
            // It came a little later than it was sent, so that the receiver begins no earlier than that.
            self.plays_from.get_or_insert(sent + self.config.start_up_delay);
        }
    }

    /// What has this number is lost.
    pub fn on_lost(&mut self, now: Time, number: u64) {
        self.catch_up(now);
        _ = self.layers.iter_mut().any(|layer| layer.on_lost(number));
    }

    /// All of a picture of the base that a decoder can begin with is on its way.
    pub fn on_entry(&mut self, now: Time) {
        self.patience.on_entry(now);
    }

    /// The stream ends there: nothing plays beyond.
    pub fn end(&mut self, at: Duration) {
        self.ends = Some(at);
    }

    /// What is to tell of changes, and of each call of [`LayerManager::on_pace`].
    pub fn poll_report(&mut self) -> Option<LayersReport> {
        self.reports.pop_front()
    }

    /// How many layers are sent.
    pub fn active(&self) -> usize {
        self.active
    }

    /// How long a piece of `bytes` of a layer plays, if the layer's rate is constant.
    pub fn span(&self, layer: usize, bytes: Bytes) -> Duration {
        self.config.layers.as_slice().get(layer).map_or(Duration::ZERO, |rate| bytes / *rate)
    }

    /// What has become of the bytes of each layer, the base first.
    pub fn accounts(&self) -> impl Iterator<Item = Account> {
        self.layers.iter().map(|layer| layer.account)
    }

    /// How long a layer could play on at `now` if nothing more of it were sent and nothing lost.
    pub fn buffered(&self, now: Time, layer: usize) -> Duration {
        self.layers.get(layer).map_or(Duration::ZERO, |layer| layer.frontier().saturating_sub(self.position(now)))
    }

    /// Where in the stream's time the receiver is.
    fn position(&self, now: Time) -> Duration {
        let position = self.plays_from.map_or(Duration::ZERO, |from| now.since(from));
        self.ends.map_or(position, |end| position.min(end))
    }

    /// From where on in the stream's time a packet of a layer that is sent now is of use.
    pub fn reach(&self, now: Time, layer: usize) -> Duration {
        self.position(now + self.path.round_trip / 2).saturating_sub(self.lateness(layer))
    }

    /// How late a layer may come. The base of a live stream is decoded though it is late: all that follows needs it.
    fn lateness(&self, layer: usize) -> Duration {
        if layer == 0 && self.config.live.is_some() { self.config.start_up_delay } else { Duration::ZERO }
    }

    /// The receiver has played up to now, and layers of which nothing is left are dropped.
    fn catch_up(&mut self, now: Time) {
        if self.plays_from.is_none_or(|from| now < from) {
            return;
        }
        let (position, underflows) = (self.position(now), self.layers[0].underflows);
        for number in 0..self.layers.len() {
            let useful_from = position.saturating_sub(self.lateness(number));
            self.layers[number].play(useful_from, number < self.active);
        }
        if self.layers[0].underflows > underflows {
            self.report(now, LayersCause::Underflow);
        }
        // A layer of a live stream may miss pictures for as long as its base may be late.
        let reach = self.reach(now, 0);
        while self.layers[1..self.active].iter().any(|layer| layer.frontier() < reach) {
            self.drop_top(now);
        }
    }

    /// After a back-off: the top layer is dropped as long as the buffers cannot cover the deficit (§2.1).
    fn drop_uncovered(&mut self, now: Time) {
        while self.active > 1 {
            let buffered = (0..self.active).map(|layer| self.spare(now, layer)).sum();
            if self.demand(self.active).is_covered_by(buffered) {
                break;
            }
            self.drop_top(now);
        }
    }

    fn drop_top(&mut self, now: Time) {
        self.active -= 1;
        self.patience.on_drop(now);
        self.report(now, LayersCause::Drop);
    }

    /// Whether what comes on average carries a layer more, as RAP's rate does, and the buffers would survive K_max back-offs with it
    /// (§4). What comes tells nothing of the path while the buffers are full, so a layer may be tried then (decision 17).
    fn may_add(&self, now: Time) -> bool {
        let more = self.active + 1;
        if more > self.layers.len() || !self.patience.is_over(now) {
            return false;
        }
        let demand = self.demand(more);
        let (total, k_max) = (demand.total(), self.config.k_max as u32);
        let holds = |layer| self.spare(now, layer) >= self.wanted(&demand, layer, k_max);
        let is_full =
            |layer| self.buffered(now, layer) + self.reserve(layer).max(self.grain()) >= self.config.max_buffer;
        let is_carried = self.path.average >= total && self.path.rate >= total;
        let is_safe = self.config.live.is_some() || (0..self.active).all(holds);
        is_safe && (is_carried || (0..self.active).all(is_full))
    }

    /// The new layer begins where a packet comes in time that has to wait for its turn; of a live stream where the base is, so that
    /// nothing has to be made up for.
    fn add(&mut self, now: Time) {
        let begins = match self.config.live {
            None => self.position(now + self.reserve(self.active)),
            Some(_) => self.layers[0].frontier(),
        };
        self.layers[self.active].go_on_at(begins);
        self.active += 1;
        self.patience.on_add(now);
        self.report(now, LayersCause::Add);
    }

    /// The lowest active layer that does not survive the fewest back-offs, with a layer more if there is one; else the lowest that
    /// has room.
    fn neediest(&self, now: Time, has_new: impl Fn(usize) -> bool) -> Option<usize> {
        let demand = self.demand((self.active + 1).min(self.layers.len()));
        let mut states = (1..=self.config.k_max as u32).flat_map(|k| (0..self.active).map(move |layer| (k, layer)));
        let is_open = |layer: usize| has_new(layer) && !self.layers[layer].is_full();
        let short =
            states.find(|(k, layer)| is_open(*layer) && self.spare(now, *layer) < self.wanted(&demand, *layer, *k));
        let has_room = |layer: &usize| is_open(*layer) && self.buffered(now, *layer) < self.config.max_buffer;
        short.map(|(_, layer)| layer).or_else(|| (0..self.active).find(has_room))
    }

    /// What a layer is to have, next to its reserve, to survive so many back-offs, bits: no more than its buffer's limit.
    fn wanted(&self, demand: &Demand<'_>, layer: usize, back_offs: u32) -> f64 {
        let room = self.config.max_buffer.saturating_sub(self.reserve(layer)).saturating_sub(self.grain());
        let limit = room.as_secs_f64() * self.rates[layer];
        demand.of_layer(layer, back_offs).min(limit)
    }

    /// What a layer has next to its reserve, bits.
    fn spare(&self, now: Time, layer: usize) -> f64 {
        self.spare_secs(now, layer).max(0.0) * self.rates[layer]
    }

    fn spare_secs(&self, now: Time, layer: usize) -> f64 {
        self.buffered(now, layer).as_secs_f64() - self.reserve(layer).as_secs_f64()
    }

    /// What a layer needs ahead of the receiver to play without a pause: what is on the way, and what is lost and comes again; of the base
    /// also if that is lost (decision 18).
    fn reserve(&self, layer: usize) -> Duration {
        self.path.round_trip * if layer == 0 { BASE_RESERVE } else { RESERVE }
    }

    /// How long the content lasts that comes at once.
    fn grain(&self) -> Duration {
        self.config.live.unwrap_or_default()
    }

    /// What the lowest `count` layers demand of the rate.
    fn demand(&self, count: usize) -> Demand<'_> {
        let Path { rate, slope, .. } = self.path;
        Demand { rates: &self.rates[..count], rate, slope, decrease: self.config.decrease }
    }

    fn next_lost(&mut self, now: Time, layer: usize, reach: Duration) -> Option<u64> {
        let oldest = now.since(Time::ZERO + self.config.repair?);
        self.layers[layer].next_lost(now, reach, Time::ZERO + oldest)
    }

    fn new_piece(&self, layer: usize, reach: Duration) -> Turn {
        Turn::New { layer, from: self.layers[layer].frontier().max(reach) }
    }

    fn report(&mut self, now: Time, cause: LayersCause) {
        let base = &self.layers[0];
        let report = LayersReport {
            layers: self.active,
            rate: Rate::from_bps(self.config.layers.as_slice()[..self.active].iter().map(|rate| rate.bps()).sum()),
            base_buffer: self.buffered(now, 0),
            buffered: Bytes::new(self.layers.iter().map(|layer| layer.account.ahead()).sum()),
            underflows: base.underflows,
            missing: base.missing,
            cause,
        };
        self.reports.push_back(report);
    }
}

impl Path {
    /// Averages what has come over this time, or over all of the time if that is less.
    fn look(&mut self, now: Time, over: Duration) {
        let Some((first, last)) = self.looks else {
            self.looks = Some((now, now));
            return;
        };
        let passed = now.since(last).as_secs_f64();
        if passed > 0.0 {
            let lately = self.acknowledged.count() as f64 * 8.0 / passed;
            let weight = passed / now.since(first).min(over).as_secs_f64().max(passed);
            self.average += weight * (lately - self.average);
            (self.looks, self.acknowledged) = (Some((first, now)), Bytes::ZERO);
        }
    }
}

/// A round trip counts as at least this, seconds, so that the slope has an end.
const LEAST_ROUND_TRIP: f64 = 1e-4;
/// Round trips: a packet takes half of one, its loss shows after one or a little more, and the repair takes another half.
const RESERVE: u32 = 3;
/// The repair's loss and the second repair take two more.
const BASE_RESERVE: u32 = 5;

#[cfg(test)]
mod tests;
