use super::*;

const KEY: [u8; 9] = [0x83, 0x49, 0x83, 0x42, 0x00, 0x27, 0xF0, 0x16, 0x70];

/// An inter frame: shown, resilient, with what it refreshes and its three references.
fn inter(refresh: u8, refs: [u8; 3]) -> Vec<u8> {
    let refs = refs.iter().fold(0_u32, |bits, slot| bits << 4 | u32::from(*slot) << 1);
    let bits = 0b1000_0111_u32 << 24 | u32::from(refresh) << 16 | refs << 4;
    bits.to_be_bytes().to_vec()
}

#[test]
fn kinds_follow_the_slots_that_are_refreshed() {
    let mut structure = Structure::default();
    let pictures = [KEY.to_vec(), inter(0, [0, 1, 2]), inter(2, [0, 1, 2]), inter(1, [0, 1, 2])];
    let seen = pictures.map(|picture| structure.see(&picture).expect("readable"));
    assert_eq!(seen.map(|seen| seen.kind), [Kind::Base, Kind::Unreferenced, Kind::Middle, Kind::Base]);
    assert_eq!(seen.map(|seen| seen.is_key), [true, false, false, false]);
    assert!(seen.iter().all(|seen| seen.flaw.is_none()));
}

#[test]
fn base_picture_on_top_of_a_higher_layer_is_a_flaw() {
    let mut structure = Structure::default();
    [KEY.to_vec(), inter(2, [0, 0, 0])].iter().for_each(|picture| assert!(structure.see(picture).is_some()));
    assert!(structure.see(&inter(1, [1, 0, 0])).expect("readable").flaw.is_some());
}

#[test]
fn frames_that_inherit_coding_state_are_a_flaw() {
    let mut structure = Structure::default();
    let mut picture = inter(0, [0, 1, 2]);
    picture[0] &= !1;
    assert!(structure.see(&picture).expect("readable").flaw.is_some());
}

#[test]
fn superframe_is_one_picture_with_all_that_its_frames_refresh() {
    let (hidden, shown) = (inter(4, [0, 1, 2]), inter(1, [0, 1, 2]));
    let marker = 0xC0 | 1;
    let index = [marker, hidden.len() as u8, shown.len() as u8, marker];
    let picture = [hidden, shown, index.to_vec()].concat();
    assert_eq!(frames(&picture).expect("split").len(), 2);
    assert_eq!(Structure::default().see(&picture).expect("readable").kind, Kind::Base);
}

#[test]
fn key_frame_states_its_dimensions() {
    assert_eq!(dimensions(&[0x82, 0x49, 0x83, 0x42, 0x20, 0x13, 0xF0, 0x0B, 0x30]), Some((320, 180)));
}
