//! One RTP stream: its packets are put in order, and its pictures given out, each with its time. What is lost on the way is lost in whole
//! pictures. The source that was heard first is followed until it has been silent for a second; then another one is. A state machine
//! without clock or socket.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use weir_media::{Codec, MAX_PICTURE_BYTES, depacketize};
use weir_units::{Seq, Time};
use weir_wire::rtcp::{self, SenderClock};
use weir_wire::rtp::Rtp;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Stream {
    codec: Codec,
    source: Option<Source>,
    /// A packet that could be the first of another source, or of the same one that began again: if the packet that follows it comes.
    candidate: Option<(SourceId, Packet)>,
    waiting: BTreeMap<Seq, Packet>,
    /// Since when a packet is waited for that others overtook.
    waits_since: Option<Time>,
    picture: Picture,
    timeline: Timeline,
    /// What the source, or one that may become it, says of its clock: the first that it says, as later ones jitter.
    report: Option<SenderClock>,
    /// Pictures that are whole.
    pub(super) pictures: VecDeque<Whole>,
    /// How often something was missing.
    pub(super) gaps: u64,
    /// What the user is to know.
    pub(super) told: Vec<String>,
}

/// A picture that has come.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Whole {
    /// In ticks of 90 kHz from the stream's first picture on.
    pub(super) time: u64,
    pub(super) data: Vec<u8>,
}

/// Who sends: address and SSRC.
type SourceId = (SocketAddr, u32);

/// Whose packets count.
#[derive(Debug)]
struct Source {
    id: SourceId,
    heard: Time,
    /// The number of the next packet.
    next: Seq,
}

#[derive(Debug)]
struct Packet {
    header: Rtp,
    payload: Vec<u8>,
}

/// The times of pictures in ticks of 90 kHz from the first on, whichever source they are of.
#[derive(Debug, Default)]
struct Timeline {
    /// The timestamp of the source's first picture, and its time.
    origin: Option<(Seq, u64)>,
    /// The timestamp of the latest picture, its time, and when it came.
    latest: Option<(Seq, u64, Time)>,
}

impl Timeline {
    /// The time of the next picture.
    fn at(&mut self, now: Time, timestamp: u32) -> u64 {
        let first = Seq::new(1 << 32 | u64::from(timestamp));
        let (origin, begun) = *self.origin.get_or_insert_with(|| {
            // A new source goes on where the one before would be.
            let elapsed =
                |came| u64::try_from(now.since(came).as_millis()).unwrap_or(u64::MAX).saturating_mul(90).max(1);
            (first, self.latest.map_or(0, |(_, time, came)| time.saturating_add(elapsed(came))))
        });
        let latest = self
            .latest
            .filter(|&(_, time, _)| time >= begun)
            .map_or(first, |(latest, ..)| latest.extend(timestamp, 32));
        let time = begun.saturating_add(latest.value().saturating_sub(origin.value()));
        self.latest = Some((latest, time, now));
        time
    }

    /// The time 0 on a clock of 90 kHz that shows `ticks` when the source's timestamp is this; `None` before its first picture.
    fn zero(&self, ticks: i64, timestamp: u32) -> Option<i64> {
        let (origin, begun) = self.origin?;
        let ahead = (origin.value() as u32).wrapping_sub(timestamp) as i32;
        Some(ticks.saturating_add(ahead.into()).saturating_sub_unsigned(begun))
    }

    /// Another source begins.
    fn restart(&mut self) {
        self.origin = None;
    }
}

/// A picture whose packets come.
#[derive(Debug, Default)]
struct Picture {
    timestamp: Option<u32>,
    payloads: Vec<Vec<u8>>,
    bytes: usize,
    /// Something of it is missing.
    is_broken: bool,
}

impl Stream {
    pub(super) fn new(codec: Codec) -> Stream {
        Stream {
            codec,
            source: None,
            candidate: None,
            waiting: BTreeMap::new(),
            waits_since: None,
            picture: Picture::default(),
            timeline: Timeline::default(),
            report: None,
            pictures: VecDeque::new(),
            gaps: 0,
            told: Vec::new(),
        }
    }

    /// A datagram came.
    pub(super) fn take(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) {
        if rtcp::is_rtcp(datagram) {
            self.take_reports(datagram);
            return;
        }
        let Ok((header, payload)) = Rtp::decode(datagram) else { return };
        let (id, packet) = ((from, header.ssrc), Packet { header, payload: payload.to_vec() });
        match self.source.as_mut().filter(|source| source.id == id).and_then(|source| source.number(&header)) {
            Some(_) => self.push(now, packet),
            None => self.consider(now, id, packet),
        }
        self.drain(now);
    }

