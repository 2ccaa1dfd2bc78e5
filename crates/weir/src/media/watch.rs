//! From the packets of a programme to the pictures that a decoder can be given, at their times. A state machine without clock or
//! socket.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_media::{Arrival, Assembler, Codec, Gate, Picture, Recovered, Recovery};
use weir_net::live::playout::PlayOut;
use weir_units::{Seq, Time};
use weir_wire::media::{Media, StreamId};
use weir_wire::rtp::{Part, Rtp};

use super::protected::Saying;

/// What came of a programme.
pub(super) struct Watch {
    codec: Codec,
    latency: Duration,
    /// What comes now, and what waits of the sender's start before.
    era: Option<Era>,
    before: Option<Era>,
    /// When it was asked for pictures last.
    looked: Time,
    /// The picture that was given out last: its time for the decoder, and when it was due.
    last: Option<(u32, Time)>,
    /// When the base picture was due that was given out last.
    last_base: Option<Time>,
    pub(super) counts: WatchCounts,
}

/// What a watch did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct WatchCounts {
    /// Pictures given out, and pictures withheld, by layer.
    pub(super) pictures: Vec<u64>,
    pub(super) withheld: Vec<u64>,
    /// Pictures that came when they were of no use any more.
    pub(super) late: u64,
    /// Packets that repair brought back.
    pub(super) recovered: u64,
    /// The longest time between two pictures of the base layer, by when they were due.
    pub(super) longest_pause: Option<Duration>,
}

/// What came of one start of the sender.
struct Era {
    start: u16,
    layers: Vec<Layer>,
    /// Whole pictures by their numbers.
    waiting: BTreeMap<Seq, Taken>,
    /// The one that was given out last: none before it is of use any more.
    given_out: Option<Seq>,
    /// Pictures that came when they were of no use any more.
    late: u64,
    play_out: PlayOut,
    gate: Gate,
    /// The highest picture number that came.
    newest: Option<Seq>,
    times: Times,
    /// What its pictures' times are shifted by for the decoder, once the first is given out.
    shift: Option<u32>,
}

struct Layer {
    assembler: Assembler,
    recovery: Recovery,
}

/// A picture that waits for its time.
struct Taken {
    picture: Picture,
    due: Time,
}

impl Taken {
    /// The base goes on without it, and it is not shown so late.
    fn is_too_late(&self, now: Time, patience: Duration) -> bool {
        self.picture.info.layer > 0 && now.since(self.due) > patience / 3
    }
}

/// From RTP's times, which wrap, to microseconds, which do so later.
#[derive(Debug, Default)]
struct Times {
    last: Option<u32>,
    ticks: i64,
}

impl Times {
    fn micros(&mut self, timestamp: u32) -> u32 {
        let step = self.last.map_or(0, |last| timestamp.wrapping_sub(last) as i32);
        self.last = Some(timestamp);
        self.ticks = self.ticks.wrapping_add(i64::from(step));
        (self.ticks.wrapping_mul(100) / 9) as u32
    }
}

impl Era {
    fn new(start: u16, codec: Codec, layers: usize, latency: Duration) -> Era {
        let layer = |_| Layer { assembler: Assembler::new(codec), recovery: Recovery::default() };
        Era {
            start,
            layers: (0..layers).map(layer).collect(),
            waiting: BTreeMap::new(),
            given_out: None,
            late: 0,
            play_out: PlayOut::new(latency),
            gate: Gate::default(),
            newest: None,
            times: Times::default(),
            shift: None,
        }
    }

