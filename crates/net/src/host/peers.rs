//! The peers of a tenant: who they are, how it stands with each, and what the handshake still has to say.
//!
//! A peer is known to the endpoint by its place here, which it keeps for the whole session. It is one of three things: known
//! from the configuration and reached without a handshake; a server that this host contacts; or a client that this host has
//! admitted. A state machine without clock or socket.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use weir_core::PeerId;
use weir_units::Time;
use weir_wire::rtcp::Bye;
use weir_wire::rtcp::handshake::{Kind, LEN, Message, Terms};

use crate::handshake::admission::{Admission, Client, Standing, Verdict};
use crate::handshake::contact::{AFTER_REFUSAL, Contact, News as ContactNews};
use crate::profile::Ids;

/// Why a peer is not there any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure {
    /// It said goodbye.
    Bye,
    /// This side's protocol is complete.
    Complete,
    /// This side's application ended the session.
    Stopped,
    /// It has said nothing for too long.
    Silent,
    /// Its host says that nobody listens there, and it has said nothing since.
    Refused,
    /// This side's application does not take what it offers.
    Declined,
}

/// What has become known about a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// It offers a stream on these terms. Its numbers may be new.
    Offered(PeerId, Terms),
    /// It serves as many peers as it can.
    Busy(PeerId),
    /// It was asked several times without an answer.
    Unanswered(PeerId, bool),
    /// It has proved its address, or its stream has begun.
    Up(PeerId),
    /// It is gone.
    Down(PeerId, Departure),
}

/// The peers. `A` is what packets to and from one need.
#[derive(Debug)]
pub(super) struct Peers<A> {
    entries: Vec<Peer<A>>,
    /// The live ones.
    by_address: BTreeMap<SocketAddr, usize>,
    /// The place of the peer that the endpoint calls 0.
    base: usize,
    server: Option<Server>,
    silence: Duration,
    news: VecDeque<News>,
    outbox: VecDeque<Outgoing>,
    /// Hosts that asked when there was no room for another peer.
    pub(super) turned_away: u64,
}

/// A message of the handshake that is to be sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outgoing {
    /// Through which unicast socket.
    pub(super) socket: usize,
    pub(super) to: SocketAddr,
    bytes: [u8; LEN],
    len: usize,
}

impl Outgoing {
    fn new(socket: usize, to: SocketAddr, message: &[u8]) -> Outgoing {
        let mut bytes = [0; LEN];
        bytes[..message.len()].copy_from_slice(message);
        Outgoing { socket, to, bytes, len: message.len() }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
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
    association: Option<A>,
    /// What the application was last told.
    told: Option<News>,
}

#[derive(Debug)]
enum State {
    Known,
    Contact {
        contact: Contact,
        ssrc: u32,
        is_up: bool,
    },
    Admitted {
        ids: Ids,
        heard: Time,
        refused: Option<Time>,
    },
    /// It is told goodbye until it answers.
    Leaving {
        ids: Ids,
        rounds: &'static [Duration],
        next: Time,
    },
    Gone,
}

impl<A: Copy> Peers<A> {
    /// Nobody. A peer that says nothing for `silence` is gone.
    pub(super) fn new(silence: Duration) -> Peers<A> {
        Peers {
            entries: Vec::new(),
            by_address: BTreeMap::new(),
            base: 0,
            server: None,
            silence,
            news: VecDeque::new(),
            outbox: VecDeque::new(),
            turned_away: 0,
        }
    }

    /// Adds a peer from the configuration that needs no handshake.
    pub(super) fn add_known(&mut self, socket: usize, address: SocketAddr) -> PeerId {
        self.add(socket, address, State::Known)
    }

    /// Adds a server to contact, from `now` on; `ssrc` is this host's.
    pub(super) fn add_contact(&mut self, socket: usize, address: SocketAddr, ssrc: u32, now: Time) -> PeerId {
        let contact = Contact::new(ssrc, self.silence, now);
        self.add(socket, address, State::Contact { contact, ssrc, is_up: false })
    }

    /// Takes up to `most` peers at a time from now on.
    pub(super) fn admit(&mut self, admission: Admission, most: usize) {
        self.server = Some(Server { admission, most });
    }

    fn add(&mut self, socket: usize, address: SocketAddr, state: State) -> PeerId {
        self.by_address.insert(address, self.entries.len());
        self.entries.push(Peer { address, socket, state, association: None, told: None });
        self.id(self.entries.len() - 1)
    }