    /// RTCP came.
    fn take_reports(&mut self, datagram: &[u8]) {
        let reports = rtcp::packets(datagram).flatten().filter_map(|packet| SenderClock::decode(&packet).ok());
        for report in reports {
            let known = self.source.as_ref().map(|source| source.id.1);
            let is_stale = self.report.is_none_or(|before| known.is_none_or(|known| before.ssrc != known));
            if known.is_none_or(|known| known == report.ssrc) && is_stale {
                self.report = Some(report);
            }
        }
    }

    /// When the source was heard last.
    pub(super) fn heard(&self) -> Option<Time> {
        self.source.as_ref().map(|source| source.heard)
    }

    /// By how many ticks of 90 kHz this stream's time 0 is later than another's. One SSRC for both is one clock (RFC 3550 §8.3); else both
    /// have to have said how their clocks and the wall's go together. `None` as long as that is not known.
    pub(super) fn later_than(&self, other: &Stream) -> Option<i64> {
        if self.ssrc()? == other.ssrc()? {
            let (origin, _) = other.timeline.origin?;
            let timestamp = origin.value() as u32;
            return Some(self.timeline.zero(0, timestamp)? - other.timeline.zero(0, timestamp)?);
        }
        let zero = |stream: &Stream| {
            let clock = stream.clock()?;
            let ticks = (u128::from(clock.ntp) * u128::from(TICKS)) >> 32;
            stream.timeline.zero(ticks as i64, clock.timestamp)
        };
        Some(zero(self)? - zero(other)?)
    }

    fn ssrc(&self) -> Option<u32> {
        self.source.as_ref().map(|source| source.id.1)
    }

    /// What the source has said of its clock.
    fn clock(&self) -> Option<SenderClock> {
        self.report.filter(|report| Some(report.ssrc) == self.ssrc())
    }

    /// A packet that does not go on where the source is: two of them that follow each other are a new beginning, if nobody else sends.
    fn consider(&mut self, now: Time, id: SourceId, packet: Packet) {
        let is_busy = |source: &Source| source.id != id && now.since(source.heard) < QUIET;
        if self.source.as_ref().is_some_and(is_busy) {
            return;
        }
        let follows = |first: &Packet| packet.header.sequence == first.header.sequence.wrapping_add(1);
        match self.candidate.take() {
            Some((candidate, first)) if candidate == id && follows(&first) => {
                self.begin(now, id, &first.header);
                self.push(now, first);
                self.push(now, packet);
            }
            _ => self.candidate = Some((id, packet)),
        }
    }

    /// Follows a source from this packet on.
    fn begin(&mut self, now: Time, id: SourceId, first: &Rtp) {
        if let Some(before) = &self.source {
            self.gaps += 1;
            // A source whose numbers jump has a gap, and could have one at every other packet.
            if before.id != id {
                // Its SSRC may be the same, and its clock is another.
                self.report = self.report.filter(|report| report.ssrc != before.id.1);
                self.told.push(format!("the RTP stream from {} fell silent: {} is followed now", before.id.0, id.0));
            }
        }
        // Away from 0, so that a packet before the first is not below it.
        let next = Seq::new(1 << 16 | u64::from(first.sequence));
        self.source = Some(Source { id, heard: now, next });
        (self.picture, self.waits_since) = (Picture::default(), None);
        self.waiting.clear();
        self.timeline.restart();
    }

    /// A packet of the source.
    fn push(&mut self, now: Time, packet: Packet) {
        let Some(source) = &mut self.source else { return };
        source.heard = now;
        if let Some(number) = source.number(&packet.header).filter(|number| *number >= source.next) {
            self.waiting.entry(number).or_insert(packet);
        }
    }

    /// Goes on as far as packets are there, and over what is missing once that has been waited for.
    fn drain(&mut self, now: Time) {
        while let Some(first) = self.waiting.first_entry() {
            let Some(source) = &mut self.source else { return };
            let is_behind_gap = *first.key() > source.next;
            if is_behind_gap {
                // What was overtaken comes soon, or not at all.
                let since = *self.waits_since.get_or_insert(now);
                if now.since(since) < LONGEST_WAIT && self.waiting.len() <= MOST_WAITING {
                    return;
                }
                self.gaps += 1;
                self.picture.is_broken = true;
            }
            self.waits_since = None;
            if let Some((number, packet)) = self.waiting.pop_first() {
                source.next = number.next();
                self.put(now, &packet.header, packet.payload, is_behind_gap);
            }
        }
    }

