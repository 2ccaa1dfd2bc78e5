//! The peers of a tenant: who they are, how it stands with each, and what the handshake still has to say.
//!
//! A peer has a number that is never used again. It is one of three things: known from the configuration and reached without a
//! handshake; a server that this host contacts; or a client that this host has admitted. A state machine without clock or
//! socket.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use weir_core::PeerId;
use weir_units::Time;
use weir_wire::rtcp::Bye;
use weir_wire::rtcp::handshake::{Kind, Message, Terms};

use super::application::{Departure, PeerChange};
use super::early::{Early, Question};
use super::keys::{Keys, Opened};
use crate::handshake::admission::{Admission, Client, Standing, Verdict};
use crate::handshake::contact::{AFTER_REFUSAL, Contact, News as ContactNews};
use crate::profile::Ids;
use crate::seal::PairConfig;
use crate::seal::pair::PairSealer;

/// What has become known about a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// It offers a stream on these terms. Its numbers may be new.
    Offered(Terms),
    /// How it stands with it has changed.
    Changed(PeerChange),
    /// The endpoint wanted it, and here it is.
    Reached,
}

/// A message of the handshake that is to be sent.
#[derive(Debug)]
pub(super) struct Outbound {
    /// Through which unicast socket.
    pub(super) socket: usize,
    pub(super) to: SocketAddr,
    pub(super) bytes: Vec<u8>,
    /// It is a goodbye, which is sealed where keys are shared.
    pub(super) is_goodbye: bool,
}

/// The peers. `A` is what packets to and from one need.
#[derive(Debug)]
pub(super) struct Peers<A> {
    /// Those that have not gone.
    all: BTreeMap<PeerId, Peer<A>>,
    by_address: BTreeMap<SocketAddr, PeerId>,
    /// The number of the next one, and of the first that is not from the configuration.
    next: u32,
    configured: u32,
    server: Option<Server>,
    /// The keys that it shares with peers.
    keys: Keys,
    silence: Duration,
    news: VecDeque<(PeerId, News)>,
    outbox: VecDeque<Outbound>,
    /// Questions of hosts that cannot be answered yet.
    early: Early,
    /// Questions of hosts for which there was no room.
    pub(super) turned_away: u64,
    /// No peer has to be looked at before; `None` if nobody knows. What is heard from one puts it off, and is not noted here.
    quiet_until: Option<Time>,
}

/// Where and how clients become peers.
#[derive(Debug)]
struct Server {
    admission: Admission,
    /// Peers at a time.
    most: usize,
}

#[derive(Debug)]
struct Peer<A> {
    address: SocketAddr,
    socket: usize,
    state: State,
    /// What its packets need, once the handshake has told, and until it leaves.
    association: Option<A>,
    /// What the application was last told.
    told: Option<PeerChange>,
    /// The endpoint wants to contact it, and is not told if nobody answers until then.
    wanted_until: Option<Time>,
}

#[derive(Debug)]
enum State {
    Known,
    Contact(Contact),
    Admitted {
        ids: Ids,
        heard: Time,
        refused: Option<Time>,
        /// When the first data was sent to it that it has not answered.
        owes_since: Option<Time>,
    },
    /// It is told goodbye until it answers.
    Leaving {
        ids: Ids,
        waits: &'static [Duration],
        next: Time,
    },
}

impl<A: Copy> Peers<A> {
    /// Nobody. A peer that says nothing for `silence` is gone.
    pub(super) fn new(silence: Duration) -> Peers<A> {
        Peers {
            all: BTreeMap::new(),
            by_address: BTreeMap::new(),
            next: 0,
            configured: 0,
            server: None,
            keys: Keys::default(),
            silence,
            news: VecDeque::new(),
            outbox: VecDeque::new(),
            turned_away: 0,
            early: Early::default(),
            quiet_until: None,
        }
    }

    /// Adds a peer from the configuration that needs no handshake.
    pub(super) fn add_known(&mut self, socket: usize, address: SocketAddr) {
        self.add(socket, address, State::Known);
        self.configured = self.next;
    }

    /// Adds a peer from the configuration that nobody knows how to reach.
    pub(super) fn add_unreachable(&mut self) {
        self.next += 1;
        self.configured = self.next;
    }