    /// The endpoint's session begins with this peer, which it calls 0.
    pub(super) fn rebase(&mut self, peer: PeerId) -> PeerId {
        self.base += peer.0 as usize;
        // Those of earlier sessions that are gone are forgotten.
        while self.base > 0 && matches!(self.entries[0].state, State::Gone) {
            self.entries.remove(0);
            self.by_address.values_mut().for_each(|place| *place -= 1);
            self.base -= 1;
        }
        PeerId(0)
    }

    fn id(&self, place: usize) -> PeerId {
        PeerId(place.saturating_sub(self.base) as u32)
    }

    fn peer(&self, PeerId(id): PeerId) -> Option<&Peer<A>> {
        self.entries.get(self.base + id as usize)
    }

    fn peer_mut(&mut self, PeerId(id): PeerId) -> Option<&mut Peer<A>> {
        self.entries.get_mut(self.base + id as usize)
    }

    /// The peer at an address.
    pub(super) fn find(&self, address: SocketAddr) -> Option<PeerId> {
        self.by_address.get(&address).map(|place| self.id(*place))
    }

    /// How to reach a peer: the socket, the address, and what its packets need. `None` if packets cannot be sent to it.
    pub(super) fn route(&mut self, peer: PeerId) -> Option<(usize, SocketAddr, Option<&mut A>)> {
        let peer = self.peer_mut(peer)?;
        let is_reachable = matches!(peer.state, State::Known) || peer.association.is_some();
        is_reachable.then_some((peer.socket, peer.address, peer.association.as_mut()))
    }

    /// The address of a peer, and the socket through which it is reached.
    pub(super) fn address(&self, peer: PeerId) -> Option<(usize, SocketAddr)> {
        self.peer(peer).map(|peer| (peer.socket, peer.address))
    }

    /// What the packets of a peer need; `None` before its handshake.
    pub(super) fn association(&self, peer: PeerId) -> Option<A> {
        self.peer(peer).and_then(|peer| peer.association)
    }

    pub(super) fn associate(&mut self, peer: PeerId, association: A) {
        if let Some(peer) = self.peer_mut(peer) {
            peer.association = Some(association);
        }
    }

    /// The numbers that were agreed on with a peer.
    pub(super) fn ids(&self, peer: PeerId) -> Option<Ids> {
        match &self.peer(peer)?.state {
            State::Contact { contact, ssrc, .. } => {
                contact.stream_ssrc().map(|remote_ssrc| Ids { local_ssrc: *ssrc, remote_ssrc, first_sequence: 0 })
            }
            State::Admitted { ids, .. } | State::Leaving { ids, .. } => Some(*ids),
            State::Known | State::Gone => None,
        }
    }

    /// Whether a peer needs no handshake.
    pub(super) fn is_known(&self, peer: PeerId) -> bool {
        self.peer(peer).is_some_and(|peer| matches!(peer.state, State::Known))
    }

    /// Whether every peer of the configuration is there.
    pub(super) fn are_all_up(&self) -> bool {
        self.entries.iter().all(|peer| !matches!(peer.state, State::Contact { is_up: false, .. }))
    }

    /// Whether somebody is a peer, or about to become or to cease to be one.
    pub(super) fn is_anybody_there(&self) -> bool {
        self.entries.iter().any(|peer| !matches!(peer.state, State::Gone | State::Known))
    }

    /// The next news, oldest first.
    pub(super) fn next_news(&mut self) -> Option<News> {
        self.news.pop_front()
    }

    /// Whether there is news, or a message to send.
    pub(super) fn has_news(&self) -> bool {
        !self.news.is_empty() || !self.outbox.is_empty()
    }

    /// The protocol with a peer is complete.
    pub(super) fn complete(&mut self, peer: PeerId) {
        self.news.push_back(News::Down(peer, Departure::Complete));
    }

    /// The next message to send, oldest first.
    pub(super) fn next_message(&mut self) -> Option<Outgoing> {
        self.outbox.pop_front()
    }

    /// A message of the handshake came. `terms` are those of a stream from here. Whether it was for this host.
    pub(super) fn on_message(
        &mut self,
        now: Time,
        socket: usize,
        from: SocketAddr,
        message: &Message,
        terms: Terms,
    ) -> bool {
        let place = self.by_address.get(&from).copied();
        if let Some(place) = place
            && let State::Contact { contact, .. } = &mut self.entries[place].state
        {
            let news = contact.on_message(now, message);
            self.on_contact(place, news);
            return true;
        }
        self.serve(now, socket, from, message, terms)
    }

