use super::*;
use crate::events::{
    Cause, FileDone, Hashing, Level, Reading, ReceiverEnd, ReceiverProgress, ReceiverStart, SenderEnd, SenderProgress,
    SenderStart, Top, Trouble,
};
use std::sync::{Arc, Mutex};

/// A stream that remembers, or one that nobody reads.
#[derive(Clone, Default)]
struct Tape(Arc<Mutex<Vec<u8>>>, bool);

impl Write for Tape {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.1 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.0.lock().expect("no writer panics").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Tape {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no writer panics").clone()).expect("we write text")
    }
}

fn display(style: Style) -> (Display, Tape, Tape) {
    let (out, err) = (Tape::default(), Tape::default());
    let display = Display::on(style, Box::new(out.clone()), Box::new(err.clone()), ProgressDrawTarget::hidden());
    (display, out, err)
}

fn progress(t_s: f64) -> ReceiverEvent {
    ReceiverEvent::Progress(ReceiverProgress {
        t_s,
        received_bytes: 6_900_000,
        useful_bytes: 6_610_000,
        needed_bytes: Some(10_500_000),
        rate_bps: 1_870_000,
        level: 6,
        levels: 15,
        level_rate_bps: 1_944_000,
        received_packets: 4_985,
        lost_packets: 15,
        queuing_delay_ms: 42.3,
        eta_s: Some(21.2),
        target_bps: None,
        ..Default::default()
    })
}

fn whole_session() -> Vec<ReceiverEvent> {
    let level = |t_s| ReceiverEvent::Level(Level { t_s, level: 6, rate_bps: 1_944_000, cause: Cause::Add });
    let (bytes, new_bytes) = (10_500_000, 10_500_000);
    let file = FileDone { name: "a.bin".into(), bytes, new_bytes, seconds: 52.3, verified: true, ..Default::default() };
    let mut events = vec![ReceiverEvent::Start(ReceiverStart::default()), level(0.1), level(0.2)];
    events.extend((1..=48).map(|quarter| progress(f64::from(quarter) * 0.25)));
    events.push(ReceiverEvent::File(file));
    events.push(ReceiverEvent::End(ReceiverEnd { verified: true, files: 1, seconds: 52.3, ..Default::default() }));
    events
}

#[test]
fn json_prints_every_event_and_nothing_else() {
    let (mut display, out, err) = display(Style::Json);
    let events = whole_session();
    for event in &events {
        assert_eq!(display.receiver(event), Stdout::Open);
    }
    let read: Vec<ReceiverEvent> =
        out.text().lines().map(|line| serde_json::from_str(line).expect("an event a line")).collect();
    assert_eq!((read, err.text()), (events, String::new()));
}

#[test]
fn lines_come_every_five_seconds_and_on_changes_that_are_not_too_close() {
    let (mut display, out, err) = display(Style::Lines);
    for event in &whole_session() {
        assert_eq!(display.receiver(event), Stdout::Open);
    }
    let err = err.text();
    assert_eq!(err.matches("now at level 6").count(), 1, "{err}");
    assert_eq!(err.matches(" · ").count() / 5, 2, "{err}");
    assert!(
        err.contains(
            "6.61 MB of 10.5 MB · 1.87 Mbit/s · level 6 of 15 (1.94 Mbit/s) · lost 0.30 % · delay 42 ms · 0:21 to go"
        ),
        "{err}"
    );
    assert_eq!(out.text(), "a.bin  10.5 MB in 52.3 s (1.61 Mbit/s), verified\n");
}

#[test]
fn quiet_says_nothing_but_errors() {
    let (mut display, out, err) = display(Style::Quiet);
    for event in &whole_session() {
        assert_eq!(display.receiver(event), Stdout::Open);
    }
    assert_eq!((out.text(), err.text()), (String::new(), String::new()));
    let trouble = Trouble { message: "disk full: make room and start again".into(), ..Default::default() };
    assert_eq!(display.receiver(&ReceiverEvent::Error(trouble)), Stdout::Open);
    assert_eq!(err.text(), "weir: disk full: make room and start again\n");
}

#[test]
fn a_closed_pipe_is_reported_not_fatal() {
    for style in [Style::Json, Style::Lines, Style::Panel] {
        let closed = Box::new(Tape(Arc::default(), true));
        let mut display = Display::on(style, closed.clone(), closed, ProgressDrawTarget::hidden());
        assert_eq!(display.receiver(&ReceiverEvent::File(FileDone::default())), Stdout::Closed);
        assert_eq!(display.sender(&SenderEvent::End(SenderEnd::default())), Stdout::Closed);
    }
}

