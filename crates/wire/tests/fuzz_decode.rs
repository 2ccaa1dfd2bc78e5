//! Any bytes at all, to every decoder: they are refused or understood, and nothing panics. Runs under `cargo test`, and as
//! a fuzz target with `cargo bolero test -p weir-wire any_bytes_are_decoded_or_refused`.

use weir_wire::alc::Alc;
use weir_wire::extension;
use weir_wire::fec::{NO_CODE, Oti, PayloadId, RAPTORQ};
use weir_wire::lct::Lct;
use weir_wire::mtcp;
use weir_wire::receipt::{Answer, Receipt};
use weir_wire::rtcp::handshake::Message;
use weir_wire::rtcp::{self, App, Bye, congestion};
use weir_wire::rtp::Rtp;
use weir_wire::{CciForm, Feedback, Probe};

#[test]
fn any_bytes_are_decoded_or_refused() {
    bolero::check!().for_each(|bytes: &[u8]| {
        if let Ok((header, rest)) = Lct::decode(bytes) {
            assert!(header.extensions.len() + header.cci.len() + rest.len() <= bytes.len());
        }
        if let Ok(alc) = Alc::decode(bytes) {
            for form in [CciForm::Short, CciForm::Long, CciForm::Clocked] {
                if let Ok(layered) = alc.layered(form) {
                    assert!(u64::from(layered.sequence) >> form.sequence_bits() == 0);
                    assert!(usize::from(layered.channel) < form.channels());
                }
            }
        }
        // Each extension takes at least a word, so that there are no more of them than words.
        assert!(extension::iter(bytes).count() <= bytes.len() / 4 + 1);
        let _ = Receipt::decode(bytes);
        let _ = Answer::decode(bytes);
        if let Ok((probe, tsi)) = Probe::decode(bytes) {
            assert_eq!(probe.encode(tsi), bytes);
        }
        match mtcp::Message::decode(bytes) {
            Ok((mtcp::Message::Data(_, payload), _)) => assert_eq!(mtcp::DATA_LEN + payload.len(), bytes.len()),
            Ok((mtcp::Message::Ack(ack), _)) => {
                assert!(bytes.len() == mtcp::ACK_LEN && ack.reported <= mtcp::MAX_REPORTED);
                assert!(ack.received & 1 == 0 && ack.received.checked_shr(ack.reported.into()).unwrap_or(0) == 0);
            }
            Ok((mtcp::Message::Join(join), tsi)) => {
                let mut again = [0; mtcp::join::MAX_JOIN_LEN];
                let len = join.encode(tsi, &mut again);
                assert_eq!(mtcp::Message::decode(&again[..len]), Ok((mtcp::Message::Join(join), tsi)));
            }
            Err(_) => {}
        }
        if let Ok((header, payload)) = Rtp::decode(bytes) {
            assert!(Rtp::LEN + payload.len() <= bytes.len() && header.payload_type < 128);
        }
        for packet in rtcp::packets(bytes).flatten() {
            let _ = (App::decode(&packet), Bye::decode(&packet), Message::decode(&packet));
            let Ok(report) = congestion::Report::decode(&packet) else { continue };
            for feedback in report.streams().flatten().filter_map(|stream| stream.feedback()) {
                assert!((1..=Feedback::MAX_REPORTS).contains(&feedback.reports) && feedback.arrived & 1 == 1);
                assert!(feedback.marked & !feedback.arrived == 0 && feedback.held <= Feedback::MAX_HELD);
                assert!(u64::from(feedback.arrived) >> feedback.reports == 0);
            }
        }
        for encoding_id in [NO_CODE, RAPTORQ] {
            if let Ok(oti) = Oti::decode(bytes, encoding_id) {
                assert_eq!(Oti::decode(&oti.encode(), encoding_id), Ok(oti));
            }
            if let Some(id) = bytes.first_chunk() {
                assert_eq!(PayloadId::decode(*id, encoding_id).encode(encoding_id), *id);
            }
        }
    });
}