    fn on_contact(&mut self, place: usize, news: Option<ContactNews>) {
        let id = self.id(place);
        let State::Contact { contact, is_up, .. } = &mut self.entries[place].state else { return };
        let has_begun = contact.is_running() && !std::mem::replace(is_up, contact.is_running());
        match news {
            Some(ContactNews::Offered(terms)) => self.news.push_back(News::Offered(id, terms)),
            Some(ContactNews::Busy) => self.tell(place, News::Busy(id)),
            None => {}
        }
        if has_begun {
            self.tell(place, News::Up(id));
        }
    }

    /// Tells the application, unless that is what it was told last.
    fn tell(&mut self, place: usize, news: News) {
        if self.entries[place].told.replace(news) != Some(news) {
            self.news.push_back(news);
        }
    }

    fn serve(&mut self, now: Time, socket: usize, from: SocketAddr, message: &Message, terms: Terms) -> bool {
        let client = Client { address: from, ssrc: message.ssrc };
        let standing = self.standing(client);
        let Some(server) = &self.server else { return false };
        match server.admission.on_message(now, client, message, standing, terms) {
            Verdict::Ignore => return false,
            Verdict::Answer(answer) => {
                self.turned_away += u64::from(standing == Standing::Surplus);
                self.outbox.push_back(Outgoing::new(socket, from, &answer.encode()));
            }
            Verdict::Admit => {
                let (admission, local_ssrc) = (&server.admission, server.admission.stream_ssrc(client));
                let first_sequence = admission.first_sequence(client);
                let ids = Ids { local_ssrc, remote_ssrc: client.ssrc, first_sequence };
                self.outbox.push_back(Outgoing::new(socket, from, &Message::plain(Kind::Alive, local_ssrc).encode()));
                let id = self.add(socket, from, State::Admitted { ids, heard: now, refused: None });
                self.news.push_back(News::Up(id));
            }
        }
        if standing == Standing::Peer {
            self.find(from).into_iter().for_each(|peer| self.on_heard(now, peer));
        }
        true
    }

    fn standing(&self, client: Client) -> Standing {
        let same = self.by_address.get(&client.address).map(|place| &self.entries[*place].state);
        match same {
            Some(State::Admitted { ids, .. }) if ids.remote_ssrc == client.ssrc => return Standing::Peer,
            Some(State::Admitted { .. }) => return Standing::Surplus,
            _ => {}
        }
        let admitted = self.entries.iter().filter(|peer| matches!(peer.state, State::Admitted { .. })).count();
        let is_full = self.server.as_ref().is_none_or(|server| admitted >= server.most);
        if is_full { Standing::Surplus } else { Standing::Stranger }
    }

    /// A goodbye came. Whether it was that of a peer.
    pub(super) fn on_bye(&mut self, from: SocketAddr, bye: Bye) -> bool {
        let Some(place) = self.by_address.get(&from).copied() else { return false };
        let id = self.id(place);
        match &self.entries[place].state {
            State::Contact { contact, .. } if contact.stream_ssrc() == Some(bye.ssrc) => {}
            State::Admitted { ids, .. } if ids.remote_ssrc == bye.ssrc => {}
            State::Leaving { ids, .. } if ids.remote_ssrc == bye.ssrc => {
                self.forget(place);
                return true;
            }
            _ => return false,
        }
        self.tell(place, News::Down(id, Departure::Bye));
        true
    }

    /// A packet of a peer came that it alone can have sent.
    pub(super) fn on_heard(&mut self, now: Time, peer: PeerId) {
        let place = self.base + peer.0 as usize;
        match self.entries.get_mut(place).map(|peer| &mut peer.state) {
            Some(State::Contact { contact, .. }) => {
                contact.on_data(now);
                self.on_contact(place, None);
            }
            Some(State::Admitted { heard, refused, .. }) => (*heard, *refused) = (now, None),
            _ => {}
        }
    }

    /// The host of a peer says that nobody listens there.
    pub(super) fn on_refused(&mut self, now: Time, address: SocketAddr) {
        let Some(place) = self.by_address.get(&address).copied() else { return };
        match &mut self.entries[place].state {
            State::Contact { contact, .. } => contact.on_refusal(now),
            State::Admitted { refused, .. } => *refused = refused.or(Some(now)),
            State::Leaving { .. } => self.forget(place),
            State::Known | State::Gone => {}
        }
    }

