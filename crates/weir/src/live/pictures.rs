//! Where pictures begin in the payloads of a live stream, so that what is too late is dropped in whole pictures.
//!
//! In RTP a picture's payloads share a timestamp. In an MPEG transport stream a picture begins with the header of a packet of video. Of
//! anything else each payload stands for itself.

use std::time::Duration;

use weir_units::Time;
use weir_wire::rtp::Rtp;

use super::input::{TS_PACKET, is_transport_stream};

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Pictures {
    timestamp: Option<u32>,
    /// When a picture began last.
    began: Option<Time>,
}

impl Pictures {
    /// Whether a picture begins in this payload, the next of the stream. Where none has begun for a second, there are none to be found.
    pub(super) fn begins(&mut self, now: Time, header: &Rtp, payload: &[u8]) -> bool {
        let begins = match is_transport_stream(payload) {
            true => payload.chunks(TS_PACKET).any(begins_picture),
            false => self.timestamp.replace(header.timestamp) != Some(header.timestamp),
        };
        if begins {
            self.began = Some(now);
        }
        begins || self.began.is_none_or(|began| now.since(began) > LONGEST_PICTURE)
    }
}

/// Whether a transport stream packet holds the beginning of a packet of video (ISO/IEC 13818-1 §2.4.3.2 and §2.4.3.6).
fn begins_picture(packet: &[u8]) -> bool {
    let [_, start, _, control, rest @ ..] = packet else { return false };
    let adaptation = match control & HAS_ADAPTATION {
        0 => 0,
        _ => rest.first().map_or(0, |length| 1 + usize::from(*length)),
    };
    let payload = rest.get(adaptation..).unwrap_or_default();
    start & UNIT_START != 0 && matches!(payload, [0, 0, 1, VIDEO_FIRST..=VIDEO_LAST, ..])
}

/// In the second byte of a packet: something begins in it.
const UNIT_START: u8 = 0x40;
/// In the fourth: an adaptation field comes first.
const HAS_ADAPTATION: u8 = 0x20;
/// Stream identifiers of video.
const VIDEO_FIRST: u8 = 0xe0;
const VIDEO_LAST: u8 = 0xef;
const LONGEST_PICTURE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn header(timestamp: u32) -> Rtp {
        Rtp { timestamp, ..Rtp::default() }
    }

    /// A transport stream packet that begins with these bytes.
    fn packet(head: &[u8]) -> Vec<u8> {
        let mut packet = head.to_vec();
        packet.resize(TS_PACKET, 0xff);
        packet
    }

    #[test]
    fn payloads_of_rtp_with_one_timestamp_are_one_picture() {
        let mut pictures = Pictures::default();
        let begins = [5, 5, 5, 9, 9, 3].map(|timestamp| pictures.begins(Time::ZERO, &header(timestamp), b"x"));
        assert_eq!(begins, [true, false, false, true, false, true]);
    }

    #[test]
    fn in_a_transport_stream_a_picture_begins_where_a_packet_of_video_does() {
        let video = packet(&[0x47, 0x41, 0x00, 0x10, 0, 0, 1, 0xe0]);
        let behind_clock = packet(&[0x47, 0x41, 0x00, 0x30, 1, 0x10, 0, 0, 1, 0xe3]);
        let sound = packet(&[0x47, 0x41, 0x01, 0x10, 0, 0, 1, 0xc0]);
        let inside = packet(&[0x47, 0x01, 0x00, 0x10, 0, 0, 1, 0xe0]);
        let cut = packet(&[0x47, 0x41, 0x00, 0x30, 0xff]);
        let mut pictures = Pictures::default();
        let mut begins = |parts: &[&Vec<u8>]| {
            let payload: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
            pictures.begins(Time::ZERO, &header(0), &payload)
        };
        assert!(begins(&[&inside, &video]) && begins(&[&behind_clock]));
        assert!(!begins(&[&inside, &inside]) && !begins(&[&sound]) && !begins(&[&cut]));
    }

    #[test]
    fn where_no_picture_is_found_for_a_second_each_payload_stands_for_itself() {
        let (mut pictures, sound) = (Pictures::default(), packet(&[0x47, 0x41, 0x01, 0x10, 0, 0, 1, 0xc0]));
        let video = packet(&[0x47, 0x41, 0x00, 0x10, 0, 0, 1, 0xe0]);
        let mut begins = |millis, packet: &[u8]| pictures.begins(Time::from_millis(millis), &header(0), packet);
        assert!(begins(0, &sound), "none was found yet");
        assert!(begins(10, &video) && !begins(20, &sound) && !begins(1_010, &sound));
        assert!(begins(1_011, &sound) && begins(1_012, &sound));
    }
}
