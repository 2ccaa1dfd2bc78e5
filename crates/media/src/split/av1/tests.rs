use super::*;

/// A picture of one frame that is shown, and what the splitter finds wrong with it.
fn flaw(structure: &mut Structure, layer: u8, refresh: u8, needs: u8) -> Option<&'static str> {
    structure.follow(layer, &[Frame::Coded { is_key: false, is_shown: true, refresh, needs }])
}

fn begun() -> Structure {
    let mut structure = Structure::default();
    let key = Frame::Coded { is_key: true, is_shown: true, refresh: 0xFF, needs: 0 };
    assert_eq!(structure.follow(0, &[key]), None);
    structure
}

#[test]
fn three_layers_as_libaom_makes_them_have_no_flaw() {
    let mut structure = begun();
    for _ in 0..3 {
        for (layer, refresh, needs) in [(2, 0, 1), (1, 2, 1), (2, 0, 2), (0, 1, 1)] {
            assert_eq!(flaw(&mut structure, layer, refresh, needs), None);
        }
    }
}

#[test]
fn base_picture_that_needs_a_higher_layer_is_a_flaw() {
    let mut structure = begun();
    assert_eq!(flaw(&mut structure, 1, 2, 1), None);
    assert!(flaw(&mut structure, 0, 1, 3).is_some_and(|why| why.contains("base layer")));
    // Its slot holds a picture of the base layer now.
    assert_eq!(flaw(&mut structure, 0, 2, 1), None);
    assert_eq!(flaw(&mut structure, 0, 1, 2), None);
}

#[test]
fn higher_picture_that_needs_its_own_layer_or_an_older_middle_one_is_a_flaw() {
    let mut structure = begun();
    assert_eq!(flaw(&mut structure, 2, 4, 1), None);
    assert!(flaw(&mut structure, 2, 4, 4).is_some());
    assert_eq!(flaw(&mut structure, 1, 2, 1), None);
    assert_eq!(flaw(&mut structure, 2, 0, 2), None);
    // After the next picture of the base layer nobody can tell whether the middle one came.
    assert_eq!(flaw(&mut structure, 0, 1, 1), None);
    assert!(flaw(&mut structure, 2, 0, 2).is_some());
}

#[test]
fn frames_of_one_picture_may_need_each_other_and_what_is_shown_later_counts() {
    let mut structure = begun();
    let hidden = Frame::Coded { is_key: false, is_shown: false, refresh: 8, needs: 1 };
    let shown = Frame::Coded { is_key: false, is_shown: true, refresh: 0, needs: 8 };
    assert_eq!(structure.follow(1, &[hidden, shown]), None);
    assert!(structure.follow(0, &[Frame::Existing(3)]).is_some());
    assert_eq!(structure.follow(0, &[Frame::Existing(0)]), None);
}

/// The sequence header of libaom 3.6 in real-time mode, 320 by 180.
const WITHOUT_HINTS: [u8; 14] = [0, 0x21, 0x07, 0, 0x81, 0x80, 0x40, 0x41, 0x0F, 0x3F, 0xB3, 0x36, 0x68, 0x02];

#[test]
fn headers_of_libaom_are_read() {
    let sequence = sequence::parse(&WITHOUT_HINTS).expect("readable");
    assert_eq!((sequence.dimensions, sequence.order_hint_bits), ((320, 180), 0));
    let unit = |bytes: &'static [u8]| Obu::split(bytes).expect("a unit").0;
    let key = frame::parse(&unit(&[0x30, 0x10, 0x42, 0x80, 0x02, 0x08]), &sequence);
    assert_eq!(key, Some(Frame::Coded { is_key: true, is_shown: true, refresh: 0xFF, needs: 0 }));
    // A picture of the middle layer, from slot 0 into slot 1.
    let middle = frame::parse(&unit(&[0x34, 0x20, 0x30, 0, 0x40, 0xA7, 0x2E, 0x05]), &sequence);
    assert_eq!(middle, Some(Frame::Coded { is_key: false, is_shown: true, refresh: 2, needs: 1 }));
    assert_eq!(frame::parse(&unit(&[0x34, 0x20, 0x30]), &sequence), None);
}
