//! What waits to be sent of one layer: pictures in packets, and repair of those that went. A state machine without clock or socket.

use std::collections::VecDeque;
use std::time::Duration;

use weir_media::{Block, Codec, MAX_BLOCK_PACKETS, Packetizer, Picture, Protector, REPAIR_OVERHEAD};
use weir_units::Time;
use weir_wire::media::{Media, PicturePlace, StreamId, filled};
use weir_wire::rtp::Rtp;

use super::protected::Saying;

/// The packets of a layer.
pub(super) struct LayerQueue {
    stream: Stream,
    packetizer: Packetizer,
    waiting: VecDeque<Waiting>,
    /// Numbers of the next picture's packet and of the next repair packet.
    sequence: u16,
    repair_sequence: u16,
    protector: Protector,
    /// When the first packet of the block that is being collected went.
    block_began: Option<Time>,
    /// Blocks that repair can still be of use to, the latest last.
    blocks: VecDeque<Repaired>,
    /// The packet that was asked for last.
    packet: Vec<u8>,
    pub(super) counts: Counts,
}

/// What all packets of a layer have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    pub(super) id: StreamId,
    /// Payload type of pictures; that of repair is one more.
    pub(super) payload_type: u8,
    /// Bytes of payload in every packet.
    pub(super) room: usize,
    /// A picture that has waited for longer is not begun.
    pub(super) longest_wait: Duration,
    /// A block is the packets that are repaired together. It ends with this many, or this long after its first.
    pub(super) block_packets: usize,
    pub(super) block_time: Duration,
}

/// What a layer's queue did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counts {
    /// Pictures that went out whole.
    pub(super) pictures: u64,
    /// Pictures that had waited for too long, or needed one that had.
    pub(super) dropped: u64,
    /// Packets of repair and padding.
    pub(super) repair: u64,
}

/// A block of packets that went.
struct Repaired {
    block: Block,
    ended: Time,
    packets: usize,
    /// Repair packets that were sent for it.
    sent: u16,
}

impl Repaired {
    /// Repair packets for each packet.
    fn share(&self) -> f64 {
        f64::from(self.sent) / self.packets as f64
    }
}

/// A packet of a picture.
struct Waiting {
    saying: Saying,
    payload: Vec<u8>,
    entered: Time,
}

/// Pictures that were not sent, over all layers, so that those that need them are not either.
#[derive(Debug, Default)]
pub(super) struct Dropped(VecDeque<u16>);

impl Dropped {
    fn contains(&self, number: u16) -> bool {
        self.0.contains(&number)
    }

    fn note(&mut self, number: u16) {
        if self.0.len() == MOST_DROPPED {
            self.0.pop_front();
        }
        self.0.push_back(number);
    }
}

impl Stream {
    /// Of a layer whose pictures wait for half of the latency at most. Where its channels carry other layers, too, receivers get most of it
    /// by repair: its blocks are as long as the latency allows, as longer ones need less repair for each packet.
    pub(super) fn new(id: StreamId, payload_type: u8, room: usize, latency: Duration, is_spread: bool) -> Stream {
        let (block_packets, block_time) =
            if is_spread { (MAX_BLOCK_PACKETS, latency / 8) } else { (BLOCK_PACKETS, BLOCK_TIME) };
        Stream { id, payload_type, room, longest_wait: latency / 2, block_packets, block_time }
    }

    /// The most bytes of a picture in a packet: what repair brings back of it has to fit into one, too.
    pub(super) fn most_payload(room: usize) -> usize {
        room - REPAIR_OVERHEAD - Saying::LEN
    }
}

impl LayerQueue {
    pub(super) fn new(stream: Stream, codec: Codec) -> LayerQueue {
        LayerQueue {
            stream,
            packetizer: Packetizer::new(codec, Stream::most_payload(stream.room)),
            waiting: VecDeque::new(),
            sequence: 0,
            repair_sequence: 0,
            protector: Protector::default(),
            block_began: None,
            blocks: VecDeque::new(),
            packet: vec![0; stream.room],
            counts: Counts::default(),
        }
    }

