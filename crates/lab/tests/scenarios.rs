//! Reading scenario files: what they may say, and what a wrong one is told.

use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_core::registry::Habitat;
use weir_lab::results::Value;
use weir_lab::scenario::{Override, Scenario, Setup, Topology, Traffic};
use weir_sim::tcp::Flavour;
use weir_wire::CciForm;

const SMALL: &str = r#"id = "test/small"
title = "A small one"
seeds = 2
duration = "{10 * sessions}s"

[parameters]
scheme = "avmrc"
clients = 3

[sweep]
sessions = [2, 4]
capacity = { from = 1, to = 2, step = 0.5 }

[[variant]]
name = "Reno"
set = { scheme = "rmrc", "session.main.settings.tau" = "200ms" }

[[variant]]
name = "Vegas"

[topology.dumbbell]
bottleneck = "rate={capacity * sessions}M,buffer={40 * sessions}p"

[session.main]
scheme = "{scheme}"
count = "{sessions}"
ladder = { low = "256k", high = "6561k", ratio = 1.5 }
receivers = { count = "{clients}", join = "uniform(0s, 5s)", rtt = "uniform(40ms, 100ms)" }

[metrics]
loss = { measure = "steady_loss", session = "main" }
"#;

fn read(text: &str) -> Result<Scenario, String> {
    Scenario::parse("small.toml", text, &[]).map_err(|error| error.to_string())
}

fn with(assignments: &[&str]) -> Result<Scenario, String> {
    let overrides: Vec<Override> = assignments.iter().map(|text| text.parse().expect("key=value")).collect();
    Scenario::parse("small.toml", SMALL, &overrides).map_err(|error| error.to_string())
}

/// The file and the line that begins with `start`, as errors give them.
fn place(start: &str) -> String {
    let line = SMALL.lines().position(|line| line.starts_with(start)).expect("it is there");
    format!("small.toml:{}:", line + 1)
}

fn refused(from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "{from}");
    read(&SMALL.replace(from, to)).expect_err("must be refused")
}

#[test]
fn points_are_all_combinations_with_the_variant_changing_fastest() {
    let points = read(SMALL).expect("valid").points().expect("valid");
    assert_eq!(points.len(), 2 * 3 * 2);
    let place = |i: usize| {
        let number = |name: &str| match &points[i].at[name] {
            Value::Number(number) => *number,
            Value::Word(word) => panic!("{word}"),
        };
        (number("sessions"), number("capacity"), points[i].at["variant"].clone())
    };
    assert_eq!(place(0), (2.0, 1.0, Value::Word("Reno".to_owned())));
    assert_eq!(place(1), (2.0, 1.0, Value::Word("Vegas".to_owned())));
    assert_eq!(place(2), (2.0, 1.5, Value::Word("Reno".to_owned())));
    assert_eq!(place(11), (4.0, 2.0, Value::Word("Vegas".to_owned())));
}

#[test]
fn parameters_and_variants_reach_the_set_up() {
    let points = read(SMALL).expect("valid").points().expect("valid");
    let last_reno = &points[10].setup;
    assert_eq!(last_reno.duration.0.as_secs(), 40);
    let Topology::Dumbbell(dumbbell) = &last_reno.topology else { panic!("{:?}", last_reno.topology) };
    assert_eq!(dumbbell.bottleneck.0, "rate=8M,buffer=160p".parse().expect("a link"));
    let session = &last_reno.session["main"];
    assert_eq!((session.scheme.as_str(), session.count.0, session.receivers.count.0), ("rmrc", 4, 3));
    assert_eq!(session.settings["tau"].0, "200ms");
    assert!(points[11].setup.session["main"].settings.is_empty());
}

#[test]
fn a_misspelt_key_is_named_with_its_line_and_the_key_that_was_meant() {
    let expected = format!("{} unknown key \"recievers\"; did you mean \"receivers\"?", place("receivers"));
    assert_eq!(refused("receivers =", "recievers ="), expected);
    assert_eq!(refused("title =", "titel ="), "small.toml:2: unknown key \"titel\"; did you mean \"title\"?");
    let metric = refused("\"steady_loss\"", "\"stedy_loss\"");
    assert!(metric.starts_with(&place("loss =")) && metric.contains("did you mean \"steady_loss\"?"), "{metric}");
}

