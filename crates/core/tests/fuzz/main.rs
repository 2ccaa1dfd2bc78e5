//! Any events and packets at any time, for every party of every scheme of the registry: nothing panics or spins, and what a
//! party does is what its part in the session allows.
//!
//! The parties of a scheme run together: two, or in a tree a sender, an agent and a receiver. Part of what one sends reaches the
//! others as it was sent, so that all get into deep states; the rest of what they get is arbitrary. Half of the histories of
//! a tree are honest instead: packets are lost, repeated and out of order, but nobody forges them; these streams must
//! come to their end. The general rules are in `party.rs`; what holds for some schemes only is in `extra.rs`. A new scheme is
//! tested as soon as it is in the registry.

mod draw;
mod extra;
mod group;
mod party;
mod relations;
mod setup;

use std::collections::BTreeSet;
use std::time::Duration;

use weir_core::registry::{Parties, SCHEMES};
use weir_core::{Event, Header, Locator};
use weir_units::{Random, Time};

use draw::{Draw, OPERATION, Operation};
use group::Group;
use setup::Setup;

#[test]
fn any_history_leaves_every_party_within_its_rules() {
    bolero::check!().with_test_time(TEST_TIME).for_each(|input: &[u8]| run(input));
}

/// The history that the bytes say, to its end.
fn run(input: &[u8]) {
    let Some((setup, operations)) = input.split_at_checked(SETUP) else { return };
    let mut draw = Draw::new(setup);
    let scheme = SCHEMES[usize::from(draw.u8()) % SCHEMES.len()];
    let mut group = Group::new(&Setup::new(scheme, &mut draw));
    for operation in operations.chunks(OPERATION) {
        group.operate(&mut Draw::new(operation));
    }
    group.finish();
}

/// Chance found this: the sender of a tree was told that it had reached its child, which it had not contacted. The child then counted
/// as up, was never announced, and the sender waited for it.
#[test]
fn nobody_is_reached_who_was_not_contacted() {
    run(b"\x0c\x03\x8d\x3b\x6d\x04\x89\xc2\x96\x5f\x29\xea\x77\x97\x35\xd5\xf8\x07\xcc\x51\x1d\x7f\x15\x8e\xb8\x9a\xa6\x49\
          \x55\xaf\xec\xf5\xf6\x01\xe8\xda\x82\x95\x32\x22\x14\xce\x32\xa0\xe8\x14\x86\xb3\xcd\xe6\xb4\xfa\x10\x62\x06\xf7\x58");
}

/// Chance found this, too: a packet of a member that had not been announced to its node yet, with something else in it. No driver hands that on.
#[test]
fn nothing_comes_to_a_tree_from_who_is_not_there() {
    run(b"\x27\x6f\x8b\x8c\x70\x92\x4b\x36\xe8\xcd\xc1\xdf\xc1\x97\x2c\x71\x97\x1e\x64\x2d\xf6\x26\x63\xbe\x06\xa2\
          \x5a\xee\x1f\xd6\x73\x69\xdc\x2a\x0b\x58\xc3\x00\xfb\x40\xb8\x4d\xfa\x0e\xf5\x04\x7a\xb0\x9c\xbe\x9a\x12\
          \xb4\x27\xd7\x34\x29\x6f\x71\x61\x9d\x8b\xc6\x3f\x74\x8c\x8c\x44\x96\x70\xac\xc5\x6a\x92\x44\x80\xed\x4b\
          \x0b\x0a\xae\x36\xbc\xd9\x5d\xe8\x8e\x09\x30\xcd\xad\x43\x4e\xc1\xd5\x48\xdb\xdf\x52\x9c\x65\xc1\x89\xfe\
          \x13\x97\x52\xf1\x2d\x2c\x46\xaf\x16\x71\x44\xe1\x49\x97\x63\x0b\xb9\x1e\xf4\x34\x9c\x64\x8e\xe7\x26\x2d\
          \xa4\x87\x21\xf6\xf6\x4d\xd9\x26\x71\xb1\x8c\x63\xd3\x61\xfd\xbe\xdf\xc3\xfb\x06\x9d\x9b\x23\xa2\xcc\xd7\
          \x06\x5a\x61\x0f\xea\xee\xf2\x5e\xef\x1f\xe2\xce\x52\xd6\x33\x2d\x5f\x73\x5b\x36\x07\x69\x08\x31\xb6\xdc\
          \x1d\x60\xd0\x2a\x5b\xa8\x0f\x0b\x7e\x7c\xd3\x58\xce\x93\xb5\xc3\x16\x8a\xfa\x00\x3b\x6f\x2a\xfb\x94\x90\
          \xe1\x40\x25\x00\xd0\xb8\x79\x1c\xa4\x4d\x29\x5e\x29\xfa\x5d\x6c\xfa\x0e\xfc\x0d\x57\xf5\x03\x44\xa3");
}

