//! The live handshake: a server, two clients, and a stranger on the network between them who sees, forges, repeats and redirects
//! datagrams. Nobody is a peer who has not given back the cookie that went to its address, and nobody gets more than it sent.

use std::net::SocketAddr;
use std::time::Duration;

use weir_net::handshake::admission::{Admission, Client, Standing, Verdict};
use weir_net::handshake::contact::Contact;
use weir_net::profile::{Found, Profile, RtpProfile, Sender};
use weir_units::Time;
use weir_wire::rtcp::handshake::{COOKIE_LEN, Kind, Message, Terms};
use weir_wire::rtp::Rtp;

use crate::Draw;

#[test]
fn nobody_is_admitted_but_who_gives_its_own_cookie_back() {
    weir_fuzz::check!(10_000, seeds(), meet);
}

#[test]
fn the_seeds_admit_clients_and_refuse_others() {
    let admitted = seeds().iter().map(|seed| Network::after(seed).admitted).collect::<Vec<_>>();
    assert_eq!(admitted, [1, 2, 0]);
}

fn meet(input: &[u8]) {
    Network::after(input);
}

struct Network {
    now: Time,
    server: Admission,
    /// The peer, and the stream's number since it was admitted.
    peer: Option<(Client, u32)>,
    clients: Vec<Contact>,
    /// How many were admitted.
    admitted: u32,
    /// Datagrams that the stranger has seen, and may deliver.
    seen: Vec<Vec<u8>>,
    /// The cookies that went out since somebody left last: to whom, and when.
    offered: Vec<(Client, [u8; COOKIE_LEN], Time)>,
}

impl Network {
    fn new() -> Network {
        let now = Time::from_secs(100);
        let clients = (0..CLIENTS).map(|number| Contact::new(u32::from(number), SILENCE, now)).collect();
        let server = Admission::new([1; 32]);
        Network { now, server, peer: None, admitted: 0, clients, seen: Vec::new(), offered: Vec::new() }
    }

    /// The network after the steps of an input.
    fn after(input: &[u8]) -> Network {
        let (mut draw, mut network) = (Draw(input), Network::new());
        for _ in 0..STEPS {
            if draw.is_empty() {
                break;
            }
            network.step(&mut draw);
        }
        network
    }