    /// The next packet, in order; `is_behind_gap` if something is missing before it.
    fn put(&mut self, now: Time, header: &Rtp, payload: Vec<u8>, is_behind_gap: bool) {
        if self.picture.timestamp.is_some_and(|timestamp| timestamp != header.timestamp) {
            // Its last packet, which has the marker, is missing, or its sender sets none.
            self.finish(now);
            self.picture.is_broken = is_behind_gap;
        }
        self.picture.timestamp = Some(header.timestamp);
        self.picture.bytes += payload.len();
        self.picture.is_broken |= self.picture.bytes > MAX_PICTURE_BYTES;
        if !self.picture.is_broken {
            self.picture.payloads.push(payload);
        }
        if header.marker {
            self.finish(now);
        }
    }

    /// The picture has all its packets, or will not have them.
    fn finish(&mut self, now: Time) {
        let Picture { timestamp, payloads, is_broken, .. } = std::mem::take(&mut self.picture);
        let Some(timestamp) = timestamp.filter(|_| !is_broken && !payloads.is_empty()) else { return };
        let Some(data) = depacketize(self.codec, payloads.iter().map(Vec::as_slice)) else {
            self.gaps += 1;
            return;
        };
        self.pictures.push_back(Whole { time: self.timeline.at(now, timestamp), data });
    }
}

impl Source {
    /// The number of a packet of it, unless it is far from the next one (RFC 3550 appendix A.1).
    fn number(&self, header: &Rtp) -> Option<Seq> {
        let number = self.next.extend(header.sequence.into(), 16);
        let (ahead, behind) =
            (number.value().saturating_sub(self.next.value()), self.next.value().saturating_sub(number.value()));
        (ahead < MOST_AHEAD && behind <= MOST_BEHIND).then_some(number)
    }
}

/// Packets that wait for one that was overtaken.
const MOST_WAITING: usize = 32;
/// How long they do.
pub(super) const LONGEST_WAIT: Duration = Duration::from_millis(100);
/// A source that has sent nothing for so long may be followed by another.
pub(super) const QUIET: Duration = Duration::from_secs(1);
/// RFC 3550's `MAX_MISORDER` and `MAX_DROPOUT`, in packets.
const MOST_BEHIND: u64 = 100;
const MOST_AHEAD: u64 = 3_000;
/// Ticks of a second.
const TICKS: u32 = 90_000;

#[cfg(test)]
mod tests {
    use super::*;
    use weir_media::{Packetizer, PictureInfo};