    /// Adds a server to contact, from `now` on; `ssrc` is this host's.
    pub(super) fn add_contact(&mut self, socket: usize, address: SocketAddr, ssrc: u32, now: Time) {
        self.add(socket, address, State::Contact(self.contact(ssrc, now)));
        self.configured = self.next;
    }

    /// The endpoint wants to contact a server. If it is a peer already, that is news again.
    pub(super) fn want(&mut self, socket: usize, address: SocketAddr, ssrc: u32, now: Time) {
        match self.find(address) {
            Some(id) if self.is_open(id) => self.news.push_back((id, News::Reached)),
            Some(id) if self.all.get(&id).is_some_and(|peer| peer.wanted_until.is_some()) => {}
            known => {
                known.into_iter().for_each(|id| self.forget(id));
                let id = self.add(socket, address, State::Contact(self.contact(ssrc, now)));
                self.all.entry(id).and_modify(|peer| peer.wanted_until = Some(now + CONTACT_PATIENCE));
            }
        }
    }

    /// A server that was contacted is gone: contacts it as from the beginning, as `ssrc`. Only a server that proves the key that it had, if it had
    /// one, can answer in its place.
    pub(super) fn contact_again(&mut self, now: Time, id: PeerId, ssrc: u32) {
        let Some((socket, address)) = self.address(id) else { return };
        if let Some(ids) = self.ids(id) {
            // If it is there all the same, it need not wait for this host.
            let bytes = Bye { ssrc: ids.local_ssrc }.encode().to_vec();
            self.outbox.push_back(Outbound { socket, to: address, bytes, is_goodbye: true });
        }
        self.keys.expect_again(id);
        self.forget(id);
        self.add(socket, address, State::Contact(self.contact(ssrc, now)));
    }

    /// Shares keys with peers from now on.
    pub(super) fn share_keys(&mut self, own: PairConfig) {
        for peer in self.all.values_mut() {
            if let State::Contact(contact) = &mut peer.state {
                *contact = contact.clone().with_key(own.public());
            }
        }
        self.keys.bring(own);
    }

    /// What a datagram from this address is; `out` is what was in it, if it was sealed.
    pub(super) fn open(&mut self, from: SocketAddr, datagram: &[u8], out: &mut Vec<u8>) -> Opened {
        self.find(from).map_or(Opened::Clear, |peer| self.keys.open(peer, datagram, out))
    }

    /// What seals packets to a peer, once.
    pub(super) fn take_sealer(&mut self, peer: PeerId) -> Option<PairSealer> {
        self.keys.take_sealer(peer)
    }

    fn contact(&self, ssrc: u32, now: Time) -> Contact {
        let contact = Contact::new(ssrc, self.silence, now);
        match self.keys.public() {
            Some(key) => contact.with_key(key),
            None => contact,
        }
    }

    /// Takes up to `most` peers at a time from now on.
    pub(super) fn admit(&mut self, admission: Admission, most: usize) {
        self.server = Some(Server { admission, most });
    }

    fn add(&mut self, socket: usize, address: SocketAddr, state: State) -> PeerId {
        let peer = PeerId(self.next);
        self.next += 1;
        self.quiet_until = None;
        self.by_address.insert(address, peer);
        self.all.insert(peer, Peer { address, socket, state, association: None, told: None, wanted_until: None });
        peer
    }

    /// The peer at an address.
    pub(super) fn find(&self, address: SocketAddr) -> Option<PeerId> {
        self.by_address.get(&address).copied()
    }

    /// Whether there is or was such a peer.
    pub(super) fn was_there(&self, PeerId(number): PeerId) -> bool {
        number < self.next
    }

    /// The address of a peer that has not gone, and the socket through which it is reached.
    pub(super) fn address(&self, peer: PeerId) -> Option<(usize, SocketAddr)> {
        self.all.get(&peer).map(|peer| (peer.socket, peer.address))
    }

    /// Whether packets go to a peer and come from it: it is known, or the handshake with it has told what they need.
    pub(super) fn is_open(&self, peer: PeerId) -> bool {
        self.all.get(&peer).is_some_and(|peer| matches!(peer.state, State::Known) || peer.association.is_some())
    }