    /// When [`Peers::on_time`] wants to be called.
    pub(super) fn deadline(&self) -> Option<Time> {
        let due = |peer: &Peer<A>| match &peer.state {
            State::Known | State::Gone => None,
            State::Contact { contact, .. } => Some(contact.deadline()),
            State::Admitted { heard, refused, .. } => {
                let silent = *heard + self.silence;
                Some(refused.map_or(silent, |refused| silent.min(refused + AFTER_REFUSAL)))
            }
            State::Leaving { next, .. } => Some(*next),
        };
        self.entries.iter().filter_map(due).min()
    }

    /// It is `now`: questions and goodbyes go out, and who is silent is gone.
    pub(super) fn on_time(&mut self, now: Time) {
        for place in 0..self.entries.len() {
            self.look_at(now, place);
        }
    }

    fn look_at(&mut self, now: Time, place: usize) {
        let (id, silence) = (self.id(place), self.silence);
        let Peer { address, socket, state, .. } = &mut self.entries[place];
        match state {
            State::Known | State::Gone => {}
            State::Contact { contact, .. } => {
                let question = contact.poll(now);
                self.outbox.extend(question.map(|message| Outgoing::new(*socket, *address, &message.encode())));
                let is_refused = contact.is_refused();
                if contact.is_over(now) {
                    let why = if is_refused { Departure::Refused } else { Departure::Silent };
                    self.tell(place, News::Down(id, why));
                } else if !contact.is_running() && (contact.is_unanswered() || is_refused) {
                    self.tell(place, News::Unanswered(id, is_refused));
                }
            }
            State::Admitted { heard, refused, .. } => {
                if refused.is_some_and(|refused| now >= refused + AFTER_REFUSAL) {
                    self.tell(place, News::Down(id, Departure::Refused));
                } else if now >= *heard + silence {
                    self.tell(place, News::Down(id, Departure::Silent));
                }
            }
            State::Leaving { ids, rounds, next } if *next <= now => match rounds.split_first() {
                None => self.forget(place),
                Some((wait, rest)) => {
                    (*rounds, *next) = (rest, now + *wait);
                    let bye = Bye { ssrc: ids.local_ssrc }.encode();
                    self.outbox.push_back(Outgoing::new(*socket, *address, &bye));
                }
            },
            State::Leaving { .. } => {}
        }
    }

    /// The session with a peer is over on this side: says goodbye, as often as it takes where this side is the first to leave.
    pub(super) fn leave(&mut self, now: Time, peer: PeerId, why: Departure) {
        let place = self.base + peer.0 as usize;
        let ids = self.ids(peer).filter(|_| why != Departure::Declined);
        let Some(entry) = self.entries.get_mut(place) else { return };
        if matches!(entry.state, State::Leaving { .. } | State::Gone | State::Known) {
            return;
        }
        if let (State::Admitted { .. }, Some(server)) = (&entry.state, &mut self.server) {
            server.admission.on_departure();
        }
        let rounds = match why {
            Departure::Complete | Departure::Stopped => &FAREWELLS[..],
            Departure::Silent | Departure::Refused => &FAREWELLS[..1],
            Departure::Bye | Departure::Declined => &[],
        };
        let Some(ids) = ids else { return self.forget(place) };
        if rounds.is_empty() {
            let bye = Bye { ssrc: ids.local_ssrc }.encode();
            self.outbox.push_back(Outgoing::new(entry.socket, entry.address, &bye));
            return self.forget(place);
        }
        entry.state = State::Leaving { ids, rounds, next: now };
        self.look_at(now, place);
    }

    /// Leaves all peers.
    pub(super) fn leave_all(&mut self, now: Time, why: Departure) {
        for place in self.base..self.entries.len() {
            self.leave(now, self.id(place), why);
        }
    }

    fn forget(&mut self, place: usize) {
        let peer = &mut self.entries[place];
        peer.state = State::Gone;
        self.by_address.retain(|_, at| *at != place);
    }
}

/// A goodbye may be lost, so it is said again until it is answered, ever more slowly: 1.5 s in all.
const FAREWELLS: [Duration; 4] =
    [Duration::from_millis(100), Duration::from_millis(200), Duration::from_millis(400), Duration::from_millis(800)];
