//! From the packets of a programme to the pictures that a decoder can be given, at their times. A state machine without clock or
//! socket.

use std::time::Duration;

use weir_media::{Arrival, Assembler, Codec, Gate, Picture, Recovery};
use weir_net::live::order::{Due, Order};
use weir_net::live::playout::PlayOut;
use weir_units::{Seq, Time};
use weir_wire::media::{Media, StreamId};

use super::protected::Saying;

/// What came of a programme.
pub(super) struct Watch {
    codec: Codec,
    latency: Duration,
    /// Which start of the sender it is of.
    start: Option<u16>,
    layers: Vec<Layer>,
    order: Order<Taken>,
    play_out: PlayOut,
    gate: Gate,
    /// The highest picture number that came.
    newest: Option<Seq>,
    times: Times,
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
    /// Starts of the sender that were seen.
    pub(super) starts: u64,
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

impl Watch {
    /// Of a programme of so many layers, whose pictures are due `latency` after the sender got them.
    pub(super) fn new(codec: Codec, layers: usize, latency: Duration) -> Watch {
        let counts = WatchCounts { pictures: vec![0; layers], withheld: vec![0; layers], ..WatchCounts::default() };
        Watch {
            codec,
            latency,
            start: None,
            layers: Vec::new(),
            order: Order::default(),
            play_out: PlayOut::new(latency),
            gate: Gate::default(),
            newest: None,
            times: Times::default(),
            last_base: None,
            counts,
        }
    }

    /// A packet came.
    pub(super) fn take(&mut self, now: Time, media: &Media, payload: &[u8]) {
        let stream = StreamId::of(media.rtp.ssrc);
        if usize::from(stream.layer) >= self.counts.pictures.len() {
            return;
        }
        if self.start != Some(stream.start) {
            self.begin(stream.start);
        }
        let layer = &mut self.layers[usize::from(stream.layer)];
        let sequence = media.rtp.sequence;
        let back = match Saying::of(&media.rtp, media.picture) {
            None if stream.is_repair && !payload.is_empty() => layer.recovery.repair(payload),
            Some(saying) if !stream.is_repair && saying.place.layer == stream.layer => {
                let back = layer.recovery.source(sequence, &saying.with(payload));
                self.put(now, sequence, &saying, payload);
                back
            }
            _ => return,
        };
        for packet in back {
            let Some((saying, payload)) = Saying::split(&packet.packet) else { continue };
            if saying.place.layer == stream.layer {
                self.counts.recovered += 1;
                self.put(now, packet.sequence, &saying, payload);
            }
        }
    }

    /// The sender has started, or started again. What waits of the time before keeps its time.
    fn begin(&mut self, start: u16) {
        self.start = Some(start);
        let layer = |_| Layer { assembler: Assembler::new(self.codec), recovery: Recovery::default() };
        self.layers = (0..self.counts.pictures.len()).map(layer).collect();
        self.order = Order::default();
        self.play_out = PlayOut::new(self.latency);
        self.gate.reset();
        (self.newest, self.last_base, self.times) = (None, None, Times::default());
        self.counts.starts += 1;
    }

    fn put(&mut self, now: Time, sequence: u16, saying: &Saying, payload: &[u8]) {
        let Saying { marker, timestamp, place } = *saying;
        let arrival = Arrival { sequence, timestamp, marker, starts: place.is_start, info: saying.info(), payload };
        let Some(picture) = self.layers[usize::from(place.layer)].assembler.push(arrival) else { return };
        let number = u32::from(picture.info.number);
        let number = self.newest.map_or(Seq::new(u64::from(number) + (1 << 16)), |newest| newest.extend(number, 16));
        self.newest = self.newest.max(Some(number));
        let due = self.play_out.due(now, self.times.micros(picture.timestamp));
        self.order.push(number, Due::at(due), Taken { picture, due });
    }

    /// The next picture for the decoder at `now`, and by how much later than it was due it goes. With `is_full` the output takes none:
    /// those that are due are lost.
    pub(super) fn pop(&mut self, now: Time, is_full: bool) -> Option<(Picture, Duration)> {
        while let Some(Taken { picture, due }) = self.order.pop(now) {
            let layer = usize::from(picture.info.layer);
            if is_full || !self.gate.admit(&picture.info) {
                self.counts.withheld[layer] += 1;
                continue;
            }
            self.counts.pictures[layer] += 1;
            if layer == 0 {
                let pause = self.last_base.replace(due).map(|last| due.since(last));
                self.counts.longest_pause = self.counts.longest_pause.max(pause);
            }
            return Some((picture, now.since(due)));
        }
        self.counts.late = self.order.late();
        None
    }

    /// When the next picture is due.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.order.deadline()
    }
}
