use weir_media::{Codec, Packetizer, Picture, PictureInfo};
use weir_testkit::h264::coded;
use weir_wire::rtcp::SenderClock;
use weir_wire::rtp::Rtp;

use super::*;

/// Pictures of three layers, 25 a second: 0 2 1 2, 0 2 1 2, …
struct Sender {
    layers: Layers,
    sequences: [u16; 3],
    /// Where the timestamps of each layer begin, and its SSRC.
    clocks: [(u32, u32); 3],
}

const CLOCKS: [(u32, u32); 3] = [(u32::MAX - 5_000, 7), (123, 8), (1 << 31, 9)];

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn from(layer: usize) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 6_000 + 2 * layer as u16))
}

fn layer_of(number: u16) -> usize {
    [0, 2, 1, 2][usize::from(number % 4)]
}

impl Sender {
    fn new(clocks: [(u32, u32); 3]) -> Sender {
        let streams = (0..3).map(|layer| (from(layer), Stream::new(Codec::Vp9))).collect();
        Sender { layers: Layers::new(Codec::Vp9, streams), sequences: [65_533; 3], clocks }
    }

    /// One whose layers have said how their clocks go together.
    fn reporting() -> Sender {
        let mut sender = Sender::new(CLOCKS);
        (0..3).for_each(|layer| sender.report(layer, at(0)));
        sender
    }

    /// Says how a layer's clock and the wall's go together: 40 s after 1900, the first picture's time is.
    fn report(&mut self, layer: usize, now: Time) {
        let (timestamp, ssrc) = self.clocks[layer];
        let head = [0x80, SenderClock::TYPE, 0, 6];
        let parts: [&[u8]; 5] =
            [&head, &ssrc.to_be_bytes(), &(40_u64 << 32).to_be_bytes(), &timestamp.to_be_bytes(), &[0; 8]];
        self.layers.take(layer, now, from(layer), &parts.concat());
    }

    fn send(&mut self, number: u16, now: Time) {
        let layer = layer_of(number);
        let (begins, ssrc) = self.clocks[layer];
        let timestamp = begins.wrapping_add(u32::from(number) * 3_600);
        let info = PictureInfo { number, needs: 0, layer: layer as u8, is_key: true, is_leading: false };
        let picture = Picture { info, timestamp, data: vec![number as u8; 1_500] };
        for payload in Packetizer::new(Codec::Vp9, 1_000).packetize(&picture) {
            let sequence = self.sequences[layer];
            self.sequences[layer] = sequence.wrapping_add(1);
            let header = Rtp { marker: payload.marker, payload_type: 98, sequence, timestamp, ssrc, origin: None };
            let datagram = [&header.encode()[..], &payload.data].concat();
            self.layers.take(layer, now, from(layer), &datagram);
        }
    }

    /// The pictures that are given out, by number, with their times in milliseconds.
    fn given(&mut self, now: Time) -> Vec<(u8, u64)> {
        std::iter::from_fn(|| self.layers.next(now).expect("all is known"))
            .map(|picture| (picture.data[0], picture.time / 90))
            .collect()
    }
}

fn wanted(numbers: impl IntoIterator<Item = u8>) -> Vec<(u8, u64)> {
    numbers.into_iter().map(|number| (number, u64::from(number) * 40)).collect()
}

#[test]
fn layers_are_put_together_by_what_their_sender_reports_say_of_their_clocks() {
    let mut sender = Sender::reporting();
    let mut given = Vec::new();
    for number in 0..60 {
        // Each layer has a delay of its own.
        let later = [20, 0, 10][layer_of(number)];
        sender.send(number, at(u64::from(number) * 40 + later));
        given.extend(sender.given(at(u64::from(number) * 40 + later)));
    }
    assert_eq!(given, wanted(0..60)[..given.len()]);
    assert!(given.len() >= 59, "{}: none waits once the layers are in step", given.len());
    assert_eq!((sender.layers.gaps(), sender.layers.told().len()), (0, 0));
}

#[test]
fn one_ssrc_is_one_clock_and_needs_no_reports() {
    let mut sender = Sender::new([(u32::MAX - 5_000, 7); 3]);
    (0..40).for_each(|number| sender.send(number, at(u64::from(number) * 40)));
    assert_eq!(sender.given(at(1_560)), wanted(0..40));
}

#[test]
fn pictures_that_come_out_of_order_are_given_out_in_order() {
    let mut sender = Sender::reporting();
    let mut given = Vec::new();
    for four in 0..20 {
        for number in [3, 1, 0, 2].map(|number| four * 4 + number) {
            // Within a layer nothing is out of order.
            let number = if layer_of(number) == 2 { four * 4 + [3, 1][usize::from(number % 4 == 3)] } else { number };
            sender.send(number, at(u64::from(four) * 160 + 130));
        }
        given.extend(sender.given(at(u64::from(four) * 160 + 130)));
    }
    assert_eq!(given, wanted(0..80)[..given.len()]);
    assert!(given.len() >= 76 && sender.layers.gaps() == 0, "{}", given.len());
}