#[test]
fn a_missing_key_and_a_wrong_value_are_named_with_their_line() {
    assert_eq!(refused("id = \"test/small\"\n", ""), "small.toml:1: missing key \"id\"");
    let unit = refused("{10 * sessions}s", "{10 * sessions}");
    assert!(unit.starts_with("small.toml:4: \"20\": expected a span of time with its unit"), "{unit}");
    let link = refused("buffer={40 * sessions}p", "bufer=40p");
    assert!(link.starts_with(&place("bottleneck =")) && link.contains("bufer"), "{link}");
}

#[test]
fn unknown_parameters_schemes_settings_and_sessions_are_refused_with_a_suggestion() {
    assert!(refused("{clients}", "{client}").contains("did you mean \"clients\"?"));
    assert!(refused("scheme = \"avmrc\"", "scheme = \"avrmc\"").contains("did you mean \"avmrc\"?"));
    assert!(refused("settings.tau", "settings.taw").contains("no setting \"taw\""));
    assert!(refused("session = \"main\"", "session = \"mian\"").contains("did you mean \"main\"?"));
    assert!(refused("scheme = \"rmrc\",", "sceme = \"rmrc\",").contains("did you mean \"scheme\"?"));
    assert!(refused("ratio = 1.5", "ratio = 0.5").contains("ratio"));
}

#[test]
fn overrides_reach_parameters_sweeps_variants_seeds_and_any_key() {
    let points = |assignments: &[&str]| with(assignments).expect("valid").points().expect("valid");
    assert_eq!(points(&["sessions=3"]).len(), 3 * 2);
    assert_eq!(points(&["sessions=[1, 2, 3]"]).len(), 3 * 3 * 2);
    assert_eq!(points(&["variant=Reno"]).len(), 2 * 3);
    assert_eq!(points(&["clients=7"])[0].setup.session["main"].receivers.count.0, 7);
    assert_eq!(points(&["session.main.settings.n_add=10"])[0].setup.session["main"].settings["n_add"].0, "10");
    assert_eq!(points(&["duration=5s"])[0].setup.duration.0.as_secs(), 5);
    assert_eq!(with(&["seeds=4"]).expect("valid").head.seeds.0, 4);
    let all_reno = points(&["scheme=rmrc"]);
    assert!(all_reno.iter().all(|point| point.setup.session["main"].scheme == "rmrc"), "it goes before variants");
}

#[test]
fn overrides_that_reach_nothing_are_refused() {
    let error = |assignment: &str| with(&[assignment]).expect_err("must be refused");
    assert!(error("clinets=3").contains("did you mean \"clients\"?"));
    assert!(error("variant=Rneo").contains("did you mean \"Reno\"?"));
    assert!(error("session.main.recievers.count=3").contains("did you mean \"receivers\"?"));
    assert!("clients".parse::<Override>().is_err());
}

#[test]
fn overrides_reach_the_elements_of_lists() {
    let text =
        format!("{SMALL}\n[[change]]\nat = \"1s\"\nlink = \"rate=1M\"\n[[change]]\nat = \"2s\"\nlink = \"rate=2M\"\n");
    let set = |assignment: &str| {
        Scenario::parse("small.toml", &text, &[assignment.parse().expect("key=value")])
            .map_err(|error| error.to_string())
    };
    let changes = set("change.1.at=5s").expect("there are two").points().expect("valid")[0].setup.change.clone();
    assert_eq!(changes.iter().map(|change| change.at.0.as_secs()).collect::<Vec<_>>(), [1, 5]);
    let changes =
        set("change.0.link=rate=3M,buffer=9p").expect("a link").points().expect("valid")[0].setup.change.clone();
    assert_eq!(changes[0].link.as_ref().map(|link| &link.0), Some(&"rate=3M,buffer=9p".parse().expect("a link")));
    let error = set("change.2.at=5s").expect_err("there are two");
    assert_eq!(
        error,
        "small.toml: --set change.2.at: change is a list that has 2 elements, change.0 to change.1, and no \"2\""
    );
}

#[test]
fn packets_smaller_than_their_headers_are_refused() {
    let text = |traffic: &str| {
        STREAM.replace("traffic.ftp = { flavour = \"sack\", packet_size = \"100B\", tick = \"100ms\" }", traffic)
    };
    for (traffic, least) in [
        ("ftp = { packet_size = \"{size}B\" }", 41),
        ("ftp = { host = \"today\", packet_size = \"{size}B\" }", 53),
        ("http = { tcp = { packet_size = \"{size}B\" }, response = \"9kB\", think = \"1s\" }", 41),
        ("udp = { rate = \"1k\", packet_size = \"{size}B\" }", 28),
        ("stream = { scheme = \"rap\", packet_size = \"{size}B\" }", 41),
        ("stream = { scheme = \"rap\", feedback_size = \"{size}B\" }", 28),
    ] {
        let with = |size: u32| text(&format!("traffic.{}", traffic.replace("{size}", &size.to_string())));
        read(&with(least)).unwrap_or_else(|error| panic!("{traffic}: {error}"));
        let error = read(&with(10)).expect_err(traffic);
        assert!(error.contains("flow.sack: ") && error.contains("10 bytes"), "{error}");
        assert!(read(&with(least - 1)).expect_err(traffic).contains(&format!("has at least {least}")));
    }
    let session = refused("ladder =", "packet_size = 10\nladder =");
    assert!(session.contains("session.main: packet_size is 10 bytes, and such a packet has at least 53"), "{session}");
}