    const FROM: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 6_000);

    /// The packets of so many pictures, each of 2500 bytes.
    fn packets(pictures: u16) -> Vec<Vec<u8>> {
        let mut packetizer = Packetizer::new(Codec::Vp9, 1_000);
        let mut packets = Vec::new();
        for number in 0..pictures {
            let info = PictureInfo { number, needs: 0, layer: 0, is_key: true, is_leading: false };
            let timestamp = u32::from(number).wrapping_mul(3_000).wrapping_sub(9_000);
            let picture = weir_media::Picture { info, timestamp, data: vec![number as u8; 2_500] };
            for payload in packetizer.packetize(&picture) {
                let sequence = 65_530_u16.wrapping_add(packets.len() as u16);
                let header =
                    Rtp { marker: payload.marker, payload_type: 98, sequence, timestamp, ssrc: 7, origin: None };
                packets.push([&header.encode()[..], &payload.data].concat());
            }
        }
        packets
    }

    /// The first byte of each picture that comes of these packets, and how often something was missing.
    fn pictures<'a>(packets: impl IntoIterator<Item = &'a Vec<u8>>) -> (Vec<u8>, u64) {
        let mut stream = Stream::new(Codec::Vp9);
        packets.into_iter().for_each(|packet| stream.take(Time::ZERO, FROM, packet));
        (seen(&stream), stream.gaps)
    }

    /// The first byte of each picture that came.
    fn seen(stream: &Stream) -> Vec<u8> {
        assert!(stream.pictures.iter().all(|picture| picture.data.len() == 2_500));
        stream.pictures.iter().map(|picture| picture.data[0]).collect()
    }

    /// The times of the pictures that came, in ticks of 90 kHz.
    fn times(stream: &Stream) -> Vec<u64> {
        stream.pictures.iter().map(|picture| picture.time).collect()
    }

    fn after(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn pictures_come_whole_and_in_order_though_packets_overtake_each_other() {
        let mut packets = packets(20);
        packets.chunks_mut(4).skip(1).for_each(<[_]>::reverse);
        let twice: Vec<_> = packets.iter().flat_map(|packet| [packet, packet]).collect();
        assert_eq!(pictures(twice), ((0..20).collect(), 0));
    }

    #[test]
    fn what_is_missing_costs_its_picture_and_is_counted() {
        let packets = packets(60);
        let left: Vec<_> = packets.iter().enumerate().filter(|(n, _)| *n != 31).map(|(_, packet)| packet).collect();
        let (pictures, gaps) = pictures(left);
        assert_eq!((pictures.contains(&10), gaps), (false, 1));
        assert!(pictures.len() > 40, "{pictures:?}");
    }

    #[test]
    fn what_others_send_and_rubbish_is_passed_over() {
        let packets = packets(5);
        let mut other = packets[0].clone();
        other[11] = 8;
        let rubbish = [vec![], vec![0x80; 3], vec![0xff; 50], vec![0x80, 200, 0, 0, 0, 0, 0, 0], other];
        let mixed: Vec<_> = packets.iter().zip(rubbish.iter().cycle()).flat_map(|(one, other)| [one, other]).collect();
        assert_eq!(pictures(mixed), ((0..5).collect(), 0));
    }

    #[test]
    fn a_lost_packet_is_waited_for_no_longer_than_a_tenth_of_a_second() {
        let packets = packets(4);
        let mut stream = Stream::new(Codec::Vp9);
        for (number, packet) in packets.iter().enumerate().filter(|(number, _)| *number != 4) {
            stream.take(after(10 * number as u64), FROM, packet);
        }
        // The second picture's second packet is the fifth of all; 70 ms after the sixth it may still come.
        assert_eq!(seen(&stream), [0]);
        stream.take(after(160), FROM, &packets[2]);
        assert_eq!((seen(&stream), stream.gaps), (vec![0, 2, 3], 1));
    }

    #[test]
    fn an_encoder_that_starts_again_is_followed_once_the_first_is_silent() {
        let packets = packets(6);
        let (before, behind) = packets.split_at(9);
        let other: Vec<Vec<u8>> = behind.iter().map(|packet| [&packet[..11], &[8], &packet[12..]].concat()).collect();
        let mut stream = Stream::new(Codec::Vp9);
        before.iter().for_each(|packet| stream.take(after(0), FROM, packet));
        other.iter().for_each(|packet| stream.take(after(900), FROM, packet));
        assert_eq!((seen(&stream), stream.gaps), (vec![0, 1, 2], 0), "the first one may go on");
        other.iter().for_each(|packet| stream.take(after(1_000), FROM, packet));
        assert_eq!((seen(&stream), stream.gaps), (vec![0, 1, 2, 3, 4, 5], 1));
        assert_eq!(stream.told.len(), 1);
        assert_eq!(times(&stream), [0, 3_000, 6_000, 96_000, 99_000, 102_000]);
    }

    #[test]
    fn a_source_whose_numbers_jump_is_followed_from_there_on() {
        let packets = packets(6);
        let (before, behind) = packets.split_at(9);
        let mut stream = Stream::new(Codec::Vp9);
        before.iter().for_each(|packet| stream.take(after(0), FROM, packet));
        for packet in behind {
            let mut packet = packet.clone();
            packet[2] ^= 0x40;
            stream.take(after(100), FROM, &packet);
        }
        assert!(stream.told.is_empty());
        assert_eq!((seen(&stream), stream.gaps), (vec![0, 1, 2, 3, 4, 5], 1));
    }

    #[test]
    fn one_stray_packet_takes_nothing_over() {
        let packets = packets(5);
        let mut stray = packets[0].clone();
        stray[11] = 8;
        assert_eq!(pictures([&stray].into_iter().chain(&packets)), ((0..5).collect(), 0));
    }

    proptest::proptest! {
        #[test]
        fn no_packets_make_it_panic_or_fill_the_memory(datagrams in proptest::collection::vec(proptest::collection::vec(proptest::prelude::any::<u8>(), 0..60), 0..80)) {
            for codec in Codec::ALL {
                let mut stream = Stream::new(codec);
                for datagram in &datagrams {
                    stream.take(Time::ZERO, FROM, &[&[0x80, 96][..], datagram].concat());
                }
                proptest::prop_assert!(stream.waiting.len() <= MOST_WAITING + 1);
            }
        }
    }
}
