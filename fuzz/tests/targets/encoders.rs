//! What an encoder puts out, or what is none of it: pictures are numbered in order.

use weir_media::{Format, SplitOptions, Splitter};

#[test]
fn any_output_of_an_encoder_is_split_or_refused() {
    weir_fuzz::check!(5_000, seeds(), |input: &[u8]| {
        split(input);
    });
}

#[test]
fn the_seeds_have_pictures() {
    let pictures: Vec<_> = seeds().iter().map(|stream| split(stream)).collect();
    assert_eq!(pictures, [2, 5, 2, 2]);
}

/// How many pictures there are in a stream, whose numbers count up.
fn split(input: &[u8]) -> usize {
    let formats =
        [None, Some(Format::IvfVp9), Some(Format::IvfAv1), Some(Format::AnnexBHevc), Some(Format::AnnexBH264)];
    let counts = formats.map(|format| {
        let mut splitter = Splitter::new(SplitOptions { format, frame_rate: None });
        input.chunks(100).for_each(|piece| splitter.push(piece));
        splitter.finish();
        let pictures = splitter.by_ref().flatten();
        pictures.zip(0..).inspect(|(picture, number)| assert_eq!(picture.info.number, *number)).count()
    });
    counts[0]
}

/// A few pictures in each format, as ffmpeg's encoders begin them, and libaom with three layers.
fn seeds() -> Vec<Vec<u8>> {
    STREAMS.map(<[u8]>::to_vec).to_vec()
}

const STREAMS: [&[u8]; 4] = [
    include_bytes!("encoders/two.ivf"),
    include_bytes!("encoders/five.av1.ivf"),
    include_bytes!("encoders/two.hevc"),
    include_bytes!("encoders/two.h264"),
];
