//! Two packets that are sent as a pair reach the first link as one, and each packet has an arrival time of its own.

use std::time::Duration;

use weir_core::{Action, Payload};
use weir_link::{Buffer, LinkConfig};
use weir_units::Bytes;

use super::script::{FIRST, HEADER_SIZE, PAYLOAD_SIZE, packet};
use super::{Outcome, Party, Scenario, Script, Setup, ms};

pub(super) const PAIRS_ARE_SPREAD: Scenario =
    Scenario { name: "a pair arrives spread by its slowest link, each packet at its own time", setup, check };

const PAIRS: u64 = 20;
/// What a packet takes on the link.
const APART: Duration = ms(4);

fn setup() -> Setup {
    let sends = |number: u64, with_next| {
        let packet = packet(1, number, PAYLOAD_SIZE);
        Action::Send { to: FIRST, packet, payload: Payload::Fresh, with_next }
    };
    let sender = (0..PAIRS).fold(Script::default(), |script, pair| {
        let after = ms(200 + 50 * pair);
        script.at(after, sends(2 * pair, true)).at(after, sends(2 * pair + 1, false))
    });
    let rate = Some(Bytes::new(HEADER_SIZE + PAYLOAD_SIZE).per(APART));
    let link = LinkConfig { rate, buffer: Buffer::Packets(100), ..LinkConfig::default() };
    let receiver = Party { link, ..Party::new(Script::default()).that_knows(&[0]) };
    Setup { parties: vec![Party::new(sender).that_knows(&[1]), receiver], sessions: vec![], lasts: ms(2500) }
}

fn check(outcome: &Outcome) {
    let seen = &outcome.parties[1].seen;
    let packets: Vec<_> = seen.iter().filter_map(|(at, seen)| Some((*at, seen.tagged()?.2))).collect();
    assert_eq!(packets.iter().map(|(_, number)| *number).collect::<Vec<_>>(), (0..2 * PAIRS).collect::<Vec<_>>());
    for pair in packets.chunks(2) {
        let apart = pair[1].0.saturating_sub(pair[0].0);
        assert!(apart.abs_diff(APART) <= outcome.slack && !apart.is_zero(), "{apart:?} at {:?}", pair[0].0);
    }
}
