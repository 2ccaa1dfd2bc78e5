//! Peers keep their numbers for the whole session, and a party can contact others whose locators it was told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use weir_core::{Action, Destination, Event, Locator, Origin, PeerId};

use super::script::{FIRST, say, tag};
use super::{Account, Outcome, Party, Scenario, Script, Seen, Setup, ms};

pub(super) const PEERS_LAST: Scenario = Scenario { name: "a peer's number is for the whole session", setup, check };

/// The parties that call the first one, by their tags. The first of them is configured there.
const CALLERS: [u8; 3] = [1, 2, 3];
/// The caller that stops early.
const LEAVES: u8 = 2;

/// Callers call three times, and the host answers each at once; a second later it speaks to all by number.
fn setup() -> Setup {
    let host = (0..3).fold(Script::default(), |host, peer| {
        host.at(ms(2000), say(Destination::Peer(PeerId(peer)), FAREWELL, u64::from(peer)))
    });
    let host = host.on(|event, out| {
        if let Event::Packet { from: Origin::Peer(peer), packet } = event
            && let Some((caller, number)) = tag(packet)
        {
            out.push_back(say(Destination::Peer(*peer), caller, number));
        }
    });
    let callers = CALLERS.map(|caller| {
        let calls = (0..3).fold(Script::default(), |script, number| {
            script.at(ms(400 * number + 50 * u64::from(caller)), say(FIRST, caller, number))
        });
        let stops = (caller == LEAVES).then_some(ms(3000));
        Party { stops, ..Party::new(calls).that_knows(&[0]) }
    });
    let host = Party { accepts_peers: true, ..Party::new(host).that_knows(&[1]) };
    Setup { parties: std::iter::once(host).chain(callers).collect(), sessions: vec![], lasts: ms(5000) }
}

fn check(outcome: &Outcome) {
    let host = &outcome.parties[0];
    let numbers = numbers_of_callers(host);
    assert_eq!(numbers.len(), CALLERS.len(), "the host heard of all: {:?}", host.seen);
    assert_eq!(numbers[&CALLERS[0]], PeerId(0), "a peer from the configuration comes first");
    for caller in CALLERS {
        let answers = [0, 1, 2].map(|number| (caller, number));
        let farewell = (FAREWELL, u64::from(numbers[&caller].0));
        let account = &outcome.parties[usize::from(caller)];
        let heard: Vec<_> = account.seen.iter().filter_map(|(_, seen)| seen.tagged()).collect();
        let expected =
            answers.into_iter().chain([farewell]).map(|(tag, number)| (Origin::Peer(PeerId(0)), tag, number));
        assert_eq!(heard, expected.collect::<Vec<_>>(), "caller {caller} hears what is meant for it");
    }
    let left = numbers[&LEAVES];
    let downs = host.seen.iter().filter(|(_, seen)| matches!(seen, Seen::PeerDown(_)));
    assert_eq!(downs.map(|(_, seen)| *seen).collect::<Vec<_>>(), [Seen::PeerDown(left)], "one has said goodbye");
    assert!(matches!(host.seen.last(), Some((_, Seen::PeerDown(_)))), "and nothing came from it after that");
}

/// By caller: the number that the host knows it by, which must be the same all the time, and known before its first packet.
fn numbers_of_callers(host: &Account) -> BTreeMap<u8, PeerId> {
    let mut known = vec![PeerId(0)];
    let mut numbers = BTreeMap::new();
    for (_, seen) in &host.seen {
        if let Seen::PeerUp(peer) = seen {
            assert!(!known.contains(peer), "{peer:?} appears once");
            known.push(*peer);
        }
        if let Some((from, caller, _)) = seen.tagged() {
            let Origin::Peer(peer) = from else { panic!("the host accepts peers: {seen:?}") };
            assert!(known.contains(&peer), "{peer:?} is known before its first packet");
            assert_eq!(*numbers.entry(caller).or_insert(peer), peer, "caller {caller} keeps its number");
        }
    }
    numbers
}

const FAREWELL: u8 = 100;

pub(super) const CONTACTED: Scenario = Scenario {
    name: "a party can be contacted where it is reached, and left again",
    setup: setup_contact,
    check: check_contact,
};

/// The host tells where it is reached, by a way that is none of the network's. Twice the caller contacts it, speaks, is answered,
/// and leaves.
fn setup_contact() -> Setup {
    let told: Arc<Mutex<Option<Locator>>> = Arc::default();
    let tells = Arc::clone(&told);
    let host = Script::default().on(move |event, out| match *event {
        Event::Reachable { at } => *tells.lock().unwrap_or_else(PoisonError::into_inner) = Some(at),
        Event::Packet { from: Origin::Peer(peer), packet } => {
            out.extend(tag(packet).map(|(_, number)| say(Destination::Peer(peer), ANSWER, number)));
        }
        _ => {}
    });
    let caller = [300, 1000].into_iter().fold(Script::default(), |caller, at| caller.at(ms(at), Action::Complete));
    let caller = caller.on(move |event, out| match *event {
        Event::Deadline => {
            let at = told.lock().unwrap_or_else(PoisonError::into_inner);
            out.extend(at.map(|at| Action::Contact { at }));
        }
        Event::Reached { peer, .. } => out.push_back(say(Destination::Peer(peer), CALL, 7)),
        Event::Packet { from: Origin::Peer(peer), .. } => out.push_back(Action::Part { peer }),
        _ => {}
    });
    let host = Party { accepts_peers: true, ..Party::new(host) };
    Setup { parties: vec![host, Party::new(caller)], sessions: vec![], lasts: ms(3000) }
}

fn check_contact(outcome: &Outcome) {
    let seen = |party: usize| outcome.parties[party].seen.iter().map(|(_, seen)| *seen);
    let Some(Seen::Reachable(at)) = seen(0).next() else { panic!("the host is told first where it is reached") };
    let reached: Vec<PeerId> = seen(1)
        .filter_map(|seen| match seen {
            Seen::Reached(place, peer) => Some((place, peer)),
            _ => None,
        })
        .map(|(place, peer)| {
            assert_eq!(place, at, "it is reached where it said");
            peer
        })
        .collect();
    assert_eq!(reached, [PeerId(0), PeerId(1)], "each contact has a number of its own");
    let of_host: Vec<Seen> = seen(0).filter(|seen| !matches!(seen, Seen::Reachable(_) | Seen::Start)).collect();
    for (peer, events) in [PeerId(0), PeerId(1)].into_iter().zip(of_host.chunks(3)) {
        let [Seen::PeerUp(up), heard, Seen::PeerDown(down)] = events else {
            panic!("it comes, calls and goes: {of_host:?}")
        };
        assert_eq!((*up, heard.tagged(), *down), (peer, Some((Origin::Peer(peer), CALL, 7)), peer));
    }
    assert_eq!(of_host.len(), 6);
    let answers: Vec<_> = seen(1).filter_map(|seen| seen.tagged()).collect();
    assert_eq!(answers, reached.iter().map(|peer| (Origin::Peer(*peer), ANSWER, 7)).collect::<Vec<_>>());
    assert!(
        !seen(1).any(|seen| matches!(seen, Seen::PeerDown(_))),
        "whoever leaves is not told that the other is gone"
    );
}

const CALL: u8 = 101;
const ANSWER: u8 = 102;
