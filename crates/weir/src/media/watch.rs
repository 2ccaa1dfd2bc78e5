//! From the packets of a programme to the pictures that a decoder can be given, at their times. A state machine without clock or
//! socket.

use std::time::Duration;

use weir_media::{Arrival, Assembler, Codec, Gate, Picture, Recovered, Recovery};
use weir_net::live::order::{Due, Order};
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
    /// Pictures that came after their time.
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
    order: Order<Taken>,
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
            order: Order::default(),
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
        self.order.push(number, Due::at(due), Taken { picture, due });
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
        Watch { codec, latency, era: None, before: None, last: None, last_base: None, counts }
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
        if self.before.as_ref().is_some_and(|before| before.order.deadline().is_none()) {
            self.before = None;
        }
        let era = self.before.as_mut().or(self.era.as_mut())?;
        while let Some(taken) = era.order.pop(now) {
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
        self.counts.late = era.order.late();
        None
    }

    /// When the next picture is due.
    pub(super) fn deadline(&self) -> Option<Time> {
        let era = |era: &Option<Era>| era.as_ref().and_then(|era| era.order.deadline());
        era(&self.before).or_else(|| era(&self.era))
    }
}
