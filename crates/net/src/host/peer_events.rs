//! Peers of a tenant that come and go: what the endpoint and the application are told of them.

use std::net::SocketAddr;

use weir_core::{Event, Locator, PeerId};
use weir_units::Time;
use weir_wire::rtcp::handshake::Terms;

use super::application::{Application, Departure, PeerChange};
use super::party::{Calls, Party, Stage};
use super::peers::{News, Outbound};
use super::statistics::Amount;
use crate::error::{Impossible, Result};
use crate::profile::Profile;
use crate::socket::{address_at, locator, scoped};

impl<P: Profile, A: Application<P::Label>> Party<'_, P, A> {
    /// What an endpoint calls a peer.
    pub(super) fn name_of(&self, peer: PeerId) -> PeerId {
        if self.seats.is_per_peer() { PeerId(0) } else { peer }
    }

    /// Starts the session once every peer of the configuration has been there. A peer that has gone or come in the meantime is told
    /// at once. Where each peer has an endpoint, its session starts with it.
    pub(super) fn start(&mut self, now: Time) -> Result<()> {
        if self.stage != Stage::Waiting || !self.peers.are_all_up() {
            return Ok(());
        }
        self.stage = Stage::Started;
        let (lost, admitted) = (self.peers.lost(), self.peers.admitted());
        let mut changes = lost.into_iter().map(Event::PeerDown).chain(admitted.into_iter().map(Event::PeerUp));
        self.begin(ONE, now)?;
        changes.try_for_each(|event| self.event(ONE, now, event, None))
    }

    /// Sends what the handshake has to say, and acts on what it has found.
    #[inline]
    pub(super) fn on_news(&mut self, now: Time) -> Result<()> {
        loop {
            while let Some(outbound) = self.peers.next_outbound() {
                let Outbound { socket, to, bytes, is_goodbye } = outbound;
                match is_goodbye {
                    true => self.outgoing.message(socket, to, &bytes, &mut self.statistics)?,
                    false => self.outgoing.handshake(socket, to, &bytes, &mut self.statistics)?,
                }
            }
            let Some((peer, news)) = self.peers.next_news() else { break };
            if let Some((_, address)) = self.peers.address(peer) {
                self.meet_deadlines(now)?;
                self.on_one_news(now, peer, address, news)?;
            }
        }
        self.start(now)
    }

    fn on_one_news(&mut self, now: Time, peer: PeerId, address: SocketAddr, news: News) -> Result<()> {
        let change = match news {
            News::Offered(terms) => {
                self.associate(peer);
                return self.open(now, peer, address, &terms);
            }
            News::Reached => return self.on_reached(now, peer, address),
            News::Changed(PeerChange::Down(why)) => return self.close(now, peer, address, why),
            News::Changed(change) => change,
        };
        self.application.peer(now, peer, address, change);
        if change != PeerChange::Up {
            return Ok(());
        }
        self.statistics.peers += 1;
        self.associate(peer);
        if self.seats.is_per_peer() {
            let terms = self.application.terms(address).unwrap_or_default();
            self.open(now, peer, address, &terms)
        } else {
            self.event(ONE, now, Event::PeerUp(peer), None)
        }
    }

    /// A peer that the endpoint wanted to contact has answered.
    fn on_reached(&mut self, now: Time, peer: PeerId, address: SocketAddr) -> Result<()> {
        self.statistics.peers += 1;
        self.associate(peer);
        self.application.peer(now, peer, address, PeerChange::Reached);
        self.event(ONE, now, Event::Reached { at: locator(address), peer }, None)
    }

    /// The endpoint contacts whoever is at a locator.
    pub(super) fn contact(&mut self, at: Locator) -> Result<()> {
        let Some(Calls { socket, ssrc, interface }) = self.calls else { return Err(Impossible::NoCalls.into()) };
        self.peers.want(socket, scoped(address_at(at), interface), ssrc, self.time);
        Ok(())
    }

    /// The endpoint says goodbye to a peer.
    pub(super) fn part(&mut self, peer: PeerId) -> Result<()> {
        if !self.peers.was_there(peer) {
            return Err(Impossible::NoPeer { peer }.into());
        }
        let address = self.peers.address(peer).filter(|_| self.peers.is_open(peer));
        let Some((_, address)) = address else { return Ok(()) };
        self.peers.leave(self.time, peer, Departure::Stopped);
        self.application.peer(self.time, peer, address, PeerChange::Down(Departure::Stopped));
        self.has_changed = true;
        Ok(())
    }

    fn associate(&mut self, peer: PeerId) {
        if let Some((ids, (socket, address))) = self.peers.ids(peer).zip(self.peers.address(peer)) {
            self.peers.associate(peer, self.sessions.of_unicast(socket).profile.associate(&ids));
            if let Some(sealer) = self.peers.take_sealer(peer) {
                self.outgoing.pair(socket, address, sealer, |address| self.peers.find(address).is_some());
            }
        }
    }

    /// The session of one peer begins, unless it has begun or there is one endpoint for all.
    fn open(&mut self, now: Time, peer: PeerId, address: SocketAddr, terms: &Terms) -> Result<()> {
        let is_served = self.seats.place_of(Some(peer)).is_some();
        if is_served || self.stage == Stage::Finished {
            return Ok(());
        }
        let Some(endpoint) = self.application.open(now, address, terms) else {
            return self.close(now, peer, address, Departure::Declined);
        };
        let place = self.seats.add_for(peer, endpoint);
        self.statistics.sent_to.insert(peer, Amount::default());
        self.begin(place, now)
    }

    /// A peer is gone, or is to go.
    fn close(&mut self, now: Time, peer: PeerId, address: SocketAddr, why: Departure) -> Result<()> {
        if self.seats.is_per_peer() {
            if let Some(place) = self.seats.place_of(Some(peer)).filter(|_| self.stage == Stage::Started) {
                self.event(place, now, Event::Finish, None)?;
            }
            self.seats.remove(peer);
        }
        self.has_changed = true;
        self.application.peer(now, peer, address, PeerChange::Down(why));
        self.statistics.sent_to.remove(&peer);
        let again = match self.seats.is_per_peer() && self.stage == Stage::Started {
            true => self.application.contact_again(now, address, why),
            false => None,
        };
        match again {
            Some(ssrc) => self.peers.contact_again(now, peer, ssrc),
            None => self.peers.leave(now, peer, why),
        }
        if self.seats.is_per_peer() || why == Departure::Stopped {
            return Ok(());
        }
        self.event(ONE, now, Event::PeerDown(peer), None)
    }
}

/// The place of the endpoint, where there is one for all peers.
const ONE: usize = 0;
