//! The server's side of the handshake: who may become a peer. A state machine without clock or socket.
//!
//! Nothing is sent to an address that did not prove that it receives there. The proof is a cookie: a keyed hash of the
//! address, the client's SSRC and the time, so that the server remembers nobody whom it has not admitted.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use constant_time_eq::constant_time_eq_16;
use weir_units::Time;
use weir_wire::rtcp::handshake::{COOKIE_LEN, Kind, Message, Terms};

/// A client, by its address and the SSRC that it gave itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client {
    /// Where it receives.
    pub address: SocketAddr,
    /// Its SSRC.
    pub ssrc: u32,
}

/// How a client stands to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is a peer, and the stream to it has this SSRC since it was admitted.
    Peer {
        /// The SSRC.
        stream_ssrc: u32,
    },
    /// It is not, and could become one.
    Stranger,
    /// It is not, and there is no room for another peer.
    Surplus,
}

/// What is to be done about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Answer it.
    Answer(Message),
    /// The client has proved its address: it is a peer now.
    Admit,
    /// Nothing: it is not a message to a server.
    Ignore,
}

/// What makes cookies and checks them.
#[derive(Debug, Clone)]
pub struct Admission {
    key: [u8; 32],
    /// How many peers have left.
    departures: u64,
}

impl Admission {
    /// Cookies and numbers are made with this random key.
    pub fn new(key: [u8; 32]) -> Admission {
        Admission { key, departures: 0 }
    }

    /// A peer has left. No number or cookie made so far is good any more: one that comes back late cannot go on with the
    /// stream that it had.
    pub fn on_departure(&mut self) {
        self.departures += 1;
    }

    /// A message came from a client.
    pub fn on_message(
        &self,
        now: Time,
        client: Client,
        message: &Message,
        standing: Standing,
        terms: Terms,
    ) -> Verdict {
        let ssrc = match standing {
            Standing::Peer { stream_ssrc } => stream_ssrc,
            Standing::Stranger | Standing::Surplus => self.stream_ssrc(client),
        };
        let offer =
            || Verdict::Answer(Message { kind: Kind::Offer, ssrc, cookie: self.cookie(client, slot(now)), terms });
        match (message.kind, standing) {
            (Kind::Hello | Kind::Start, Standing::Surplus) => Verdict::Answer(Message::plain(Kind::Busy, ssrc)),
            (Kind::Hello, _) => offer(),
            (Kind::Start, Standing::Peer { .. }) => Verdict::Answer(Message::plain(Kind::Alive, ssrc)),
            (Kind::Start, _) if self.knows(now, client, &message.cookie) => Verdict::Admit,
            // Most likely it is too old.
            (Kind::Start, _) => offer(),
            (Kind::Offer | Kind::Alive | Kind::Busy | Kind::Later, _) => Verdict::Ignore,
        }
    }

    /// The SSRC of the stream to a client: only a host that receives at its address learns it.
    pub fn stream_ssrc(&self, client: Client) -> u32 {
        let [a, b, c, d, ..] = self.hash(client, b"stream SSRC");
        u32::from_be_bytes([a, b, c, d])
    }

    /// The number of the first packet to a client, for the same reason.
    pub fn first_sequence(&self, client: Client) -> u16 {
        let [a, b, ..] = self.hash(client, b"first sequence");
        u16::from_be_bytes([a, b])
    }

    fn knows(&self, now: Time, client: Client, cookie: &[u8; COOKIE_LEN]) -> bool {
        let slot = slot(now);
        [slot, slot.wrapping_sub(1)].into_iter().any(|slot| constant_time_eq_16(&self.cookie(client, slot), cookie))
    }

    fn cookie(&self, client: Client, slot: u64) -> [u8; COOKIE_LEN] {
        *self.hash(client, &slot.to_be_bytes()).first_chunk().expect("a BLAKE3 hash has 32 bytes")
    }

    fn hash(&self, client: Client, purpose: &[u8]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        match client.address.ip() {
            IpAddr::V4(ip) => hasher.update(&ip.to_ipv6_mapped().octets()),
            IpAddr::V6(ip) => hasher.update(&ip.octets()),
        };
        hasher.update(&client.address.port().to_be_bytes()).update(&client.ssrc.to_be_bytes());
        hasher.update(&self.departures.to_be_bytes()).update(purpose);
        *hasher.finalize().as_bytes()
    }
}

fn slot(now: Time) -> u64 {
    now.as_nanos() / SLOT.as_nanos() as u64
}