    /// What the packets to a peer and from it need; `None` without a handshake.
    pub(super) fn association(&mut self, peer: PeerId) -> Option<&mut A> {
        self.all.get_mut(&peer)?.association.as_mut()
    }

    pub(super) fn associate(&mut self, peer: PeerId, association: A) {
        if let Some(peer) = self.all.get_mut(&peer) {
            peer.association = Some(association);
        }
    }

    /// The numbers that were agreed on with a peer.
    pub(super) fn ids(&self, peer: PeerId) -> Option<Ids> {
        match &self.all.get(&peer)?.state {
            State::Contact(contact) => contact.ids(),
            State::Admitted { ids, .. } | State::Leaving { ids, .. } => Some(*ids),
            State::Known => None,
        }
    }

    /// Whether every peer of the configuration is there, or has been.
    pub(super) fn are_all_up(&self) -> bool {
        self.all.values().all(|peer| !matches!(&peer.state, State::Contact(contact) if !contact.is_running()))
    }

    /// Peers that were admitted and are there.
    pub(super) fn admitted(&self) -> Vec<PeerId> {
        let admitted = self.all.iter().filter(|(_, peer)| matches!(peer.state, State::Admitted { .. }));
        admitted.map(|(peer, _)| *peer).collect()
    }

    /// Peers of the configuration that are not there any more.
    pub(super) fn lost(&self) -> Vec<PeerId> {
        (0..self.configured).map(PeerId).filter(|peer| !self.is_open(*peer)).collect()
    }

    /// Whether somebody is a peer, or about to become or to cease to be one.
    pub(super) fn is_anybody_there(&self) -> bool {
        self.all.values().any(|peer| !matches!(peer.state, State::Known))
    }

    /// The next news, oldest first.
    pub(super) fn next_news(&mut self) -> Option<(PeerId, News)> {
        self.news.pop_front()
    }

    /// The next message to send, oldest first.
    pub(super) fn next_outbound(&mut self) -> Option<Outbound> {
        self.outbox.pop_front()
    }

    /// A message of the handshake came. `terms` are those of a stream from here, once they are known. Whether it was for this host.
    pub(super) fn on_message(
        &mut self,
        now: Time,
        socket: usize,
        from: SocketAddr,
        message: &Message,
        terms: Option<Terms>,
    ) -> bool {
        let is_contact = |id: &PeerId| self.all.get(id).is_some_and(|peer| matches!(peer.state, State::Contact(_)));
        let Some(id) = self.find(from).filter(is_contact) else {
            return self.serve(now, socket, from, message, terms);
        };
        let is_running = matches!(&self.all[&id].state, State::Contact(contact) if contact.is_running());
        // What comes while a stream runs only makes it doubtful, whoever says it.
        if message.kind == Kind::Offer && !is_running && !self.may_take_offer(id, message) {
            return false;
        }
        self.on_contact(id, |contact| contact.on_message(now, message));
        true
    }

    /// Whether an offer may be looked at: it is of the sender that is expected, with keys of use.
    fn may_take_offer(&mut self, id: PeerId, message: &Message) -> bool {
        if !self.keys.may_be_from(&message.terms) {
            self.tell(id, PeerChange::OtherKey(message.terms.identity));
            return false;
        }
        let Some(Peer { state: State::Contact(contact), .. }) = self.all.get(&id) else { return false };
        let ids = Ids { local_ssrc: contact.ssrc(), remote_ssrc: message.ssrc, first_sequence: 0 };
        self.keys.agree_with_sender(id, &message.terms, ids)
    }

