use super::*;
use crate::args::{Cli, Command};
use crate::events::{Cause, Level, ReceiverEnd, ReceiverProgress, ReceiverStart};
use clap::Parser;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use weir_units::{Bytes, Rate};

fn demo(out: &Path, rest: &str) -> args::Demo {
    let words = ["weir", "demo", "--out", out.to_str().expect("temporary folders have plain names")];
    match Cli::try_parse_from(words.into_iter().chain(rest.split_whitespace())).map(|cli| cli.command) {
        Ok(Command::Demo(demo)) => *demo,
        other => panic!("{other:?}"),
    }
}

fn session(record: &mut Record, verified: bool) {
    record.take(&ReceiverEvent::Start(ReceiverStart { rates_bps: vec![256_000, 384_000], ..Default::default() }));
    let level = |t_s, level| Level { t_s, level, rate_bps: 256_000 * level as u64, cause: Cause::SlowStart };
    record.take(&ReceiverEvent::Level(level(0.1, 1)));
    let progress = ReceiverProgress {
        t_s: 0.5,
        level: 2,
        levels: 2,
        level_rate_bps: 384_000,
        useful_bytes: 250,
        needed_bytes: Some(1_000),
        received_packets: 99,
        lost_packets: 1,
        received_bytes: 200,
        rate_bps: 250_000,
        eta_s: Some(61.0),
        target_bps: None,
        ..Default::default()
    };
    record.take(&ReceiverEvent::Progress(progress));
    let end = ReceiverEnd {
        verified,
        seconds: 2.0,
        received_bytes: 1_100,
        received_packets: 120,
        lost_packets: 4,
        ..Default::default()
    };
    record.take(&ReceiverEvent::End(end));
}

#[test]
fn fast_links_are_offered_what_they_take_unless_the_user_says_what_is() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let offered = |options: &str| {
        let args = demo(folder.path(), &format!("--size 100kB {options}"));
        let plan = Plan::prepare(&args, Path::new("weir")).expect("a folder to write in");
        let words: Vec<_> = plan.sender().get_args().map(|arg| arg.to_string_lossy().into_owned()).collect();
        words[words.iter().position(|word| word == "--rates").expect("it is told the rates") + 1].clone()
    };
    assert_eq!(offered("--links 2M,8M"), "256000..100000000");
    assert_eq!(offered("--links 2M,800M"), "256000..800000000");
    assert_eq!(offered("--links 2M,40G"), "256000..1000000000");
    assert_eq!(offered("--links 2M,800M --rates 1M..200M"), "1000000..200000000");
}

#[test]
fn the_processes_are_told_all_that_makes_them_one_session() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let args = demo(folder.path(), "--size 100kB --links 2M,8M --loss 1% --cc rmrc --cc-set tau=100ms");
    let plan = Plan::prepare(&args, Path::new("weir")).expect("a folder to write in");
    let words = |command: std::process::Command| -> Vec<String> {
        std::iter::once("weir".into()).chain(command.get_args().map(|arg| arg.to_string_lossy().into_owned())).collect()
    };
    let Ok(Command::Send(args::SendWhat::File(send))) =
        Cli::try_parse_from(words(plan.sender())).map(|cli| cli.command)
    else {
        panic!("the sender's command line is one of ours");
    };
    assert_eq!(
        (send.receipts, send.output.json, send.rates.cc.name, send.rates.cc_set.len()),
        (Some(2), true, "rmrc", 1)
    );
    assert_eq!((send.to.port(), send.iface.as_deref()), (send.tsi.expect("set"), Some("127.0.0.1")));
    let Ok(Command::Recv(recv)) = Cli::try_parse_from(words(plan.receiver(1))).map(|cli| cli.command) else {
        panic!("a receiver's command line is one of ours");
    };
    let link = recv.link.expect("behind a link");
    assert_eq!((link.rate, link.delay), (Some(Rate::from_mbps(8)), Duration::from_millis(20)));
    assert_eq!(link.loss, weir_link::Loss::Random(0.01));
    assert_eq!(link.buffer, weir_link::Buffer::Span(Duration::from_millis(100)));
    assert_eq!(recv.sessions[0], args::SessionSource::File(send.session));
    assert!(recv.duration < send.duration);
}

#[test]
fn the_sample_has_its_size_and_is_the_same_each_time() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let read = || std::fs::read(sample::write(folder.path(), Bytes::new(12_345)).expect("room")).expect("written");
    let first = read();
    assert_eq!((first.len(), read()), (12_345, first.clone()));
    assert!(first.starts_with(b"time_s,latitude_deg"));
}

#[test]
fn only_folders_of_earlier_demonstrations_make_room() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let prepare = || Plan::prepare(&demo(folder.path(), "--size 1kB"), Path::new("weir"));
    assert!(prepare().is_ok() && prepare().is_ok());
    std::fs::remove_file(folder.path().join("run/made-by-weir-demo.txt")).expect("it is there");
    std::fs::write(folder.path().join("run/thesis.tex"), "years of work").expect("room");
    let failure = prepare().expect_err("refused");
    assert!(failure.exit == Exit::Files && failure.message.contains("choose another --out"), "{failure}");
    assert!(folder.path().join("run/thesis.tex").exists());
}

