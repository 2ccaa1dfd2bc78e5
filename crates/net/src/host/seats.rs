//! The endpoints of a tenant, each with what the host keeps for it: one for the whole run, or one for each peer that has come.

use std::collections::{BTreeMap, BTreeSet};

use weir_core::{Endpoint, Event, PeerId};
use weir_units::Time;

use super::kept::Kept;
use crate::error::{Impossible, Result};

/// An endpoint and its surroundings.
#[derive(Debug)]
pub(super) struct Seat<L> {
    pub(super) endpoint: Box<dyn Endpoint>,
    /// The only peer that it serves, which it calls 0; `None` for an endpoint that knows all peers by their own numbers.
    pub(super) peer: Option<PeerId>,
    pub(super) told: Told,
    pub(super) kept: Kept<L>,
    /// When its deadline is, as it is noted among those of all; `None` also where there is only one endpoint.
    due: Option<Time>,
}

/// What an endpoint knows of the application.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Told {
    /// Payloads that it has not taken; `u64::MAX` for a supply without end.
    offered: u64,
    is_over: bool,
    /// Less what it has delivered since it was told.
    room: Option<u64>,
    /// It has taken payloads since somebody looked whether there are more for it.
    has_taken: bool,
}

/// See the module's documentation. An endpoint has a place, which another one takes when it has gone.
#[derive(Debug)]
pub(super) struct Seats<L> {
    is_per_peer: bool,
    all: Vec<Option<Box<Seat<L>>>>,
    free: Vec<usize>,
    /// Of endpoints for one peer each: their places, and their deadlines.
    places: BTreeMap<PeerId, usize>,
    dues: BTreeSet<(Time, usize)>,
    /// Places whose endpoints have taken payloads, and may be offered more.
    takers: Vec<usize>,
}

impl Told {
    /// The endpoint has taken a payload.
    pub(super) fn note_taken(&mut self) {
        self.has_taken = true;
        if self.offered != u64::MAX {
            self.offered = self.offered.saturating_sub(1);
        }
    }

    /// The endpoint delivers a payload, which takes a place of the room that it knows of.
    pub(super) fn note_delivered(&mut self) -> Result<()> {
        if let Some(room) = &mut self.room {
            *room = room.checked_sub(1).ok_or(Impossible::NoRoom)?;
        }
        Ok(())
    }

    /// The next thing that it does not know yet: of payloads that wait, of their end, and of the room for received ones.
    pub(super) fn news(&self, waiting: Option<u64>, is_over: bool, room: Option<u64>) -> Option<Event<'static>> {
        if let Some(waiting) = waiting {
            let packets = waiting.saturating_sub(self.offered);
            if packets > 0 {
                return Some(Event::Offer { packets });
            }
            if is_over && !self.is_over {
                return Some(Event::End);
            }
        }
        room.filter(|room| self.room != Some(*room)).map(|payloads| Event::Room { payloads })
    }

    /// It is told.
    pub(super) fn note_told(&mut self, event: &Event<'_>) {
        match event {
            Event::Offer { packets } => self.offered += packets,
            Event::Room { payloads } => self.room = Some(*payloads),
            Event::End => self.is_over = true,
            _ => {}
        }
    }
}

impl<L> Seats<L> {
    /// One endpoint for the whole run, or one for each peer.
    pub(super) fn new(endpoint: Option<Box<dyn Endpoint>>) -> Seats<L> {
        let mut seats = Seats {
            is_per_peer: endpoint.is_none(),
            all: Vec::new(),
            free: Vec::new(),
            places: BTreeMap::new(),
            dues: BTreeSet::new(),
            takers: Vec::new(),
        };
        if let Some(endpoint) = endpoint {
            seats.add(endpoint, None);
        }
        seats
    }

    /// Whether there is an endpoint for each peer, rather than one for all.
    pub(super) fn is_per_peer(&self) -> bool {
        self.is_per_peer
    }

    /// The place of the endpoint for whom this peer, or a channel if none, is.
    #[inline]
    pub(super) fn place_of(&self, peer: Option<PeerId>) -> Option<usize> {
        if self.is_per_peer { self.places.get(&peer?).copied() } else { Some(0) }
    }

    /// The places that are taken.
    pub(super) fn places(&self) -> Vec<usize> {
        if self.is_per_peer { self.places.values().copied().collect() } else { vec![0] }
    }

    /// Adds an endpoint for a peer; gives its place.
    pub(super) fn add_for(&mut self, peer: PeerId, endpoint: Box<dyn Endpoint>) -> usize {
        let place = self.add(endpoint, Some(peer));
        self.places.insert(peer, place);
        place
    }

    fn add(&mut self, endpoint: Box<dyn Endpoint>, peer: Option<PeerId>) -> usize {
        let seat = Seat { endpoint, peer, told: Told::default(), kept: Kept::new(), due: None };
        let place = self.free.pop().unwrap_or_else(|| {
            self.all.push(None);
            self.all.len() - 1
        });
        self.all[place] = Some(Box::new(seat));
        place
    }