#[test]
fn a_sender_counts_receipts_against_what_it_waits_for() {
    let (mut display, out, err) = display(Style::Lines);
    let start = crate::events::SenderStart { receipts_wanted: Some(4), files: 1, excluded: 3, ..Default::default() };
    let at = SenderProgress { receipts: 1, rate_bps: 100_000_000, passes: 1.5, ..Default::default() };
    let end = SenderEnd { receipts: 4, seconds: 61.0, passes: 2.0, sent_bytes: 21_000_000, ..Default::default() };
    for event in [SenderEvent::Start(start), SenderEvent::Progress(at), SenderEvent::End(end)] {
        assert_eq!(display.sender(&event), Stdout::Open);
    }
    assert!(err.text().starts_with("sending 1 file without 3 excluded, "), "{}", err.text());
    assert!(err.text().contains("stops at 4 receipts") && err.text().contains("receipts 1 of 4"), "{}", err.text());
    assert_eq!(out.text(), "4 receipts; sent 21.0 MB in 61.0 s (2.0 × the files)\n");
}

#[test]
fn a_sender_tells_who_receives_where_it_knows() {
    let shown = |receivers, lowest_bps, highest_bps| {
        let (mut display, _, err) = display(Style::Lines);
        let at = SenderProgress { receivers, lowest_bps, highest_bps, ..Default::default() };
        assert_eq!(display.sender(&SenderEvent::Progress(at)), Stdout::Open);
        err.text()
    };
    let mbps = |mbps: u64| Some(mbps * 1_000_000);
    assert!(shown(Some(12), mbps(8), mbps(90)).contains("12 receivers at 8.00 Mbit/s to 90.0 Mbit/s · receipts"));
    assert!(shown(Some(2), mbps(8), mbps(8)).contains("· 2 receivers at 8.00 Mbit/s ·"));
    assert!(shown(Some(1), mbps(8), mbps(8)).contains("· 1 receiver at 8.00 Mbit/s ·"));
    assert!(shown(Some(0), Some(0), Some(0)).contains("no receiver is heard"));
    let unknown = shown(None, None, None);
    assert!(!unknown.contains("receive") && unknown.contains("receipts"), "{unknown}");
}

#[test]
fn a_sender_that_reads_standard_input_is_not_silent() {
    let (mut display, _, err) = display(Style::Lines);
    let reading = Reading { t_s: 6.0, read_bytes: 1_000_000_000 };
    assert_eq!(display.sender(&SenderEvent::Reading(reading)), Stdout::Open);
    assert_eq!(err.text(), "   0:06  read 1.00 GB of standard input, which is sent when it ends\n");
}

#[test]
fn a_sender_that_hashes_is_not_silent() {
    let (mut display, _, err) = display(Style::Lines);
    let hashing = Hashing { t_s: 6.0, hashed_bytes: 1_000_000_000, bytes: 4_000_000_000 };
    assert_eq!(display.sender(&SenderEvent::Hashing(hashing)), Stdout::Open);
    assert_eq!(err.text(), "   0:06  25.0 %  hashed 1.00 GB of 4.00 GB\n");
}

#[test]
fn a_sender_says_why_its_highest_rate_is_what_it_is() {
    let said = |top, speed_mbps: Option<u64>, highest_mbps: u64| {
        words::sender_start(&SenderStart {
            top,
            interface: Some("eth0".into()),
            interface_speed_bps: speed_mbps.map(|mbps| mbps * 1_000_000),
            rates_bps: vec![256_000, highest_mbps * 1_000_000],
            ..Default::default()
        })
    };
    let table = [
        (Top::Interface, Some(1000), 900, "leaves a tenth of the 1.00 Gbit/s of eth0 free"),
        (Top::Interface, Some(100), 230, "eth0 has 100 Mbit/s, which is less than the highest rate"),
        (Top::Interface, Some(10_000), 1000, "eth0 has 10.0 Gbit/s; the highest rate is the most"),
        (Top::Virtual, None, 100, "eth0 is virtual, so the highest rate is 100 Mbit/s"),
        (Top::Unknown, None, 100, "eth0 states no speed, so the highest rate is 100 Mbit/s"),
    ];
    for (top, speed, highest, expected) in table {
        let text = said(top, speed, highest);
        assert!(text.contains(expected) && text.lines().count() == 3, "{text}");
    }
    assert_eq!(said(Top::Asked, Some(1000), 20).lines().count(), 2, "the user knows why");
}

#[test]
fn the_rate_of_a_resumed_file_counts_what_this_run_received() {
    let (bytes, new_bytes) = (20_000_000, 5_000_000);
    let file = FileDone { name: "a".into(), bytes, new_bytes, seconds: 10.0, verified: true, ..Default::default() };
    assert_eq!(words::file(&file), "a  20.0 MB in 10.0 s (4.00 Mbit/s), verified");
}
