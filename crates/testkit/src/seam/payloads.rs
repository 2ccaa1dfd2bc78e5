//! Payloads are taken, kept, sent again and released by number, and delivered with their numbers into the room that there is.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use weir_core::{Action, Event};

use super::script::{FIRST, PAYLOAD_SIZE, packet, say, send_kept, tag};
use super::{Account, Outcome, Party, Reads, Scenario, Script, Seen, Setup, ms};

pub(super) const SENT_AGAIN_AND_IN_ORDER: Scenario = Scenario {
    name: "payloads are kept, sent again, and delivered in order into the room that there is",
    setup: || setup_in_order(ROOM),
    check: check_in_order,
};

pub(super) const ROOM_IS_TOLD: Scenario = Scenario {
    name: "an endpoint hears of room as soon as its application has read",
    setup: || setup_in_order(1),
    check: check_room_is_told,
};

pub(super) const SUPPLY_WITHOUT_END: Scenario =
    Scenario { name: "a supply without end is offered once", setup: setup_endless, check: check_endless };

pub(super) const DELIVERED_AT_ONCE: Scenario =
    Scenario { name: "fresh payloads are delivered as they come", setup: setup_at_once, check: check_at_once };

/// How many payloads the application offers.
const PAYLOADS: u64 = 24;
/// For how many the receiving application has room.
const ROOM: u64 = 4;
/// How long it takes to read one.
const GAP: Duration = ms(20);

/// The sender takes and sends everything, sends again what it is asked for, and is done when the receiver says so. The receiver
/// acts as if the first transmission of each fifth packet had been lost.
fn setup_in_order(room: u64) -> Setup {
    let mut taken = 0;
    let sender = Script::default().on(move |event, out| match event {
        Event::Offer { packets } => {
            for number in taken..taken + packets {
                out.extend([Action::Take { number }, send_kept(FIRST, DATA, number)]);
            }
            taken += packets;
        }
        Event::Packet { packet, .. } => match tag(packet) {
            Some((AGAIN, number)) => out.push_back(send_kept(FIRST, DATA, number)),
            Some((DONE, below)) => out.extend([Action::Release { below }, Action::Complete]),
            _ => {}
        },
        _ => {}
    });
    let mut receiver = InOrder::default();
    let receiver = Script::default().on(move |event, out| receiver.on(event, out));
    let reads = Some(Reads { capacity: room, gap: GAP });
    let sender = Party { offers: Some(PAYLOADS), starts: ms(200), ..Party::new(sender).that_knows(&[1]) };
    let receiver = Party { reads, ..Party::new(receiver).that_knows(&[0]) };
    Setup { parties: vec![sender, receiver], sessions: vec![], lasts: ms(4000) }
}

/// Delivers in order, as far as there is room.
#[derive(Debug, Default)]
struct InOrder {
    room: u64,
    next: u64,
    /// Kept and not delivered.
    kept: BTreeSet<u64>,
    asked: BTreeSet<u64>,
}

impl InOrder {
    fn on(&mut self, event: &Event<'_>, out: &mut VecDeque<Action>) {
        match event {
            Event::Room { payloads } => self.room = *payloads,
            Event::Packet { packet, .. } => {
                if let Some((DATA, number)) = tag(packet) {
                    self.on_data(number, out);
                }
            }
            _ => {}
        }
        while self.room > 0 && self.kept.remove(&self.next) {
            out.push_back(Action::DeliverKept { number: self.next });
            self.delivered(out);
            out.push_back(Action::Release { below: self.next });
        }
    }

    fn on_data(&mut self, number: u64, out: &mut VecDeque<Action>) {
        if number.is_multiple_of(5) && self.asked.insert(number) {
            out.push_back(say(FIRST, AGAIN, number));
        } else if number == self.next && self.room > 0 {
            out.push_back(Action::Deliver { number: Some(number) });
            self.delivered(out);
        } else if number >= self.next && self.kept.insert(number) {
            out.push_back(Action::Keep { number });
        }
    }

    fn delivered(&mut self, out: &mut VecDeque<Action>) {
        (self.next, self.room) = (self.next + 1, self.room - 1);
        if self.next == PAYLOADS {
            out.extend([Action::Complete, say(FIRST, DONE, PAYLOADS)]);
        }
    }
}

