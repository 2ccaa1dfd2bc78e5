//! Prints the tables of `docs/papers/rap.md`: RAP next to SACK, by ns-2's `Agent/RAP` and by ours, with its quirks and without.
//!
//! `cargo run --release -p weir-sim --example rap_agreement [SEEDS [KEY=VALUE …]]`; it runs `ns` (Debian package `ns2`). Settings
//! of RAP that are given go on top of the quirks, to see which of them makes a difference.

#[path = "../tests/beside_sack/mod.rs"]
mod beside_sack;

use std::io::Write;
use std::process::{Command, ExitCode};

use beside_sack::{Outcome, Setup};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let seeds = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(5);
    let own: Vec<(&str, &str)> = arguments.iter().filter_map(|text| text.split_once('=')).collect();
    match Ns::new() {
        Ok(ns) => table(&ns, seeds, &own),
        Err(error) => {
            eprintln!("ns-2 cannot be run ({error}): apt-get install ns2");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn table(ns: &Ns, seeds: u64, own: &[(&str, &str)]) {
    println!(
        "| queue | n | delay | fine grain | ns-2 | ours, ns-2's quirks | to ns-2 | | ours | loss ns-2 | quirks | ours |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    let quirks: Vec<(&str, &str)> = [("quirks", "ns2")].into_iter().chain(own.iter().copied()).collect();
    for setup in rows() {
        let theirs = Runs::of(seeds, |seed| ns.run(&setup, seed));
        let with_quirks = Runs::of(seeds, |seed| setup.run(&quirks, seed));
        let plain = Runs::of(seeds, |seed| setup.run(own, seed));
        let to_ns2 = with_quirks.mean() / theirs.mean();
        let agrees = theirs.holds(with_quirks.mean()) || (to_ns2 - 1.0).abs() <= 0.15;
        println!(
            "| {} | {} | {} ms | {} | {theirs} | {with_quirks} | {to_ns2:.2} | {} | {plain} | {} | {} | {} |",
            setup.max_p.map_or("drop-tail".to_owned(), |max_p| format!("RED {max_p}")),
            setup.flows,
            setup.delay_ms,
            if setup.fine_grain { "on" } else { "off" },
            if agrees { "✓" } else { "✗" },
            theirs.losses(),
            with_quirks.losses(),
            plain.losses(),
        );
    }
}

fn rows() -> Vec<Setup> {
    let plain = Setup { flows: 4, delay_ms: 20, fine_grain: false, max_p: None };
    let mut rows = Vec::new();
    for delay_ms in [20, 100] {
        for flows in [4, 16] {
            rows.extend([false, true].map(|fine_grain| Setup { flows, delay_ms, fine_grain, ..plain }));
        }
    }
    let red = [0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32];
    rows.extend(red.map(|max_p| Setup { flows: 16, fine_grain: true, max_p: Some(max_p), ..plain }));
    rows
}

/// The runs of a row.
struct Runs(Vec<Outcome>);

impl Runs {
    fn of(seeds: u64, run: impl Fn(u64) -> Outcome) -> Runs {
        Runs((1..=seeds).map(run).collect())
    }

    fn mean_of(&self, of: impl Fn(&Outcome) -> f64) -> f64 {
        self.0.iter().map(of).sum::<f64>() / self.0.len() as f64
    }

    fn mean(&self) -> f64 {
        self.mean_of(|run| run.ratio)
    }

    fn ends(&self) -> (f64, f64) {
        let ratios = || self.0.iter().map(|run| run.ratio);
        (ratios().fold(f64::INFINITY, f64::min), ratios().fold(0.0, f64::max))
    }

    fn holds(&self, ratio: f64) -> bool {
        let (low, high) = self.ends();
        (low..=high).contains(&ratio)
    }

    /// Per cent that RAP and SACK lost.
    fn losses(&self) -> String {
        format!("{:.1} {:.1}", 100.0 * self.mean_of(|run| run.rap_loss), 100.0 * self.mean_of(|run| run.sack_loss))
    }
}

impl std::fmt::Display for Runs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (low, high) = self.ends();
        write!(f, "{:.2} [{low:.2}–{high:.2}]", self.mean())
    }
}

/// ns-2, and the script that it runs.
struct Ns(tempfile::NamedTempFile);

impl Ns {
    fn new() -> std::io::Result<Ns> {
        let mut script = tempfile::NamedTempFile::new()?;
        script.write_all(SCRIPT.as_bytes())?;
        Command::new("ns").arg("/dev/null").output()?;
        Ok(Ns(script))
    }

    fn run(&self, setup: &Setup, seed: u64) -> Outcome {
        let queue = setup.max_p.map_or("0".to_owned(), |max_p| max_p.to_string());
        let numbers = [setup.flows.to_string(), setup.delay_ms.to_string(), u8::from(setup.fine_grain).to_string()];
        let sizes = [setup.bps().to_string(), setup.buffer().to_string(), queue, seed.to_string()];
        let output = Command::new("ns").arg(self.0.path()).args(numbers).args(sizes).output().expect("ns can be run");
        let text = String::from_utf8_lossy(&output.stdout);
        let counts: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [rap_left, rap_came, rap_dropped, sack_left, sack_came, sack_dropped] = counts[..] else {
            panic!("ns said {text:?} and {:?}", String::from_utf8_lossy(&output.stderr))
        };
        Outcome { ratio: rap_left / sack_left, rap_loss: rap_dropped / rap_came, sack_loss: sack_dropped / sack_came }
    }
}

/// Arguments: flows of each kind, delay, fine grain, bit/s, buffer, `max_p` or 0, seed. Prints bytes that left, packets that
/// came and packets that were dropped, of RAP and of SACK.
const SCRIPT: &str = r#"
foreach {flows delay_ms fine bps buffer max_p seed} $argv break
$defaultRNG seed $seed
set starts [new RNG]
$starts seed [expr {100 + $seed}]
set ns [new Simulator]
set packet_time [expr {800.0 / $bps}]

Queue set limit_ 100000
Queue/RED set thresh_ 5
Queue/RED set maxthresh_ [expr {$buffer / 2.0}]
Queue/RED set q_weight_ 0.002
if {$max_p > 0} { Queue/RED set linterm_ [expr {1.0 / $max_p}] }
foreach flag {bytes_ queue_in_bytes_ gentle_ setbit_} { Queue/RED set $flag false }
Queue/RED set mean_pktsize_ 100
Agent/TCP set useHeaders_ false
Agent/TCP set packetSize_ 100
Agent/TCP set window_ 1000
Agent/TCP set tcpTick_ 0.1
Agent/TCP set overhead_ $packet_time
Agent/TCPSink set packetSize_ 40
Agent/RAP set packetSize_ 100
Agent/RAP set rap_base_hdr_size_ 40
Agent/RAP set useFineGrain_ $fine
Agent/RAP set overhead_ $packet_time

set left [$ns node]
set right [$ns node]
$ns simplex-link $left $right $bps ${delay_ms}ms [expr {$max_p > 0 ? "RED" : "DropTail"}]
$ns simplex-link $right $left $bps ${delay_ms}ms DropTail
$ns queue-limit $left $right $buffer

proc join_network {source sink flow} {
    global ns left right
    foreach {router agent} [list $left $source $right $sink] {
        set host [$ns node]
        $ns duplex-link $host $router 10Mb 3ms DropTail
        $ns attach-agent $host $agent
        $agent set fid_ $flow
    }
    $ns connect $source $sink
}
for {set i 0} {$i < $flows} {incr i} {
    set source [new Agent/RAP]
    set sink [new Agent/RAP]
    join_network $source $sink $i
    $ns at 0.0 "$sink listen"
    $ns at [$starts uniform 0.0 2.0] "$source start"
    set sender [new Agent/TCP/Sack1]
    join_network $sender [new Agent/TCPSink/Sack1] [expr {$flows + $i}]
    set ftp [new Application/FTP]
    $ftp attach-agent $sender
    $ns at [$starts uniform 0.0 2.0] "$ftp start"
}

set monitor [$ns makeflowmon Fid]
$ns attach-fmon [$ns link $left $right] $monitor
proc totals {} {
    global monitor flows
    set totals {0 0 0 0 0 0}
    foreach flow [$monitor flows] {
        set first [expr {[$flow set flowid_] < $flows ? 0 : 3}]
        foreach field {bdepartures_ parrivals_ pdrops_} {
            lset totals $first [expr {[lindex $totals $first] + [$flow set $field]}]
            incr first
        }
    }
    return $totals
}
$ns at 30.0 { set before [totals] }
$ns at 120.0 {
    foreach was $before is [totals] { puts [expr {$is - $was}] }
    exit 0
}
$ns run
"#;
