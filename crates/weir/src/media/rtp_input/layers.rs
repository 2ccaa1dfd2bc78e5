//! RTP streams with a layer each, put together to one: pictures are given out in the order of their times, on the clock that the streams'
//! sender reports give, or one SSRC; HEVC and H.264, whose pictures need not go by their times, in the order in which they can be decoded.
//! A picture waits for those of other layers that should come before it, but not for long; a layer that falls silent is left out, with those
//! above it. A state machine without clock or socket.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use weir_media::{AccessUnit, Codec, DecodeOrder, Head};
use weir_units::Time;

use super::stream::{LONGEST_WAIT, QUIET, Stream, Whole};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Layers {
    codec: Codec,
    tracks: Vec<Track>,
    /// Of HEVC and H.264.
    order: Option<DecodeOrder>,
    /// When the first packet came.
    began: Option<Time>,
    /// The time of the latest picture that was given out.
    given: Option<i64>,
    /// How many layers were whole, from the base up.
    whole: usize,
    /// How often layers came back, or a picture came too late for its place or found no room.
    breaks: u64,
    told: Vec<String>,
}

/// A layer.
#[derive(Debug)]
struct Track {
    /// Where it comes to.
    at: SocketAddr,
    stream: Stream,
    waiting: VecDeque<Waiting>,
    /// By how many ticks its time 0 is later than the base's.
    offset: Option<i64>,
    /// The time of its latest picture, and how long after the one before that was.
    latest: Option<i64>,
    gap: Option<i64>,
}

/// A picture that waits for its turn.
#[derive(Debug)]
struct Waiting {
    came: Time,
    picture: Whole,
    /// Of HEVC and H.264, what it says of its place.
    unit: Option<AccessUnit>,
}

impl Layers {
    /// Streams and where they come to, the base first. A stream that is alone is all layers.
    pub(super) fn new(codec: Codec, streams: Vec<(SocketAddr, Stream)>) -> Layers {
        let track =
            |(at, stream)| Track { at, stream, waiting: VecDeque::new(), offset: None, latest: None, gap: None };
        let tracks: Vec<Track> = streams.into_iter().map(track).collect();
        let whole = tracks.len();
        let order = DecodeOrder::new(codec).filter(|_| whole > 1);
        Layers { codec, tracks, order, began: None, given: None, whole, breaks: 0, told: Vec::new() }
    }

    /// A datagram came for a stream.
    pub(super) fn take(&mut self, number: usize, now: Time, from: SocketAddr, datagram: &[u8]) {
        self.began.get_or_insert(now);
        let track = &mut self.tracks[number];
        track.stream.take(now, from, datagram);
        for picture in track.stream.pictures.drain(..) {
            let unit = self.order.as_ref().and_then(|_| AccessUnit::read(self.codec, &picture.data));
            if self.order.is_none() || unit.is_some() {
                track.waiting.push_back(Waiting { came: now, picture, unit });
            }
        }
        while track.waiting.len() > MOST_WAITING {
            track.waiting.pop_front();
            self.breaks += 1;
        }
    }

    /// How often something was missing.
    pub(super) fn gaps(&self) -> u64 {
        self.breaks + self.tracks.iter().map(|track| track.stream.gaps).sum::<u64>()
    }

    /// What the user is to know, once.
    pub(super) fn told(&mut self) -> Vec<String> {
        let of_streams = self.tracks.iter_mut().flat_map(|track| std::mem::take(&mut track.stream.told));
        let mut told: Vec<String> = of_streams.collect();
        told.append(&mut self.told);
        told
    }

    /// The next picture, if it is known to be that.
    ///
    /// # Errors
    /// If a layer does not come at the beginning, or how its clock and the base's go together is not said.
    pub(super) fn next(&mut self, now: Time) -> io::Result<Option<Whole>> {
        if let [track] = &mut self.tracks[..] {
            return Ok(track.waiting.pop_front().map(|waiting| waiting.picture));
        }
        self.place();
        if self.given.is_none() && self.tracks.iter().any(|track| track.offset.is_none()) {
            return self.began.filter(|began| now.since(*began) > PATIENCE).map_or(Ok(None), |_| Err(self.lacking()));
        }
        self.leave_out_silent(now);
        Ok(if self.order.is_some() { self.next_by_decoding(now) } else { self.next_by_time(now) })
    }

    fn next_by_time(&mut self, now: Time) -> Option<Whole> {
        while let Some((time, place)) = self.first() {
            if self.is_held_by_another(now, time, place) {
                break;
            }
            let picture = self.tracks[place].pop(time)?;
            match self.given {
                Some(given) if time <= given => self.breaks += 1,
                // Before the base has begun nothing can be decoded.
                _ if time < 0 => {}
                _ => {
                    self.given = Some(time);
                    return Some(Whole { time: time.unsigned_abs(), ..picture });
                }
            }
        }
        None
    }

    fn next_by_decoding(&mut self, now: Time) -> Option<Whole> {
        self.leave_out_passed(now);
        let heads: Vec<_> = self.tracks[..self.whole].iter().map(|track| track.head(0)).collect();
        // With times no picture has two places.
        let place = self.order.as_ref()?.next(&heads).ok()??;
        let track = &self.tracks[place];
        let is_held = now.since(track.waiting.front()?.came) < LONGEST_HELD;
        if is_held && heads.iter().any(Option::is_none) {
            return None;
        }
        let (time, unit) = (track.first()?, track.head(0)?.unit);
        self.order.as_mut()?.take(unit);
        self.given = Some(time);
        let picture = self.tracks[place].pop(time)?;
        Some(Whole { time: time.max(0).unsigned_abs(), ..picture })
    }

