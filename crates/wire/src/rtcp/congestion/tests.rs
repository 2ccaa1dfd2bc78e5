extern crate std;

use std::vec::Vec;

use super::*;
use crate::rtcp::{is_rtcp, packets};
use proptest::prelude::*;

fn encoded(reporter: u32, source: u32, feedback: &Feedback) -> Vec<u8> {
    let mut out = [0xff; MAX_LEN];
    let len = encode(reporter, source, feedback, 0x0a0b_0c0d, &mut out);
    out[..len].to_vec()
}

/// The first stream of a packet.
fn decoded(bytes: &[u8]) -> Result<Option<Feedback>, DecodeError> {
    let packet = packets(bytes).next().expect("there is a packet")?;
    let report = Report::decode(&packet)?;
    report.streams().next().expect("there is a stream").map(|stream| stream.feedback())
}

/// A packet on one stream that says `words` of the packets from `begin` on.
fn foreign(source: u32, begin: u16, words: &[u16]) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend([0, 0, 0, 1]);
    body.extend(block(source, begin, words));
    body.extend([0, 0, 0, 9]);
    wrap(&body)
}

fn block(source: u32, begin: u16, words: &[u16]) -> Vec<u8> {
    let mut block = Vec::new();
    block.extend(source.to_be_bytes());
    block.extend(begin.to_be_bytes());
    block.extend((words.len() as u16).to_be_bytes());
    words.iter().for_each(|word| block.extend(word.to_be_bytes()));
    block.resize(block.len().next_multiple_of(4), 0);
    block
}

fn wrap(body: &[u8]) -> Vec<u8> {
    [&header(FORMAT, TYPE, body.len() + 4)[..], body].concat()
}

#[test]
fn one_feedback_byte_by_byte() {
    // Packets 0xffff and 1 came, 0 did not; 1 was marked and came 3/1024 s before.
    let feedback = Feedback { newest: 1, reports: 3, arrived: 0b101, marked: 0b001, held: 3 };
    let bytes = encoded(0x1111_1111, 0x2222_2222, &feedback);
    let expected = [
        0x8b, 205, 0, 6, 0x11, 0x11, 0x11, 0x11, 0x22, 0x22, 0x22, 0x22, 0xff, 0xff, 0,
        3, // begin_seq, num_reports
        0x9f, 0xff, 0, 0, 0xe0, 3, 0, 0, // reports and padding
        0x0a, 0x0b, 0x0c, 0x0d,
    ];
    assert_eq!(bytes, expected);
    assert!(is_rtcp(&bytes));
    assert_eq!(bytes.len(), encoded_len(&feedback));
    assert_eq!(decoded(&bytes), Ok(Some(feedback)));
}

#[test]
fn of_a_long_report_the_newest_that_came_and_31_before_it_are_taken() {
    let mut words = [RECEIVED | OFFSET_UNKNOWN; 16_384];
    words[16_380] = RECEIVED | CE | 7;
    words[16_381..].fill(0);
    words[16_379] = 0;
    let feedback = decoded(&foreign(5, 60_000, &words)).expect("readable").expect("something came");
    assert_eq!(feedback.newest, 60_000u16.wrapping_add(16_380));
    assert_eq!((feedback.reports, feedback.arrived, feedback.marked, feedback.held), (32, !0b10, 1, 7));
}

#[test]
fn an_arrival_time_out_of_range_or_unknown_has_a_value_nevertheless() {
    let held = |offset| decoded(&foreign(5, 1, &[RECEIVED | offset])).expect("readable").expect("it came").held;
    assert_eq!([held(0x1ffd), held(0x1ffe), held(0x1fff)], [Feedback::MAX_HELD, Feedback::MAX_HELD, 0]);
}

#[test]
fn a_report_of_nothing_that_came_says_nothing() {
    assert_eq!(decoded(&foreign(5, 1, &[])), Ok(None));
    assert_eq!(decoded(&foreign(5, 1, &[0, 0x6003, 0])), Ok(None));
}

#[test]
fn several_streams_in_one_packet_are_told_apart() {
    let blocks = [block(5, 1, &[RECEIVED | 1]), block(6, 9, &[RECEIVED | 2, 0, RECEIVED | 3])].concat();
    let bytes = wrap(&[&[0, 0, 0, 1][..], &blocks, &[0, 0, 0, 9]].concat());
    let packet = packets(&bytes).next().expect("one").expect("whole");
    let report = Report::decode(&packet).expect("readable");
    assert_eq!((report.reporter, report.timestamp), (1, 9));
    let streams: Vec<_> = report.streams().map(|stream| stream.expect("readable")).collect();
    let newest = |stream: &StreamReport<'_>| (stream.source, stream.feedback().map(|feedback| feedback.newest));
    assert_eq!(streams.iter().map(newest).collect::<Vec<_>>(), [(5, Some(1)), (6, Some(11))]);
}

#[test]
fn a_report_that_promises_more_than_it_has_is_refused() {
    let mut bytes = foreign(5, 1, &[RECEIVED; 4]);
    bytes[15] = 5;
    assert!(decoded(&bytes).is_err(), "five reports in the room of four");
    bytes[14..16].copy_from_slice(&16_385u16.to_be_bytes());
    assert!(decoded(&bytes).is_err(), "more than there may be");
    let other = Packet { format: 15, packet_type: TYPE, body: &[0; 24] };
    assert!(Report::decode(&other).is_err(), "transport-wide feedback is another format");
    assert!(Report::decode(&Packet { format: FORMAT, packet_type: TYPE, body: &[0; 7] }).is_err());
}

proptest! {
    #[test]
    fn decoding_an_encoded_feedback_gives_it_back(
        newest in any::<u16>(), reports in 1u8..=32, arrived in any::<u32>(), marked in any::<u32>(),
        held in 0u16..=Feedback::MAX_HELD, reporter in any::<u32>(), source in any::<u32>(),
    ) {
        let arrived = (arrived | 1) & (u32::MAX >> (32 - reports));
        let feedback = Feedback { newest, reports, arrived, marked: marked & arrived, held };
        prop_assert_eq!(decoded(&encoded(reporter, source, &feedback)), Ok(Some(feedback)));
    }
}