    /// Something came from a server that this host contacts.
    fn on_contact(&mut self, id: PeerId, act: impl FnOnce(&mut Contact) -> Option<ContactNews>) {
        let Some(Peer { state: State::Contact(contact), wanted_until, .. }) = self.all.get_mut(&id) else { return };
        let (was_running, before) = (contact.is_running(), contact.deadline());
        let news = act(contact);
        let has_begun = contact.is_running() && !was_running;
        if contact.deadline() < before {
            self.quiet_until = None;
        }
        match news {
            Some(ContactNews::Offered(terms)) => self.news.push_back((id, News::Offered(terms))),
            Some(ContactNews::Busy | ContactNews::Later) if wanted_until.is_some() => return self.forget(id),
            Some(ContactNews::Busy) => self.tell(id, PeerChange::Busy),
            Some(ContactNews::Later) => self.tell(id, PeerChange::Later),
            None => {}
        }
        if has_begun {
            let is_wanted = self.all.get_mut(&id).is_some_and(|peer| peer.wanted_until.take().is_some());
            if is_wanted {
                self.news.push_back((id, News::Reached));
            } else {
                self.tell(id, PeerChange::Up);
            }
        }
    }

    /// Tells the application, unless that is what it was told last.
    fn tell(&mut self, id: PeerId, change: PeerChange) {
        if self.all.get_mut(&id).is_some_and(|peer| peer.told.replace(change) != Some(change)) {
            self.news.push_back((id, News::Changed(change)));
        }
    }

    /// A message came to the server's side. Whether there is one, and it is for it.
    fn serve(&mut self, now: Time, socket: usize, from: SocketAddr, message: &Message, terms: Option<Terms>) -> bool {
        let client = Client { address: from, ssrc: message.ssrc };
        let standing = self.standing(client);
        let Some(Server { admission, .. }) = &self.server else { return false };
        let (local_ssrc, first_sequence) = (admission.stream_ssrc(client), admission.first_sequence(client));
        let is_asked = standing == Standing::Stranger && matches!(message.kind, Kind::Hello | Kind::Start);
        let Some(terms) = terms.or((!is_asked).then(Terms::default)) else {
            let bytes = Message::plain(Kind::Later, local_ssrc).encode().to_vec();
            self.outbox.push_back(Outbound { socket, to: from, bytes, is_goodbye: false });
            self.early.note(Question { asked: now, socket, from, message: *message });
            return true;
        };
        let terms = self.keys.terms(terms);
        let answer = match admission.on_message(now, client, message, standing, terms) {
            Verdict::Ignore => return false,
            Verdict::Answer(answer) => answer,
            Verdict::Admit => {
                let ids = Ids { local_ssrc, remote_ssrc: client.ssrc, first_sequence };
                let peer = PeerId(self.next);
                if !self.keys.agree_with_viewer(peer, &terms, &message.terms, ids) {
                    return false;
                }
                let id = self.add(socket, from, State::Admitted { ids, heard: now, refused: None, owes_since: None });
                self.tell(id, PeerChange::Up);
                Message::plain(Kind::Alive, local_ssrc)
            }
        };
        self.outbox.push_back(Outbound { socket, to: from, bytes: answer.encode().to_vec(), is_goodbye: false });
        match (standing, self.find(from)) {
            (Standing::Surplus, _) => self.turned_away += 1,
            (Standing::Peer { .. }, Some(id)) => self.on_alive(now, id),
            _ => {}
        }
        true
    }

    /// Something new is known of the stream: whether hosts that asked before can be answered now.
    pub(super) fn answer_early(&mut self, now: Time, terms: impl Fn(SocketAddr) -> Option<Terms>) {
        if self.early.first().and_then(&terms).is_none() {
            return;
        }
        while let Some(Question { socket, from, message, .. }) = self.early.next(now) {
            self.serve(now, socket, from, &message, terms(from));
        }
    }

    fn standing(&self, client: Client) -> Standing {
        let same = self.find(client.address).and_then(|id| self.all.get(&id));
        match same.map(|peer| &peer.state) {
            Some(State::Admitted { ids, .. }) if ids.remote_ssrc == client.ssrc => {
                return Standing::Peer { stream_ssrc: ids.local_ssrc };
            }
            Some(State::Admitted { .. }) => return Standing::Surplus,
            _ => {}
        }
        let admitted = || self.all.values().filter(|peer| matches!(peer.state, State::Admitted { .. })).count();
        let is_full = self.server.as_ref().is_none_or(|server| admitted() >= server.most);
        if is_full { Standing::Surplus } else { Standing::Stranger }
    }

