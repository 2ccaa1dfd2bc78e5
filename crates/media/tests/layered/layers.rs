//! Streams of real encoders go through all of it, and a real decoder must find every frame as it was.

use crate::common::*;
use weir_media::{Codec, Format, MediaError, Picture, Protector, Recovery};

/// Splits a stream, sends it over, and decodes what is left of it with fewer layers. `frames` are for each number of layers.
fn every_layer_decodes(encoder: &str, codec: Codec, frames: &[usize]) {
    let stream = encode(encoder);
    let whole = decode(codec, &stream);
    let (splitter, pictures) = split(&stream);
    assert_eq!((splitter.codec(), usize::from(splitter.layers())), (Some(codec), frames.len()));
    assert_eq!((whole.len(), pictures.len()), (PICTURES, PICTURES));
    for (top, frames) in frames.iter().enumerate() {
        let mut sent = packets(codec, &pictures, top as u8, 500);
        let in_order = sent.iter().map(|packet| packet.sequence).collect::<Vec<_>>();
        shuffle(&mut sent, 12);
        assert!(in_order != sent.iter().map(|packet| packet.sequence).collect::<Vec<_>>(), "nothing was shuffled");
        let arrived = assemble(codec, &sent);
        let kept: Vec<_> = pictures.iter().filter(|picture| usize::from(picture.info.layer) <= top).cloned().collect();
        assert!(arrived == kept, "pictures differ from those that were sent");
        let (file, count, gate) = gate(codec, &arrived);
        assert_eq!((count, gate.withheld()), (*frames, &[0; 8]));
        let decoded = decode(codec, &file);
        assert_eq!(decoded.len(), *frames);
        assert!(is_subsequence(&decoded, &whole), "a frame of {} layers differs", top + 1);
    }
}

/// Packets are lost, and what remains must decode without complaint to frames that are as they were.
fn losses_leave_clean_frames(encoder: &str, codec: Codec) {
    let stream = encode(encoder);
    let whole = decode(codec, &stream);
    let (_, pictures) = split(&stream);
    let mut withheld = 0;
    for every in [11, 23, 47] {
        let sent = packets(codec, &pictures, 7, 500).into_iter().enumerate();
        // The packets of the first picture come through.
        let came = sent.filter(|(n, packet)| packet.info.number == 0 || n % every != 0).map(|(_, packet)| packet);
        let arrived = assemble(codec, &came.collect::<Vec<_>>());
        assert!(arrived.len() < PICTURES, "nothing was lost");
        withheld += what_is_shown_is_clean(codec, &arrived, &whole);
    }
    assert!(withheld > 0, "nothing depended on what was lost");
}

/// Decodes what the gate lets through. How many pictures it withheld.
fn what_is_shown_is_clean(codec: Codec, arrived: &[Picture], whole: &[String]) -> usize {
    let (file, shown, gate) = gate(codec, arrived);
    let withheld = gate.withheld().iter().sum::<u64>() as usize;
    assert_eq!(shown + withheld, arrived.len());
    let decoded = decode(codec, &file);
    assert_eq!(decoded.len(), shown);
    assert!(is_subsequence(&decoded, whole), "a frame differs");
    withheld
}

#[test]
fn vp9_with_three_layers_decodes_at_half_and_quarter_rate() {
    every_layer_decodes(VP9_THREE_LAYERS, Codec::Vp9, &[30, 60, 120]);
}

#[test]
fn vp9_with_two_layers_decodes_at_half_rate() {
    every_layer_decodes(VP9_TWO_LAYERS, Codec::Vp9, &[60, 120]);
}

#[test]
fn av1_with_three_layers_decodes_at_half_and_quarter_rate() {
    every_layer_decodes(AV1_THREE_LAYERS, Codec::Av1, &[30, 60, 120]);
}

#[test]
fn av1_with_two_layers_decodes_at_half_rate() {
    every_layer_decodes(AV1_TWO_LAYERS, Codec::Av1, &[60, 120]);
}