    fn step(&mut self, draw: &mut Draw<'_>) {
        let (what, number) = (draw.u8() % 8, draw.u8());
        self.now += Duration::from_millis(u64::from(draw.u8()) * 10);
        match what {
            0 => self.ask(number % CLIENTS),
            1 | 2 => {
                if let Some(datagram) = self.pick(number) {
                    self.serve(draw.u8() % 4, &datagram);
                }
            }
            3 | 4 => {
                if let Some(datagram) = self.pick(number) {
                    self.tell(draw.u8() % CLIENTS, &datagram);
                }
            }
            5 => {
                if let Some(mut datagram) = self.pick(number) {
                    let at = usize::from(draw.u8()) % datagram.len().max(1);
                    let other = draw.u8();
                    datagram.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= other);
                    self.see(datagram);
                }
            }
            6 => {
                let length = number.into();
                let datagram = draw.bytes(length).to_vec();
                self.see(datagram);
            }
            _ => match number % 4 {
                0 => self.depart(),
                1 => self.clients[0].on_refusal(self.now),
                2 => self.clients[0].on_data(self.now),
                _ => self.now += Duration::from_secs(8),
            },
        }
    }

    /// A client says what it has to say.
    fn ask(&mut self, number: u8) {
        let client = &mut self.clients[usize::from(number)];
        self.now = self.now.max(client.deadline());
        if let Some(message) = client.poll(self.now) {
            self.see(message.encode().to_vec());
        }
        let client = &self.clients[usize::from(number)];
        assert!(client.is_over(self.now) || client.deadline() > self.now, "it would ask without end: {client:?}");
    }

    /// A datagram comes to the server, from this address as it seems.
    fn serve(&mut self, from: u8, datagram: &[u8]) {
        let mut messages = Vec::new();
        RtpProfile.decode(datagram, Sender::Unassociated, |found| match found {
            Found::Handshake(message) => messages.push(message),
            Found::Packet { .. } => panic!("a packet of somebody who is no peer"),
            _ => {}
        });
        let mut answered = 0;
        for message in messages {
            let client = Client { address: address(from), ssrc: message.ssrc };
            let standing = self.standing(client);
            match self.server.on_message(self.now, client, &message, standing, TERMS) {
                Verdict::Admit => {
                    self.admit(client, &message, standing);
                    let alive = Message::plain(Kind::Alive, self.server.stream_ssrc(client)).encode();
                    answered += alive.len();
                    self.see(alive.to_vec());
                }
                Verdict::Answer(answer) => {
                    if answer.kind == Kind::Offer {
                        self.offered.push((client, answer.cookie, self.now));
                    }
                    answered += answer.encode().len();
                    self.see(answer.encode().to_vec());
                }
                Verdict::Ignore => {}
            }
        }
        assert!(answered <= datagram.len(), "{answered} bytes in answer to {}", datagram.len());
    }

    fn admit(&mut self, client: Client, message: &Message, standing: Standing) {
        assert_eq!(standing, Standing::Stranger, "admitted though there was no room");
        let is_its_own = |(to, cookie, at): &(Client, [u8; COOKIE_LEN], Time)| {
            *to == client && *cookie == message.cookie && self.now.since(*at) <= Duration::from_secs(32)
        };
        assert!(self.offered.iter().any(is_its_own), "{client:?} is admitted with a cookie that did not go there");
        self.admitted += 1;
        self.peer = Some((client, self.server.stream_ssrc(client)));
    }

    fn standing(&self, client: Client) -> Standing {
        match self.peer {
            None => Standing::Stranger,
            Some((peer, stream_ssrc)) if peer == client => Standing::Peer { stream_ssrc },
            Some(_) => Standing::Surplus,
        }
    }

    /// A datagram comes to a client, from the server as it seems.
    fn tell(&mut self, number: u8, datagram: &[u8]) {
        let (client, now) = (&mut self.clients[usize::from(number)], self.now);
        let from = client.ids().map_or(Sender::Unassociated, |ids| Sender::Peer(RtpProfile.associate(&ids)));
        let was_running = client.is_running();
        let mut may_run = was_running;
        RtpProfile.decode(datagram, from, |found| match found {
            Found::Handshake(message) => {
                may_run |=
                    message.kind == Kind::Alive && client.ids().is_some_and(|ids| ids.remote_ssrc == message.ssrc);
                client.on_message(now, &message);
            }
            Found::Packet { label: Some(_), .. } => {
                may_run = true;
                client.on_data(now);
            }
            _ => {}
        });
        assert!(!client.is_running() || may_run, "a stream runs that nobody has begun: {client:?}");
        assert!(!client.is_running() || client.ids().is_some(), "a stream without numbers: {client:?}");
    }

    fn depart(&mut self) {
        if self.peer.take().is_some() {
            self.server.on_departure();
            self.offered.clear();
        }
    }

    fn see(&mut self, datagram: Vec<u8>) {
        if self.seen.len() < STEPS {
            self.seen.push(datagram);
        }
    }

    fn pick(&self, number: u8) -> Option<Vec<u8>> {
        self.seen.get(usize::from(number).checked_rem(self.seen.len())?).cloned()
    }
}

fn address(number: u8) -> SocketAddr {
    ([192, 0, 2, number], 5004).into()
}

/// Both clients come; the second comes when the first has left; and what a stranger says.
fn seeds() -> Vec<Vec<u8>> {
    let comes = |client: u8, seen: u8| {
        let [hello, offer, start, alive] = [seen, seen + 1, seen + 2, seen + 3];
        [&[0, client, 1][..], &[1, hello, 1, client], &[3, offer, 1, client], &[0, client, 1], &[1, start, 1, client]]
            .concat()
            .into_iter()
            .chain([3, alive, 1, client])
            .collect::<Vec<u8>>()
    };
    let leaves = vec![7, 0, 1];
    let bytes = |bytes: &[u8]| [&[6, bytes.len() as u8, 1][..], bytes, &[1, 0, 1, 2, 3, 0, 1, 0]].concat();
    let hellos = [Message::plain(Kind::Hello, 7).encode(), Message::plain(Kind::Hello, 8).encode()].concat();
    let data = [&Rtp { ssrc: 7, ..Rtp::default() }.encode()[..], b"payload"].concat();
    vec![
        [comes(0, 0), comes(1, 4)].concat(),
        [comes(0, 0), leaves, comes(1, 4)].concat(),
        [bytes(&hellos), bytes(&data), vec![5, 0, 1, 0, 1, 2, 1, 1, 3]].concat(),
    ]
}

const CLIENTS: u8 = 2;
const SILENCE: Duration = Duration::from_secs(10);
const TERMS: Terms = Terms {
    payload_type: 33,
    packet_size: 1_400,
    latency_ms: 0,
    pictures: None,
    scheme: [b'r'; 16],
    ephemeral: [1; 32],
    identity: [2; 32],
};
const STEPS: usize = 200;
