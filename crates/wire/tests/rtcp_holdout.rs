//! Congestion control feedback and BYE, as another implementation reads and writes them.

use rtc_rtcp::goodbye::Goodbye;
use rtc_rtcp::transport_feedbacks::cc_feedback_report::{
    CcFeedbackMetricBlock, CcFeedbackReport, CcFeedbackReportBlock, Ecn,
};
use rtc_shared::marshal::{Marshal, Unmarshal};
use weir_wire::Feedback;
use weir_wire::rtcp::{self, Bye, congestion};

const FEEDBACK: Feedback = Feedback { newest: 2, reports: 5, arrived: 0b10011, marked: 0b00010, held: 12 };

#[test]
fn what_we_write_is_read_as_we_mean_it() {
    let mut bytes = [0; congestion::MAX_LEN];
    let len = congestion::encode(7, 8, &FEEDBACK, 99, &mut bytes);
    let read = CcFeedbackReport::unmarshal(&mut &bytes[..len]).expect("they can read it");
    assert_eq!((read.sender_ssrc, read.report_timestamp, read.report_blocks.len()), (7, 99, 1));
    let block = &read.report_blocks[0];
    assert_eq!((block.media_ssrc, block.begin_sequence), (8, 65_534));
    let came = |ecn, arrival_time_offset| CcFeedbackMetricBlock { received: true, ecn, arrival_time_offset };
    let missing = CcFeedbackMetricBlock::default();
    let unknown = 0x1fff;
    let expected = [came(Ecn::NotEct, unknown), missing, missing, came(Ecn::Ce, unknown), came(Ecn::NotEct, 12)];
    assert_eq!(block.metric_blocks, expected);
}

#[test]
fn what_they_write_is_read_as_they_mean_it() {
    let came = |ecn, arrival_time_offset| CcFeedbackMetricBlock { received: true, ecn, arrival_time_offset };
    let missing = CcFeedbackMetricBlock::default();
    let block = CcFeedbackReportBlock {
        media_ssrc: 8,
        begin_sequence: 65_534,
        metric_blocks: vec![came(Ecn::Ect0, 40), missing, missing, came(Ecn::Ce, 20), came(Ecn::Ect0, 12), missing],
    };
    let other = CcFeedbackReportBlock { media_ssrc: 9, begin_sequence: 1, metric_blocks: vec![came(Ecn::Ect1, 1)] };
    let theirs = CcFeedbackReport { sender_ssrc: 7, report_blocks: vec![other, block], report_timestamp: 99 };
    let bytes = theirs.marshal().expect("they can write it");
    let packet = rtcp::packets(&bytes).next().expect("there is one").expect("it is whole");
    let report = congestion::Report::decode(&packet).expect("it is congestion control feedback");
    assert_eq!((report.reporter, report.timestamp), (7, 99));
    let ours = report.streams().map(|stream| stream.expect("readable")).find(|stream| stream.source == 8);
    assert_eq!(ours.and_then(|stream| stream.feedback()), Some(FEEDBACK));
}

#[test]
fn a_goodbye_is_understood_both_ways() {
    let read = Goodbye::unmarshal(&mut &Bye { ssrc: 5 }.encode()[..]).expect("they can read it");
    assert_eq!(read.sources, [5]);
    let theirs = Goodbye { sources: vec![5, 6], reason: "over".into() }.marshal().expect("they can write it");
    let packet = rtcp::packets(&theirs).next().expect("there is one").expect("it is whole");
    assert_eq!(Bye::decode(&packet), Ok(Bye { ssrc: 5 }));
}