#[test]
fn hevc_with_two_layers_decodes_at_half_rate() {
    every_layer_decodes(HEVC_TWO_LAYERS, Codec::Hevc, &[64, 120]);
}

#[test]
fn h264_with_two_layers_decodes_at_half_rate() {
    every_layer_decodes(H264_TWO_LAYERS, Codec::H264, &[64, 120]);
}

#[test]
fn leading_pictures_of_open_groups_are_spaced_with_the_upper_layer() {
    every_layer_decodes(HEVC_OPEN_GROUPS, Codec::Hevc, &[61, 120]);
}

#[test]
fn losses_of_vp9_leave_clean_frames() {
    losses_leave_clean_frames(VP9_THREE_LAYERS, Codec::Vp9);
}

#[test]
fn losses_of_av1_leave_clean_frames() {
    losses_leave_clean_frames(AV1_THREE_LAYERS, Codec::Av1);
}

#[test]
fn losses_of_hevc_leave_clean_frames() {
    losses_leave_clean_frames(HEVC_TWO_LAYERS, Codec::Hevc);
}

#[test]
fn losses_of_hevc_with_open_groups_leave_clean_frames() {
    losses_leave_clean_frames(HEVC_OPEN_GROUPS, Codec::Hevc);
}

#[test]
fn losses_of_h264_leave_clean_frames() {
    losses_leave_clean_frames(H264_TWO_LAYERS, Codec::H264);
}

#[test]
fn any_one_loss_about_the_join_of_open_groups_leaves_clean_frames() {
    let stream = encode(HEVC_OPEN_GROUPS);
    let whole = decode(Codec::Hevc, &stream);
    let (_, pictures) = split(&stream);
    let key = pictures.iter().skip(1).position(|picture| picture.info.is_key).expect("several groups") + 1;
    assert!(pictures[key + 1].info.is_leading, "the groups are not open");
    for lost in key - 3..key + 4 {
        let mut arrived = pictures.clone();
        arrived.remove(lost);
        what_is_shown_is_clean(Codec::Hevc, &arrived, &whole);
    }
    // And a receiver that joins there sees all from the key picture on, but for what leads it.
    assert_eq!(what_is_shown_is_clean(Codec::Hevc, &pictures[key..], &whole), 1);
}

#[test]
fn repair_gives_back_what_was_lost_of_a_layer() {
    let (_, pictures) = split(&encode(VP9_THREE_LAYERS));
    let sent = packets(Codec::Vp9, &pictures, 0, 500);
    let (mut protector, mut recovery) = (Protector::default(), Recovery::default());
    let (mut arrived, mut lost) = (Vec::new(), 0);
    for window in sent.chunks(30) {
        window.iter().for_each(|packet| assert!(protector.push(packet.sequence, &packet.payload.data)));
        let block = protector.close().expect("not empty");
        for (n, packet) in window.iter().enumerate() {
            if n % 7 == 3 {
                lost += 1;
            } else {
                arrived.push(packet.clone());
                recovery.source(packet.sequence, &packet.payload.data);
            }
        }
        let back = (0..8).flat_map(|n| recovery.repair(&block.repair(n)));
        arrived.extend(back.map(|back| {
            let packet = sent.iter().find(|packet| packet.sequence == back.sequence).expect("was sent");
            assert_eq!(packet.payload.data, back.packet);
            packet.clone()
        }));
    }
    assert!(lost > 10 && recovery.counts().recovered == lost, "{lost} lost, {:?}", recovery.counts());
    let kept: Vec<_> = pictures.into_iter().filter(|picture| picture.info.layer == 0).collect();
    assert!(assemble(Codec::Vp9, &arrived) == kept);
}