    /// A packet of a picture came, or came back. Without `due`, the picture's timestamp tells when it is.
    fn put(&mut self, now: Time, sequence: u16, saying: &Saying, payload: &[u8], due: Option<Time>) {
        let Saying { marker, timestamp, place } = *saying;
        let arrival = Arrival { sequence, timestamp, marker, starts: place.is_start, info: saying.info(), payload };
        let Some(picture) = self.layers[usize::from(place.layer)].assembler.push(arrival) else { return };
        let number = u32::from(picture.info.number);
        let number = self.newest.map_or(Seq::new(u64::from(number) + (1 << 16)), |newest| newest.extend(number, 16));
        self.newest = self.newest.max(Some(number));
        let due = due.unwrap_or_else(|| self.play_out.due(now, self.times.micros(picture.timestamp)));
        if self.given_out.is_some_and(|last| number <= last) {
            self.late += 1;
        } else {
            self.waiting.entry(number).or_insert(Taken { picture, due });
        }
    }

    /// The next picture that is due and that a decoder can be given, and those before it, which none will be given any more.
    ///
    /// A picture that needs one that is missing waits for it, up to `patience` longer than it was to: if that comes late, all that
    /// need it can be decoded.
    fn pop(&mut self, now: Time, patience: Duration) -> (Vec<Taken>, Option<Taken>) {
        let is_crowded = self.waiting.len() > MOST_WAITING;
        let due = self.waiting.iter().take_while(|(_, taken)| taken.due <= now || is_crowded);
        let usable = |taken: &Taken| self.gate.is_met(&taken.picture.info) && !taken.is_too_late(now, patience);
        let mut last = None;
        let mut found = None;
        for (number, taken) in due {
            if usable(taken) {
                found = Some(*number);
                break;
            }
            if taken.due + patience <= now || is_crowded {
                last = Some(*number);
            }
        }
        let Some(last) = found.or(last) else { return (Vec::new(), None) };
        let behind = self.waiting.split_off(&last.next());
        let mut gone: Vec<Taken> = std::mem::replace(&mut self.waiting, behind).into_values().collect();
        let found = found.and_then(|number| {
            self.given_out = Some(number);
            gone.pop()
        });
        (gone, found)
    }

    /// When [`Era::pop`], which looked last then, may find something though nothing more comes.
    fn deadline(&self, looked: Time, patience: Duration) -> Option<Time> {
        // As far as it looked: up to the first that was not due.
        let overdue = self.waiting.values().take_while(|taken| taken.due <= looked);
        let next = self.waiting.values().find(|taken| taken.due > looked);
        overdue.map(|taken| taken.due + patience).chain(next.map(|taken| taken.due)).min()
    }

    /// The picture with its time for the decoder, to which it all is one stream.
    fn shifted(&mut self, Taken { mut picture, due }: Taken, last: Option<(u32, Time)>) -> Taken {
        let shift = *self.shift.get_or_insert_with(|| match last {
            Some((timestamp, last_due)) => {
                let ticks = (due.since(last_due).as_micros() * 9 / 100).max(1) as u32;
                timestamp.wrapping_add(ticks).wrapping_sub(picture.timestamp)
            }
            None => 0,
        });
        picture.timestamp = picture.timestamp.wrapping_add(shift);
        Taken { picture, due }
    }
}

impl Watch {
    /// Of a programme of so many layers, whose pictures are due `latency` after the sender got them.
    pub(super) fn new(codec: Codec, layers: usize, latency: Duration) -> Watch {
        let counts = WatchCounts { pictures: vec![0; layers], withheld: vec![0; layers], ..WatchCounts::default() };
        Watch { codec, latency, era: None, before: None, looked: Time::ZERO, last: None, last_base: None, counts }
    }

