//! One transfer by uftp, with the options that served it best.

use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use weir_testkit::netns::{Network, Process, in_path, pause};
use weir_units::Rate;

use crate::machine::CpuClock;
use crate::speed::{Job, Run};

/// Sends the job's file to every receiver of the network: at nine tenths of the rate of their links, or as fast as it goes where
/// there are none.
pub(crate) fn transfer(network: &Network, job: &Job<'_>, link: Option<Rate>) -> Result<Run, String> {
    if !in_path("uftp") || !in_path("uftpd") {
        return Err("uftp is missing: apt-get install uftp, or leave it out with --only weir-1,weir-16".into());
    }
    let scratch = job.scratch;
    let receivers: Vec<Process> = network
        .receivers()
        .iter()
        .zip(job.folders)
        .map(|(host, folder)| {
            let daemon = host.command("uftpd").args([
                "-d",
                "-q",
                "-I",
                host.interface(),
                "-t",
                "-B",
                "4194304",
                "-c",
                "8388608",
                "-x",
                "2",
            ]);
            daemon.arg("-D").arg(folder).folder(scratch).start()
        })
        .collect();
    pause(HEAD_START);
    let before = CpuClock::now();
    let started = SystemTime::now();
    let rate = link.map_or("-1".to_owned(), |link| (link.bps() / 1000 * 9 / 10).to_string());
    let sender = network.sender().command("uftp").args(["-I", network.sender().interface(), "-B", "4194304", "-T"]);
    let sender = sender.args(["-M", "230.4.4.1", "-P", "230.5.5.7", "-R", &rate]).arg(job.file).folder(scratch).start();
    let sent = sender.wait(job.limit);
    let machine = CpuClock::now().since(before);
    let seconds = job.arrivals().map(|path| {
        let at = path
            .metadata()
            .map_err(|error| format!("uftp did not deliver {}: {error}\n{}", path.display(), sent.told()))?;
        // The rename to the final name sets this time.
        let changed =
            UNIX_EPOCH + Duration::new(at.ctime().unsigned_abs(), u32::try_from(at.ctime_nsec()).unwrap_or(0));
        Ok(changed.duration_since(started).unwrap_or_default().as_secs_f64())
    });
    let seconds = seconds.collect::<Result<Vec<f64>, String>>()?;
    // "Host: 0x0A4D000A  Status: Completed   time:   4.066 seconds": without the announcement and the registration.
    let completed = sent.out.iter().chain(&sent.err).filter(|line| line.text.contains("Status: Completed"));
    let own_seconds = completed.filter_map(|line| after_time(&line.text)).reduce(f64::max);
    let receivers = receivers.iter().map(|process| process.terminate().usage).collect();
    Ok(Run { seconds, own_seconds, sender: sent.usage, receivers, machine, details: Value::Null })
}

fn after_time(line: &str) -> Option<f64> {
    line.split("time:").nth(1)?.split_whitespace().next()?.parse().ok()
}

/// How long receivers run before the sender starts.
const HEAD_START: Duration = Duration::from_secs(1);
