//! Streams over a tree between network namespaces, on a bridge that snoops. Needs root; see `weir_testkit::netns::require_root`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_testkit::netns::{
    Host, Network, Process, Scratch, TreePlan, TreeStream, generated_file, require_root, same_content,
};

#[test]
fn four_receivers_that_lose_packets_get_every_byte_from_the_sender_and_from_an_agent() {
    if !require_root() {
        return;
    }
    for agents in [0, 1] {
        let scratch = Scratch::new();
        let input = scratch.join("in");
        generated_file(&input, BYTES, 1);
        let outs: Vec<PathBuf> = (0..4).map(|index| scratch.join(format!("out{index}"))).collect();
        let network = Network::new().receivers(agents + outs.len()).build();
        let program = Path::new(env!("CARGO_BIN_EXE_weir"));
        let plan = TreePlan { program, input: &input, outs, agents, send_words: Vec::new(), link: Some("loss=1%") };
        let stream = TreeStream::start(&network, &plan);
        let sent = stream.sender.wait(LIMIT);
        assert!(sent.is_success(), "{}", sent.told());
        let digest = sent.last_event("end")["blake3"].clone();
        for (receiver, out) in stream.receivers.iter().zip(&plan.outs) {
            let ended = receiver.wait(LIMIT);
            assert!(ended.is_success(), "{}", ended.told());
            assert_eq!(ended.last_event("end")["blake3"], digest);
            assert!(same_content(&input, out), "{} differs", out.display());
        }
        // What is sent more than once was lost: 1 % of the packets at each of four receivers.
        let repairing = stream.agents.first().map_or(sent, |agent| agent.wait(LIMIT));
        let packets = repairing.last_event("end")["sent_packets"].as_u64().unwrap_or(0);
        let repairs = packets - if agents == 0 { BYTES / PAYLOAD } else { 0 };
        assert!(repairs > 20, "{repairs} repairs of {packets} packets: nothing was lost");
    }
}

#[test]
fn a_stream_fits_the_mtu_of_a_tunnel() {
    if !require_root() {
        return;
    }
    let scratch = Scratch::new();
    let input = scratch.join("in");
    generated_file(&input, BYTES, 1);
    let network = Network::new().receivers(1).build();
    let words = ["link", "set", "dev", network.sender().interface(), "mtu", "1400"];
    assert!(network.sender().command("ip").args(words).start().wait(LIMIT).is_success());
    let program = Path::new(env!("CARGO_BIN_EXE_weir"));
    let outs = vec![scratch.join("out")];
    let plan = TreePlan { program, input: &input, outs, agents: 0, send_words: Vec::new(), link: None };
    let stream = TreeStream::start(&network, &plan);
    let (sent, ended) = (stream.sender.wait(LIMIT), stream.receivers[0].wait(LIMIT));
    assert!(sent.is_success() && ended.is_success(), "{}\n{}", sent.told(), ended.told());
    let address = sent.last_event("start")["stream"].as_str().unwrap_or_default().to_owned();
    assert!(address.contains("/1400?"), "{address}");
    assert!(same_content(&input, &plan.outs[0]));
}

#[test]
fn an_island_behind_a_router_without_multicast_gets_the_stream_once_through_its_agent() {
    if !require_root() {
        return;
    }
    let network = Network::new().receivers(1).island(3).build();
    let island = Island::start(&network, true);
    let agent = island.agent.as_ref().expect("there is one");
    agent.event("place", LIMIT, |place| place["what"] == "forwarding");
    island.assert_whole();
    // Over the router the stream came about once: the receivers behind it heard the agent.
    let came: Vec<u64> = network.receivers()[1..].iter().map(|host| network.traffic(host).sent_bytes).collect();
    assert!(came[0] > BYTES, "the agent sent {} bytes on", came[0]);
    let over_the_router = island.sender_bytes() as f64 / BYTES as f64;
    assert!(over_the_router < 2.5, "the sender sent the stream {over_the_router} times, once of it to the group");
}

#[test]
fn receivers_behind_a_router_without_multicast_get_the_stream_without_an_agent() {
    if !require_root() {
        return;
    }
    let network = Network::new().receivers(1).island(2).build();
    let island = Island::start(&network, false);
    for receiver in &island.receivers[1..] {
        receiver.event("place", LIMIT, |place| place["what"] == "cut_off");
    }
    island.assert_whole();
}

/// A stream to a receiver next to the sender and to two on an island, perhaps with an agent there.
struct Island {
    scratch: Scratch,
    sender: Process,
    agent: Option<Process>,
    receivers: Vec<Process>,
}

impl Island {
    fn start(network: &Network, has_agent: bool) -> Island {
        let scratch = Scratch::new();
        generated_file(&scratch.join("in"), BYTES, 1);
        let weir = |host: &Host, words: &[&str]| {
            let (before, last) = words.split_at(words.len() - 1);
            let common = ["--json", "--iface", host.interface()];
            host.command(env!("CARGO_BIN_EXE_weir")).args(before).args(common).args(last)
        };
        let words = ["send", "stream", "--to", "239.255.0.1:5004", "--receivers", "3", "--in"];
        let sender = weir(network.sender(), &words).arg(scratch.join("in")).start();
        let address = sender.event("start", LIMIT, |_| true)["stream"].as_str().unwrap_or_default().to_owned();
        let (first, others) = if has_agent { (1, 2..4) } else { (0, 1..3) };
        let agent = has_agent.then(|| weir(network.receiver(first), &["agent", &address]).start());
        agent.iter().for_each(|agent| _ = agent.event("place", LIMIT, |place| place["what"] == "member"));
        let receivers = std::iter::once(0).chain(others).enumerate();
        let receivers = receivers.map(|(index, host)| {
            weir(network.receiver(host), &["recv", &address, "--out"]).arg(scratch.join(format!("out{index}"))).start()
        });
        let receivers = receivers.collect();
        Island { scratch, sender, agent, receivers }
    }

    fn assert_whole(&self) {
        let sent = self.sender.wait(LIMIT);
        assert!(sent.is_success(), "{}", sent.told());
        for (index, receiver) in self.receivers.iter().enumerate() {
            let ended = receiver.wait(LIMIT);
            assert!(ended.is_success(), "{}", ended.told());
            let out = self.scratch.join(format!("out{index}"));
            assert!(same_content(&self.scratch.join("in"), &out), "{} differs", out.display());
        }
    }

    /// What the sender has sent, headers and acknowledgements of joining left out.
    fn sender_bytes(&self) -> u64 {
        self.sender.wait(LIMIT).last_event("end")["sent_packets"].as_u64().unwrap_or(0) * PAYLOAD
    }
}

const BYTES: u64 = 3_000_001;
/// Of a full packet there are at least this many bytes, as `--packet-size` is 1456.
const PAYLOAD: u64 = 1400;
const LIMIT: Duration = Duration::from_secs(40);