#[test]
fn pacing_is_refused_for_senders_that_are_not_linux_s() {
    let with = |tcp: &str| {
        let before = "flavour = \"sack\", packet_size = \"100B\", tick = \"100ms\"";
        assert!(STREAM.contains(before));
        read(&STREAM.replace(before, &format!("paced = \"yes\", {tcp}")))
    };
    for tcp in ["flavour = \"cubic\"", "host = \"today\", flavour = \"reno\""] {
        with(tcp).unwrap_or_else(|error| panic!("{tcp}: {error}"));
    }
    for tcp in ["flavour = \"reno\"", "host = \"today\", flavour = \"vegas\""] {
        let error = with(tcp).expect_err(tcp);
        assert!(error.contains("flow.sack: ") && error.contains("paced needs Linux's TCP"), "{error}");
    }
}

const STREAM: &str = r#"id = "test/stream"
title = "A paced stream next to a TCP"
seeds = 1
duration = "20s"
settings = "paper"
host = 2000

[topology.dumbbell]
bottleneck = "rate=80k,delay=20ms,buffer=20p"

[flow.rap]
rtt = "50ms"
traffic.stream = { scheme = "rap", packet_size = "100B", overhead = "10ms", settings = { fine_grain = "no" } }

[flow.sack]
rtt = "50ms"
traffic.ftp = { flavour = "sack", packet_size = "100B", tick = "100ms" }

[metrics]
rap = { measure = "throughput", flow = "rap", from = "5s" }
sack = { measure = "throughput", flow = "sack", from = "5s" }
ratio = { measure = "throughput", flow = "rap", per = "sack", from = "5s" }
on_the_way = { measure = "outstanding_packets", flow = "sack", from = "5s" }
back_offs = { measure = "back_offs", flow = "rap" }
range = { measure = "round_trip_range", flow = "rap" }

[series]
rtt = { trace = "round_trip", flow = "rap" }
"#;

#[test]
fn a_stream_shares_a_link_and_tells_of_its_round_trips_and_back_offs() {
    let points = read(STREAM).expect("valid").points().expect("valid");
    let outcome = weir_lab::run::run(&points[0].setup, 1).expect("it can be run");
    let metric = |name: &str| outcome.metrics[name];
    assert!((76.0..=80.1).contains(&(metric("rap") + metric("sack"))), "{outcome:?}");
    assert!((metric("ratio") - metric("rap") / metric("sack")).abs() < 1e-12);
    assert!(metric("back_offs") > 0.0 && (1.0..40.0).contains(&metric("on_the_way")), "{:?}", outcome.metrics);
    // A queue of 20 packets takes 200 ms.
    assert!((50.0..210.0).contains(&metric("range")), "{:?}", outcome.metrics);
    let (at, first) = outcome.series["rtt"][0];
    assert!(at < 1.0 && (50.0..100.0).contains(&first), "{at} {first}");
}

const PLAIN: &str = r#"id = "test/plain"
title = "What a user writes first"
duration = "20s"

[topology.dumbbell]
bottleneck = "rate=8M,delay=10ms,buffer=100ms"

[session.main]
scheme = "avmrc"
receivers = { rtt = "40ms" }

[flow.web]
rtt = "40ms"
traffic.ftp = {}

[metrics]
rate = { measure = "throughput", session = "main" }
"#;

