//! The layers of real encoders' streams, each by itself, are put back in the order that they came from.

use std::collections::VecDeque;

use crate::common::*;
use weir_media::{AccessUnit, AccessUnits, Ambiguous, Codec, DecodeOrder, Head, Picture};

/// Brightness is turned over now and then, so that groups of pictures end where the encoder sees a new scene.
const SCENES: &str = "-vf negate=enable='lt(mod(n\\,37)\\,11)' -y";

/// A picture that waits with those of its layer, and when it is presented.
type Waiting = (AccessUnit, Option<i64>);

/// The access units of each layer, read from a byte stream of its own.
fn apart(codec: Codec, pictures: &[Picture], layers: u8) -> Vec<VecDeque<Waiting>> {
    let of_layer = |layer| {
        let mut units = AccessUnits::new(codec);
        pictures.iter().filter(|picture| picture.info.layer == layer).for_each(|picture| units.push(&picture.data));
        units.finish();
        units.map(|unit| (unit.expect("it is whole"), None)).collect()
    };
    (0..layers).map(of_layer).collect()
}

/// The pictures in the order that is found, and how many of each layer found no place.
fn together(codec: Codec, mut layers: Vec<VecDeque<Waiting>>) -> Result<(Vec<Vec<u8>>, Vec<usize>), Ambiguous> {
    let mut order = DecodeOrder::new(codec).expect("it is in Annex B");
    let mut together = Vec::new();
    loop {
        let head = |layer: &VecDeque<Waiting>| layer.front().map(|(unit, time)| (unit.clone(), *time));
        let heads: Vec<_> = layers.iter().map(head).collect();
        let heads: Vec<_> =
            heads.iter().map(|head| head.as_ref().map(|(unit, time)| Head { unit, time: *time })).collect();
        let Some(layer) = order.next(&heads)? else { break };
        let (unit, _) = layers[layer].pop_front().expect("it has a head");
        order.take(&unit);
        together.push(unit.into_data());
    }
    Ok((together, layers.iter().map(VecDeque::len).collect()))
}

fn x265(settings: &str) -> String {
    format!("-c:v libx265 -preset veryfast -x265-params log-level=error:{settings} -f hevc")
}

fn x264(settings: &str) -> String {
    format!("-c:v libx264 -x264-params {settings} -f h264")
}

#[test]
fn layers_of_every_structure_come_back_in_the_order_of_decoding() {
    let two_layers = "temporal-layers=1";
    let streams = [
        (HEVC_TWO_LAYERS.to_owned(), Codec::Hevc),
        (HEVC_OPEN_GROUPS.to_owned(), Codec::Hevc),
        (x265(&format!("{two_layers}:bframes=4:b-pyramid=1:keyint=30")), Codec::Hevc),
        (x265(&format!("{two_layers}:bframes=8:b-adapt=2:keyint=250:ref=5")), Codec::Hevc),
        (
            format!("{SCENES} {}", x265(&format!("{two_layers}:bframes=3:keyint=40:min-keyint=1:open-gop=0"))),
            Codec::Hevc,
        ),
        (
            format!("{SCENES} {}", x265(&format!("{two_layers}:bframes=3:keyint=40:min-keyint=1:radl=2:open-gop=0"))),
            Codec::Hevc,
        ),
        (H264_TWO_LAYERS.to_owned(), Codec::H264),
        (x264("bframes=3:b-pyramid=strict:keyint=30"), Codec::H264),
        (x264("bframes=5:b-pyramid=normal:b-adapt=2:ref=5:keyint=250"), Codec::H264),
        (x264("bframes=2:interlaced=1:weightp=0:keyint=30"), Codec::H264),
        (format!("{SCENES} {}", x264("bframes=3:keyint=40:min-keyint=1")), Codec::H264),
    ];
    for (encoder, codec) in streams {
        let (splitter, pictures) = split(&encode(&encoder));
        let layers = apart(codec, &pictures, splitter.layers());
        assert_eq!(layers.len(), 2, "{encoder}");
        assert!(layers[1].len() > 20, "{encoder}");
        let keys = pictures.iter().filter(|picture| picture.info.is_key).count();
        assert!(!encoder.contains(SCENES) || keys > 4, "{encoder}: scenes made {keys} groups");
        let (found, left) = together(codec, layers).expect(&encoder);
        assert_eq!(left, [0, 0], "{encoder}");
        let as_it_was = found.iter().zip(&pictures).take_while(|(found, picture)| **found == picture.data).count();
        assert_eq!(as_it_was, pictures.len(), "{encoder}: differs from this picture on");
    }
}

#[test]
fn layers_of_two_streams_find_no_place_in_each_other() {
    let (_, one) = split(&encode(H264_TWO_LAYERS));
    let (_, other) = split(&encode(&x264("bframes=3:b-pyramid=strict:keyint=30")));
    let mut layers = apart(Codec::H264, &one, 2);
    layers[1] = apart(Codec::H264, &other, 2).pop().expect("two layers");
    let (_, left) = together(Codec::H264, layers).expect("no picture has two places");
    assert!(left[1] > 20, "{left:?}");
}

#[test]
fn damaged_layers_are_survived_and_what_is_whole_keeps_its_order() {
    for (codec, encoder) in [(Codec::Hevc, HEVC_OPEN_GROUPS), (Codec::H264, H264_TWO_LAYERS)] {
        let (_, pictures) = split(&encode(encoder));
        let mut random = 7_u32;
        let mut displaced = 0;
        for _ in 0..40 {
            let mut damaged = pictures.clone();
            for picture in &mut damaged {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                // Mostly among the first headers.
                if random >> 28 == 0 {
                    let at = (random >> 8) as usize % picture.data.len().min(24);
                    picture.data[at] ^= 1 << (random >> 5 & 7);
                }
            }
            let Ok((found, left)) = together(codec, apart(codec, &damaged, 2)) else { continue };
            assert!(found.len() + left[1] <= damaged.len() && left[0] == 0);
            displaced += left[1];
        }
        assert!(displaced > 0, "nothing was damaged that says where pictures belong");
    }
}