/// The same operations, many more of them, from a seeded stream: deep states that short inputs do not reach.
#[test]
fn long_histories_leave_every_party_within_its_rules() {
    for scheme in SCHEMES {
        let (mut levels, mut delivered, mut concluded) = (BTreeSet::new(), 0, 0);
        for seed in 0..HISTORIES {
            let mut random = Random::new(seed, scheme.name);
            let mut group = Group::new(&Setup::new(scheme, &mut Draw::new(&random_bytes::<SETUP>(&mut random))));
            for _ in 0..OPERATIONS {
                let bytes = random_bytes::<OPERATION>(&mut random);
                if Operation::of(bytes[0]) != Operation::Finish {
                    group.operate(&mut Draw::new(&bytes));
                    levels.insert(group.level());
                }
            }
            delivered += group.delivered();
            concluded += u64::from(group.finish());
        }
        assert!(delivered > 10_000, "{}: {delivered} packets: its parties hardly got going", scheme.name);
        let is_tree = matches!(scheme.parties, Parties::Tree(_));
        assert!(!is_tree || concluded > HISTORIES / 4, "{}: {concluded} streams came to their end", scheme.name);
        assert!(!scheme.is_layered() || levels.len() > 6, "{}: levels {levels:?} only", scheme.name);
    }
}

/// Each party of a tree that builds itself is alone with what comes: nobody answers it as a node would.
#[test]
fn any_history_leaves_the_parties_of_a_tree_that_builds_itself_within_their_rules() {
    let mut contacts = 0;
    let trees = SCHEMES.iter().filter(|scheme| matches!(scheme.parties, Parties::Tree(_)));
    for (scheme, seed) in trees.flat_map(|scheme| (0..HISTORIES).map(move |seed| (scheme, seed))) {
        let mut random = Random::new(seed, "found");
        let setup = Setup::new(scheme, &mut Draw::new(&random_bytes::<SETUP>(&mut random))).that_is_found();
        for mut party in setup.parties().expect("the settings are accepted") {
            let mut now = Time::from_secs(1);
            party.handle(now, Event::Reachable { at: Locator([9; 18]) });
            party.handle(now, Event::Start);
            for _ in 0..OPERATIONS {
                let bytes = random_bytes::<OPERATION>(&mut random);
                let mut draw = Draw::new(&bytes);
                let operation = Operation::of(draw.u8());
                now += draw.span();
                party.catch_up(now, |_| {});
                let event = draw.event(operation).filter(|event| party.may_come(event));
                event.into_iter().for_each(|event| party.handle(now, event));
                let (from, packet) = draw.packet(now);
                let event = Event::Packet { from, packet: &packet };
                if party.may_come(&event) {
                    party.handle(now, event);
                }
            }
            contacts += party.contacts();
        }
    }
    assert!(contacts > 1_000, "{contacts} contacts: nobody looked for a node");
}

#[test]
fn every_kind_of_event_and_header_is_generated() {
    let mut random = Random::new(1, "kinds");
    let (mut events, mut headers) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..10_000 {
        let bytes = random_bytes::<OPERATION>(&mut random);
        let mut draw = Draw::new(&bytes);
        let operation = Operation::of(draw.u8());
        let (_, packet) = draw.packet(Time::ZERO);
        events.extend(draw.event(operation).as_ref().map(name_of_event));
        headers.insert(name_of_header(&packet.header));
    }
    assert_eq!(events.len(), 15, "{events:?}, and packets");
    assert_eq!(headers.len(), draw::HEADERS.len(), "{headers:?}");
}

/// A new kind of event does not compile here until it has a name, and fails the test until `Draw::event` makes it.
fn name_of_event(event: &Event<'_>) -> &'static str {
    match event {
        Event::Start => "start",
        Event::Reachable { .. } => "reachable",
        Event::Reached { .. } => "reached",
        Event::Packet { .. } => "packet",
        Event::Deadline => "deadline",
        Event::HostDropped { .. } => "host dropped",
        Event::Backlog(_) => "backlog",
        Event::Offer { .. } => "offer",
        Event::PeerUp(_) => "peer up",
        Event::PeerDown(_) => "peer down",
        Event::End => "end",
        Event::Room { .. } => "room",
        Event::Allot(_) => "allotment",
        Event::Priority { .. } => "priority",
        Event::FinishSession(_) => "finish session",
        Event::Finish => "finish",
    }
}

fn name_of_header(header: &Header) -> &'static str {
    match header {
        Header::Layered(_) => "layered",
        Header::Paced(_) => "paced",
        Header::Feedback(_) => "feedback",
        Header::Probe(_) => "probe",
        Header::TreeData(_) => "tree data",
        Header::TreeAck(_) => "tree acknowledgement",
        Header::TreeJoin(_) => "tree join",
        Header::Experimental(_) => "experimental",
    }
}

fn random_bytes<const N: usize>(random: &mut Random) -> [u8; N] {
    std::array::from_fn(|_| random.bits() as u8)
}

/// Bytes that choose a scheme, its session and its settings.
const SETUP: usize = 20;
/// Long histories of each scheme, and operations of each.
const HISTORIES: u64 = 40;
const OPERATIONS: usize = 2_000;
/// As long as a file of tests for each of three schemes would take with the default of a second.
const TEST_TIME: Duration = Duration::from_secs(3);