fn check_in_order(outcome: &Outcome) {
    let [sender, receiver] = &outcome.parties[..] else { panic!("two parties") };
    // On sockets the receiver may answer what was offered before the application has ended.
    let of_application = sender.seen.iter().map(|(_, seen)| *seen).filter(|seen| !matches!(seen, Seen::Packet(..)));
    let told: Vec<Seen> = of_application.take(3).collect();
    assert_eq!(told, [Seen::Start, Seen::Offer(PAYLOADS), Seen::End], "the application offers, and ends");
    assert_all_in_order(receiver);
    assert!(
        receiver.given.iter().all(|given| given.place.is_none_or(|place| given.number == Some(place))),
        "as offered"
    );
    assert_eq!((sender.complete, receiver.complete), (1, 1));
    let rooms = receiver.seen.iter().filter_map(|(_, seen)| match seen {
        Seen::Room(payloads) => Some(*payloads),
        _ => None,
    });
    let rooms: Vec<u64> = rooms.collect();
    let told: Vec<Seen> = receiver.seen.iter().take(2).map(|(_, seen)| *seen).collect();
    assert_eq!(told, [Seen::Room(ROOM), Seen::Start], "an application tells its room right before the start");
    assert!(rooms.iter().all(|room| *room <= ROOM) && rooms.len() > 5, "and whenever there is more: {rooms:?}");
    // All but the first few wait for the reader.
    let span = span(receiver);
    assert!(span + outcome.slack >= GAP * (PAYLOADS - ROOM - 1) as u32, "{span:?}");
}

/// One payload after the other, and the first is read at once: if room were told late, each would take longer.
fn check_room_is_told(outcome: &Outcome) {
    let receiver = &outcome.parties[1];
    assert_all_in_order(receiver);
    let (span, gaps) = (span(receiver), GAP * (PAYLOADS - 2) as u32);
    assert!((gaps..gaps * 2).contains(&(span + outcome.slack)), "{span:?}");
}

fn assert_all_in_order(receiver: &Account) {
    let given: Vec<_> = receiver.given.iter().map(|given| given.number).collect();
    assert_eq!(given, (0..PAYLOADS).map(Some).collect::<Vec<_>>());
}

/// From the first payload to the last.
fn span(receiver: &Account) -> Duration {
    receiver.given[receiver.given.len() - 1].at.saturating_sub(receiver.given[0].at)
}

/// The sender takes a payload now and then.
fn setup_endless() -> Setup {
    let sender = (0..PAYLOADS).fold(Script::default(), |script, number| {
        let after = ms(100 + 10 * number);
        script.at(after, Action::Take { number }).at(after, send_kept(FIRST, DATA, number))
    });
    let sender = Party { offers: Some(u64::MAX), ..Party::new(sender).that_knows(&[1]) };
    Setup { parties: vec![sender, Party::new(Script::default()).that_knows(&[0])], sessions: vec![], lasts: ms(1000) }
}

fn check_endless(outcome: &Outcome) {
    let told: Vec<Seen> = outcome.parties[0].seen.iter().map(|(_, seen)| *seen).collect();
    assert_eq!(told, [Seen::Start, Seen::Offer(u64::MAX)]);
    assert_eq!(outcome.parties[1].seen.len() as u64, 1 + PAYLOADS, "what it took it sent");
}

/// The sender sends each payload once, without keeping it; the receiver hands it over with its number.
fn setup_at_once() -> Setup {
    let sender = (0..PAYLOADS).fold(Script::default(), |script, number| {
        script.at(ms(200 + 10 * number), Action::send_fresh(FIRST, packet(DATA, number, PAYLOAD_SIZE)))
    });
    let receiver = Script::default().on(|event, out| {
        if let Event::Packet { packet, .. } = event
            && let Some((DATA, number)) = tag(packet)
        {
            let number = number.is_multiple_of(2).then_some(number);
            out.push_back(Action::Deliver { number });
        }
    });
    let sender = Party { offers: Some(PAYLOADS), ..Party::new(sender).that_knows(&[1]) };
    Setup { parties: vec![sender, Party::new(receiver).that_knows(&[0])], sessions: vec![], lasts: ms(1500) }
}

fn check_at_once(outcome: &Outcome) {
    let given = &outcome.parties[1].given;
    let expected: Vec<_> = (0..PAYLOADS).map(|number| number.is_multiple_of(2).then_some(number)).collect();
    assert_eq!(given.iter().map(|given| given.number).collect::<Vec<_>>(), expected, "odd ones have no number");
    assert!(given.iter().zip(0..).all(|(given, place)| given.place.is_none_or(|of| of == place)), "{given:?}");
    assert!(!outcome.parties[1].seen.iter().any(|(_, seen)| matches!(seen, Seen::Room(_))), "nobody asked for room");
}

const DATA: u8 = 1;
const AGAIN: u8 = 2;
const DONE: u8 = 3;
