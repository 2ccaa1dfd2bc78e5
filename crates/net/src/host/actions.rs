//! What an endpoint wants, carried out. What cannot be done is an error of the run.

use weir_core::{Action, Destination, Header, Origin, Packet, Payload, PeerId};
use weir_units::Time;
use weir_wire::{Probe, probe};

use super::application::{Application, Delivery, Departure};
use super::outgoing::{Laid, Target};
use super::party::{Handled, Party};
use super::seats::Seat;
use crate::error::{Impossible, NetError, Result};
use crate::interface::Interface;
use crate::profile::{Profile, Sending};
use crate::socket::Way;

/// Where a packet goes, to which peer if to one, and how long it may be.
#[derive(Debug, Clone, Copy)]
struct Route {
    target: Target,
    peer: Option<PeerId>,
    most: usize,
}

impl<P: Profile, A: Application<P::Label>> Party<'_, P, A> {
    #[inline]
    pub(super) fn carry_out(
        &mut self,
        seat: &mut Seat<P::Label>,
        action: &Action,
        handled: Option<&Handled<'_, P::Label>>,
    ) -> Result<()> {
        match action {
            Action::Send { to, packet, payload, with_next } => {
                let Some(route) = self.route(seat.peer, *to, packet, handled)? else { return Ok(()) };
                return self.send(seat, route, packet, *payload, *with_next);
            }
            Action::Contact { at } => return self.contact(*at),
            Action::Part { peer } => return self.part(*peer),
            Action::Join(channel) => {
                let joined = self.input.join(*channel);
                return self.change_membership(joined);
            }
            Action::Leave(channel) => {
                let left = self.input.leave(*channel);
                return self.change_membership(left);
            }
            Action::Deliver { number } => {
                let (handled, label) = with_payload(handled)?;
                let (from, payload) = (Some(handled.origin), handled.payload);
                let address = Some(handled.datagram.from);
                seat.told.note_delivered()?;
                self.statistics.note_delivered(payload.len());
                self.application.deliver(self.time, Delivery { from, address, number: *number, label, payload });
            }
            Action::DeliverKept { number } => {
                let (label, payload) = seat.kept.get(*number).ok_or(Impossible::NotKept { number: *number })?;
                seat.told.note_delivered()?;
                self.statistics.note_delivered(payload.len());
                let delivery = Delivery { from: None, address: None, number: Some(*number), label, payload };
                self.application.deliver(self.time, delivery);
            }
            Action::Take { number } => {
                if seat.kept.get(*number).is_some() {
                    return Err(Impossible::IsKept { number: *number }.into());
                }
                match seat.peer {
                    Some(peer) => {
                        let fresh = self.application.payload_for(self.time, peer);
                        let (label, payload) = fresh.ok_or(Impossible::NothingOffered)?;
                        seat.kept.keep_shared(*number, label, payload);
                    }
                    None => {
                        let fresh = self.application.payload(self.time, None);
                        let (label, payload) = fresh.ok_or(Impossible::NothingOffered)?;
                        seat.kept.keep(*number, label, payload);
                    }
                }
                seat.told.note_taken();
            }
            Action::Keep { number } => {
                let (handled, label) = with_payload(handled)?;
                seat.kept.keep(*number, *label, handled.payload);
            }
            Action::Release { below } => seat.kept.release(*below),
            Action::Complete => {
                self.application.complete(self.time);
                self.has_changed = true;
                if let Some(peer) = seat.peer {
                    self.peers.end(peer, Departure::Complete);
                }
            }
            Action::Observe(observation) => match seat.peer {
                Some(peer) => self.application.observe_peer(self.time, peer, observation),
                None => self.application.observe(self.time, observation),
            },
            Action::ObserveSession(session, observation) => {
                self.application.observe_session(self.time, *session, observation);
            }
        }
        Ok(())
    }

    /// Goes on where the interface has been made again, as when a network card was unplugged. What cannot be done now is tried at the next look.
    pub(super) fn look_at_interface(&mut self) -> Result<()> {
        let Some(interface) = self.input.interface().and_then(Interface::made_again) else { return Ok(()) };
        if self.outgoing.attach(&interface).is_err() {
            // It has no address yet, or another one.
            return Ok(());
        }
        let joined = self.input.attach(&interface);
        self.change_membership(joined)
    }

    /// What the system refuses is told, and the session goes on without it; a channel that does not exist is an error.
    fn change_membership(&mut self, result: Result<()>) -> Result<()> {
        match result {
            Err(problem) if !matches!(problem, NetError::UnknownChannel { .. }) => {
                self.statistics.failed_memberships += 1;
                self.application.problem(self.time, &problem);
                Ok(())
            }
            result => result,
        }
    }

    /// Where a packet goes, from an endpoint for this peer alone or for all; `None` to a peer that cannot be reached.
    #[inline]
    fn route(
        &mut self,
        only: Option<PeerId>,
        to: Destination,
        packet: &Packet,
        handled: Option<&Handled<'_, P::Label>>,
    ) -> Result<Option<Route>> {
        let route = |target| Route { target, peer: None, most: usize::MAX };
        match to {
            Destination::Channel(channel) => {
                let exists = self.outgoing.has_channel(channel);
                Ok(Some(exists.then_some(route(Target::Channel(channel))).ok_or(Impossible::NoOutput { to })?))
            }
            Destination::Peer(name) => {
                let peer = match only {
                    Some(_) if name != PeerId(0) => return Err(Impossible::NoPeer { peer: name }.into()),
                    only => only.unwrap_or(name),
                };
                let address = self.peers.address(peer).filter(|_| self.peers.is_open(peer));
                match address {
                    None if !self.peers.was_there(peer) => Err(Impossible::NoPeer { peer: name }.into()),
                    None => {
                        self.statistics.refused += 1;
                        Ok(None)
                    }
                    Some((socket, to)) => Ok(Some(Route { peer: Some(peer), ..route(Target::Unicast(socket, to)) })),
                }
            }
            Destination::Reply => {
                let asked = handled.filter(|handled| handled.origin == Origin::Unverified);
                let asked = asked.ok_or(Impossible::NobodyToReplyTo)?.datagram;
                if packet.size > asked.size() {
                    return Err(Impossible::LongReply.into());
                }
                let Way::Unicast(socket) = asked.way else { return Err(Impossible::NobodyToReplyTo.into()) };
                let target = Target::Unicast(socket, asked.from);
                Ok(Some(Route { most: asked.bytes.len(), ..route(target) }))
            }
        }
    }

    #[inline]
    fn send(
        &mut self,
        seat: &mut Seat<P::Label>,
        route: Route,
        packet: &Packet,
        payload: Payload,
        with_next: bool,
    ) -> Result<()> {
        let (profile, channel) = match route.target {
            Target::Channel(channel) => (self.sessions.of_channel(channel).profile, Some(channel)),
            Target::Unicast(socket, _) => (self.sessions.of_unicast(socket).profile, None),
        };
        let shared;
        let data = match payload {
            Payload::None => None,
            Payload::Kept(number) => {
                let (label, payload) = seat.kept.get(number).ok_or(Impossible::NotKept { number })?;
                Some((*label, payload))
            }
            Payload::Fresh => {
                seat.told.note_taken();
                let fresh = match seat.peer {
                    Some(peer) => {
                        shared = self.application.payload_for(self.time, peer);
                        shared.as_ref().map(|(label, payload)| (*label, &payload[..]))
                    }
                    None => self.application.payload(self.time, channel),
                };
                self.statistics.starved += u64::from(fresh.is_none());
                let Some(fresh) = fresh.or(profile.empty().map(|label| (label, &[][..]))) else { return Ok(()) };
                Some(fresh)
            }
        };
        let (time, clock) = (self.time, self.clock);
        if let Some(peer) = route.peer.filter(|_| data.is_some()) {
            self.peers.on_sent(time, peer);
        }
        if let Header::Probe(Probe { kind: probe::Kind::Probe, .. }) = packet.header {
            self.statistics.probes_sent += 1;
        }
        let association = route.peer.and_then(|peer| self.peers.association(peer));
        let payload = data.map(|(_, payload)| payload);
        let mut is_too_long = false;
        let write = |out: &mut [u8], leaves: Time| {
            let label = data.as_ref().map(|(label, _)| label);
            let sending = Sending { ntp_micros: clock.ntp_micros(leaves), waited: leaves.since(time), association };
            let header = profile.encode(&packet.header, label, sending, out)?;
            is_too_long = header + payload.map_or(0, <[u8]>::len) > route.most;
            (!is_too_long).then_some(header)
        };
        let laid = Laid { target: route.target, peer: route.peer, packet, payload, with_next };
        match self.outgoing.add(laid, write, &mut self.statistics)? {
            true => Ok(()),
            false if is_too_long => Err(Impossible::LongReply.into()),
            false => Err(Impossible::Header { header: packet.header }.into()),
        }
    }
}

/// The packet of the event and its label, if it has a payload.
fn with_payload<'h, 'd, L>(handled: Option<&'h Handled<'d, L>>) -> Result<(&'h Handled<'d, L>, &'h L)> {
    let labelled = handled.and_then(|handled| Some((handled, handled.label.as_ref()?)));
    Ok(labelled.ok_or(Impossible::NoPayload)?)
}
