//! Headers through their encoding and back, so that a simulated run proves that the wire carries all that a protocol needs.

use weir_wire::alc::{Alc, Content, MAX_OVERHEAD, Profile};
use weir_wire::fec::PayloadId;
use weir_wire::{CciForm, Layered};

/// The header as a receiver reads it from the bytes of a packet.
pub(crate) fn over_the_wire(form: CciForm, header: &Layered) -> Layered {
    let profile = Profile { tsi: 1, form };
    let content =
        Content { toi: 1, encoding_id: 6, payload_id: PayloadId { block: 0, symbol: 1 }, fdt: None, oti: None };
    let mut bytes = [0; MAX_OVERHEAD + 1];
    let len = profile.encode(header, &content, &mut bytes);
    let decoded = Alc::decode(&bytes[..len + 1]).and_then(|alc| alc.layered(form));
    decoded.expect("what the encoder wrote can be read")
}
