//! A programme that another program sends as one RTP stream: its packets are put in order, and its pictures given out as the bytes of a
//! file would be. What is lost on the way is lost in whole pictures; decoding goes on with the next key picture.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use weir_media::{Codec, MAX_PICTURE_BYTES, depacketize};
use weir_units::Seq;
use weir_wire::rtcp;
use weir_wire::rtp::Rtp;

/// An RTP stream as bytes: VP9 as IVF with units of 1/90000 s, HEVC and H.264 as Annex B.
#[derive(Debug)]
pub(super) struct RtpInput {
    socket: UdpSocket,
    datagram: Vec<u8>,
    stream: Stream,
    /// What is read next, from this place on.
    at: usize,
}

impl RtpInput {
    /// Waits for packets to this address of the host, or to this multicast group.
    pub(super) fn open(at: SocketAddr, codec: Codec) -> io::Result<RtpInput> {
        let socket = UdpSocket::bind(at)?;
        if let SocketAddr::V4(group) = at
            && group.ip().is_multicast()
        {
            socket.join_multicast_v4(group.ip(), &std::net::Ipv4Addr::UNSPECIFIED)?;
        }
        // Whoever waits looks now and then whether he is to stop.
        socket.set_read_timeout(Some(LOOK_UP))?;
        Ok(RtpInput { socket, datagram: vec![0; 1 << 16], stream: Stream::new(codec), at: 0 })
    }

    /// How often something was missing before what was read.
    pub(super) fn gaps(&self) -> u64 {
        self.stream.gaps
    }
}

impl Read for RtpInput {
    /// The end never comes. Without bytes, [`io::ErrorKind::Interrupted`].
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.stream.out.len() {
            self.stream.out.clear();
            self.at = 0;
            match self.socket.recv(&mut self.datagram) {
                Ok(len) => self.stream.take(&self.datagram[..len]),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                Err(error) => return Err(error),
            }
        }
        let read = (&self.stream.out[self.at..]).read(buffer)?;
        self.at += read;
        if read == 0 { Err(io::ErrorKind::Interrupted.into()) } else { Ok(read) }
    }
}

impl AsFd for RtpInput {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// From packets to bytes. A state machine without socket.
#[derive(Debug)]
struct Stream {
    codec: Codec,
    /// Whose packets count: those of the source that came first.
    ssrc: Option<u32>,
    /// The number of the next packet.
    next: Option<Seq>,
    waiting: BTreeMap<Seq, (Rtp, Vec<u8>)>,
    picture: Picture,
    /// The first picture's time and the last one's.
    times: Option<(Seq, Seq)>,
    out: Vec<u8>,
    gaps: u64,
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
    fn new(codec: Codec) -> Stream {
        Stream {
            codec,
            ssrc: None,
            next: None,
            waiting: BTreeMap::new(),
            picture: Picture::default(),
            times: None,
            out: Vec::new(),
            gaps: 0,
        }
    }

    /// A datagram came.
    fn take(&mut self, datagram: &[u8]) {
        if rtcp::is_rtcp(datagram) {
            return;
        }
        let Ok((header, payload)) = Rtp::decode(datagram) else { return };
        if *self.ssrc.get_or_insert(header.ssrc) != header.ssrc {
            return;
        }
        // Away from 0, so that a packet before the first is not below it.
        let first = Seq::new(1 << 16 | u64::from(header.sequence));
        let number = self.next.map_or(first, |next| next.extend(header.sequence.into(), 16));
        let next = *self.next.get_or_insert(number);
        if number >= next {
            self.waiting.entry(number).or_insert((header, payload.to_vec()));
        }
        while let Some(first) = self.waiting.first_entry() {
            let (number, next) = (*first.key(), self.next.unwrap_or(*first.key()));
            if number > next {
                // What was overtaken comes soon, or not at all.
                if self.waiting.len() <= MOST_WAITING {
                    break;
                }
                self.gaps += 1;
                self.picture.is_broken = true;
            }
            self.next = Some(number.next());
            if let Some((_, (header, payload))) = self.waiting.pop_first() {
                self.put(&header, payload, number > next);
            }
        }
    }

    /// The next packet, in order; `is_behind_gap` if something is missing before it.
    fn put(&mut self, header: &Rtp, payload: Vec<u8>, is_behind_gap: bool) {
        if self.picture.timestamp.is_some_and(|timestamp| timestamp != header.timestamp) {
            // Its last packet, which has the marker, is missing, or its sender sets none.
            self.finish();
            self.picture.is_broken = is_behind_gap;
        }
        self.picture.timestamp = Some(header.timestamp);
        self.picture.bytes += payload.len();
        self.picture.is_broken |= self.picture.bytes > MAX_PICTURE_BYTES;
        if !self.picture.is_broken {
            self.picture.payloads.push(payload);
        }
        if header.marker {
            self.finish();
        }
    }

    /// The picture has all its packets, or will not have them.
    fn finish(&mut self) {
        let Picture { timestamp, payloads, is_broken, .. } = std::mem::take(&mut self.picture);
        let Some(timestamp) = timestamp.filter(|_| !is_broken && !payloads.is_empty()) else { return };
        let Some(data) = depacketize(self.codec, payloads.iter().map(Vec::as_slice)) else {
            self.gaps += 1;
            return;
        };
        if self.codec == Codec::Vp9 {
            self.frame(timestamp, &data);
        } else {
            self.out.extend(data);
        }
    }

    /// A frame of an IVF file, and before the first the file's header.
    fn frame(&mut self, timestamp: u32, data: &[u8]) {
        let (first, time) = match self.times {
            Some((first, last)) => (first, last.extend(timestamp, 32)),
            None => {
                self.out.extend(b"DKIF\0\0\x20\0VP90\0\0\0\0");
                self.out.extend(90_000_u32.to_le_bytes());
                self.out.extend([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
                let first = Seq::new(1 << 32 | u64::from(timestamp));
                (first, first)
            }
        };
        self.times = Some((first, time));
        self.out.extend((data.len() as u32).to_le_bytes());
        self.out.extend(time.value().saturating_sub(first.value()).to_le_bytes());
        self.out.extend(data);
    }
}

/// Packets that wait for one that was overtaken.
const MOST_WAITING: usize = 32;
const LOOK_UP: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;
    use weir_media::{Packetizer, PictureInfo, SplitOptions, Splitter};

    /// Packets of so many pictures of about 2500 bytes, and the same as an IVF file.
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
        packets.into_iter().for_each(|packet| stream.take(packet));
        let mut rest = stream.out.get(32..).unwrap_or_default();
        let mut all = Vec::new();
        while let Some(length) = rest.first_chunk() {
            let length = u32::from_le_bytes(*length) as usize;
            assert_eq!(length, 2_500);
            all.push(rest[12]);
            rest = &rest[12 + length..];
        }
        (all, stream.gaps)
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

    proptest::proptest! {
        #[test]
        fn no_packets_make_it_panic_or_fill_the_memory(datagrams in proptest::collection::vec(proptest::collection::vec(proptest::prelude::any::<u8>(), 0..60), 0..80)) {
            for codec in [Codec::Vp9, Codec::Hevc, Codec::H264] {
                let mut stream = Stream::new(codec);
                let mut splitter = Splitter::new(SplitOptions::default());
                for datagram in &datagrams {
                    stream.take(&[&[0x80, 96][..], datagram].concat());
                }
                splitter.push(&stream.out);
                proptest::prop_assert!(stream.waiting.len() <= MOST_WAITING + 1);
            }
        }
    }
}