/// A cookie is good in the slot in which it was made and the next.
const SLOT: Duration = Duration::from_secs(16);

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: Terms = Terms {
        payload_type: 33,
        packet_size: 1_400,
        latency_ms: 0,
        pictures: None,
        scheme: [0; 16],
        ephemeral: [0; 32],
        identity: [0; 32],
    };
    const NOW: Time = Time::from_secs(100);

    fn client(port: u16) -> Client {
        Client { address: SocketAddr::from(([192, 0, 2, 1], port)), ssrc: u32::from(port) }
    }

    fn ask(
        server: &Admission,
        now: Time,
        from: Client,
        kind: Kind,
        cookie: [u8; COOKIE_LEN],
        standing: Standing,
    ) -> Verdict {
        let message = Message { kind, ssrc: from.ssrc, cookie, terms: Terms::default() };
        server.on_message(now, from, &message, standing, TERMS)
    }

    fn cookie_for(server: &Admission, now: Time, from: Client) -> [u8; COOKIE_LEN] {
        match ask(server, now, from, Kind::Hello, [0; 16], Standing::Stranger) {
            Verdict::Answer(Message { kind: Kind::Offer, cookie, terms: TERMS, .. }) => cookie,
            other => panic!("{other:?}"),
        }
    }

    fn is_answered(verdict: Verdict, kind: Kind) -> bool {
        matches!(verdict, Verdict::Answer(message) if message.kind == kind)
    }

    #[test]
    fn who_gives_the_cookie_back_from_the_same_address_is_admitted() {
        let server = Admission::new([1; 32]);
        let cookie = cookie_for(&server, NOW, client(1));
        assert_eq!(ask(&server, NOW, client(1), Kind::Start, cookie, Standing::Stranger), Verdict::Admit);
        for other in [client(2), Client { ssrc: 9, ..client(1) }] {
            assert!(is_answered(ask(&server, NOW, other, Kind::Start, cookie, Standing::Stranger), Kind::Offer));
        }
    }

    #[test]
    fn a_cookie_is_good_for_16_seconds_at_least_and_not_for_33() {
        let server = Admission::new([1; 32]);
        let cookie = cookie_for(&server, NOW, client(1));
        let later =
            |secs| ask(&server, NOW + Duration::from_secs(secs), client(1), Kind::Start, cookie, Standing::Stranger);
        assert_eq!(later(16), Verdict::Admit);
        assert!(is_answered(later(33), Kind::Offer));
    }

    #[test]
    fn after_a_departure_all_numbers_and_cookies_are_new() {
        let mut server = Admission::new([1; 32]);
        let numbers = |server: &Admission| (server.stream_ssrc(client(1)), server.first_sequence(client(1)));
        let (cookie, before) = (cookie_for(&server, NOW, client(1)), numbers(&server));
        server.on_departure();
        assert!(is_answered(ask(&server, NOW, client(1), Kind::Start, cookie, Standing::Stranger), Kind::Offer));
        assert_ne!(numbers(&server), before);
    }

    #[test]
    fn a_peer_is_answered_with_the_number_that_its_stream_has_whoever_has_left_since() {
        let mut server = Admission::new([1; 32]);
        let peer = Standing::Peer { stream_ssrc: server.stream_ssrc(client(1)) };
        let before = ask(&server, NOW, client(1), Kind::Start, [0; 16], peer);
        server.on_departure();
        assert_eq!(ask(&server, NOW, client(1), Kind::Start, [0; 16], peer), before);
    }

    #[test]
    fn a_client_too_many_is_told_that_the_server_is_busy() {
        let server = Admission::new([1; 32]);
        for kind in [Kind::Hello, Kind::Start] {
            assert!(is_answered(ask(&server, NOW, client(2), kind, [0; 16], Standing::Surplus), Kind::Busy));
        }
        let peer = Standing::Peer { stream_ssrc: 5 };
        assert!(is_answered(ask(&server, NOW, client(1), Kind::Start, [0; 16], peer), Kind::Alive));
    }

    #[test]
    fn keys_and_clients_make_the_numbers() {
        let (server, other) = (Admission::new([1; 32]), Admission::new([2; 32]));
        assert_ne!(server.stream_ssrc(client(1)), server.stream_ssrc(client(2)));
        assert_ne!(server.stream_ssrc(client(1)), other.stream_ssrc(client(1)));
        assert_ne!(cookie_for(&server, NOW, client(1)), cookie_for(&other, NOW, client(1)));
    }

    #[test]
    fn what_only_servers_say_is_ignored() {
        for kind in [Kind::Offer, Kind::Alive, Kind::Busy, Kind::Later] {
            let verdict = ask(&Admission::new([1; 32]), NOW, client(1), kind, [0; 16], Standing::Stranger);
            assert_eq!(verdict, Verdict::Ignore);
        }
    }
}
