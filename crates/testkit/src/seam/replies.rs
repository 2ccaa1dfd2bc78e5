//! An endpoint that is not accepted as a peer is of unverified origin: it can be replied to at once, and is not remembered.

use weir_core::{Destination, Event, Origin, PeerId};

use super::script::{FIRST, packet, say, tag};
use super::{Outcome, Party, Scenario, Script, Seen, Setup, ms};

pub(super) const STRANGERS_GET_REPLIES: Scenario =
    Scenario { name: "strangers get replies and are not remembered", setup, check };

/// Two ask by turns; the host replies to the packet that it has in hand.
fn setup() -> Setup {
    let host = Script::default().on(|event, out| {
        if let Event::Packet { from: Origin::Unverified, packet } = event
            && let Some((asker, number)) = tag(packet)
        {
            out.push_back(say(Destination::Reply, asker, number + 1000));
        }
    });
    let askers = [1, 2].map(|asker| {
        let asks = (0..5).fold(Script::default(), |script, number| {
            let question = weir_core::Action::send(FIRST, packet(asker, number, 0));
            script.at(ms(200 + 100 * number + 10 * u64::from(asker)), question)
        });
        Party::new(asks).that_knows(&[0])
    });
    Setup { parties: std::iter::once(Party::new(host)).chain(askers).collect(), sessions: vec![], lasts: ms(2000) }
}

fn check(outcome: &Outcome) {
    let [host, askers @ ..] = &outcome.parties[..] else { panic!("three parties") };
    let asked: Vec<_> = host.seen.iter().filter_map(|(_, seen)| seen.tagged()).collect();
    let expected = (0..5).flat_map(|number| [1, 2].map(|asker| (Origin::Unverified, asker, number)));
    assert_eq!(asked, expected.collect::<Vec<_>>());
    assert!(!host.seen.iter().any(|(_, seen)| matches!(seen, Seen::PeerUp(_) | Seen::PeerDown(_))), "{:?}", host.seen);
    for (account, asker) in askers.iter().zip(1..) {
        let heard: Vec<_> = account.seen.iter().filter_map(|(_, seen)| seen.tagged()).collect();
        let expected = [1000, 1001, 1002, 1003, 1004].map(|number| (Origin::Peer(PeerId(0)), asker, number));
        assert_eq!(heard, expected, "asker {asker} gets the replies to its own questions");
    }
}
