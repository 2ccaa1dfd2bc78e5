//! Any bytes, packets and numbers: they are refused or understood, within bounds.

use crate::common::*;
use proptest::prelude::*;
use weir_media::{
    Arrival, Assembler, Codec, Format, Gate, MAX_PICTURE_BYTES, MediaError, Packetizer, Picture, PictureInfo,
    SplitOptions, Splitter,
};

/// Bytes that look like the codecs' streams here and there.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let heads: [&[u8]; 12] = [
        b"DKIF\0\0\x20\0VP90\x40\x01\xb4\0\x1e\0\0\0\x01\0\0\0\x78\0\0\0\0\0\0\0",
        &[20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x83, 0x49, 0x83, 0x42, 0, 0x13, 0xF0, 0x0B, 0x30],
        b"DKIF\0\0\x20\0AV01\x40\x01\xb4\0\x1e\0\0\0\x01\0\0\0\x78\0\0\0\0\0\0\0",
        // Temporal units: a key frame with its sequence header, and frames of layers 1 and 2.
        b"\x20\0\0\0\0\0\0\0\0\0\0\0\x12\0\x0a\x0e\0\x21\x07\0\x81\x80\x40\x41\x0f\x3f\xb3\x36\x68\x02\x32\x0c\x10\x42\x80\x02\x08\x20\x84\0\x09\0\xdd\x4a",
        &[12, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x12, 0, 0x36, 0x20, 7, 0x30, 0, 0x40, 0xA7, 0x2E, 5, 0x2F],
        &[11, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0x12, 0, 0x36, 0x40, 6, 0x34, 0, 4, 0x27, 0x2E, 6],
        &[0, 0, 0, 1, 0x40, 1],
        &[0, 0, 0, 1, 0x42, 1],
        &[0, 0, 0, 1, 0x44, 1],
        &[0, 0, 1, 0x26, 1, 0x80],
        &[0, 0, 0, 1, 0x67, 100, 0, 31, 0xAC],
        &[0, 0, 1, 0x65, 0x88, 0x84],
    ];
    let piece = prop_oneof![
        prop::sample::select(heads.to_vec()).prop_map(<[u8]>::to_vec),
        prop::collection::vec(any::<u8>(), 0..40)
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

fn info() -> impl Strategy<Value = PictureInfo> {
    (0_u16..40, 0_u8..6, any::<u8>(), any::<bool>(), any::<bool>())
        .prop_map(|(number, needs, layer, is_key, is_leading)| PictureInfo { number, needs, layer, is_key, is_leading })
}

/// Splits to the end; the bytes of all pictures. Numbers must count up, layers be within bounds, and needs point to earlier pictures.
fn split_any(format: Option<Format>, bytes: &[u8], piece: usize) -> usize {
    let mut splitter = Splitter::new(SplitOptions { format, frame_rate: None });
    let mut items: Vec<_> = bytes
        .chunks(piece)
        .flat_map(|piece| {
            splitter.push(piece);
            splitter.by_ref().collect::<Vec<_>>()
        })
        .collect();
    splitter.finish();
    items.extend(splitter.by_ref());
    let pictures: Vec<_> = items.iter().flatten().collect();
    for (n, picture) in pictures.iter().enumerate() {
        let info = picture.info;
        assert_eq!(usize::from(info.number), n);
        assert!(info.layer < splitter.layers());
        assert_eq!(info.is_key, info.needs == 0);
        assert!(usize::from(info.needs) <= n || info.is_leading);
    }
    pictures.iter().map(|picture| picture.data.len()).sum()
}

#[test]
fn damaged_streams_of_real_encoders_are_survived() {
    for (format, encoder) in [
        (Format::IvfVp9, VP9_THREE_LAYERS),
        (Format::IvfAv1, AV1_THREE_LAYERS),
        (Format::AnnexBHevc, HEVC_OPEN_GROUPS),
        (Format::AnnexBH264, H264_TWO_LAYERS),
    ] {
        let stream = encode(encoder);
        let whole = split_any(Some(format), &stream, 4096);
        let mut random = 99_u32;
        let mut differ = 0;
        for _ in 0..60 {
            let mut damaged = stream[..stream.len().min(60_000)].to_vec();
            for _ in 0..40 {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                // Most of it among the first headers.
                let reach = if random & 1 == 0 { 200 } else { damaged.len() };
                damaged[(random >> 8) as usize % reach] ^= 1 << (random >> 5 & 7);
            }
            differ += usize::from(split_any(Some(format), &damaged, 4096) != whole);
        }
        assert!(differ > 0, "nothing was damaged");
    }
}

#[test]
fn endless_pictures_end_with_an_error() {
    for format in [Format::IvfVp9, Format::IvfAv1, Format::AnnexBHevc, Format::AnnexBH264] {
        let mut splitter = Splitter::new(SplitOptions { format: Some(format), frame_rate: None });
        splitter.push(&[[0_u8; 28].as_slice(), &[0, 0, 0, 1], &[0xFF; 12]].concat());
        let filler = vec![0x55; 1 << 20];
        let limit = MAX_PICTURE_BYTES / filler.len() + 2;
        let error = (0..limit).find_map(|_| {
            splitter.push(&filler);
            splitter.find_map(Result::err)
        });
        assert_eq!(error, Some(MediaError::TooLong { limit: MAX_PICTURE_BYTES }), "{format:?}");
        splitter.push(&filler);
        assert_eq!(splitter.next(), None);
    }
}

#[test]
fn endless_packets_of_a_picture_are_given_up() {
    let mut assembler = Assembler::new(Codec::Vp9);
    let info = PictureInfo { number: 0, needs: 0, layer: 0, is_key: true, is_leading: false };
    let payload = vec![8; 60_000];
    for sequence in 0..300_u16 {
        let arrival = Arrival { sequence, timestamp: 0, marker: false, starts: sequence == 0, info, payload: &payload };
        assert_eq!(assembler.push(arrival), None);
    }
    let counts = assembler.counts();
    assert_eq!((counts.malformed, counts.late), (1, 20));
}

#[test]
fn pictures_of_which_something_is_missing_are_given_up_in_time() {
    let mut assembler = Assembler::new(Codec::H264);
    for number in 0..100 {
        let info = PictureInfo { number, needs: 1, layer: 0, is_key: false, is_leading: false };
        let arrival =
            Arrival { sequence: 2 * number, timestamp: 0, marker: false, starts: true, info, payload: &[0x41, 1] };
        assert_eq!(assembler.push(arrival), None);
    }
    assert_eq!(assembler.counts().incomplete, 36);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_stream_is_split_or_refused(stream in stream(), piece in 1_usize..300) {
        for format in [None, Some(Format::IvfVp9), Some(Format::IvfAv1), Some(Format::AnnexBHevc), Some(Format::AnnexBH264)] {
            // Start codes may grow by a byte.
            prop_assert!(split_any(format, &stream, piece) <= stream.len() * 4 / 3 + 4);
        }
    }

    #[test]
    fn any_packets_are_assembled_or_refused(
        arrivals in prop::collection::vec((0_u16..20, 0_u32..3, any::<[bool; 2]>(), info(), prop::collection::vec(any::<u8>(), 0..30)), 0..200),
    ) {
        for codec in Codec::ALL {
            let mut assembler = Assembler::new(codec);
            let mut pictures = 0;
            for (sequence, timestamp, [marker, starts], info, payload) in &arrivals {
                let (sequence, timestamp) = (sequence.wrapping_sub(10), *timestamp);
                let arrival = Arrival { sequence, timestamp, marker: *marker, starts: *starts, info: *info, payload };
                pictures += u64::from(assembler.push(arrival).is_some());
            }
            let counts = assembler.counts();
            prop_assert_eq!(counts.pictures, pictures);
            prop_assert!(counts.pictures + counts.incomplete + counts.malformed + counts.late <= arrivals.len() as u64);
        }
    }

    #[test]
    fn nothing_is_admitted_whose_need_was_not(infos in prop::collection::vec(info(), 0..200)) {
        let mut gate = Gate::default();
        let mut admitted = Vec::new();
        for info in &infos {
            if gate.admit(info) {
                let needed = info.number.wrapping_sub(info.needs.into());
                prop_assert!(info.needs == 0 || admitted.contains(&needed));
                admitted.push(info.number);
            }
        }
        prop_assert_eq!(admitted.len() as u64 + gate.withheld().iter().sum::<u64>(), infos.len() as u64);
    }

    #[test]
    fn packets_of_any_picture_make_it_again(
        units in prop::collection::vec(prop::collection::vec(any::<u8>(), 3..400), 1..12),
        max_payload in 0_usize..1500,
        by in 1_usize..20,
    ) {
        let info = PictureInfo { number: 3, needs: 1, layer: 0, is_key: false, is_leading: false };
        for codec in Codec::ALL {
            // Temporal units begin with a delimiter.
            let mut data = if codec == Codec::Av1 { vec![0x12, 0] } else { Vec::new() };
            data.extend(units.iter().flat_map(|unit| unit_of(codec, unit)));
            let picture = Picture { info, timestamp: 77, data };
            let payloads = Packetizer::new(codec, max_payload).packetize(&picture);
            prop_assert!(payloads.iter().all(|payload| payload.data.len() <= max_payload.max(64)));
            let mut packets: Vec<_> = (65_530..=u16::MAX).chain(0..).zip(payloads).map(|(sequence, payload)| {
                Packet { sequence, timestamp: 77, info, payload }
            }).collect();
            shuffle(&mut packets, by);
            packets.insert(packets.len() / 2, packets[0].clone());
            prop_assert_eq!(assemble(codec, &packets), [picture]);
        }
    }
}

/// Bytes as a frame of AV1 with its size, in some layer or none.
fn av1_unit_of(bytes: &[u8]) -> Vec<u8> {
    let extension = (bytes[0] & 1 == 1).then_some(bytes[1] & 0xF8);
    let payload = &bytes[2..];
    let mut unit = vec![0x32 | if extension.is_some() { 4 } else { 0 }];
    unit.extend(extension);
    let high = (payload.len() >> 7) as u8;
    unit.push(payload.len() as u8 & 0x7F | if high > 0 { 0x80 } else { 0 });
    unit.extend((high > 0).then_some(high));
    unit.extend(payload);
    unit
}

/// Bytes as a NAL unit of some ordinary type in Annex B, or for VP9 as they are.
fn unit_of(codec: Codec, bytes: &[u8]) -> Vec<u8> {
    let body = bytes[2..].iter().map(|byte| byte | 0x10);
    let head: &[u8] = match codec {
        Codec::Vp9 => return bytes.to_vec(),
        Codec::Av1 => return av1_unit_of(bytes),
        Codec::Hevc => &[0, 0, 0, 1, (bytes[0] % 41) << 1, bytes[1] % 7 + 1],
        Codec::H264 => &[0, 0, 0, 1, bytes[0] & 0x60 | (bytes[0] % 23 + 1)],
    };
    head.iter().copied().chain(body).collect()
}