    /// A packet came.
    pub(super) fn take(&mut self, now: Time, media: &Media, payload: &[u8]) {
        let stream = StreamId::of(media.rtp.ssrc);
        if usize::from(stream.layer) >= self.counts.pictures.len() {
            return;
        }
        let era = self.era(stream.start);
        let recovery = &mut era.layers[usize::from(stream.layer)].recovery;
        let back = match Saying::of(&media.rtp, media.picture) {
            None if stream.is_repair && !payload.is_empty() => recovery.repair(payload),
            Some(saying) if !stream.is_repair && saying.place.layer == stream.layer => {
                let back = recovery.source(media.rtp.sequence, &saying.with(payload));
                era.put(now, media.rtp.sequence, &saying, payload, None);
                back
            }
            _ => return,
        };
        let mut recovered = 0;
        for Recovered { sequence, packet } in back {
            let Some((saying, payload)) = Saying::split(&packet) else { continue };
            if saying.place.layer == stream.layer {
                recovered += 1;
                era.put(now, sequence, &saying, payload, None);
            }
        }
        self.counts.recovered += recovered;
    }

    /// A part of a picture came over unicast, in the sender's start of this number; the picture is due then.
    pub(super) fn take_part(&mut self, now: Time, start: u16, header: &Rtp, part: &Part, payload: &[u8], due: Time) {
        let saying = Saying { marker: header.marker, timestamp: header.timestamp, place: part.picture };
        if usize::from(saying.place.layer) < self.counts.pictures.len() {
            self.era(start).put(now, part.sequence, &saying, payload, Some(due));
        }
    }

    /// What comes of this start of the sender.
    fn era(&mut self, start: u16) -> &mut Era {
        if self.era.as_ref().is_some_and(|era| era.start != start) {
            self.before = self.era.take();
        }
        self.era.get_or_insert_with(|| Era::new(start, self.codec, self.counts.pictures.len(), self.latency))
    }

    /// The next picture for the decoder at `now`, and by how much later than it was due it goes. With `is_full` the output takes none:
    /// those that are due are lost.
    pub(super) fn pop(&mut self, now: Time, is_full: bool) -> Option<(Picture, Duration)> {
        if self.before.as_ref().is_some_and(|before| before.waiting.is_empty()) {
            self.before = None;
        }
        self.looked = now;
        let era = self.before.as_mut().or(self.era.as_mut())?;
        loop {
            let (gone, found) = era.pop(now, self.latency);
            for taken in gone {
                self.counts.withheld[usize::from(taken.picture.info.layer)] += 1;
            }
            self.counts.late = era.late;
            let taken = found?;
            let layer = usize::from(taken.picture.info.layer);
            if is_full || !era.gate.admit(&taken.picture.info) {
                self.counts.withheld[layer] += 1;
                continue;
            }
            let Taken { picture, due } = era.shifted(taken, self.last);
            self.last = Some((picture.timestamp, due));
            self.counts.pictures[layer] += 1;
            if layer == 0 {
                let pause = self.last_base.replace(due).map(|last| due.since(last));
                self.counts.longest_pause = self.counts.longest_pause.max(pause);
            }
            return Some((picture, now.since(due)));
        }
    }

    /// When the next picture is due, or given up.
    pub(super) fn deadline(&self) -> Option<Time> {
        let era = |era: &Option<Era>| era.as_ref().and_then(|era| era.deadline(self.looked, self.latency));
        era(&self.before).or_else(|| era(&self.era))
    }
}

/// Pictures that wait at a time, lest a sender fill the memory: a minute of sixty a second.
const MOST_WAITING: usize = 3_600;

#[cfg(test)]
mod tests {
    use super::*;
    use weir_media::Packetizer;
    use weir_wire::media::PicturePlace;

    const LATENCY: Duration = Duration::from_millis(300);

    /// Picture `number` of a programme with a picture every 40 ms, layers 0 and 1 in turn, and a key picture every 20 comes at `now`.
    fn come(watch: &mut Watch, now: Time, number: u16) {
        come_due(watch, now, number, due(number));
    }

