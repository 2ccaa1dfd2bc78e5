//! The sender's side of the meeting: who may become its viewer. A state machine without clock or socket.
//!
//! Nothing is sent to an address that did not prove that it receives there. The proof is a cookie: a keyed hash of the
//! address, the viewer's number and the time, so that the door remembers nobody whom it has not let in.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use weir_units::Time;
use weir_wire::rtcp::meeting::{COOKIE_LEN, Kind, Message, Terms};

/// A viewer, by its address and the number (SSRC) that it gave itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Viewer {
    /// Where it receives.
    pub address: SocketAddr,
    /// Its SSRC.
    pub ssrc: u32,
}

/// What is to be done about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Answer it.
    Answer(Message),
    /// It has proved its address: it is the viewer now.
    Admit(Viewer),
    /// Nothing: it is not a message to a sender.
    Ignore,
}

/// The door.
#[derive(Debug, Clone)]
pub struct Door {
    key: [u8; 32],
    /// How many viewers have left.
    departures: u64,
}

impl Door {
    /// A door whose cookies and numbers are made with this random key.
    pub fn new(key: [u8; 32]) -> Door {
        Door { key, departures: 0 }
    }

    /// The viewer has left. No number or cookie made so far is good any more: one that comes back late cannot go on with the
    /// stream that it had.
    pub fn on_departure(&mut self) {
        self.departures += 1;
    }

    /// A message came from `from` while `guest` is the viewer.
    pub fn on_message(
        &self,
        now: Time,
        from: SocketAddr,
        message: &Message,
        guest: Option<Viewer>,
        terms: Terms,
    ) -> Verdict {
        let viewer = Viewer { address: from, ssrc: message.ssrc };
        let ssrc = self.stream_ssrc(viewer);
        let offer =
            || Verdict::Answer(Message { kind: Kind::Offer, ssrc, cookie: self.cookie(viewer, slot(now)), terms });
        match (message.kind, guest) {
            (Kind::Hello | Kind::Start, Some(guest)) if guest != viewer => {
                Verdict::Answer(Message::plain(Kind::Busy, ssrc))
            }
            (Kind::Hello, _) => offer(),
            (Kind::Start, Some(_)) => Verdict::Answer(Message::plain(Kind::Alive, ssrc)),
            (Kind::Start, None) if self.knows(now, viewer, &message.cookie) => Verdict::Admit(viewer),
            // Most likely it is too old.
            (Kind::Start, None) => offer(),
            (Kind::Offer | Kind::Alive | Kind::Busy, _) => Verdict::Ignore,
        }
    }

    /// The SSRC of the stream to a viewer: only who receives at its address can know it.
    pub fn stream_ssrc(&self, viewer: Viewer) -> u32 {
        let [a, b, c, d, ..] = self.hash(viewer, b"stream SSRC");
        u32::from_be_bytes([a, b, c, d])
    }

    /// The number of the first packet to a viewer, for the same reason.
    pub fn first_sequence(&self, viewer: Viewer) -> u16 {
        let [a, b, ..] = self.hash(viewer, b"first sequence");
        u16::from_be_bytes([a, b])
    }

    fn knows(&self, now: Time, viewer: Viewer, cookie: &[u8; COOKIE_LEN]) -> bool {
        let slot = slot(now);
        [slot, slot.wrapping_sub(1)].into_iter().any(|slot| is_same(&self.cookie(viewer, slot), cookie))
    }

    fn cookie(&self, viewer: Viewer, slot: u64) -> [u8; COOKIE_LEN] {
        *self.hash(viewer, &slot.to_be_bytes()).first_chunk().expect("a BLAKE3 hash has 32 bytes")
    }

    fn hash(&self, viewer: Viewer, purpose: &[u8]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        match viewer.address.ip() {
            IpAddr::V4(ip) => hasher.update(&ip.to_ipv6_mapped().octets()),
            IpAddr::V6(ip) => hasher.update(&ip.octets()),
        };
        hasher.update(&viewer.address.port().to_be_bytes()).update(&viewer.ssrc.to_be_bytes());
        hasher.update(&self.departures.to_be_bytes()).update(purpose);
        *hasher.finalize().as_bytes()
    }
}

/// All bytes are compared whatever the first ones are, so that the time taken tells nothing.
fn is_same(one: &[u8; COOKIE_LEN], other: &[u8; COOKIE_LEN]) -> bool {
    let difference = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
    std::hint::black_box(difference) == 0
}

