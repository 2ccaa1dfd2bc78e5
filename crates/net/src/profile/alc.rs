//! Layered sessions: ALC on the channels (RFC 5775), round-trip probes and receipts on the control port.

use std::time::Duration;

use weir_wire::alc::{Alc, Content, MAX_OVERHEAD, Profile as Alcs};
use weir_wire::fec::{NO_CODE, RAPTORQ};
use weir_wire::lct::Lct;
use weir_wire::{CciForm, Header, Layered, Probe, probe, receipt};

use crate::host::Strange;

use super::{Found, Handling, Ids, MAX_HEADER, Profile, Sender, Sending};

/// A session's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlcProfile {
    tsi: u16,
    /// `None` for a session without congestion control.
    form: Option<CciForm>,
    coalesces: bool,
}

impl AlcProfile {
    /// The packets of session `tsi`, whose congestion control information has this form, if it has any.
    pub fn new(tsi: u16, form: Option<CciForm>) -> AlcProfile {
        AlcProfile { tsi, form, coalesces: true }
    }

    /// Whether several packets may be sent and read as one, so that they share a time of arrival.
    #[must_use]
    pub fn coalescing(self, coalesces: bool) -> AlcProfile {
        AlcProfile { coalesces, ..self }
    }

    fn alc(&self) -> Alcs {
        Alcs { tsi: self.tsi, form: self.form.unwrap_or_default() }
    }

    /// A datagram that came over a channel.
    #[inline]
    fn on_channel<'d>(&self, channel: u16, datagram: &'d [u8], mut found: impl FnMut(Found<'d, Content>)) {
        let alc = match Alc::decode(datagram) {
            Ok(alc) => alc,
            Err(_) => return found(Found::Strange(unreadable(datagram, self.tsi))),
        };
        if alc.tsi != u64::from(self.tsi) {
            return found(Found::Strange(Strange::Session(alc.tsi)));
        }
        if let Some(code) = alc.content.map(|content| content.encoding_id).filter(|id| !is_known(*id)) {
            return found(Found::Strange(Strange::Code(code)));
        }
        let layered = match self.form.map(|form| alc.layered(form)) {
            None => Layered { channel, ..Layered::default() },
            Some(Ok(layered)) => layered,
            Some(Err(_)) => return found(Found::Strange(Strange::Unreadable)),
        };
        if layered.channel != channel {
            return found(Found::Strange(Strange::Channel));
        }
        // A closing packet of ours has no data, and repeats the header of the last one that has. Others close with the last data.
        if alc.content.is_some() {
            found(Found::Packet { header: Header::Layered(layered), label: alc.content, payload: alc.symbol });
        }
        if alc.close_session {
            found(Found::Closed);
        }
    }

    /// A datagram that came to the control port.
    fn on_control<'d>(&self, datagram: &'d [u8]) -> Found<'d, Content> {
        match datagram.len() {
            _ if receipt::is_receipt(datagram) => Found::Message(datagram),
            probe::LEN => match Probe::decode(datagram) {
                Ok((probe, tsi)) if tsi == self.tsi => {
                    Found::Packet { header: Header::Probe(probe), label: None, payload: &[] }
                }
                _ => Found::Foreign,
            },
            _ => Found::Foreign,
        }
    }
}

impl Profile for AlcProfile {
    type Label = Content;
    type Association = ();

    fn associate(&self, _ids: &Ids) {}

    #[inline]
    fn encode(
        &self,
        header: &Header,
        label: Option<&Content>,
        sending: Sending<'_, ()>,
        out: &mut [u8],
    ) -> Option<usize> {
        match header {
            Header::Layered(layered) => {
                let layered = Layered { clock_micros: sending.ntp_micros, ..*layered };
                Some(self.alc().encode(&layered, label?, out))
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
    fn decode<'d>(&self, datagram: &'d [u8], from: Sender<()>, mut found: impl FnMut(Found<'d, Content>)) {
        match from {
            Sender::Channel(channel) => self.on_channel(channel, datagram, found),
            Sender::Peer(()) | Sender::Unassociated => found(self.on_control(datagram)),
        }
    }

    fn close(&self, channel: u16, last: Option<&Header>, ntp_micros: u64, out: &mut [u8]) -> Option<usize> {
        let last = match last {
            Some(Header::Layered(layered)) => *layered,
            _ => Layered { channel, ..Layered::default() },
        };
        Some(self.alc().encode_close(&Layered { clock_micros: ntp_micros, ..last }, out))
    }

    fn handling(&self) -> Handling {
        Handling { coalesces: self.coalesces, rest: REST }
    }
}

/// Why a datagram that cannot be read is not taken: what it says of an object may be of a code that is not known here.
fn unreadable(datagram: &[u8], tsi: u16) -> Strange {
    match Lct::decode(datagram) {
        Ok((header, _)) if header.tsi != u64::from(tsi) => Strange::Session(header.tsi),
        Ok((header, _)) if !is_known(header.codepoint) => Strange::Code(header.codepoint),
        _ => Strange::Unreadable,
    }
}

/// Whether symbols of this FEC encoding id can be used.
fn is_known(encoding_id: u8) -> bool {
    matches!(encoding_id, NO_CODE | RAPTORQ)
}

/// As long as a sender of ours rests between two bursts of a channel.
const REST: Duration = Duration::from_millis(5);

const _: () = assert!(MAX_OVERHEAD <= MAX_HEADER, "every header fits");
