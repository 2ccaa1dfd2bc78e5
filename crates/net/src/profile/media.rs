//! Layered media: RTP with congestion control on the channels, round-trip probes on the control port, and a goodbye at the end.

use std::time::Duration;

use weir_wire::media::{Media, StreamId};
use weir_wire::{Header, Probe, probe, rtcp};

use super::{Found, Handling, Ids, MAX_HEADER, Profile, Sender, Sending};
use crate::host::Strange;

/// A session's packets. All are of one size: the application pads what it hands over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaProfile {
    tsi: u16,
    coalesces: bool,
}

impl MediaProfile {
    /// The packets of session `tsi`.
    pub fn new(tsi: u16) -> MediaProfile {
        MediaProfile { tsi, coalesces: true }
    }

    /// Whether several packets may be sent and read as one, so that they share a time of arrival.
    #[must_use]
    pub fn coalescing(self, coalesces: bool) -> MediaProfile {
        MediaProfile { coalesces, ..self }
    }

    /// A datagram that came over a channel.
    fn on_channel<'d>(&self, channel: u16, datagram: &'d [u8]) -> Found<'d, Media> {
        if rtcp::is_rtcp(datagram) {
            return self.on_report(datagram);
        }
        match Media::decode(datagram) {
            Ok((_, media, _)) if StreamId::of(media.rtp.ssrc).tsi != self.tsi => {
                Found::Strange(Strange::Session(u64::from(StreamId::of(media.rtp.ssrc).tsi)))
            }
            Ok((layered, ..)) if layered.channel != channel => Found::Strange(Strange::Channel),
            Ok((layered, media, payload)) => {
                Found::Packet { header: Header::Layered(layered), label: Some(media), payload }
            }
            Err(_) => Found::Strange(Strange::Unreadable),
        }
    }

    /// Of what RTCP says, a goodbye of this session counts.
    fn on_report<'d>(&self, datagram: &'d [u8]) -> Found<'d, Media> {
        let byes = rtcp::packets(datagram).map_while(Result::ok).filter_map(|packet| rtcp::Bye::decode(&packet).ok());
        match byes.map(|bye| StreamId::of(bye.ssrc)).any(|stream| stream.tsi == self.tsi) {
            true => Found::Closed,
            false => Found::Foreign,
        }
    }

    /// A datagram that came to the control port.
    fn on_control<'d>(&self, datagram: &[u8]) -> Found<'d, Media> {
        match Probe::decode(datagram) {
            Ok((probe, tsi)) if datagram.len() == probe::LEN && tsi == self.tsi => {
                Found::Packet { header: Header::Probe(probe), label: None, payload: &[] }
            }
            _ => Found::Foreign,
        }
    }
}

impl Profile for MediaProfile {
    type Label = Media;
    type Association = ();

    fn associate(&self, _ids: &Ids) {}

    #[inline]
    fn encode(
        &self,
        header: &Header,
        label: Option<&Media>,
        sending: Sending<'_, ()>,
        out: &mut [u8],
    ) -> Option<usize> {
        match header {
            Header::Layered(layered) => {
                let layered = weir_wire::Layered { clock_micros: sending.ntp_micros, ..*layered };
                Some(label?.encode(&layered, out))
            }
            Header::Probe(probe) => {
                out[..probe::LEN].copy_from_slice(&probe.encode(self.tsi));
                Some(probe::LEN)
            }
            Header::Paced(_)
            | Header::Feedback(_)
            | Header::TreeData(_)
            | Header::TreeAck(_)
            | Header::TreeJoin(_)
            | Header::Experimental(_) => None,
        }
    }

    #[inline]
    fn decode<'d>(&self, datagram: &'d [u8], from: Sender<()>, mut found: impl FnMut(Found<'d, Media>)) {
        found(match from {
            Sender::Channel(channel) => self.on_channel(channel, datagram),
            Sender::Peer(()) | Sender::Unassociated => self.on_control(datagram),
        });
    }

    fn close(&self, _channel: u16, _last: Option<&Header>, _ntp_micros: u64, out: &mut [u8]) -> Option<usize> {
        let bye = rtcp::Bye { ssrc: StreamId { tsi: self.tsi, ..StreamId::default() }.ssrc() }.encode();
        out[..bye.len()].copy_from_slice(&bye);
        Some(bye.len())
    }

    fn handling(&self) -> Handling {
        Handling { coalesces: self.coalesces, rest: REST }
    }
}

/// As long as a sender of ours rests between two bursts of a channel.
const REST: Duration = Duration::from_millis(5);

const _: () = assert!(Media::LEN <= MAX_HEADER, "every header fits");

#[cfg(test)]
mod tests {
    use super::*;
    use weir_wire::Layered;
    use weir_wire::rtp::Rtp;

    /// What a packet of session 7 and channel 1 says to a receiver of session `tsi` on that channel.
    fn found(tsi: u16, packet: &[u8], from: Sender<()>) -> String {
        let mut all = Vec::new();
        MediaProfile::new(tsi).decode(packet, from, |found| all.push(format!("{found:?}")));
        all.pop().expect("something is found in every datagram")
    }

    fn packet() -> Vec<u8> {
        let label = Media {
            rtp: Rtp { ssrc: StreamId { tsi: 7, ..StreamId::default() }.ssrc(), ..Rtp::default() },
            ..Media::default()
        };
        let header = Header::Layered(Layered { channel: 1, ..Layered::default() });
        let sending = Sending { ntp_micros: 5, waited: Duration::ZERO, association: None };
        let mut out = [0; MAX_HEADER];
        let len = MediaProfile::new(7).encode(&header, Some(&label), sending, &mut out).expect("it is carried");
        out[..len].to_vec()
    }

    #[test]
    fn packets_count_on_their_channel_and_in_their_session_only() {
        assert!(found(7, &packet(), Sender::Channel(1)).starts_with("Packet"));
        assert!(found(7, &packet(), Sender::Channel(0)).contains("Channel"));
        assert!(found(8, &packet(), Sender::Channel(1)).contains("Session(7)"));
        assert!(found(7, &packet()[..20], Sender::Channel(1)).contains("Unreadable"));
        assert_eq!(found(7, &packet(), Sender::Unassociated), "Foreign");
    }

    #[test]
    fn a_goodbye_ends_its_own_session() {
        let mut out = [0; MAX_HEADER];
        let len = MediaProfile::new(7).close(0, None, 0, &mut out).expect("it has one");
        assert_eq!(found(7, &out[..len], Sender::Channel(0)), "Closed");
        assert_eq!(found(8, &out[..len], Sender::Channel(0)), "Foreign");
    }
}
