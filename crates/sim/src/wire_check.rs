//! Headers through their encoding and back, so that a simulated run proves that the wire carries all that a protocol needs.

use weir_core::Header;
use weir_wire::alc::{Alc, Content, MAX_OVERHEAD, Profile};
use weir_wire::fec::PayloadId;
use weir_wire::rtcp::{self, congestion};
use weir_wire::rtp::Rtp;
use weir_wire::{CciForm, DecodeError, Feedback, Layered, Paced, Probe};

/// The header as whoever gets it reads it from the bytes of a packet. `form` is that of the session, if there is one: without
/// it, a header of a session stays as it is.
pub(crate) fn over_the_wire(form: Option<CciForm>, header: Header) -> Header {
    let decoded = match (header, form) {
        (Header::Layered(layered), Some(form)) => over_lct(form, &layered).map(Header::Layered),
        (Header::Paced(paced), _) => over_rtp(paced).map(Header::Paced),
        (Header::Feedback(feedback), _) => over_rtcp(&feedback).map(Header::Feedback),
        (Header::Probe(probe), _) => Probe::decode(&probe.encode(1)).map(|(probe, _)| Header::Probe(probe)),
        (header, _) => Ok(header),
    };
    decoded.expect("what the encoder wrote can be read")
}

fn over_lct(form: CciForm, header: &Layered) -> Result<Layered, DecodeError> {
    let profile = Profile { tsi: 1, form };
    let content =
        Content { toi: 1, encoding_id: 6, payload_id: PayloadId { block: 0, symbol: 1 }, fdt: None, oti: None };
    let mut bytes = [0; MAX_OVERHEAD + 1];
    let len = profile.encode(header, &content, &mut bytes);
    Alc::decode(&bytes[..len + 1])?.layered(form)
}

fn over_rtp(paced: Paced) -> Result<Paced, DecodeError> {
    let bytes = Rtp { sequence: paced.sequence, ..Rtp::default() }.encode();
    Ok(Rtp::decode(&bytes)?.0.paced())
}

fn over_rtcp(feedback: &Feedback) -> Result<Feedback, DecodeError> {
    let mut bytes = [0; congestion::MAX_LEN];
    let len = congestion::encode(1, 2, feedback, 0, &mut bytes);
    let packet = rtcp::packets(&bytes[..len]).next().expect("it was just written")?;
    let stream = congestion::Report::decode(&packet)?.streams().next().expect("it is about a stream")?;
    Ok(stream.feedback().expect("the newest packet came"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_paced_streams_come_back_as_they_went() {
        let feedback = Feedback { newest: 3, reports: 32, arrived: !2, marked: 4, held: 17 };
        for header in [Header::Paced(Paced { sequence: 65_535 }), Header::Feedback(feedback)] {
            assert_eq!(over_the_wire(None, header), header);
        }
    }

    #[test]
    fn what_does_not_fit_the_wire_shows() {
        let long = Feedback { newest: 3, reports: 1, arrived: 1, marked: 0, held: u16::MAX };
        let cut = Feedback { held: Feedback::MAX_HELD, ..long };
        assert_eq!(over_the_wire(None, Header::Feedback(long)), Header::Feedback(cut));
    }
}
