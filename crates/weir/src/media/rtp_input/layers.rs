//! RTP streams with a layer each, put together to one: pictures are given out in the order of their times, on the clock that the streams'
//! sender reports give, or one SSRC. A picture waits for those of other layers that should come before it, but not for long; a layer that
//! falls silent is left out, with those above it. A state machine without clock or socket.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use weir_units::Time;

use super::stream::{LONGEST_WAIT, QUIET, Stream, Whole};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Layers {
    tracks: Vec<Track>,
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
    /// Pictures, and when they came.
    waiting: VecDeque<(Time, Whole)>,
    /// By how many ticks its time 0 is later than the base's.
    offset: Option<i64>,
    /// The time of its latest picture, and how long after the one before that was.
    latest: Option<i64>,
    gap: Option<i64>,
}

impl Layers {
    /// Streams and where they come to, the base first. A stream that is alone is all layers.
    pub(super) fn new(streams: Vec<(SocketAddr, Stream)>) -> Layers {
        let track =
            |(at, stream)| Track { at, stream, waiting: VecDeque::new(), offset: None, latest: None, gap: None };
        let tracks: Vec<Track> = streams.into_iter().map(track).collect();
        let whole = tracks.len();
        Layers { tracks, began: None, given: None, whole, breaks: 0, told: Vec::new() }
    }

    /// A datagram came for a stream.
    pub(super) fn take(&mut self, number: usize, now: Time, from: SocketAddr, datagram: &[u8]) {
        self.began.get_or_insert(now);
        let track = &mut self.tracks[number];
        track.stream.take(now, from, datagram);
        let come = track.stream.pictures.drain(..).map(|picture| (now, picture));
        track.waiting.extend(come);
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
            return Ok(track.waiting.pop_front().map(|(_, picture)| picture));
        }
        self.place();
        if self.given.is_none() && self.tracks.iter().any(|track| track.offset.is_none()) {
            return self.began.filter(|began| now.since(*began) > PATIENCE).map_or(Ok(None), |_| Err(self.lacking()));
        }
        self.leave_out_silent(now);
        while let Some((time, place)) = self.first() {
            if self.is_held_by_another(now, time, place) {
                break;
            }
            let track = &mut self.tracks[place];
            let Some((_, picture)) = track.waiting.pop_front() else { break };
            track.gap = track.latest.map(|latest| time - latest);
            track.latest = Some(time);
            match self.given {
                Some(given) if time <= given => self.breaks += 1,
                // Before the base has begun nothing can be decoded.
                _ if time < 0 => {}
                _ => {
                    self.given = Some(time);
                    return Ok(Some(Whole { time: time.unsigned_abs(), ..picture }));
                }
            }
        }
        Ok(None)
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
        let came = self.tracks[place].waiting.front().map_or(now, |(came, _)| *came);
        // That of its own layer has come.
        now.since(came) < LONGEST_HELD && self.tracks[..self.whole].iter().any(|track| track.may_come_before(time))
    }
}

impl Track {
    /// The time of the next picture, in ticks from the base's first.
    fn first(&self) -> Option<i64> {
        let (_, picture) = self.waiting.front()?;
        Some(i64::try_from(picture.time).unwrap_or(i64::MAX).saturating_add(self.offset?))
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
/// At the beginning all layers have to be there within this.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pictures of a layer that wait: 5 s of 120 a second.
const MOST_WAITING: usize = 600;

#[cfg(test)]
mod tests;
