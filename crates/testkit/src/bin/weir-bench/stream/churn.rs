//! The hard case: a stream to 16 receivers below 4 agents, each of which loses packets at random; one receiver is stopped for
//! half a minute, and one agent is killed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use weir_testkit::netns::{
    Finished, Network, Process, Scratch, TreePlan, TreeStream, eventually, generated_file, pause,
};
use weir_units::Bytes;

use super::{mark, send_words};
use crate::Options;

/// Measures one stream.
pub(super) fn measure(options: &Options, weir: &Path) -> Value {
    let (bytes, link) = (options.stream.tree_size, options.stream.tree_link.as_str());
    eprintln!("a stream to {RECEIVERS} receivers below {AGENTS} agents, {link}");
    let scratch = Scratch::new();
    let input = scratch.join("input");
    generated_file(&input, bytes.count(), 1);
    let plan = TreePlan {
        program: weir,
        input: &input,
        // Digests are compared: as many copies would need as many times the memory.
        outs: vec![PathBuf::from("/dev/null"); RECEIVERS],
        agents: AGENTS,
        send_words: send_words(options),
        link: Some(link),
    };
    let network = Network::new().receivers(AGENTS + RECEIVERS).build();
    let stream = TreeStream::start(&network, &plan);
    disturb(&stream, bytes);
    let sender = ended(&stream.sender);
    let receivers: Vec<Option<Finished>> = stream.receivers.iter().map(ended).collect();
    report(&plan, bytes, sender.as_ref(), &receivers)
}

/// Stops a receiver for a while after a quarter of the stream, and kills an agent after half of it.
fn disturb(stream: &TreeStream, bytes: Bytes) {
    stream.sent(bytes.count() / 4, LIMIT);
    eprintln!("receiver {STOPPED} is stopped for {} s", STOP.as_secs());
    stream.receivers[STOPPED].suspend();
    pause(STOP);
    stream.receivers[STOPPED].resume();
    if eventually(LIMIT, || stream.sender.last_count("progress", "stream_bytes") >= bytes.count() / 2) {
        eprintln!("agent {KILLED} is killed");
        stream.agents[KILLED].kill();
    }
}

/// How a process ended; it is killed if it does not.
fn ended(process: &Process) -> Option<Finished> {
    let has_ended = eventually(LIMIT, || process.has_ended());
    let finished = if has_ended { process.wait(LIMIT) } else { process.kill() };
    has_ended.then_some(finished)
}

fn report(plan: &TreePlan<'_>, bytes: Bytes, sender: Option<&Finished>, receivers: &[Option<Finished>]) -> Value {
    let end = |of: Option<&Finished>| of.map_or(Value::Null, |of| of.last_event("end"));
    let sent = end(sender);
    println!("\n{bytes} to {RECEIVERS} receivers below {AGENTS} agents, {}", plan.link.unwrap_or("no losses"));
    println!(
        "{:<10}{:<8}{:>10}{:>14}  {:<16}{:<20}what was done to it",
        "receiver", "agent", "seconds", "bytes", "digest", "nodes above"
    );
    let mut rows = Vec::new();
    for (index, receiver) in receivers.iter().enumerate() {
        let agent = plan.agent_of(index).unwrap_or_default();
        let end = end(receiver.as_ref());
        let is_same = end["blake3"].is_string() && end["blake3"] == sent["blake3"];
        let fate = match () {
            () if index == STOPPED => "stopped",
            () if agent == KILLED => "its agent was killed",
            () => "",
        };
        let (seconds, got) = (end["t_s"].as_f64().unwrap_or(f64::NAN), end["stream_bytes"].as_u64().unwrap_or(0));
        let digest = if is_same { "the sender's ✓" } else { "another ✗" };
        let above = above(receiver.as_ref());
        println!("{index:<10}{agent:<8}{seconds:>10.1}{got:>14}  {digest:<16}{:<20}{fate}", above.join(", "));
        rows.push(json!({ "agent": agent, "same_digest": is_same, "fate": fate, "above": above, "end": end }));
    }
    let same = rows.iter().filter(|row| row["same_digest"] == true).count();
    println!("{same} of {RECEIVERS} receivers have the sender's bytes {}", mark(same == RECEIVERS));
    json!({
        "size_bytes": bytes.count(),
        "link": plan.link,
        "settings": plan.send_words,
        "same_digests": same,
        "holds": same == RECEIVERS,
        "sender_end": sent,
        "receivers": rows,
    })
}

/// What a receiver said of the nodes above it, in order.
fn above(receiver: Option<&Finished>) -> Vec<String> {
    let events = receiver.map_or_else(Vec::new, |receiver| receiver.events("peer"));
    let above = events.iter().filter(|event| event["is_above"] == true);
    above.map(|event| event["what"].as_str().unwrap_or_default().to_owned()).collect()
}

const AGENTS: usize = 4;
const RECEIVERS: usize = 16;
/// The agent that is killed, and a receiver below another.
const KILLED: usize = 0;
const STOPPED: usize = 5;
const STOP: Duration = Duration::from_secs(30);
/// For what must happen at some time.
const LIMIT: Duration = Duration::from_secs(900);
