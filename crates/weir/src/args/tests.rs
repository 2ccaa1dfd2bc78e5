use weir_core::registry::OfferedRates;

use super::*;
use crate::live::Input;
use clap::CommandFactory;

fn parse(line: &str) -> Result<Command, String> {
    let words = std::iter::once("weir").chain(line.split_whitespace());
    Cli::try_parse_from(words).map(|cli| cli.command).map_err(|error| error.to_string())
}

fn send(line: &str) -> SendFile {
    match parse(&format!("send file {line}")) {
        Ok(Command::Send(SendWhat::File(send))) => *send,
        other => panic!("{line}: {other:?}"),
    }
}

fn recv(line: &str) -> Recv {
    match parse(&format!("recv {line}")) {
        Ok(Command::Recv(recv)) => *recv,
        other => panic!("{line}: {other:?}"),
    }
}

fn rates(low_kbps: u64, high_kbps: u64, ratio: f64) -> OfferedRates {
    OfferedRates { low: Rate::from_kbps(low_kbps), high: Rate::from_kbps(high_kbps), ratio }
}

#[test]
fn a_scheme_has_rates_of_its_own_and_the_help_names_them() {
    let stair = |words: &str| send(&format!("a --to 239.255.0.1:5004 --cc stair {words}")).rates.offered();
    assert_eq!(stair(""), rates(1_000, 100_000, 1.2));
    assert_eq!(stair("--rates 512k..20M"), rates(512, 20_000, 1.2));
    assert_eq!(stair("--ratio 2"), rates(1_000, 100_000, 2.0));
    let help = parse("send file --help").expect_err("help is no command");
    for expected in
        ["256k..; for stair and fglm 1M..", "1.5; for stair and fglm 1.2", "is 1G at most; it is 100M where"]
    {
        assert!(help.contains(expected), "{help}");
    }
}

