//! Peers of a tenant that come and go: what the endpoint and the application are told of them.

use std::net::SocketAddr;

use weir_core::{Event, Locator, PeerId};
use weir_units::Time;
use weir_wire::rtcp::handshake::Terms;

use super::application::{Application, Departure, PeerChange};
use super::party::{Calls, Party, Stage, Told};
use super::peers::{News, Outbound};
use crate::error::{Impossible, Result};
use crate::profile::Profile;
use crate::socket::{address_at, locator, scoped};

impl<P: Profile, A: Application<P::Label>> Party<'_, P, A> {
    /// What the endpoint calls a peer; `None` for one from before it was made.
    pub(super) fn name_of(&self, PeerId(peer): PeerId) -> Option<PeerId> {
        peer.checked_sub(self.first.0).map(PeerId)
    }

    /// The peer that the endpoint calls so.
    pub(super) fn peer_of(&self, PeerId(name): PeerId) -> PeerId {
        PeerId(name.saturating_add(self.first.0))
    }

    /// Starts the session once every peer of the configuration has been there. Who has gone or come in the meantime is told
    /// at once.
    pub(super) fn start(&mut self, now: Time) -> Result<()> {
        if self.stage != Stage::Waiting || self.is_per_peer || !self.peers.are_all_up() {
            return Ok(());
        }
        self.stage = Stage::Started;
        let (lost, admitted) = (self.peers.lost(), self.peers.admitted());
        let mut changes = lost.into_iter().map(Event::PeerDown).chain(admitted.into_iter().map(Event::PeerUp));
        self.begin(now)?;
        changes.try_for_each(|event| self.event(now, event, None))
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
        if self.is_per_peer {
            let terms = self.application.terms(address).unwrap_or_default();
            self.open(now, peer, address, &terms)
        } else {
            self.event(now, Event::PeerUp(peer), None)
        }
    }

    /// A peer that the endpoint wanted to contact has answered.
    fn on_reached(&mut self, now: Time, peer: PeerId, address: SocketAddr) -> Result<()> {
        self.statistics.peers += 1;
        self.associate(peer);
        self.application.peer(now, peer, address, PeerChange::Reached);
        let name = self.name_of(peer).unwrap_or(peer);
        self.event(now, Event::Reached { at: locator(address), peer: name }, None)
    }

    /// The endpoint contacts whoever is at a locator.
    pub(super) fn contact(&mut self, at: Locator) -> Result<()> {
        let Some(Calls { socket, ssrc, interface }) = self.calls else { return Err(Impossible::NoCalls.into()) };
        self.peers.want(socket, scoped(address_at(at), interface), ssrc, self.time);
        Ok(())
    }

    /// The endpoint says goodbye to a peer.
    pub(super) fn part(&mut self, name: PeerId) -> Result<()> {
        let peer = self.peer_of(name);
        if !self.peers.was_there(peer) {
            return Err(Impossible::NoPeer { peer: name }.into());
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
        if !self.is_per_peer || self.endpoint.is_some() || self.stage == Stage::Finished {
            return Ok(());
        }
        self.endpoint = self.application.open(now, address, terms);
        if self.endpoint.is_none() {
            return self.close(now, peer, address, Departure::Declined);
        }
        (self.first, self.told, self.stage) = (peer, Told::default(), Stage::Started);
        self.begin(now)
    }

    /// A peer is gone, or is to go.
    fn close(&mut self, now: Time, peer: PeerId, address: SocketAddr, why: Departure) -> Result<()> {
        if self.is_per_peer {
            if self.stage == Stage::Started {
                self.event(now, Event::Finish, None)?;
                self.stage = Stage::Waiting;
            }
            self.endpoint = None;
            self.kept.clear();
        }
        self.peers.leave(now, peer, why);
        self.has_changed = true;
        self.application.peer(now, peer, address, PeerChange::Down(why));
        if self.is_per_peer || why == Departure::Stopped {
            return Ok(());
        }
        self.event(now, Event::PeerDown(peer), None)
    }
}
