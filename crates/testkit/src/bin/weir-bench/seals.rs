//! What seals of packets cost: CPU and bytes of each mode next to none, and the time that a flood of forged packets takes from a
//! session with a members' key.

use std::net::SocketAddrV4;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weir_testkit::netns::{Air, Network, Scratch, Session, Stranger, generated_file};

use crate::Options;
use crate::speed::{Job, Run};
use crate::summary::Spread;
use crate::weir::Weir;

/// A mode and the words for it.
const MODES: [(&str, &[&str]); 6] = [
    ("none", &[]),
    ("group", &["--authenticate", "group"]),
    ("source", &["--authenticate", "source"]),
    ("encrypt", &["--encrypt"]),
    ("group, source", &["--authenticate", "group", "--authenticate", "source"]),
    ("encrypt, source", &["--encrypt", "--authenticate", "source"]),
];

/// Fills both tables.
pub(crate) fn measure(options: &Options, weir: &Path) -> Result<Value, String> {
    let modes = measure_modes(options, weir)?;
    let flood = measure_flood(options, weir)?;
    Ok(json!({ "modes": modes, "flood": flood }))
}

fn transfer(
    weir: &Path,
    network: &Network,
    file: &Path,
    words: impl IntoIterator<Item = String>,
) -> Result<Run, String> {
    let scratch = Scratch::new();
    let folders = [scratch.folder("out")];
    let job = Job { file, folders: &folders, scratch: scratch.path(), limit: RUN_LIMIT };
    let run = Weir { program: weir, send_words: words.into_iter().collect() }.transfer(network, &job)?;
    job.verify()?;
    Ok(run)
}

/// What one transfer in a mode took.
struct Cost {
    goodput_mbps: f64,
    sender_cpu: f64,
    receiver_cpu: f64,
    bytes: f64,
}

fn measure_modes(options: &Options, weir: &Path) -> Result<Value, String> {
    let scratch = Scratch::new();
    let file = scratch.join("input");
    let size = options.size.count();
    generated_file(&file, size, 1);
    let network = Network::new().receivers(1).build();
    let mut costs: Vec<Vec<Cost>> = MODES.iter().map(|_| Vec::new()).collect();
    for repetition in 1..=options.repeat {
        for ((name, words), costs) in MODES.iter().zip(&mut costs) {
            eprintln!("{name}, {repetition} of {}", options.repeat);
            let rates = ["--rates".to_owned(), options.rates[0].clone()];
            let run =
                transfer(weir, &network, &file, rates.into_iter().chain(words.iter().map(|word| (*word).to_owned())))?;
            costs.push(Cost::of(&run, size));
        }
    }
    println!(
        "\n{} MB to one receiver over an unshaped bridge in each mode, median [least–greatest] of {}; next to none, pair by pair",
        size / 1_000_000,
        options.repeat
    );
    println!(
        "{:<17}{:<22}{:<20}{:<20}{:<20}CPU of both to none's",
        "", "Mbit/s", "CPU s/GB, sender", "receiver", "bytes per byte"
    );
    let rows = MODES.iter().zip(&costs).map(|((name, _), own)| {
        let column = |figure: fn(&Cost) -> f64| Spread::of(own.iter().map(figure));
        let cpu = |cost: &Cost| cost.sender_cpu + cost.receiver_cpu;
        let ratio = Spread::of(own.iter().zip(&costs[0]).map(|(own, none)| cpu(own) / cpu(none)));
        let columns = [
            column(|cost| cost.goodput_mbps),
            column(|cost| cost.sender_cpu),
            column(|cost| cost.receiver_cpu),
            column(|cost| cost.bytes),
        ];
        let [goodput, sender, receiver, bytes] = columns.map(|spread| spread.to_string());
        println!("{name:<17}{goodput:<22}{sender:<20}{receiver:<20}{bytes:<20}{ratio}");
        let [goodput, sender, receiver, bytes] = columns.map(Spread::json);
        json!({
            "mode": name,
            "goodput_mbps": goodput,
            "sender_cpu_secs_per_gb": sender,
            "receiver_cpu_secs_per_gb": receiver,
            "received_bytes_per_byte": bytes,
            "cpu_to_none": ratio.json(),
        })
    });
    Ok(Value::Array(rows.collect()))
}