fn slot(now: Time) -> u64 {
    now.as_nanos() / SLOT.as_nanos() as u64
}

/// A cookie is good in the slot in which it was made and the next.
const SLOT: Duration = Duration::from_secs(16);

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: Terms = Terms { payload_type: 33, packet_size: 1_400, scheme: [0; 16] };
    const NOW: Time = Time::from_secs(100);

    fn viewer(port: u16) -> Viewer {
        Viewer { address: SocketAddr::from(([192, 0, 2, 1], port)), ssrc: u32::from(port) }
    }

    fn ask(door: &Door, now: Time, from: Viewer, kind: Kind, cookie: [u8; 16], guest: Option<Viewer>) -> Verdict {
        let message = Message { kind, ssrc: from.ssrc, cookie, terms: Terms::default() };
        door.on_message(now, from.address, &message, guest, TERMS)
    }

    fn cookie_for(door: &Door, now: Time, from: Viewer) -> [u8; 16] {
        match ask(door, now, from, Kind::Hello, [0; 16], None) {
            Verdict::Answer(Message { kind: Kind::Offer, cookie, terms: TERMS, .. }) => cookie,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn who_gives_the_cookie_back_from_the_same_address_is_let_in() {
        let door = Door::new([1; 32]);
        let cookie = cookie_for(&door, NOW, viewer(1));
        assert_eq!(ask(&door, NOW, viewer(1), Kind::Start, cookie, None), Verdict::Admit(viewer(1)));
        for other in [viewer(2), Viewer { ssrc: 9, ..viewer(1) }] {
            let verdict = ask(&door, NOW, other, Kind::Start, cookie, None);
            assert!(matches!(verdict, Verdict::Answer(Message { kind: Kind::Offer, .. })), "{verdict:?}");
        }
    }

    #[test]
    fn a_cookie_is_good_for_16_seconds_at_least_and_not_for_33() {
        let door = Door::new([1; 32]);
        let cookie = cookie_for(&door, NOW, viewer(1));
        let later = |secs| ask(&door, NOW + Duration::from_secs(secs), viewer(1), Kind::Start, cookie, None);
        assert_eq!(later(16), Verdict::Admit(viewer(1)));
        assert!(matches!(later(33), Verdict::Answer(Message { kind: Kind::Offer, .. })));
    }

    #[test]
    fn after_a_departure_all_numbers_and_cookies_are_new() {
        let mut door = Door::new([1; 32]);
        let (cookie, ssrc, first) =
            (cookie_for(&door, NOW, viewer(1)), door.stream_ssrc(viewer(1)), door.first_sequence(viewer(1)));
        door.on_departure();
        let verdict = ask(&door, NOW, viewer(1), Kind::Start, cookie, None);
        assert!(matches!(verdict, Verdict::Answer(Message { kind: Kind::Offer, .. })), "{verdict:?}");
        assert_ne!((door.stream_ssrc(viewer(1)), door.first_sequence(viewer(1))), (ssrc, first));
    }

    #[test]
    fn a_second_viewer_is_told_that_the_sender_is_busy() {
        let door = Door::new([1; 32]);
        for kind in [Kind::Hello, Kind::Start] {
            let verdict = ask(&door, NOW, viewer(2), kind, [0; 16], Some(viewer(1)));
            assert!(matches!(verdict, Verdict::Answer(Message { kind: Kind::Busy, .. })), "{verdict:?}");
        }
        let verdict = ask(&door, NOW, viewer(1), Kind::Start, [0; 16], Some(viewer(1)));
        assert!(matches!(verdict, Verdict::Answer(Message { kind: Kind::Alive, .. })), "{verdict:?}");
    }

    #[test]
    fn keys_and_viewers_make_the_numbers() {
        let (door, other) = (Door::new([1; 32]), Door::new([2; 32]));
        assert_ne!(door.stream_ssrc(viewer(1)), door.stream_ssrc(viewer(2)));
        assert_ne!(door.stream_ssrc(viewer(1)), other.stream_ssrc(viewer(1)));
        assert_ne!(cookie_for(&door, NOW, viewer(1)), cookie_for(&other, NOW, viewer(1)));
    }

    #[test]
    fn what_only_senders_say_is_ignored() {
        for kind in [Kind::Offer, Kind::Alive, Kind::Busy] {
            assert_eq!(ask(&Door::new([1; 32]), NOW, viewer(1), kind, [0; 16], None), Verdict::Ignore);
        }
    }
}
