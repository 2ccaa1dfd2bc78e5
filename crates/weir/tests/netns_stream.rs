//! Streams over a tree between network namespaces, on a bridge that snoops. Needs root; see `weir_testkit::netns::require_root`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_testkit::netns::{Network, Scratch, TreePlan, TreeStream, generated_file, require_root, same_content};

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

const BYTES: u64 = 3_000_001;
/// Of a full packet there are at least this many bytes, as `--packet-size` is 1456.
const PAYLOAD: u64 = 1400;
const LIMIT: Duration = Duration::from_secs(40);