#[test]
fn layers_that_x265_refused_are_not_there() {
    let (splitter, pictures) =
        split(&encode(&format!("-v fatal {}", HEVC_TWO_LAYERS.replace("temporal-layers=1", "temporal-layers=5"))));
    assert_eq!((splitter.format(), splitter.layers()), (Some(Format::AnnexBHevc), 1));
    assert!(pictures.iter().skip(1).all(|picture| picture.info.is_key || picture.info.needs == 1));
}

#[test]
fn hevc_layer_that_may_lean_on_itself_is_no_layer() {
    let mut stream = encode(HEVC_TWO_LAYERS);
    // TSA_N (2) of layer 1 becomes TRAIL_R (1), which others of its layer may refer to.
    let units: Vec<_> = (0..stream.len() - 5).filter(|at| stream[*at..*at + 5] == [0, 0, 1, 2 << 1, 2]).collect();
    assert!(units.len() > 40, "no TSA_N pictures");
    units.into_iter().for_each(|at| stream[at + 3] = 1 << 1);
    let (_, pictures, errors) = split_with_errors(&stream);
    // The first such picture may lean on none of its layer yet.
    assert!(matches!(errors[..], [MediaError::NotLayered { number: 4, .. }]), "{errors:?}");
    assert!(pictures.iter().skip(4).all(|picture| picture.info.layer == 0));
}

#[test]
fn vp9_that_inherits_coding_state_is_one_layer_and_says_so() {
    let stream =
        encode("-c:v libvpx-vp9 -deadline good -cpu-used 8 -b:v 300k -auto-alt-ref 1 -lag-in-frames 12 -f ivf");
    let (splitter, pictures, errors) = split_with_errors(&stream);
    assert!(matches!(errors[..], [MediaError::NotLayered { number: 1, .. }]), "{errors:?}");
    assert_eq!(splitter.layers(), 1);
    // Hidden frames come in superframes, which are one picture each.
    assert_eq!(pictures.len(), PICTURES);
    let (file, ..) = gate(Codec::Vp9, &pictures);
    assert_eq!(decode(Codec::Vp9, &file), decode(Codec::Vp9, &stream));
}

#[test]
fn av1_that_is_joined_midway_begins_with_its_next_key_picture() {
    let stream = encode(AV1_THREE_LAYERS);
    let first = 12 + u32::from_le_bytes(*stream[32..].first_chunk().expect("a frame's header")) as usize;
    let (_, pictures, errors) = split_with_errors(&[&stream[..32], &stream[32 + first..]].concat());
    assert!(matches!(errors[..], [MediaError::Damaged { .. }]), "told once: {errors:?}");
    // The second of two.
    assert_eq!((pictures.len(), pictures[0].info.is_key, pictures[0].timestamp), (60, true, 180_000));
}

#[test]
fn av1_layer_that_leans_on_itself_is_no_layer() {
    let stream = encode(AV1_CHAINED_LAYERS);
    let (_, pictures, errors) = split_with_errors(&stream);
    // The first picture of the top layer leans on the base.
    assert!(matches!(errors[..], [MediaError::NotLayered { number: 3, .. }]), "{errors:?}");
    assert!(pictures.iter().skip(3).all(|picture| picture.info.layer == 0));
    assert_eq!(pictures.len(), PICTURES);
}

#[test]
fn av1_of_encoders_without_layers_is_one_layer_and_comes_through_whole() {
    let encoders = [
        "-c:v libaom-av1 -cpu-used 8 -b:v 300k -g 60 -f ivf",
        "-c:v libaom-av1 -cpu-used 8 -usage realtime -b:v 300k -g 60 -f ivf",
        "-c:v libsvtav1 -preset 12 -b:v 300k -g 60 -f ivf",
        "-c:v librav1e -speed 10 -b:v 300k -g 60 -f ivf",
    ];
    for encoder in encoders {
        let stream = encode(encoder);
        let (splitter, pictures) = split(&stream);
        assert_eq!((splitter.codec(), splitter.layers()), (Some(Codec::Av1), 1), "{encoder}");
        // Hidden frames are in the temporal unit of the next that is shown.
        assert_eq!(pictures.len(), PICTURES, "{encoder}");
        let whole = decode(Codec::Av1, &stream);
        let (file, count, _) = gate(Codec::Av1, &assemble(Codec::Av1, &packets(Codec::Av1, &pictures, 0, 1200)));
        assert_eq!((count, decode(Codec::Av1, &file)), (PICTURES, whole.clone()), "{encoder}");
        let last_key = pictures.iter().rposition(|picture| picture.info.is_key).expect("key pictures");
        assert!(last_key > 0, "{encoder} makes one key picture");
        what_is_shown_is_clean(Codec::Av1, &pictures[last_key..], &whole);
    }
}

