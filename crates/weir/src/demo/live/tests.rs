use super::outcome::{frame_rate, objections, places};
use super::*;
use crate::args::{Cli, Command, SendWhat};
use crate::media::events::{WatchEnd, WatchProgress, WatchStart};
use crate::report::{LiveReport, LiveSeries, Series};
use clap::Parser;
use std::path::{Path, PathBuf};
use weir_units::Rate;

fn demo(out: &Path, rest: &[&str]) -> args::DemoLive {
    let words = ["weir", "demo-live", "--out", out.to_str().expect("temporary folders have plain names")];
    match Cli::try_parse_from(words.iter().chain(rest)).map(|cli| cli.command) {
        Ok(Command::DemoLive(demo)) => *demo,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_processes_are_told_all_that_makes_them_one_programme() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let clip = folder.path().join("own.hevc");
    std::fs::write(&clip, "video").expect("room");
    let rest = [clip.to_str().expect("plain"), "--links", "1M,8M", "--loss", "1%", "--layer-rates", "1M,2M"];
    let plan = Plan::prepare(&demo(folder.path(), &rest), Path::new("weir")).expect("a folder to write in");
    let words = |command: std::process::Command| -> Vec<String> {
        std::iter::once("weir".into()).chain(command.get_args().map(|arg| arg.to_string_lossy().into_owned())).collect()
    };
    let Ok(Command::Send(SendWhat::Media(send))) = Cli::try_parse_from(words(plan.sender())).map(|cli| cli.command)
    else {
        panic!("the sender's command line is one of ours");
    };
    assert_eq!((send.layer_rates, send.cc.name), (vec![Rate::from_mbps(1), Rate::from_mbps(2)], "sluice"));
    let Ok(Command::Recv(recv)) = Cli::try_parse_from(words(plan.receiver(1))).map(|cli| cli.command) else {
        panic!("a receiver's command line is one of ours");
    };
    let link = recv.link.expect("behind a link");
    assert_eq!((link.rate, link.loss), (Some(Rate::from_mbps(8)), weir_link::Loss::Random(0.01)));
    assert_eq!(recv.sessions[0], args::SessionSource::File(send.session));
    assert_eq!(recv.out.as_deref().and_then(Path::extension), clip.extension(), "what came is what was sent");
    let missing = demo(folder.path(), &["missing.ivf"]);
    assert_eq!(Plan::prepare(&missing, Path::new("weir")).expect_err("refused").exit, Exit::Files);
}

#[test]
fn a_record_follows_pictures_and_tells_the_layers_of_the_end() {
    let mut record = Record::new(Rate::from_mbps(3));
    let start = WatchStart { layers: 2, rates_bps: vec![900_000, 1_900_000], ..Default::default() };
    record.take(&MediaReceiverEvent::Start(start));
    assert_eq!((record.layers_at_end(), record.in_words().as_str()), (0, "3 Mbit/s: joining"));
    let told = [(1.0, 1, [8, 0], 1), (2.0, 2, [16, 8], 2), (3.0, 2, [24, 16], 2), (9.0, 1, [30, 16], 1)];
    for (t_s, level, by_layer, layers) in told {
        let progress = WatchProgress {
            t_s,
            level,
            rate_bps: 850_000,
            layer_pictures: by_layer.into(),
            lag_ms: (t_s < 9.0).then_some(2_000.0),
            ..Default::default()
        };
        record.take(&MediaReceiverEvent::Progress(progress));
        assert_eq!(record.layers_at_end(), layers, "{t_s}");
    }
    let steps: Vec<(usize, u64)> = record.series.steps.iter().map(|step| (step.level, step.rate.bps())).collect();
    assert_eq!(steps, [(1, 900_000), (2, 1_900_000), (1, 900_000)]);
    assert_eq!(record.lags, [(1.0, 2_000.0), (2.0, 2_000.0), (3.0, 2_000.0)]);
    record.take(&MediaReceiverEvent::End(WatchEnd { lost_packets: 3, ..Default::default() }));
    assert_eq!(
        (record.series.lost_packets, record.in_words().as_str()),
        (3, "3 Mbit/s: level 1, 850 kbit/s, 46 pictures")
    );
}

#[test]
fn a_part_is_the_whole_with_some_left_out() {
    let digests = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
    assert_eq!(places(&digests("acd"), &digests("abcd")), Some(vec![0, 2, 3]));
    assert_eq!(places(&digests(""), &digests("abcd")), Some(vec![]));
    assert_eq!(places(&digests("ca"), &digests("abcd")), None, "out of order");
    assert_eq!(places(&digests("ax"), &digests("abcd")), None, "not one of them");
    assert_eq!([frame_rate(&[2.0, 2.5, 3.0]), frame_rate(&[2.0]), frame_rate(&[])], [2.0, 0.0, 0.0]);
}

fn report(frame_rates: [f64; 2]) -> LiveReport {
    let receiver = |link_mbps, frame_rate| LiveSeries {
        series: Series { name: format!("{link_mbps}M"), link: Rate::from_mbps(link_mbps), ..Series::default() },
        layer_pictures: vec![40, 20],
        decoded: 60,
        longest_pause_ms: Some(140.0),
        is_part_of_clip: true,
        frame_rate,
        ..LiveSeries::default()
    };
    let [fast, slow] = frame_rates;
    let rates = vec![Rate::from_kbps(900), Rate::from_kbps(1_900)];
    LiveReport { rates, receivers: vec![receiver(3, fast), receiver(1, slow)], ..LiveReport::default() }
}

#[test]
fn each_thing_that_is_not_as_it_should_be_is_said() {
    let said = |report: &LiveReport| objections(report, 500.0);
    assert_eq!(said(&report([15.0, 7.5])), Vec::<String>::new());
    assert!(said(&report([8.0, 7.5]))[0].contains("8.0 pictures a second to 7.5"));
    let equal = LiveReport { rates: vec![Rate::from_kbps(900)], ..report([7.5, 7.5]) };
    assert_eq!(said(&equal), Vec::<String>::new(), "both carry all layers");
    let large = LiveReport { rates: vec![Rate::from_kbps(1_200), Rate::from_kbps(1_900)], ..report([15.0, 0.0]) };
    assert!(said(&large)[0].contains("1M: the base layer alone needs 1.20 Mbit/s"), "{:?}", said(&large));
    let mut bad = report([15.0, 7.5]);
    bad.receivers[0] = LiveSeries {
        complaints: vec!["Requested reference 1 not available".into()],
        decoded: 59,
        is_part_of_clip: false,
        longest_pause_ms: Some(501.0),
        ..bad.receivers[0].clone()
    };
    bad.receivers[1].longest_pause_ms = None;
    let said = said(&bad).join("\n");
    for part in ["not available", "and 59 decode", "does not have", "paused for 501 ms", "1M: fewer than two"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn ffmpeg_makes_a_clip_and_takes_pictures_out_of_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let clip: PathBuf = folder.path().join("50%d.ivf");
    ffmpeg::generate(&clip, Duration::from_secs(1)).expect("ffmpeg is there: apt-get install ffmpeg");
    let decoded = ffmpeg::decode(&clip).expect("it starts");
    assert_eq!((decoded.digests.len(), decoded.size, decoded.complaints.len()), (30, (640, 360), 0));
    let pictures = ffmpeg::thumbnails(&clip, &[3, 7, 29], &folder.path().join("50%d")).expect("it starts");
    assert_eq!(pictures.len(), 3);
    assert!(pictures.iter().all(|jpeg| jpeg.starts_with(&[0xff, 0xd8])));
    std::fs::write(&clip, "no clip").expect("room");
    assert!(!ffmpeg::decode(&clip).expect("it starts").complaints.is_empty());
}