#[test]
fn the_highest_rate_may_be_left_open() {
    let chosen = |words: &str| send(&format!("a --to 239.255.0.1:5004 {words}")).rates;
    let has_top = |words: &str| chosen(words).has_top();
    assert_eq!([has_top(""), has_top("--rates 64k.."), has_top("--ratio 1.5")], [false; 3]);
    assert_eq!([has_top("--rates 64k..8M"), has_top("--rates 4M")], [true; 2]);
    assert_eq!(chosen("--rates 64k..").offered(), rates(64, 100_000, 1.15));
    assert_eq!(chosen("--rates 200M.. --ratio 1.5").offered(), rates(200_000, 300_000, 1.5));
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn sending_needs_a_path_and_a_group_and_has_defaults_for_the_rest() {
    let send = send("image.iso --to 239.255.0.1:5004");
    assert_eq!(send.paths, [PathBuf::from("image.iso")]);
    assert_eq!((send.rates.offered(), send.rates.cc.name), (rates(256, 100_000, 1.15), "sluice"));
    assert_eq!((send.ttl, send.packet_size, send.flute_version, send.cci), (1, None, 2, CciChoice::Auto));
    assert_eq!((send.duration, send.receipts, send.tsi), (None, None, None));
    assert_eq!(send.memory, Bytes::new(512_000_000));
    assert_eq!(send.session, PathBuf::from("weir.sdp"));
}

#[test]
fn every_option_of_send_is_read() {
    let send = send(
        "a b --to [ff15::7]:6000 --iface eth1 --ttl 8 --source-specific --packet-size 1200 --rates 64k..20M --ratio 1.15 \
         --cc rmrc --cc-set a=1 --cc-set b=2 --for 1h30m --receipts 3 --memory 1G --session s.sdp --describe --name N --tsi 7 --key k \
         --cci clocked --flute-version 1 --md5 --json --pcap p",
    );
    assert_eq!((send.paths.len(), send.to.port(), send.iface.as_deref()), (2, 6000, Some("eth1")));
    assert_eq!(
        (send.rates.cc.name, send.rates.cc_set.len(), send.rates.offered()),
        ("rmrc", 2, rates(64, 20_000, 1.15))
    );
    assert_eq!((send.duration, send.receipts), (Some(Duration::from_secs(5400)), Some(3)));
    assert_eq!(send.memory, Bytes::new(1_000_000_000));
    assert_eq!(
        (send.tsi, send.cci, send.flute_version, send.packet_size),
        (Some(7), CciChoice::Clocked, 1, Some(1200))
    );
    assert!(send.describe && send.md5 && send.source_specific && send.output.json && send.output.pcap.is_some());
}

#[test]
fn receiving_needs_a_session_only() {
    let plain = recv("weir.sdp");
    assert_eq!((plain.out, plain.memory, plain.link), (None, Bytes::new(256_000_000), None));
    let full = recv("- --out o --link rate=2mbit,delay=20ms --overwrite --any-sender --for 10m --idle-timeout 30s -q");
    assert_eq!(full.sessions[0], SessionSource::Stdin);
    assert_eq!(full.link.and_then(|link| link.rate), Some(Rate::from_mbps(2)));
    assert_eq!((full.duration, full.idle_timeout), (Some(Duration::from_secs(600)), Some(Duration::from_secs(30))));
    assert!(full.overwrite && full.any_sender && full.output.quiet);
}

#[test]
fn a_live_stream_needs_a_port_only_and_its_viewer_a_host_and_port() {
    let live = |line: &str| match parse(&format!("send live {line}")) {
        Ok(Command::Send(SendWhat::Live(live))) => *live,
        other => panic!("{line}: {other:?}"),
    };
    let plain = live("--unicast 5004");
    assert_eq!((plain.unicast.to_string(), plain.input, plain.cc.name), ("[::]:5004".to_owned(), Input::Stdin, "rap"));
    assert_eq!((plain.packet_size, plain.payload_type, plain.silence), (1456, None, Duration::from_secs(10)));
    assert_eq!(live("--unicast 127.0.0.1:5004 --in a.ts").input, Input::File("a.ts".into()));
    for sender in ["192.0.2.7:5004", "[2001:db8::1]:5004", "media.example.org:5004", "localhost:1"] {
        assert_eq!(recv(sender).sessions[0], SessionSource::Sender(sender.to_owned()));
    }
    for file in ["weir.sdp", "a/b:5004", "host:0", "host:port", "239.0.0.1:5004"] {
        assert_eq!(recv(file).sessions[0], SessionSource::File(file.into()));
    }
}

#[test]
fn a_demonstration_has_four_links_unless_told_otherwise() {
    let demo = |line: &str| match parse(line) {
        Ok(Command::Demo(demo)) => *demo,
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(demo("demo").links, [2, 8, 32, 100].map(Rate::from_mbps));
    assert_eq!(demo("demo").size, Bytes::new(12_500_000));
    assert_eq!(demo("demo f --links 500k,4M --loss 1%").links, [Rate::from_kbps(500), Rate::from_mbps(4)]);
}

#[test]
fn mistakes_are_answered_with_what_is_accepted() {
    let table = [
        ("send file a --to 10.0.0.1:5004", "not a multicast address"),
        ("send file a --to 239.255.0.1", "a group and a port"),
        ("send file a --to 224.0.0.251:5353", "224.0.0.0/24 is for routing"),
        ("send stream --to [ff02::1]:5004", "ff02::1 is not free"),
        ("send file --to 239.255.0.1:5004", "PATH"),
        ("send file a", "--to"),
        ("send file a --to 239.255.0.1:5004 --for 10", "30s, 10m, 1h30m"),
        ("send file a --to 239.255.0.1:5004 --rates fast", "256k..100M"),
        ("send file a --to 239.255.0.1:5004 --ratio 1", "1.01 to 16"),
        ("send file a --to 239.255.0.1:5004 --cc tcp", "sluice"),
        ("send file a --to 239.255.0.1:5004 --cc-set x", "KEY=VALUE"),
        ("send file a --to 239.255.0.1:5004 --json -q", "cannot be used with"),
        ("send live", "--unicast"),
        ("send live --unicast 239.0.0.1:5004", "this host's own addresses"),
        ("send live --unicast 5004 --in rtp://here", "rtp://127.0.0.1:5004"),
        ("send live --unicast 5004 --cc avmrc", "rap"),
        ("send live --unicast 5004 --payload-type 200", "0..=127"),
        ("recv s --link speed=2M", "rate, delay, buffer, burst, loss, jitter and queue"),
        ("recv s --memory 0", "256M"),
        ("demo --links 2M,slow", "2M,8M"),
        ("demo f --size 3M", "cannot be used with"),
        ("completions tcl", "bash"),
    ];
    for (line, expected) in table {
        let text = parse(line).expect_err(line);
        assert!(text.contains(expected), "{line}: {text}");
    }
}

#[test]
fn help_gives_every_option_a_sentence_and_names_the_exit_codes() {
    fn walk(command: &clap::Command) {
        for arg in command.get_arguments() {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.len() > 9, "{} {}", command.get_name(), arg.get_id());
        }
        command.get_subcommands().for_each(walk);
    }
    walk(&Cli::command());
    for path in ["send file", "send live", "recv", "demo"] {
        let help = parse(&format!("{path} --help")).expect_err("help is not a command");
        for exit in exit::Exit::ALL {
            assert!(help.contains(exit.meaning().split(';').next().expect("one part")), "{path}: {exit:?}\n{help}");
        }
        assert!(help.contains("Examples:"), "{path}");
    }
}

#[test]
fn a_pattern_that_cannot_be_read_is_refused_before_anything_is_sent() {
    let exclude = send("tree --to 239.255.0.1:5004 --exclude *.o --exclude !keep.o --exclude /build/").exclude;
    assert_eq!(exclude.len(), 3);
    for (pattern, expected) in [("[z-a]", "[z-a]"), ("#a", "\\#")] {
        let told = parse(&format!("send file tree --to 239.255.0.1:5004 --exclude {pattern}")).expect_err("no pattern");
        assert!(told.contains("--exclude") && told.contains(expected), "{told}");
    }
}