#[test]
fn what_a_scenario_leaves_out_is_as_deployed_and_of_today_unless_it_says_otherwise() {
    let setup = |text: &str| read(text).expect("valid").points().expect("valid").remove(0).setup;
    let tcp = |setup: &Setup| match &setup.flow["web"].traffic {
        Traffic::Ftp(tcp) => tcp.config(),
        other => panic!("{other:?}"),
    };
    let plain = setup(PLAIN);
    let session = &plain.session["main"];
    let agreed = session.agreed().expect("it has a ladder");
    assert_eq!((agreed.habitat, agreed.packet_size.count()), (Habitat::Sockets, 1484));
    assert_eq!(session.leave_latency(), Duration::from_secs(2), "a switch asks twice whether anybody is left");
    let tcp_today = tcp(&plain);
    assert_eq!(
        (tcp_today.flavour, tcp_today.initial_window, tcp_today.segment_size.count()),
        (Flavour::Cubic, 10, 1500)
    );
    assert!(tcp_today.max_window >= 1_000_000 && tcp_today.timestamps, "{tcp_today:?}");

    let fast = setup(&PLAIN.replace("scheme = ", "ladder = { low = \"1M\", high = \"4G\", ratio = 4 }\nscheme = "));
    assert_eq!(
        fast.session["main"].agreed().expect("a ladder").form,
        CciForm::Clocked,
        "its sequence numbers would wrap"
    );

    let ladder = "settings = \"paper\"\nhost = 2000\n[topology";
    let without = read(&PLAIN.replace("[topology", ladder)).expect_err("the papers' ladders differ");
    assert!(without.to_string().contains("missing key \"ladder\""), "{without}");
    let paper = PLAIN.replace("[topology", ladder).replace("scheme = ", "ladder.rates = [\"1M\"]\nscheme = ");
    let paper = setup(&paper);
    let agreed = paper.session["main"].agreed().expect("it has a ladder");
    assert_eq!((agreed.habitat, agreed.packet_size.count()), (Habitat::Lab, 1000));
    assert_eq!(paper.session["main"].leave_latency(), Duration::ZERO);
    let tcp_2000 = tcp(&paper);
    assert_eq!((tcp_2000.flavour, tcp_2000.initial_window, tcp_2000.max_window), (Flavour::NewReno, 2, 64));
}

#[test]
fn a_flow_that_only_others_are_compared_with_is_recorded_too() {
    let lines = STREAM.lines().filter(|line| !line.starts_with("sack =") && !line.starts_with("on_the_way"));
    let points = read(&lines.collect::<Vec<_>>().join("\n")).expect("valid").points().expect("valid");
    let outcome = weir_lab::run::run(&points[0].setup, 1).expect("it can be run");
    assert!(outcome.metrics.contains_key("ratio"), "{:?}", outcome.metrics);
}

#[test]
fn an_application_with_little_to_send_limits_its_stream() {
    let little = STREAM.replace("settings = {", "supply = { rate = \"16k\" }, settings = {");
    let points = read(&little).expect("valid").points().expect("valid");
    let outcome = weir_lab::run::run(&points[0].setup, 1).expect("it can be run");
    assert!((15.0..=16.1).contains(&outcome.metrics["rap"]), "{:?}", outcome.metrics);
}

#[test]
fn what_a_stream_cannot_be_is_refused() {
    let refused = |from: &str, to: &str| read(&STREAM.replace(from, to)).expect_err("must be refused");
    assert!(refused("scheme = \"rap\"", "scheme = \"rapp\"").contains("did you mean \"rap\"?"));
    assert!(refused("scheme = \"rap\"", "scheme = \"avmrc\"").contains("unicast streams"));
    assert!(refused("fine_grain", "fine_grian").contains("fine_grian"));
    assert!(refused("per = \"sack\"", "per = \"sak\"").contains("did you mean \"sack\"?"));
    assert!(
        refused("settings = {", "supply = { rate = \"1k\", on = \"1s\" }, settings = {").contains("both on and off")
    );
}

#[test]
fn equal_points_have_equal_canonical_texts_whatever_the_file_looks_like() {
    let text = |scenario: Scenario| scenario.points().expect("valid")[0].canonical.clone();
    let reordered = SMALL
        .replace("seeds = 2\n", "")
        .replace("[parameters]\nscheme = \"avmrc\"\nclients = 3", "[parameters]\nclients = 3\nscheme = \"avmrc\"");
    assert_eq!(text(read(SMALL).expect("valid")), text(read(&reordered).expect("valid")));
    assert_ne!(text(read(SMALL).expect("valid")), text(with(&["clients=4"]).expect("valid")));
}

#[test]
fn every_scenario_of_the_project_is_read_and_named_after_its_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let files = toml_files(&root);
    assert!(files.len() >= 18, "{files:?}");
    for file in files {
        let scenario = Scenario::load(&file, &[]).unwrap_or_else(|error| panic!("{error}"));
        let path = file.strip_prefix(&root).expect("it was found there").with_extension("");
        assert_eq!(Path::new(&scenario.head.id), path);
    }
}

fn toml_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            files.extend(toml_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    files.sort();
    files
}