    /// A goodbye came. Whether it was that of a peer.
    pub(super) fn on_bye(&mut self, from: SocketAddr, bye: Bye) -> bool {
        let sender = self.find(from).and_then(|id| Some((id, self.ids(id)?)));
        let Some((id, _)) = sender.filter(|(_, ids)| ids.remote_ssrc == bye.ssrc) else { return false };
        self.end(id, Departure::Bye);
        true
    }

    /// The session with a peer is to end, if there is one.
    pub(super) fn end(&mut self, id: PeerId, why: Departure) {
        match self.is_open(id) {
            true => self.tell(id, PeerChange::Down(why)),
            false => self.forget(id),
        }
    }

    /// A packet of a peer came that it alone can have sent.
    pub(super) fn on_heard(&mut self, now: Time, id: PeerId) {
        match self.all.get_mut(&id).map(|peer| &mut peer.state) {
            Some(State::Admitted { heard, refused, owes_since, .. }) => {
                (*heard, *refused, *owes_since) = (now, None, None);
            }
            _ => self.on_contact(id, |contact| {
                contact.on_data(now);
                None
            }),
        }
    }

    /// A client that has been admitted asks for a sign of life. That keeps its place while there is nothing to answer.
    fn on_alive(&mut self, now: Time, id: PeerId) {
        if let Some(Peer { state: State::Admitted { heard, refused, .. }, .. }) = self.all.get_mut(&id) {
            (*heard, *refused) = (now, None);
        }
    }

    /// Data is sent to a peer, which it is to answer.
    pub(super) fn on_sent(&mut self, now: Time, id: PeerId) {
        if let Some(Peer { state: State::Admitted { owes_since, .. }, .. }) = self.all.get_mut(&id) {
            owes_since.get_or_insert(now);
        }
    }

    /// The host of a peer says that nobody listens there.
    pub(super) fn on_refused(&mut self, now: Time, address: SocketAddr) {
        let Some(id) = self.find(address) else { return };
        let is_wanted = self.all.get(&id).is_some_and(|peer| peer.wanted_until.is_some());
        match self.all.get_mut(&id).map(|peer| &mut peer.state) {
            Some(State::Contact(_)) if is_wanted => return self.forget(id),
            Some(State::Contact(contact)) => contact.on_refusal(now),
            Some(State::Admitted { refused, .. }) => *refused = refused.or(Some(now)),
            Some(State::Leaving { .. }) => return self.forget(id),
            _ => {}
        }
        self.look_at(now, id);
    }