#[test]
fn a_layer_that_falls_silent_is_left_out_with_those_above_it_and_comes_back_behind_a_gap() {
    let mut sender = Sender::reporting();
    let mut given = Vec::new();
    let is_silent = |number: u16| layer_of(number) == 1 && (50..150).contains(&number);
    for number in (0..200).filter(|number| !is_silent(*number)) {
        sender.send(number, at(u64::from(number) * 40));
        given.extend(sender.given(at(u64::from(number) * 40)).into_iter().map(|(number, _)| u16::from(number)));
    }
    assert!(given.is_sorted(), "{given:?}");
    // Two seconds are 50 pictures.
    let kept = |layer: usize| {
        given.iter().filter(|number| (105..145).contains(*number) && layer_of(**number) == layer).count()
    };
    assert_eq!([kept(0), kept(1), kept(2)], [10, 0, 0]);
    assert!(given.iter().filter(|number| **number >= 155).count() >= 44, "{given:?}");
    assert_eq!((sender.layers.gaps(), sender.layers.told().len()), (1, 1));
}

#[test]
fn a_layer_that_does_not_come_or_has_no_clock_is_told_after_five_seconds() {
    let mut sender = Sender::new(CLOCKS);
    sender.report(0, at(0));
    (0..4).for_each(|number| sender.send(number * 4, at(u64::from(number) * 160)));
    assert_eq!(sender.given(at(4_900)), []);
    let error = sender.layers.next(at(5_100)).expect_err("two layers are missing").to_string();
    assert!(error.contains("no RTP comes to 127.0.0.1:6002"), "{error}");
    (0..40).for_each(|number| sender.send(number, at(5_200)));
    let error = sender.layers.next(at(5_300)).expect_err("nothing is said of the clocks").to_string();
    assert!(error.contains("no RTCP sender report came for 127.0.0.1:6002"), "{error}");
    [1, 2].into_iter().for_each(|layer| sender.report(layer, at(5_400)));
    assert!(!sender.given(at(5_400)).is_empty(), "now it is known");
}

#[test]
fn what_a_source_has_said_of_its_clock_does_not_count_for_the_next_one_though_it_has_the_same_ssrc() {
    let mut sender = Sender::reporting();
    (0..40).for_each(|number| sender.send(number, at(u64::from(number) * 40)));
    let base = |sender: &Sender| sender.layers.tracks[0].stream.later_than(&sender.layers.tracks[1].stream);
    assert!(base(&sender).is_some());
    let other = SocketAddr::from(([127, 0, 0, 1], 7_000));
    let (_, ssrc) = CLOCKS[0];
    for sequence in 0..4 {
        let header = Rtp { marker: true, payload_type: 98, sequence, timestamp: 5, ssrc, origin: None };
        sender.layers.take(0, at(5_000), other, &[&header.encode()[..], &[0x08, 0]].concat());
    }
    assert_eq!((base(&sender), sender.layers.told().len()), (None, 1));
    sender.report(0, at(5_100));
    assert!(base(&sender).is_some());
}

/// Base pictures at 0, 80, … ms and those above them 40 ms later, in streams of one clock; those of the base with these numbers are lost. What is
/// given out, as `b` and `t`, and how often something was missing.
fn h264(pictures: u16, lost: &[u16]) -> (String, u64) {
    let streams = (0..2).map(|layer| (from(layer), Stream::new(Codec::H264))).collect();
    let mut layers = Layers::new(Codec::H264, streams);
    let (mut sequences, mut given) = ([0_u16; 2], String::new());
    for number in 0..pictures {
        for (layer, next) in sequences.iter_mut().enumerate() {
            let word = match (layer, number) {
                (0, 0) => "I0".to_owned(),
                (0, number) => format!("P{}", number % 16),
                (_, number) => format!("p{}", (number + 1) % 16),
            };
            let now = at(u64::from(number) * 80 + layer as u64 * 40);
            let timestamp = u32::from(number) * 7_200 + layer as u32 * 3_600;
            let info = PictureInfo { number, needs: 0, layer: layer as u8, is_key: true, is_leading: false };
            let data = coded(&word);
            for payload in Packetizer::new(Codec::H264, 1_000).packetize(&Picture { info, timestamp, data }) {
                let sequence = *next;
                *next += 1;
                let header =
                    Rtp { marker: payload.marker, payload_type: 98, sequence, timestamp, ssrc: 7, origin: None };
                if layer > 0 || !lost.contains(&number) {
                    layers.take(layer, now, from(layer), &[&header.encode()[..], &payload.data].concat());
                }
            }
            while let Some(picture) = layers.next(now).expect("all is known") {
                given.push(if picture.time % 7_200 == 0 { 'b' } else { 't' });
            }
        }
    }
    (given, layers.gaps())
}

#[test]
fn layers_of_h264_are_put_together_by_what_their_pictures_say() {
    let (given, gaps) = h264(60, &[]);
    // The last one waits for what may come before it.
    assert_eq!((given + "t", gaps), ("bt".repeat(60), 0));
}

#[test]
fn a_layer_of_h264_goes_on_behind_a_lost_picture_of_the_base() {
    let (given, gaps) = h264(60, &[20]);
    assert!(given.starts_with(&"bt".repeat(20)) && given.ends_with(&"tb".repeat(20)), "{given}");
    assert!(given.len() >= 100 && gaps >= 2, "{given}, {gaps}");
}