    /// A picture is to be sent.
    pub(super) fn push(&mut self, now: Time, picture: &Picture) {
        let info = picture.info;
        for payload in self.packetizer.packetize(picture) {
            let place = PicturePlace {
                number: info.number,
                needs: info.needs,
                // A layer that is found while the session runs goes with the highest that was described.
                layer: self.stream.id.layer,
                is_key: info.is_key,
                is_leading: info.is_leading,
                is_start: payload.starts,
            };
            let saying = Saying { marker: payload.marker, timestamp: picture.timestamp, place };
            self.waiting.push_back(Waiting { saying, payload: payload.data, entered: now });
        }
    }

    /// For how long the next packet has waited.
    pub(super) fn waited(&self, now: Time) -> Duration {
        self.waiting.front().map_or(Duration::ZERO, |first| now.since(first.entered))
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The next packet: of a picture, or else one that repairs what went lately, or else padding. With `repair_only` no picture's.
    pub(super) fn next(&mut self, now: Time, dropped: &mut Dropped, repair_only: bool) -> (Media, &[u8]) {
        self.drop_late(now, dropped);
        let is_old = self.block_began.is_some_and(|began| now.since(began) >= self.stream.block_time);
        if is_old || self.protector.len() >= self.stream.block_packets {
            self.close_block(now);
        }
        match self.waiting.pop_front() {
            Some(waiting) if !repair_only => self.picture(now, &waiting),
            waiting => {
                waiting.into_iter().for_each(|waiting| self.waiting.push_front(waiting));
                self.repair(now)
            }
        }
    }

    fn picture(&mut self, now: Time, Waiting { saying, payload, .. }: &Waiting) -> (Media, &[u8]) {
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        self.counts.pictures += u64::from(saying.marker);
        let protected = saying.with(payload);
        if !self.protector.push(sequence, &protected) {
            self.close_block(now);
            // One that fits into no block goes unprotected.
            let _is_protected = self.protector.push(sequence, &protected);
        }
        self.block_began.get_or_insert(now);
        let rtp = Rtp {
            marker: saying.marker,
            payload_type: self.stream.payload_type,
            sequence,
            timestamp: saying.timestamp,
            ssrc: self.stream.id.ssrc(),
            origin: None,
        };
        let fill = filled(payload, self.stream.room, &mut self.packet);
        (Media { rtp, picture: Some(saying.place), fill }, &self.packet)
    }

    /// Repair for the block that has had the least for its size, the oldest of several; padding where there is none.
    fn repair(&mut self, now: Time) -> (Media, &[u8]) {
        let useful = self.stream.longest_wait;
        while self.blocks.front().is_some_and(|block| now.since(block.ended) > useful) {
            self.blocks.pop_front();
        }
        let neediest = self.blocks.iter_mut().min_by(|a, b| a.share().total_cmp(&b.share()));
        let payload = neediest.map(|repaired| {
            repaired.sent = repaired.sent.wrapping_add(1);
            repaired.block.repair(repaired.sent - 1)
        });
        let payload = payload.unwrap_or_default();
        self.counts.repair += 1;
        self.repair_sequence = self.repair_sequence.wrapping_add(1);
        let rtp = Rtp {
            payload_type: self.stream.payload_type + 1,
            sequence: self.repair_sequence,
            ssrc: StreamId { is_repair: true, ..self.stream.id }.ssrc(),
            ..Rtp::default()
        };
        let fill = filled(&payload, self.stream.room, &mut self.packet);
        (Media { rtp, picture: None, fill }, &self.packet)
    }

    fn close_block(&mut self, now: Time) {
        self.block_began = None;
        let packets = self.protector.len();
        let block = self.protector.close();
        self.blocks.extend(block.map(|block| Repaired { block, ended: now, packets, sent: 0 }));
    }

    /// Pictures that would come too late are left out whole, and those that need them.
    pub(super) fn drop_late(&mut self, now: Time, dropped: &mut Dropped) {
        while let Some(Waiting { saying, entered, .. }) = self.waiting.front() {
            let PicturePlace { number, needs, is_start, .. } = saying.place;
            let is_late = now.since(*entered) > self.stream.longest_wait;
            let lacks = needs > 0 && dropped.contains(number.wrapping_sub(needs.into()));
            if !is_start || !(is_late || lacks) {
                return;
            }
            dropped.note(number);
            self.counts.dropped += 1;
            while self.waiting.front().is_some_and(|next| next.saying.place.number == number) {
                self.waiting.pop_front();
            }
        }
    }
}

/// A block of a layer with channels of its own.
const BLOCK_PACKETS: usize = 32;
const BLOCK_TIME: Duration = Duration::from_millis(200);
/// Pictures that can need one another are fewer apart.
const MOST_DROPPED: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use weir_media::PictureInfo;

