//! Paced unicast streams: RTP one way, RTCP both ways (RFC 3550, RFC 8888), and the handshake.

use std::time::Duration;

use weir_wire::rtcp::congestion::{self, Report};
use weir_wire::rtp::{Origin, Rtp};
use weir_wire::{Feedback, Header, rtcp};

use super::{Found, Handling, Ids, MAX_HEADER, Profile, Sender, Sending, control};

/// A stream's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RtpProfile;

/// What is known about the packets to and from one peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RtpAssociation {
    ids: Ids,
    /// Data packets sent to it, and the number of the last one as the endpoint has it.
    sent: u64,
    last: u16,
}

impl RtpAssociation {
    /// Feedback in the endpoint's numbers; `None` if its newest packet was never sent.
    fn translate(&self, feedback: Feedback) -> Option<Feedback> {
        let newest = feedback.newest.wrapping_sub(self.ids.first_sequence);
        let age = u64::from(self.last.wrapping_sub(newest));
        (age < self.sent && age < 1 << 15).then_some(Feedback { newest, ..feedback })
    }

    /// What a report says about this host's packets.
    fn on_report<'d>(&self, report: &Report<'_>, found: &mut impl FnMut(Found<'d, Rtp>)) {
        for stream in report.streams() {
            let Ok(stream) = stream else { return found(Found::Undecodable) };
            if report.reporter != self.ids.remote_ssrc || stream.source != self.ids.local_ssrc {
                found(Found::Foreign);
                continue;
            }
            let Some(feedback) = stream.feedback() else { continue };
            found(match self.translate(feedback) {
                Some(feedback) => Found::Packet { header: Header::Feedback(feedback), label: None, payload: &[] },
                None => Found::Impossible,
            });
        }
    }

    fn on_data<'d>(&self, datagram: &'d [u8]) -> Found<'d, Rtp> {
        match Rtp::decode(datagram) {
            Ok((header, payload)) if header.ssrc == self.ids.remote_ssrc => {
                Found::Packet { header: Header::Paced(header.paced()), label: Some(header), payload }
            }
            Ok(_) => Found::Foreign,
            Err(_) => Found::Undecodable,
        }
    }
}

impl Profile for RtpProfile {
    type Label = Rtp;
    type Association = RtpAssociation;

    fn associate(&self, ids: &Ids) -> RtpAssociation {
        RtpAssociation { ids: *ids, sent: 0, last: 0 }
    }

    fn encode(
        &self,
        header: &Header,
        label: Option<&Rtp>,
        sending: Sending<'_, RtpAssociation>,
        out: &mut [u8],
    ) -> Option<usize> {
        let association = sending.association?;
        let ids = association.ids;
        match header {
            Header::Paced(paced) => {
                (association.sent, association.last) = (association.sent + 1, paced.sequence);
                let sequence = paced.sequence.wrapping_add(ids.first_sequence);
                let label = label?;
                let told = label.origin.unwrap_or_default();
                let origin = paced.payload.map(|number| Origin { number, ..told });
                Some(Rtp { sequence, ssrc: ids.local_ssrc, origin, ..*label }.encode_into(out))
            }
            Header::Feedback(feedback) => {
                let feedback = Feedback { held: held(feedback, sending.waited), ..*feedback };
                let timestamp = ntp_middle(sending.ntp_micros);
                Some(congestion::encode(ids.local_ssrc, ids.remote_ssrc, &feedback, timestamp, out))
            }
            Header::Layered(_)
            | Header::Probe(_)
            | Header::TreeData(_)
            | Header::TreeAck(_)
            | Header::TreeJoin(_)
            | Header::Experimental(_) => None,
        }
    }

    fn decode<'d>(&self, datagram: &'d [u8], from: Sender<RtpAssociation>, mut found: impl FnMut(Found<'d, Rtp>)) {
        let association = match from {
            Sender::Peer(association) => Some(association),
            Sender::Channel(_) | Sender::Unassociated => None,
        };
        if !rtcp::is_rtcp(datagram) {
            return found(association.map_or(Found::Foreign, |association| association.on_data(datagram)));
        }
        for packet in rtcp::packets(datagram) {
            let Ok(packet) = packet else { return found(Found::Undecodable) };
            if (packet.packet_type, packet.format) != (congestion::TYPE, congestion::FORMAT) {
                control(&packet).map(&mut found);
                continue;
            }
            match (Report::decode(&packet), association) {
                (Ok(report), Some(association)) => association.on_report(&report, &mut found),
                (Ok(_), None) => found(Found::Foreign),
                (Err(_), _) => found(Found::Undecodable),
            }
        }
    }

    fn handling(&self) -> Handling {
        Handling { coalesces: false, rest: Duration::ZERO }
    }

    fn empty(&self) -> Option<Rtp> {
        Some(Rtp::default())
    }
}

/// How long the newest packet was held, in 1/1024 s: what the endpoint says, and what this host took on top.
fn held(feedback: &Feedback, waited: Duration) -> u16 {
    let waited = (waited.as_nanos() * 1024 / 1_000_000_000).min(u128::from(Feedback::MAX_HELD)) as u16;
    feedback.held.saturating_add(waited).min(Feedback::MAX_HELD)
}

/// The middle 32 bits of NTP time: 16 of seconds, 16 of fractions (RFC 3550 §4).
fn ntp_middle(ntp_micros: u64) -> u32 {
    let fraction = (ntp_micros % 1_000_000) * 65_536 / 1_000_000;
    ((ntp_micros / 1_000_000) << 16 | fraction) as u32
}

const _: () = assert!(congestion::MAX_LEN <= MAX_HEADER, "every header fits");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_timestamp_is_the_middle_of_ntp_time() {
        assert_eq!(ntp_middle(3 * 1_000_000 + 500_000), 3 << 16 | 0x8000);
        assert_eq!(ntp_middle((1 << 16) * 1_000_000), 0, "seconds wrap at 16 bits");
    }

    #[test]
    fn feedback_counts_only_for_packets_that_were_sent() {
        let ids = Ids { local_ssrc: 1, remote_ssrc: 2, first_sequence: 65_000 };
        let association = RtpAssociation { ids, sent: 10, last: 9 };
        let translated = |newest: u16| {
            association.translate(Feedback { newest, ..Feedback::default() }).map(|feedback| feedback.newest)
        };
        assert_eq!(translated(65_000), Some(0));
        assert_eq!(translated(65_009), Some(9));
        assert_eq!([translated(65_010), translated(64_999)], [None, None]);
    }

    #[test]
    fn what_the_host_held_a_packet_for_is_added_and_stays_within_its_field() {
        let feedback = |held| Feedback { held, ..Feedback::default() };
        assert_eq!(held(&feedback(10), Duration::from_millis(500)), 522);
        assert_eq!(held(&feedback(10), Duration::from_secs(100)), Feedback::MAX_HELD);
    }
}
