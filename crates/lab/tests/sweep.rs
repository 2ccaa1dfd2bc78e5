//! Sweeps from a scenario file to its results: what is measured is what the network must give, results come back from the
//! cache, and nothing depends on how many runs go at the same time.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use weir_lab::cache::Cache;
use weir_lab::results::{Results, Row};
use weir_lab::scenario::{Override, Scenario};
use weir_lab::sweep::{Options, Progress, SweepError, sweep};

const SESSION: &str = r#"id = "test/session"
title = "Two clients"
seeds = 2
settings = "paper"
host = 2000
duration = "30s"

[parameters]
scheme = "avmrc"

[[variant]]
name = "Vegas"

[[variant]]
name = "Reno"
set = { scheme = "rmrc" }

[topology.dumbbell]
bottleneck = "rate=3M,buffer=80p"

[session.main]
scheme = "{scheme}"
ladder = { low = "256k", high = "6561k", ratio = 1.5 }
burst_jitter = "1ms"
startup = "5s"
receivers = { count = 2, join = "uniform(0s, 2s)", rtt = "each(40ms, 100ms)" }

[metrics]
at_top = { measure = "time_at_level", session = "main", level = 7, from = "15s" }
throughput = { measure = "throughput", session = "main", from = "15s" }
near = { measure = "client_rate", session = "main", client = 0, from = "15s" }
far = { measure = "client_rate", session = "main", client = 1, from = "15s" }

[series]
level = { trace = "level", session = "main" }
"#;

const FLOWS: &str = r#"id = "test/flows"
title = "Datagrams"
seeds = 1
settings = "paper"
host = 2000
duration = "20s"

[sweep]
rate = [1, 6]

[topology.dumbbell]
bottleneck = "rate=3M,delay=5ms,buffer=20p"

[flow.udp]
rtt = "30ms"
start = "5s"
stop = "15s"
traffic.udp = { rate = "{rate}M" }

[flow.ftp]
count = "{max(0, 2 - rate)}"
rtt = "50ms"
traffic.ftp = { flavour = "newreno" }

[metrics]
throughput = { measure = "throughput", flow = "udp", from = "6s", to = "15s" }
share = { measure = "share", flow = "udp", from = "6s", to = "15s" }
loss = { measure = "steady_loss", flow = "udp", from = "6s", to = "15s" }
after = { measure = "throughput", flow = "udp", from = "16s" }
ftp_before = { measure = "throughput", flow = "ftp", from = "2s", to = "5s" }
ftp_beside = { measure = "throughput", flow = "ftp", from = "6s", to = "15s" }
use = { measure = "link_use" }
"#;

fn read(text: &str, overrides: &[&str]) -> Scenario {
    let overrides: Vec<Override> = overrides.iter().map(|text| text.parse().expect("key=value")).collect();
    Scenario::parse("test.toml", text, &overrides).expect("valid")
}

fn run(scenario: &Scenario, options: &Options<'_>) -> Results {
    sweep(scenario, options, &|_| {}).expect("it runs")
}

fn jobs(count: usize) -> Options<'static> {
    Options { jobs: NonZeroUsize::new(count), ..Options::default() }
}

fn metric(row: &Row, name: &str) -> f64 {
    row.metrics[name]
}

#[test]
fn a_session_reaches_what_its_link_sustains_and_its_clients_receive_it() {
    let results = run(&read(SESSION, &["variant=Vegas"]), &jobs(2));
    assert_eq!(results.rows.len(), 2);
    for row in &results.rows {
        assert!(metric(row, "at_top") > 90.0, "{row:?}");
        let throughput = metric(row, "throughput");
        assert!((2800.0..=3010.0).contains(&throughput), "2916 kbit/s are sustainable of 3000: {throughput}");
        for client in ["near", "far"] {
            assert!((metric(row, client) - throughput).abs() < 0.03 * throughput, "{row:?}");
        }
        assert!(row.series["level"].len() > 7, "it climbed level by level: {:?}", row.series["level"]);
    }
}