#[test]
fn a_file_that_is_not_there_or_empty_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let empty = folder.path().join("empty");
    std::fs::write(&empty, "").expect("room");
    for path in [folder.path().join("missing"), empty] {
        let args = demo(folder.path(), path.to_str().expect("plain"));
        assert_eq!(Plan::prepare(&args, Path::new("weir")).expect_err("refused").exit, Exit::Files);
    }
}

#[test]
fn a_record_follows_levels_also_where_only_progress_tells_them() {
    let mut record = Record::new(Rate::from_mbps(2), Bytes::new(1_000_000));
    assert_eq!((record.series.ideal_seconds, record.series.name.as_str()), (4.0, "2 Mbit/s link"));
    session(&mut record, true);
    let levels: Vec<(f64, usize)> = record.series.steps.iter().map(|step| (step.t_s, step.level)).collect();
    assert_eq!(levels, [(0.1, 1), (0.5, 2)]);
    assert_eq!((record.series.seconds, record.share()), (Some(2.0), 1.0));
    let [only] = record.series.samples[..] else { panic!("what comes after the last progress is not of the transfer") };
    assert_eq!((only.t_s, only.received, only.lost_packets), (0.5, Rate::from_bps(250_000), 1));
    assert_eq!((record.series.lost_packets, record.series.received), (4, Bytes::new(1_100)));
}

#[test]
fn rows_tell_how_a_receiver_stands() {
    let mut record = Record::new(Rate::from_mbps(2), Bytes::new(1_000_000));
    assert_eq!(board::in_words(&record), "waiting for the first packet");
    session(&mut record, true);
    assert_eq!(board::in_words(&record), "✓ 2.00 s · 0.50 × the ideal");
    assert_eq!(board::line(5.2, &[record.clone()]), "  0:05  2 Mbit/s: ✓ 2.00 s");
    session(&mut record, false);
    assert_eq!(board::in_words(&record), "✗ failed");
    record.says_verified = None;
    assert_eq!(board::in_words(&record), " 250 kbit/s · level 2/2 · 1:01 to go · lost 1.00 % · delay 0 ms");
}

#[test]
fn only_a_file_that_is_the_same_counts_as_verified() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let plan = Plan::prepare(&demo(folder.path(), "--size 1kB --links 2M,8M,32M"), Path::new("weir")).expect("room");
    let mut records: Vec<Record> = plan.links.iter().map(|link| Record::new(*link, plan.bytes)).collect();
    records.iter_mut().for_each(|record| session(record, true));
    for i in 0..2 {
        std::fs::create_dir_all(plan.received(i).parent().expect("in a folder")).expect("room");
        std::fs::copy(&plan.input, plan.received(i)).expect("room");
    }
    std::fs::write(plan.received(1), vec![0; 1_000]).expect("room");
    let outcome = Outcome::judge(&plan, &records).expect("the input is there");
    outcome.write(&plan).expect("room");
    assert_eq!(outcome.tell(&plan), Exit::Unverified);
    let summary = std::fs::read_to_string(folder.path().join("summary.json")).expect("written");
    let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
    let column =
        |name: &str| summary.as_array().expect("a list").iter().map(|line| line[name].clone()).collect::<Vec<_>>();
    assert_eq!(column("verified"), [true, false, false]);
    assert_eq!(column("bytes"), [1_000, 1_000, 0]);
    assert_eq!(column("link_bps"), [2_000_000, 8_000_000, 32_000_000]);
    assert_eq!(column("ideal_seconds"), [0.004, 0.001, 0.00025]);
    assert_eq!(column("seconds"), [2.0, 2.0, 2.0]);
    for name in ["name", "ratio"] {
        assert!(column(name).iter().all(|value| !value.is_null()), "{name}");
    }
    assert!(folder.path().join("report.html").exists() && folder.path().join("overview.svg").exists());
}

#[test]
fn a_failed_process_is_explained_with_its_last_words_and_what_to_do() {
    let told: String = (1..=20).map(|i| format!("line {i}\n")).collect();
    let failure = process::explain("the sender", ExitStatus::from_raw(4 << 8), &told);
    assert_eq!(failure.exit, Exit::Network);
    assert!(failure.message.contains("line 20") && !failure.message.contains("line 8\n"), "{failure}");
    assert!(failure.message.contains("Multicast over loopback"), "{failure}");
    assert_eq!(process::explain("the sender", ExitStatus::from_raw(9), "").exit, Exit::Internal);
}

#[test]
fn a_process_is_heard_until_it_is_gone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (outbox, inbox) = mpsc::channel();
    let mut command = std::process::Command::new("sh");
    command.args([
        "-c",
        r#"echo '{"event":"receipt","t_s":1.5,"acknowledged":true,"tries":1}'; echo nonsense; echo why >&2; exit 7"#,
    ]);
    let mut process =
        Process::start(command, Party::Receiver(2), &folder.path().join("receiver-3"), &outbox).expect("a shell");
    assert!(matches!(inbox.recv(), Ok(Message::Receiver(2, ReceiverEvent::Receipt(_)))));
    assert!(matches!(inbox.recv(), Ok(Message::Garbled(Party::Receiver(2), line)) if line == "nonsense"));
    assert!(matches!(inbox.recv(), Ok(Message::Gone(Party::Receiver(2)))));
    let status = process.end().expect("it has ended");
    assert_eq!((status.code(), process.last_words().as_str()), (Some(7), "why\n"));
}