    const ROOM: usize = 1000;

    fn queue() -> LayerQueue {
        let id = StreamId { tsi: 7, start: 1, is_repair: false, layer: 0 };
        LayerQueue::new(Stream::new(id, 98, ROOM, Duration::from_secs(2), false), Codec::Vp9)
    }

    /// A picture of some packets that needs the one before it.
    fn picture(number: u16, packets: usize) -> Picture {
        let info =
            PictureInfo { number, needs: u8::from(number > 0), layer: 0, is_key: number == 0, is_leading: false };
        Picture { info, timestamp: u32::from(number) * 3000, data: vec![0x82; packets * 900] }
    }

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn pictures_go_in_order_and_repair_of_all_blocks_when_nothing_waits() {
        let (mut queue, mut dropped) = (queue(), Dropped::default());
        (0..40).for_each(|number| queue.push(at(0), &picture(number, 2)));
        let numbers: Vec<u16> = (0..80)
            .map(|_| queue.next(at(1), &mut dropped, false).0.picture.expect("a picture waits").number)
            .collect();
        assert!(numbers.is_sorted() && queue.is_empty());
        assert_eq!((queue.counts.pictures, queue.blocks.len()), (40, 2), "80 packets in blocks of 32");
        for _ in 0..6 {
            let (media, payload) = queue.next(at(300), &mut dropped, false);
            assert!(media.picture.is_none() && StreamId::of(media.rtp.ssrc).is_repair);
            assert_eq!(payload.len(), ROOM, "every packet is full");
        }
        let sent: Vec<u16> = queue.blocks.iter().map(|block| block.sent).collect();
        assert_eq!(sent, [3, 2, 1], "by size: the last block has half as many packets");
        queue.next(at(2_000), &mut dropped, false);
        assert!(queue.blocks.is_empty(), "nobody waits for these any more");
    }

    #[test]
    fn what_has_waited_for_too_long_is_dropped_whole_with_all_that_need_it() {
        let (mut queue, mut dropped) = (queue(), Dropped::default());
        (0..3).for_each(|number| queue.push(at(u64::from(number) * 600), &picture(number, 2)));
        let first = queue.next(at(900), &mut dropped, false).0;
        assert_eq!(first.picture.map(|place| place.number), Some(0));
        // It has begun and goes to its end, the next is late, and the last needs that.
        let second = queue.next(at(1_700), &mut dropped, false).0;
        assert_eq!((second.picture.map(|place| place.number), second.rtp.marker), (Some(0), true));
        assert!(queue.next(at(1_700), &mut dropped, false).0.picture.is_none());
        assert_eq!((queue.counts.pictures, queue.counts.dropped), (1, 2));
    }

    #[test]
    fn a_picture_of_a_layer_that_was_not_described_is_told_as_of_the_layer_that_it_goes_with() {
        let mut queue = queue();
        let late = Picture { info: PictureInfo { layer: 2, ..picture(0, 1).info }, ..picture(0, 1) };
        queue.push(at(0), &late);
        let media = queue.next(at(1), &mut Dropped::default(), false).0;
        assert_eq!(media.picture.map(|place| place.layer), Some(StreamId::of(media.rtp.ssrc).layer));
    }

    #[test]
    fn a_channel_for_repair_leaves_pictures_to_the_others() {
        let (mut queue, mut dropped) = (queue(), Dropped::default());
        queue.push(at(0), &picture(0, 1));
        assert!(queue.next(at(1), &mut dropped, true).0.picture.is_none());
        assert!(queue.next(at(1), &mut dropped, false).0.picture.is_some());
    }
}
