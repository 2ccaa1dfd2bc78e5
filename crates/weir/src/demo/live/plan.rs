//! What the demonstration of layered video consists of: the clip, the folders, and the command line of each process.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use weir_units::Rate;

use super::super::plan::{GROUP, LOOPBACK, free_port, fresh_folder, link_traits};
use super::super::process::Party;
use super::ffmpeg;
use crate::args;
use crate::exit::{Exit, Failure};
use crate::report::round_rate;

/// Everything that is known before the first process starts.
#[derive(Debug)]
pub(super) struct Plan {
    program: PathBuf,
    /// The clip that is sent.
    pub(super) clip: PathBuf,
    /// The receivers' links.
    pub(super) links: Vec<Rate>,
    link_traits: String,
    /// What the links have in common, for people.
    pub(super) links_in_words: String,
    sender_args: Vec<OsString>,
    /// Name of the scheme.
    pub(super) scheme: String,
    /// The longest pause of the base layer that is borne.
    pub(super) pause: Duration,
    /// Where the report goes.
    pub(super) out: PathBuf,
    run: PathBuf,
}

impl Plan {
    /// Makes the folders and the clip.
    pub(super) fn prepare(args: &args::DemoLive, program: &Path) -> Result<Plan, Failure> {
        let run = fresh_folder(&args.out)?;
        let clip = args.file.clone().unwrap_or_else(|| args.out.join("clip.ivf"));
        match &args.file {
            Some(file) if file.is_file() => {}
            Some(file) => {
                let message = format!("{} is not a file; give a clip with temporal layers, or none", file.display());
                return Err(Failure::new(Exit::Files, message));
            }
            None => ffmpeg::generate(&clip, args.length)?,
        }
        let (link_traits, links_in_words) = link_traits(args.delay, args.buffer, args.loss);
        Ok(Plan {
            program: program.to_owned(),
            links: args.links.clone(),
            link_traits,
            links_in_words,
            sender_args: sender_args(args, &clip, &run)?,
            scheme: args.cc.name.to_owned(),
            pause: args.pause,
            out: args.out.clone(),
            clip,
            run,
        })
    }

    /// The clip's name.
    pub(super) fn name(&self) -> String {
        self.clip.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// What is about to happen.
    pub(super) fn introduction(&self) -> String {
        let links: Vec<String> = self.links.iter().map(|link| round_rate(*link)).collect();
        format!(
            "{} to {} receivers on this machine, over multicast, behind links of {}; it takes as long as the clip.",
            self.name(),
            links.len(),
            links.join(", ")
        )
    }

    /// The sender.
    pub(super) fn sender(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.sender_args);
        command
    }

    /// The receiver on link `i`.
    pub(super) fn receiver(&self, i: usize) -> Command {
        let link = format!("rate={},{}", self.links[i].bps(), self.link_traits);
        let mut command = Command::new(&self.program);
        command.arg("recv").arg(self.run.join("weir.sdp")).arg("--out").arg(self.received(i));
        command.args(["--iface", LOOPBACK, "--json", "--link", &link, "--idle-timeout", IDLE]);
        command
    }

    /// Where the receiver on link `i` puts its pictures.
    pub(super) fn received(&self, i: usize) -> PathBuf {
        self.trace(Party::Receiver(i)).with_extension(self.clip.extension().unwrap_or_default())
    }

    /// Where the events (`.jsonl`) and the messages (`.log`) of a process go, without the ending.
    pub(super) fn trace(&self, party: Party) -> PathBuf {
        match party {
            Party::Sender => self.run.join("sender"),
            Party::Receiver(i) => self.run.join(format!("receiver-{}", i + 1)),
        }
    }

    /// A process in words.
    pub(super) fn party(&self, party: Party) -> String {
        match party {
            Party::Sender => "the sender".to_owned(),
            Party::Receiver(i) => format!("the receiver on the link of {}", round_rate(self.links[i])),
        }
    }
}

fn sender_args(demo: &args::DemoLive, clip: &Path, run: &Path) -> Result<Vec<OsString>, Failure> {
    let port = free_port().map_err(Failure::of(Exit::Network, "no UDP port is free on this machine"))?;
    let mut args: Vec<OsString> = ["send", "media", "--json"].map(OsString::from).into();
    let mut option = |name: &str, value: OsString| args.extend([OsString::from(name), value]);
    option("--in", clip.into());
    option("--to", format!("{GROUP}:{port}").into());
    option("--iface", LOOPBACK.into());
    let made = [Rate::from_kbps(900), Rate::from_kbps(1_900), Rate::from_kbps(3_800)];
    let rates = if demo.file.is_none() && demo.layer_rates.is_empty() { &made[..] } else { &demo.layer_rates };
    if !rates.is_empty() {
        let rates: Vec<String> = rates.iter().map(|rate| rate.bps().to_string()).collect();
        option("--layer-rates", rates.join(",").into());
    }
    option("--cc", demo.cc.name.into());
    for setting in &demo.cc_set {
        option("--cc-set", format!("{}={}", setting.key, setting.value).into());
    }
    // The port is free on this machine, so as a session's number it is not in use here either.
    option("--tsi", port.to_string().into());
    option("--key", run.join("sender.key").into());
    option("--session", run.join("weir.sdp").into());
    option("--name", "weir demo-live".into());
    Ok(args)
}

/// A receiver that hears nothing for so long gives up.
const IDLE: &str = "20s";