#[test]
fn streams_of_other_settings_come_through_whole_and_joinable() {
    let x265 = |settings: &str, layers| {
        (
            format!("-c:v libx265 -preset veryfast -x265-params log-level=error:keyint=30:{settings} -f hevc"),
            Codec::Hevc,
            layers,
        )
    };
    let x264 = |settings: &str, layers| {
        (format!("-c:v libx264 -x264-params keyint=30:{settings} -f h264"), Codec::H264, layers)
    };
    let streams = [
        // Parameter sets come once; leading pictures that others lead on.
        x265("temporal-layers=1:bframes=4:b-pyramid=1", 2),
        x265("bframes=0:slices=3:aud=1", 1),
        x265("bframes=3:radl=2:open-gop=0:repeat-headers=1", 1),
        x264("bframes=3:b-pyramid=strict", 2),
        x264("bframes=0:slices=4:aud=1", 1),
        x264("bframes=2:interlaced=1:weightp=0", 2),
    ];
    for (encoder, codec, layers) in streams {
        let stream = encode(&encoder);
        let whole = decode(codec, &stream);
        let (splitter, pictures) = split(&stream);
        assert_eq!((splitter.layers(), pictures.len(), whole.len()), (layers, PICTURES, PICTURES), "{encoder}");
        let mut times: Vec<_> = pictures.iter().map(|picture| picture.timestamp).collect();
        times.sort_unstable();
        assert!(times.iter().zip(0..).all(|(time, n)| *time == n * 3000), "{encoder}: {times:?}");
        for top in 0..layers {
            let kept = assemble(codec, &packets(codec, &pictures, top, 1200));
            assert_eq!(what_is_shown_is_clean(codec, &kept, &whole), 0, "{encoder}");
        }
        let last_key = pictures.iter().rposition(|picture| picture.info.is_key).expect("key pictures");
        assert!(last_key > 0, "{encoder} makes one key picture");
        what_is_shown_is_clean(codec, &pictures[last_key..], &whole);
    }
}

#[test]
fn what_is_no_video_is_told_a_command_that_makes_one() {
    let (_, pictures, errors) = split_with_errors(b"RIFF");
    assert!(pictures.is_empty());
    let text = errors[0].to_string();
    let (_, encoder) = text.split_once("ffmpeg -i INPUT ").expect("a command");
    let stream = encode(encoder.strip_suffix('-').expect("to standard output"));
    assert_eq!(split(&stream).0.layers(), 3);
    // Without -minrate and -maxrate, libvpx 1.12 exceeds -b:v with layers ten times over.
    let bits_per_second = stream.len() * 8 / 4;
    assert!(bits_per_second < 1_800_000, "{bits_per_second}");
}

#[test]
fn presentation_times_are_those_of_the_encoder() {
    for encoder in [VP9_THREE_LAYERS, AV1_THREE_LAYERS, HEVC_TWO_LAYERS, HEVC_OPEN_GROUPS, H264_TWO_LAYERS] {
        let (_, pictures) = split(&encode(encoder));
        let mut times: Vec<_> = pictures.iter().map(|picture| picture.timestamp).collect();
        times.sort_unstable();
        let expected: Vec<_> = (0..PICTURES as u32).map(|n| n * 3000).collect();
        assert_eq!(times, expected, "{encoder}");
    }
}