    fn come_due(watch: &mut Watch, now: Time, number: u16, due: Time) {
        let is_key = number.is_multiple_of(20);
        let layer = (number % 2) as u8;
        let needs = if is_key { 0 } else { 2 - layer };
        let place = PicturePlace { number, needs, layer, is_key, is_leading: false, is_start: true };
        let info = weir_media::PictureInfo { number, needs, layer, is_key, is_leading: false };
        let picture = Picture { info, timestamp: u32::from(number) * 3_600, data: vec![number as u8; 100] };
        let payload = Packetizer::new(Codec::Vp9, 1_000).packetize(&picture).into_iter().next().expect("one");
        let header = Rtp { marker: true, timestamp: picture.timestamp, ..Rtp::default() };
        let part = Part { picture: place, sequence: number / 2, lead_ms: 0 };
        watch.take_part(now, 0, &header, &part, &payload.data, due);
    }

    fn due(number: u16) -> Time {
        Time::from_millis(1_000 + 40 * u64::from(number))
    }

    /// The pictures that go to the decoder until `now`, looking every 10 ms, and how late the latest of them is.
    fn shown(watch: &mut Watch, from: Time, to: Time) -> (Vec<u16>, Duration) {
        let (mut now, mut numbers, mut latest) = (from, Vec::new(), Duration::ZERO);
        while now <= to {
            while let Some((picture, late)) = watch.pop(now, false) {
                numbers.push(picture.info.number);
                latest = latest.max(late);
            }
            now += Duration::from_millis(10);
        }
        (numbers, latest)
    }

    #[test]
    fn a_base_picture_that_comes_late_still_goes_and_so_does_what_needs_it() {
        let mut watch = Watch::new(Codec::Vp9, 2, LATENCY);
        (0..20).filter(|number| *number != 4).for_each(|number| come(&mut watch, Time::ZERO, number));
        let (before, _) = shown(&mut watch, Time::ZERO, due(9));
        assert_eq!(before, [0, 1, 2, 3], "the rest waits for 4");
        come(&mut watch, due(9), 4);
        let (behind, late) = shown(&mut watch, due(9), due(20));
        assert_eq!(behind, [4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19], "5 is too late and needed by none");
        assert_eq!((late, watch.counts.withheld[..].to_vec()), (Duration::from_millis(200), vec![0, 1]));
    }

    #[test]
    fn a_base_picture_that_never_comes_is_waited_for_no_longer_than_the_next_key_picture() {
        let mut watch = Watch::new(Codec::Vp9, 2, LATENCY);
        (0..24).filter(|number| *number != 4).for_each(|number| come(&mut watch, Time::ZERO, number));
        let (numbers, late) = shown(&mut watch, Time::ZERO, due(30));
        assert_eq!((numbers, late), (vec![0, 1, 2, 3, 20, 21, 22, 23], Duration::ZERO));
        assert_eq!(watch.counts.withheld, [7, 8]);
        come(&mut watch, due(30), 4);
        assert_eq!((shown(&mut watch, due(30), due(40)).0, watch.counts.late), (vec![], 1));
        assert_eq!(watch.deadline(), None);
    }

    #[test]
    fn pictures_behind_one_that_is_due_far_ahead_ask_for_no_look_in_the_past() {
        let mut watch = Watch::new(Codec::Vp9, 2, LATENCY);
        (1..5).for_each(|number| come(&mut watch, Time::ZERO, number));
        // The first in order says that it is due in seconds, the others are long overdue.
        let far = due(0) + Duration::from_secs(10);
        come_due(&mut watch, Time::ZERO, 0, far);
        assert!(watch.pop(due(100), false).is_none());
        assert_eq!(watch.deadline(), Some(far));
    }

    #[test]
    fn a_missing_picture_of_an_upper_layer_delays_nothing() {
        let mut watch = Watch::new(Codec::Vp9, 2, LATENCY);
        (0..10).filter(|number| *number != 3).for_each(|number| come(&mut watch, Time::ZERO, number));
        assert_eq!(shown(&mut watch, Time::ZERO, due(10)), (vec![0, 1, 2, 4, 5, 6, 7, 8, 9], Duration::ZERO));
    }
}