    /// When [`Peers::on_time`] wants to be called, or earlier.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.quiet_until.or_else(|| self.first_due())
    }

    fn first_due(&self) -> Option<Time> {
        let due = |peer: &Peer<A>| match &peer.state {
            State::Known => None,
            State::Contact(contact) => {
                Some(peer.wanted_until.map_or(contact.deadline(), |until| until.min(contact.deadline())))
            }
            State::Admitted { heard, refused, owes_since, .. } => {
                Some(gone_at(said_at(*heard, *owes_since), *refused, self.silence).0)
            }
            State::Leaving { next, .. } => Some(*next),
        };
        self.all.values().filter_map(due).min()
    }

    /// It is `now`: questions and goodbyes go out, and a silent peer is declared gone.
    pub(super) fn on_time(&mut self, now: Time) {
        if self.deadline().is_some_and(|due| due <= now) {
            let all: Vec<PeerId> = self.all.keys().copied().collect();
            all.into_iter().for_each(|id| self.look_at(now, id));
            self.quiet_until = None;
        }
        if self.quiet_until.is_none() {
            self.quiet_until = self.first_due();
        }
    }

    fn look_at(&mut self, now: Time, id: PeerId) {
        self.quiet_until = None;
        let Some(Peer { address, socket, state, wanted_until, .. }) = self.all.get_mut(&id) else { return };
        let (socket, to, wanted_until) = (*socket, *address, *wanted_until);
        match state {
            State::Known => {}
            State::Contact(_) if wanted_until.is_some_and(|until| until <= now) => self.forget(id),
            State::Contact(contact) => {
                let question = contact.poll(now).map(|message| message.encode().to_vec());
                let (is_over, is_refused) = (contact.is_over(now), contact.is_refused());
                let why = match () {
                    () if is_refused => Departure::Refused,
                    () if contact.is_forgotten() => Departure::Forgotten,
                    () => Departure::Silent,
                };
                let is_unanswered = !contact.is_running() && (contact.is_unanswered() || is_refused);
                self.outbox.extend(question.map(|bytes| Outbound { socket, to, bytes, is_goodbye: false }));
                if is_over {
                    self.tell(id, PeerChange::Down(why));
                } else if is_unanswered && wanted_until.is_none() {
                    self.tell(id, PeerChange::Unanswered { is_refused });
                }
            }
            State::Admitted { heard, refused, owes_since, .. } => {
                let (gone_at, why) = gone_at(said_at(*heard, *owes_since), *refused, self.silence);
                if gone_at <= now {
                    self.tell(id, PeerChange::Down(why));
                }
            }
            State::Leaving { ids, waits, next } if *next <= now => match waits.split_first() {
                None => self.forget(id),
                Some((wait, rest)) => {
                    (*waits, *next) = (rest, now + *wait);
                    let bytes = Bye { ssrc: ids.local_ssrc }.encode().to_vec();
                    self.outbox.push_back(Outbound { socket, to, bytes, is_goodbye: true });
                }
            },
            State::Leaving { .. } => {}
        }
    }

    /// Takes nobody any more.
    pub(super) fn admit_nobody(&mut self) {
        self.server.iter_mut().for_each(|server| server.most = 0);
    }

    /// This side's application ends the session with everybody.
    pub(super) fn leave_all(&mut self) {
        let others = self.all.iter().filter(|(_, peer)| !matches!(peer.state, State::Known | State::Leaving { .. }));
        let others: Vec<PeerId> = others.map(|(id, _)| *id).collect();
        others.into_iter().for_each(|id| self.end(id, Departure::Stopped));
    }

    /// The session with a peer is over on this side: says goodbye, as often as it takes where this side is the first to leave.
    pub(super) fn leave(&mut self, now: Time, id: PeerId, why: Departure) {
        let ids = self.ids(id).filter(|_| why != Departure::Declined);
        let Some(peer) = self.all.get_mut(&id) else { return };
        match (&peer.state, &mut self.server) {
            (State::Known | State::Leaving { .. }, _) => return,
            (State::Admitted { .. }, Some(server)) => server.admission.on_departure(),
            _ => {}
        }
        let Some(ids) = ids else { return self.forget(id) };
        let waits = match why {
            Departure::Complete | Departure::Stopped => &FAREWELLS[..],
            Departure::Silent | Departure::Refused | Departure::Forgotten => &FAREWELLS[..1],
            Departure::Bye | Departure::Declined => &[Duration::ZERO],
        };
        peer.association = None;
        peer.state = State::Leaving { ids, waits, next: now };
        self.look_at(now, id);
    }

    fn forget(&mut self, id: PeerId) {
        self.all.remove(&id);
        self.keys.forget(id);
        self.by_address.retain(|_, at| *at != id);
    }
}

/// Since when a client has been silent: since it was last heard, or since it was sent data that it does not answer, whatever else it
/// says.
fn said_at(heard: Time, owes_since: Option<Time>) -> Time {
    owes_since.map_or(heard, |owes_since| owes_since.min(heard))
}

/// When a client is gone that was last heard, and refused by its host, at these times; and why it is then.
fn gone_at(heard: Time, refused: Option<Time>, silence: Duration) -> (Time, Departure) {
    let silent = (heard + silence, Departure::Silent);
    let refused = refused.map(|refused| (refused + AFTER_REFUSAL, Departure::Refused));
    refused.filter(|refused| refused.0 <= silent.0).unwrap_or(silent)
}

/// A contacted host that has not answered for this long is given up.
const CONTACT_PATIENCE: Duration = Duration::from_secs(10);
/// A goodbye may be lost, so it is said again until it is answered, ever more slowly: 1.5 s in all.
const FAREWELLS: [Duration; 4] =
    [Duration::from_millis(100), Duration::from_millis(200), Duration::from_millis(400), Duration::from_millis(800)];

#[cfg(test)]
mod tests;
