use super::*;
use crate::events::{
    Announced, Cause, Level, Outcome, ReceiverEnd, ReceiverEvent, ReceiverProgress, ReceiverStart, SenderEnd,
    SenderEvent, SenderProgress,
};
use crate::{live, media, stream};

fn series(board: &Board) -> Series {
    Series { board: board.clone(), labels: None }
}

fn start(name: &str) -> ReceiverEvent {
    ReceiverEvent::Start(ReceiverStart { session: name.to_owned(), tsi: 7, ..Default::default() })
}

#[test]
fn a_page_has_each_session_s_numbers_in_seconds_and_bits_and_its_events() {
    let board = Board::default();
    let mut maps = series(&board);
    maps.note(&start("maps \"new\"\nweir_running 7"));
    let level = |cause| ReceiverEvent::Level(Level { t_s: 0.5, level: 2, rate_bps: 384_000, cause });
    maps.note(&level(Cause::Add));
    maps.note(&level(Cause::Add));
    let progress =
        ReceiverProgress { received_bytes: 5_000, queuing_delay_ms: 2.5, eta_s: Some(3.0), ..Default::default() };
    maps.note(&ReceiverEvent::Progress(progress.clone()));
    maps.note(&ReceiverEvent::Progress(ReceiverProgress { eta_s: None, ..progress }));
    let mut images = series(&board);
    images.note(&start("images"));
    images.note(&ReceiverEvent::End(ReceiverEnd { complete: true, received_bytes: 9, ..Default::default() }));
    let page = board.to_text();
    let labels = r#"{role="receiver",session="maps \"new\"\nweir_running 7",tsi="7",sender_key="""#;
    for line in [
        "# TYPE weir_received_bytes counter".to_owned(),
        format!("weir_received_bytes_total{labels}}} 5000"),
        format!("weir_queuing_delay_seconds{labels}}} 0.0025"),
        format!("weir_running{labels}}} 1"),
        format!("weir_events_total{labels},event=\"level\",detail=\"add\"}} 2"),
        r#"weir_running{role="receiver",session="images",tsi="7",sender_key=""} 0"#.to_owned(),
        r#"weir_complete{role="receiver",session="images",tsi="7",sender_key=""} 1"#.to_owned(),
    ] {
        assert!(page.lines().any(|found| found == line || found == format!("{line}.0")), "{line}\n{page}");
    }
    assert!(page.ends_with("# EOF\n") && !page.contains("weir_eta_seconds"), "what is not known is not told:\n{page}");
}

#[test]
fn a_session_that_starts_again_is_no_second_series_and_old_ends_make_room() {
    let board = Board::default();
    for number in 0..MOST_SESSIONS + 5 {
        let mut one = series(&board);
        one.note(&start(&format!("s{number}")));
        one.note(&ReceiverEvent::End(ReceiverEnd::default()));
        // The first one comes again and again.
        let mut first = series(&board);
        first.note(&start("s0"));
        first.note(&ReceiverEvent::End(ReceiverEnd::default()));
    }
    let all = board.lock();
    assert_eq!((all.sessions.len(), all.ended.len()), (MOST_SESSIONS, MOST_SESSIONS));
    let has = |name: &str| all.sessions.keys().any(|labels| labels[1].1 == name);
    assert!(has("s0") && !has("s1") && has(&format!("s{}", MOST_SESSIONS + 4)));
}

#[test]
fn announcements_of_an_always_on_receiver_are_counted_by_what_became_of_them() {
    let board = Board::default();
    let mut station = series(&board);
    station.note(&ReceiverEvent::Announced(Announced { outcome: Outcome::Taken, ..Default::default() }));
    assert!(board.to_text().contains(r#"event="announced",detail="taken"} 1"#), "{}", board.to_text());
}

/// The numbers of the events that metrics come from.
fn numbers() -> BTreeSet<String> {
    fn json<E: Serialize>(events: impl IntoIterator<Item = E>) -> Vec<Value> {
        events.into_iter().map(|event| serde_json::to_value(event).expect("events are plain data")).collect()
    }
    let receiver = [ReceiverEvent::Progress(Default::default()), ReceiverEvent::End(Default::default())];
    let sender = [SenderEvent::Progress(SenderProgress::default()), SenderEvent::End(SenderEnd::default())];
    let live = [json(live::sender_samples()), json(live::receiver_samples())].concat();
    let media = [json(media::sender_samples()), json(media::receiver_samples())].concat();
    let all = [json(receiver), json(sender), live, media, json(stream::samples())].concat();
    let fields = all
        .iter()
        .filter_map(Value::as_object)
        .filter(|fields| fields["event"] == "progress" || fields["event"] == "end");
    fields.flat_map(|fields| fields.keys().cloned()).collect()
}

#[test]
fn every_number_of_progress_and_end_is_a_metric_or_is_left_out_on_purpose() {
    // The kind, the time, each viewer by itself, texts, how long it took (the scraper knows), the start of the sender, which is a date, and
    // lists.
    let left_out = ["event", "t_s", "each", "reason", "blake3", "seconds", "epoch"];
    let left_out = left_out.into_iter().chain(["layer_pictures", "layer_dropped", "layer_withheld"]).map(str::to_owned);
    let rows: BTreeSet<String> =
        ROWS.iter().map(|row| row.field.to_owned()).filter(|field| !field.is_empty()).collect();
    let expected: BTreeSet<String> = rows.union(&left_out.collect()).cloned().collect();
    assert_eq!(numbers(), expected);
}

#[test]
fn the_page_lists_exactly_the_metrics_that_there_are() {
    let page = include_str!("../../../../docs/metrics.md");
    let listed: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("| `weir_")?.split('`').next()).collect();
    let suffix = |row: &table::Row| if row.kind == Kind::Counter { "_total" } else { "" };
    let mut real: BTreeSet<String> =
        ROWS.iter().map(|row| format!("{}{}", row.name.trim_start_matches("weir_"), suffix(row))).collect();
    real.extend(["events_total".to_owned(), "build_info".to_owned()]);
    assert_eq!(
        listed,
        real.iter().map(String::as_str).collect(),
        "docs/metrics.md (left) and the metrics (right) differ"
    );
}