#[test]
fn datagrams_get_what_they_send_or_what_the_link_has() {
    let results = run(&read(FLOWS, &[]), &jobs(2));
    let [light, heavy] = &results.rows[..] else { panic!("two points, one seed: {results:?}") };
    let close = |row: &Row, name: &str, expected: f64, tolerance: f64| {
        assert!((metric(row, name) - expected).abs() <= tolerance, "{name} is {}, not {expected}", metric(row, name));
    };
    close(light, "ftp_before", 3000.0, 30.0);
    close(light, "throughput", 1000.0, 60.0);
    close(light, "ftp_beside", 2000.0, 100.0);
    close(heavy, "throughput", 3000.0, 5.0);
    close(heavy, "share", 100.0, 0.2);
    close(heavy, "loss", 50.0, 0.5);
    close(heavy, "after", 0.0, 0.0);
    close(heavy, "use", 50.0, 1.0);
    assert!(!heavy.metrics.contains_key("ftp_before"), "a flow that is not there has no metric");
}

#[test]
fn results_do_not_depend_on_how_many_run_at_once_and_seeds_matter() {
    let scenario = read(SESSION, &[]);
    let (one, four) = (run(&scenario, &jobs(1)), run(&scenario, &jobs(4)));
    assert_eq!(one, four);
    assert_ne!(one.rows[0].metrics, one.rows[1].metrics, "two seeds are two runs");
}

#[test]
fn a_second_sweep_comes_from_the_cache_and_another_set_up_does_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options { cache: Some(Cache::new(folder.path())), ..jobs(2) };
    let last = |scenario: &Scenario| {
        let last = Mutex::new(None);
        let results = sweep(scenario, &options, &|progress| *last.lock().expect("no panic") = Some(progress));
        (results.expect("it runs"), last.into_inner().expect("no panic").expect("there are runs"))
    };
    let scenario = read(SESSION, &["duration=8s"]);
    let (made, first) = last(&scenario);
    let (kept, second) = last(&scenario);
    assert_eq!(made, kept);
    assert_eq!(first, Progress { done: 4, from_cache: 0, total: 4 });
    assert_eq!(second, Progress { done: 4, from_cache: 4, total: 4 });
    let (_, other) = last(&read(SESSION, &["duration=8s", "session.main.settings.n_add=10"]));
    assert_eq!(other.from_cache, 0);
    let (_, more) = last(&read(SESSION, &["duration=8s", "seeds=3"]));
    assert_eq!((more.from_cache, more.total), (4, 6), "only the new seeds are run");
}

#[test]
fn a_stopped_sweep_goes_on_where_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let stop = AtomicBool::new(false);
    let scenario = read(SESSION, &["duration=8s"]);
    let options = Options { cache: Some(Cache::new(folder.path())), stop: Some(&stop), ..jobs(1) };
    let stopped = sweep(&scenario, &options, &|progress| stop.store(progress.done == 3, Ordering::Relaxed));
    assert!(matches!(stopped, Err(SweepError::Stopped { done: 3, total: 4 })), "{stopped:?}");
    let from_cache = Mutex::new(0);
    let options = Options { stop: None, ..options };
    sweep(&scenario, &options, &|progress| *from_cache.lock().expect("no panic") = progress.from_cache)
        .expect("it runs");
    assert_eq!(from_cache.into_inner().expect("no panic"), 3);
}

#[test]
fn a_round_trip_shorter_than_the_bottleneck_s_own_is_refused() {
    let scenario = read(FLOWS, &["flow.udp.rtt=9ms"]);
    let error = sweep(&scenario, &jobs(1), &|_| {}).expect_err("twice 5 ms are more than 9");
    assert!(error.to_string().contains("shorter than the bottleneck's own"), "{error}");
}