impl Cost {
    fn of(run: &Run, size: u64) -> Cost {
        let seconds = run.seconds.iter().copied().fold(0.0, f64::max);
        let gigabytes = size as f64 / 1e9;
        let received = run.details["receivers"][0]["received_bytes"].as_f64().unwrap_or(f64::NAN);
        Cost {
            goodput_mbps: size as f64 * 8e-6 / seconds,
            sender_cpu: run.sender.cpu().as_secs_f64() / gigabytes,
            receiver_cpu: run.receivers[0].cpu().as_secs_f64() / gigabytes,
            bytes: received / size as f64,
        }
    }
}

/// A session at 20 Mbit/s at most, undisturbed and under at least 200 000 forged packets a second, in turn.
fn measure_flood(options: &Options, weir: &Path) -> Result<Value, String> {
    let scratch = Scratch::new();
    let file = scratch.join("input");
    generated_file(&file, FLOODED.count(), 2);
    let words = |mode: &[&str]| {
        let all = ["--rates", "1M..20M"].iter().chain(mode);
        all.map(|word| (*word).to_owned()).collect::<Vec<String>>()
    };
    let mut rows = Vec::new();
    println!("\n{FLOODED} at up to 20 Mbit/s, undisturbed and under forged packets of 100 bytes, in turn");
    for (name, mode) in [MODES[1], MODES[3]] {
        let (mut ratios, mut rates, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        for repetition in 1..=options.repeat {
            eprintln!("{name} under forged packets, {repetition} of {}", options.repeat);
            let network = Network::new().receivers(2).build();
            let plain = one(weir, &network, &file, words(mode))?;
            let group: SocketAddrV4 = Session::DEFAULT.0.parse().expect("a group and a port");
            let (heard, begun) = mpsc::channel();
            let forger = Stranger::start(network.receiver(1), group, move |air| forge(air, &heard));
            let flooded = one(weir, &network, &file, words(mode));
            let said = forger.stop();
            let begun: Instant = begun.recv().map_err(|_| "the forger heard nothing")?;
            rates.push(said as f64 / begun.elapsed().as_secs_f64());
            let (flooded, forged) = flooded?;
            refused.push(forged);
            ratios.push(flooded / plain.0);
        }
        let [ratio, rate, refused] = [ratios, rates, refused].map(Spread::of);
        println!("{name:<17}time {ratio} of the undisturbed, {rate} packets forged a second, {refused} refused");
        rows.push(json!({
            "mode": name,
            "time_to_undisturbed": ratio.json(),
            "forged_packets_per_sec": rate.json(),
            "refused_packets": refused.json(),
        }));
    }
    Ok(Value::Array(rows))
}

/// To the first receiver alone: seconds to its verified file, and how many packets it refused.
fn one(weir: &Path, network: &Network, file: &Path, words: Vec<String>) -> Result<(f64, f64), String> {
    let scratch = Scratch::new();
    let session = Session::new(weir, file, scratch.path()).words(["--receipts", "1"]).words(words);
    session.describe(network.sender());
    let receiver = session.recv(network.receiver(0), &scratch.folder("out")).start();
    weir_testkit::netns::pause(HEAD_START);
    let sender = session.send(network.sender()).start();
    let seconds = receiver.seconds_to_verified_file(&sender, RUN_LIMIT);
    let done = receiver.wait(RUN_LIMIT);
    let _ = sender.wait(RUN_LIMIT);
    match done.is_success() {
        true => Ok((seconds, done.last_event("end")["forged_packets"].as_f64().unwrap_or(0.0))),
        false => Err(done.told()),
    }
}

/// Sends packets that look like the session's until they are checked; tells when it begins.
fn forge(air: &mut Air, begins: &mpsc::Sender<Instant>) {
    let Some(heard) = air.hear() else { return };
    let mut packet = heard.bytes().to_vec();
    packet.resize(100, 0);
    // The test may be over.
    let _ = begins.send(Instant::now());
    // Under the sender's address, as what comes from another is not looked at.
    air.flood_as(heard.from(), &packet, FORGED_PER_SEC);
}

const FLOODED: weir_units::Bytes = weir_units::Bytes::new(24_000_000);
/// The claim is of 200 000; a flood is late now and then.
const FORGED_PER_SEC: u32 = 210_000;
const HEAD_START: Duration = Duration::from_millis(500);
const RUN_LIMIT: Duration = Duration::from_secs(300);
