//! What follows from a parameter's value, how many runs a variant gets, and parts of which there may be none.

use std::sync::Mutex;

use weir_lab::results::{Results, Value};
use weir_lab::scenario::{Override, Scenario, Topology};
use weir_lab::sweep::{Options, sweep};

/// A session, or a TCP in its place.
const PLACE: &str = r#"id = "test/place"
title = "A session, or a TCP in its place"
seeds = 1
duration = "6s"

[parameters]
sessions = 1
tcps = 0
room = 1

[sweep]
leave = [0, 2]
queue = ["short", "CoDel"]

[case.queue]
"short" = { room = 20 }
"CoDel" = { room = 1000, "topology.dumbbell.bottleneck" = "rate=2M,buffer={room}p,queue=codel" }

[[variant]]
name = "session"

[[variant]]
name = "tcp"
seeds = 2
set = { sessions = 0, tcps = 1 }

[topology.dumbbell]
bottleneck = "rate=2M,buffer={room}p"

[session.main]
scheme = "avmrc"
count = "{sessions}"
ladder = { high = "1M" }
leave_latency = "{leave}s"
receivers = { rtt = "20ms" }

[flow.tcp]
count = "{tcps}"
rtt = "20ms"
traffic.ftp = {}

[metrics]
goodput = { measure = "goodput", session = "main", flow = "tcp", from = "3s" }
"#;

fn read(text: &str, overrides: &[&str]) -> Result<Scenario, String> {
    let overrides: Vec<Override> = overrides.iter().map(|text| text.parse().expect("key=value")).collect();
    Scenario::parse("place.toml", text, &overrides).map_err(|error| error.to_string())
}

fn bottlenecks(overrides: &[&str]) -> Vec<String> {
    let points = read(PLACE, overrides).expect("valid").points().expect("valid");
    let bottleneck = |topology: &Topology| match topology {
        Topology::Dumbbell(dumbbell) => dumbbell.bottleneck.0.to_string(),
        other => panic!("{other:?}"),
    };
    points.iter().map(|point| bottleneck(&point.setup.topology)).collect()
}

#[test]
fn a_case_sets_parameters_and_keys_by_the_value_of_a_parameter() {
    let codel = "rate=2000000bit,delay=0ns,buffer=1000p,queue=codel";
    let short = "rate=2000000bit,delay=0ns,buffer=20p";
    let all = bottlenecks(&["leave=0"]);
    assert!(all.len() == 4 && all[..2] == [short; 2], "{all:?}");
    assert!(all[2].starts_with(codel) && all[3] == all[2], "{all:?}");
    let mine = bottlenecks(&["leave=0", "variant=tcp", "topology.dumbbell.bottleneck=rate=1M,buffer={room}p"]);
    assert_eq!(mine, ["rate=1000000bit,delay=0ns,buffer=20p", "rate=1000000bit,delay=0ns,buffer=1000p"]);
    assert!(bottlenecks(&["leave=0", "room=7"]).iter().all(|link| link.contains("buffer=7p")), "--set goes first");
}

#[test]
fn a_value_without_a_case_and_a_case_without_a_parameter_are_refused() {
    let value = read(PLACE, &["queue=shrt"]).expect_err("there is no such case");
    assert!(value.contains("queue is \"shrt\"") && value.contains("did you mean \"short\"?"), "{value}");
    let parameter = read(&PLACE.replace("[case.queue]", "[case.quue]"), &[]).expect_err("there is no such parameter");
    assert!(parameter.contains("case.quue") && parameter.contains("did you mean \"queue\"?"), "{parameter}");
    let inner = read(&PLACE.replace("{ room = 20 }", "{ rom = 20 }"), &[]).expect_err("it sets nothing");
    assert!(inner.contains("case.queue.\"short\" sets \"rom\""), "{inner}");
}

#[test]
fn a_variant_may_have_more_runs_than_others_unless_their_number_comes_from_outside() {
    let seeds = |overrides: &[&str]| -> Vec<usize> {
        read(PLACE, overrides).expect("valid").points().expect("valid").iter().map(|point| point.seeds).collect()
    };
    assert_eq!(seeds(&[])[..2], [1, 2]);
    assert!(seeds(&["seeds=4"]).iter().all(|seeds| *seeds == 4));
    assert!(read(&PLACE.replace("seeds = 2", "seeds = 0"), &[]).is_err());
}

#[test]
fn what_is_said_of_parts_of_which_there_are_none_makes_no_other_run() {
    let totals = Mutex::new(Vec::new());
    let scenario = read(PLACE, &["queue=short"]).expect("valid");
    let results = sweep(&scenario, &Options::default(), &|progress| {
        totals.lock().expect("nobody panicked").push(progress.total);
    });
    let Results { rows, .. } = results.expect("it runs");
    // A session with two latencies, and a TCP that has none with two seeds, which stands in both places.
    assert_eq!((totals.into_inner().expect("nobody panicked")[0], rows.len()), (4, 6));
    let goodput = |variant: &str, leave: f64, seed: u64| {
        let row = rows.iter().find(|row| {
            row.seed == seed
                && row.point["variant"] == Value::Word(variant.to_owned())
                && row.point["leave"] == Value::Number(leave)
        });
        row.expect("it was run").metrics["goodput"]
    };
    assert_eq!(goodput("tcp", 0.0, 2), goodput("tcp", 2.0, 2));
    assert!(goodput("tcp", 0.0, 1) > 1800.0 && goodput("session", 0.0, 1) < 1000.0, "either is measured by one name");
}

#[test]
fn a_ladder_is_as_offered_where_nothing_is_said_of_it() {
    let rates = |keys: &str| {
        let text = PLACE.replace("{ high = \"1M\" }", keys);
        let points = read(&text, &["leave=0", "queue=short", "variant=session"])?.points().expect("valid");
        let ladder = points[0].setup.session["main"].agreed()?.ladder;
        Ok::<(u64, usize), String>((ladder.level_rate(1).bps(), ladder.levels()))
    };
    // 256, 384, 576, 864 and, at the top, 1000 kbit/s.
    assert_eq!(rates("{ high = \"1M\" }"), Ok((256_000, 5)));
    assert_eq!(rates("{ low = \"500k\", high = \"1M\", ratio = 2 }"), Ok((500_000, 2)));
    let paper = PLACE.replace("seeds = 1\n", "seeds = 1\nsettings = \"paper\"\n");
    assert!(read(&paper, &[]).expect_err("papers say everything").contains("low, high and ratio"));
}

#[test]
fn a_receiver_s_clock_may_be_fast_or_coarse_and_a_link_a_token_bucket() {
    let session = PLACE
        .replace("rtt = \"20ms\" }\n\n[flow", "rtt = \"20ms\", clock_drift = 100, clock_grain = \"1ms\" }\n\n[flow");
    let points =
        read(&session, &["leave=0", "queue=short", "variant=session"]).expect("valid").points().expect("valid");
    let receivers = &points[0].setup.session["main"].receivers;
    assert_eq!((receivers.clock_drift.map(|drift| drift.0), receivers.clock_grain.0.as_micros()), (Some(100.0), 1000));
    let bucket = bottlenecks(&["topology.dumbbell.bottleneck=rate=2M,burst=2ms"]);
    assert!(bucket[0].contains("burst=2000000ns"), "{bucket:?}");
}