    /// A picture that has waited for long has missed its turn, as what it refers to is lost: its layer goes on with the next that fits.
    fn leave_out_passed(&mut self, now: Time) {
        let Some(order) = &self.order else { return };
        for layer in 1..self.whole {
            let below = self.tracks[..layer].iter().find_map(|track| track.head(0));
            let track = &self.tracks[layer];
            if track.waiting.front().is_none_or(|first| now.since(first.came) < STALLED) {
                continue;
            }
            let fits = |ahead: &usize| track.head(*ahead).is_some_and(|head| order.fits(head, below));
            let passed = (0..track.waiting.len()).find(fits).unwrap_or(0);
            self.tracks[layer].waiting.drain(..passed);
            self.breaks += u64::from(passed > 0);
        }
    }

    /// Finds how the streams' clocks go together.
    fn place(&mut self) {
        let (base, others) = self.tracks.split_at_mut(1);
        base[0].offset = base[0].stream.later_than(&base[0].stream);
        for track in others {
            track.offset = track.stream.later_than(&base[0].stream);
        }
    }

    /// Why it cannot begin.
    fn lacking(&self) -> io::Error {
        let unheard = self.tracks.iter().find(|track| track.stream.heard().is_none());
        let text = match (unheard, self.tracks.iter().find(|track| track.offset.is_none())) {
            (Some(track), _) => format!("no RTP comes to {}, where a layer should", track.at),
            (None, track) => format!(
                "how the clocks of the RTP streams go together is not known: no RTCP sender report came for {}, to the port above it or to \
                 the same, and the streams have not one SSRC",
                track.map_or(self.tracks[0].at, |track| track.at)
            ),
        };
        io::Error::new(io::ErrorKind::InvalidData, text)
    }

    /// What is above a layer that has fallen silent may need what it lacks.
    fn leave_out_silent(&mut self, now: Time) {
        let is_there = |track: &&Track| track.offset.is_some() && !track.is_silent(now);
        let whole = self.tracks.iter().take_while(is_there).count();
        let before = std::mem::replace(&mut self.whole, whole);
        if whole < before {
            let at = self.tracks[whole].at;
            self.told.push(format!(
                "no RTP comes to {at} any more: its layer and those above it are left out until it comes again"
            ));
        }
        // Those that are back go on with a key picture.
        self.breaks += u64::from(whole > before);
        self.tracks[whole..].iter_mut().for_each(|track| track.waiting.clear());
    }

    /// The picture that comes first of those that are there: its time and its layer.
    fn first(&self) -> Option<(i64, usize)> {
        self.tracks.iter().enumerate().filter_map(|(place, track)| Some((track.first()?, place))).min()
    }

    /// Whether another layer may still bring a picture that comes before this one.
    fn is_held_by_another(&self, now: Time, time: i64, place: usize) -> bool {
        let came = self.tracks[place].waiting.front().map_or(now, |waiting| waiting.came);
        // That of its own layer has come.
        now.since(came) < LONGEST_HELD && self.tracks[..self.whole].iter().any(|track| track.may_come_before(time))
    }
}

impl Track {
    /// The time of the next picture, in ticks from the base's first.
    fn first(&self) -> Option<i64> {
        self.time(0)
    }

    /// The time of the picture this many places behind the next one.
    fn time(&self, ahead: usize) -> Option<i64> {
        let picture = &self.waiting.get(ahead)?.picture;
        Some(i64::try_from(picture.time).unwrap_or(i64::MAX).saturating_add(self.offset?))
    }

    /// That picture, with what it says of its place.
    fn head(&self, ahead: usize) -> Option<Head<'_>> {
        let unit = self.waiting.get(ahead)?.unit.as_ref()?;
        Some(Head { unit, time: self.time(ahead) })
    }

    /// Takes the next picture, whose time this is.
    fn pop(&mut self, time: i64) -> Option<Whole> {
        self.gap = self.latest.map(|latest| time - latest);
        self.latest = Some(time);
        self.waiting.pop_front().map(|waiting| waiting.picture)
    }

    /// Whether its next picture, which has not come, may have an earlier time than this.
    fn may_come_before(&self, time: i64) -> bool {
        // What reports say of clocks is not exact.
        let expected = self.latest.zip(self.gap).map(|(latest, gap)| latest + gap - gap / 8);
        self.waiting.is_empty() && expected.is_none_or(|expected| expected <= time)
    }

    fn is_silent(&self, now: Time) -> bool {
        let usual = self.gap.map_or(0, i64::unsigned_abs);
        let longest = (QUIET * 2).max(Duration::from_micros(usual * 100 / 9 * 4));
        self.stream.heard().is_none_or(|heard| now.since(heard) > longest)
    }
}

/// How long a picture waits for those of other layers: for as long as a packet of theirs is waited for, and a little more.
const LONGEST_HELD: Duration = LONGEST_WAIT.saturating_add(Duration::from_millis(50));
/// A picture that still fits nowhere then never will.
const STALLED: Duration = Duration::from_secs(1);
/// At the beginning all layers have to be there within this.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pictures of a layer that wait: 5 s of 120 a second.
const MOST_WAITING: usize = 600;

#[cfg(test)]
mod tests;