    /// Another endpoint for the whole run takes the place of the one that is there.
    pub(super) fn renew(&mut self, endpoint: Box<dyn Endpoint>) {
        self.all.clear();
        self.add(endpoint, None);
    }

    /// The endpoint of this peer goes, with all that was kept for it.
    pub(super) fn remove(&mut self, peer: PeerId) {
        let Some(place) = self.places.remove(&peer) else { return };
        if let Some(due) = self.all[place].take().and_then(|seat| seat.due) {
            self.dues.remove(&(due, place));
        }
        self.takers.retain(|taker| *taker != place);
        self.free.push(place);
    }

    /// Takes an endpoint off its place, to tell it something. It is given back with [`Seats::put_back`].
    #[inline]
    pub(super) fn take(&mut self, place: usize) -> Option<Box<Seat<L>>> {
        self.all.get_mut(place)?.take()
    }

    /// Gives an endpoint back that was told something, and may have another deadline.
    #[inline]
    pub(super) fn put_back(&mut self, place: usize, mut seat: Box<Seat<L>>) {
        if self.is_per_peer {
            let due = seat.endpoint.deadline();
            if due != seat.due {
                if let Some(before) = std::mem::replace(&mut seat.due, due) {
                    self.dues.remove(&(before, place));
                }
                self.dues.extend(due.map(|due| (due, place)));
            }
            if std::mem::take(&mut seat.told.has_taken) && !self.takers.contains(&place) {
                self.takers.push(place);
            }
        }
        self.all[place] = Some(seat);
    }

    /// The endpoint at a place is told this of the application.
    pub(super) fn note_told(&mut self, place: usize, event: &Event<'_>) {
        if let Some(Some(seat)) = self.all.get_mut(place) {
            seat.told.note_told(event);
        }
    }

    /// An endpoint on its place.
    pub(super) fn get(&self, place: usize) -> Option<&Seat<L>> {
        self.all.get(place)?.as_deref()
    }

    /// The first of all deadlines, and the place where it is.
    #[inline]
    pub(super) fn first_due(&self) -> Option<(Time, usize)> {
        if self.is_per_peer { self.dues.first().copied() } else { Some((self.get(0)?.endpoint.deadline()?, 0)) }
    }

    /// The places whose endpoints have taken payloads since [`Seats::forget_takers`].
    pub(super) fn takers(&self) -> &[usize] {
        &self.takers
    }

    /// It was looked whether there are more payloads for those who have taken some.
    pub(super) fn forget_takers(&mut self) {
        self.takers.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::Action;

    /// Has the deadline that it is made with.
    #[derive(Debug)]
    struct Clockwork(Option<Time>);

    impl Endpoint for Clockwork {
        fn handle(&mut self, _now: Time, _event: Event<'_>) {}

        fn poll(&mut self, _now: Time) -> Option<Action> {
            None
        }

        fn deadline(&self) -> Option<Time> {
            self.0
        }
    }

    fn add(seats: &mut Seats<()>, peer: u32, due: Option<u64>) -> usize {
        let place = seats.add_for(PeerId(peer), Box::new(Clockwork(due.map(Time::from_millis))));
        let seat = seats.take(place).expect("it was added");
        seats.put_back(place, seat);
        place
    }

    #[test]
    fn the_first_deadline_of_all_endpoints_counts_and_goes_with_its_endpoint() {
        let mut seats = Seats::new(None);
        let places = [(3, Some(30)), (4, None), (5, Some(10))].map(|(peer, due)| add(&mut seats, peer, due));
        assert_eq!(seats.first_due(), Some((Time::from_millis(10), places[2])));
        seats.remove(PeerId(5));
        assert_eq!(seats.first_due(), Some((Time::from_millis(30), places[0])));
        assert_eq!((seats.place_of(Some(PeerId(5))), seats.place_of(Some(PeerId(4)))), (None, Some(places[1])));
        assert_eq!(add(&mut seats, 6, Some(1)), places[2], "its place is free again");
        assert_eq!(seats.first_due(), Some((Time::from_millis(1), places[2])));
    }

    #[test]
    fn one_endpoint_for_the_whole_run_is_there_for_all_peers_and_channels() {
        let seats: Seats<()> = Seats::new(Some(Box::new(Clockwork(Some(Time::from_millis(7))))));
        assert_eq!((seats.place_of(None), seats.place_of(Some(PeerId(9)))), (Some(0), Some(0)));
        assert_eq!((seats.first_due(), seats.is_per_peer()), (Some((Time::from_millis(7), 0)), false));
    }

    #[test]
    fn an_endpoint_is_told_of_payloads_then_of_their_end_then_of_room_and_of_each_once() {
        let mut told = Told::default();
        let mut heard = Vec::new();
        while let Some(event) = told.news(Some(3), true, Some(8)) {
            told.note_told(&event);
            heard.push(event);
        }
        assert_eq!(heard, [Event::Offer { packets: 3 }, Event::End, Event::Room { payloads: 8 }]);
        told.note_taken();
        assert_eq!(told.news(Some(3), true, Some(8)), Some(Event::Offer { packets: 1 }));
    }
}
