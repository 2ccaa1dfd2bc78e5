//! Any bytes at all, to every decoder: they are refused or understood, and nothing panics. Runs under `cargo test`, and as
//! a fuzz target with `cargo bolero test -p weir-wire any_bytes_are_decoded_or_refused`.

use weir_wire::CciForm;
use weir_wire::alc::Alc;
use weir_wire::extension;
use weir_wire::fec::{NO_CODE, Oti, PayloadId, RAPTORQ};
use weir_wire::lct::Lct;
use weir_wire::receipt::Receipt;

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
