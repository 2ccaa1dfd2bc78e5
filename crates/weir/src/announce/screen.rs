//! Which announcements are believed: those that a pinned key has signed, and that still hold.
//!
//! An announcement is nothing but bytes until its signature was found good: it is unpacked, within bounds, and of its text two lines are
//! looked for, the key and the signature. A packet that is repeated is checked once, and the number of new packets that are checked
//! each second is limited, so that a flood costs little.

use std::collections::{BTreeSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use weir_net::description::Description;
use weir_object::keys::PublicKey;
use weir_units::{Time, parse_hex};
use weir_wire::Sap;

use super::{WITHDRAWN, text};
use crate::events::Outcome;
use crate::trust;

/// What an announcement is found to be.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// It came before.
    Known,
    /// It is not believed, for this reason.
    Refused(Outcome),
    /// Its sender says so, now.
    Believed(Box<Believed>),
}

/// An announcement that its sender has signed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Believed {
    pub(super) key: PublicKey,
    pub(super) description: Description,
    pub(super) epoch: u64,
    /// The session has ended.
    pub(super) is_withdrawn: bool,
}

/// Looks at announcements.
pub(super) struct Screen {
    keys: Vec<PublicKey>,
    believed: Seen,
    refused: Seen,
    budget: Budget,
}

impl Screen {
    /// Believes what these keys sign.
    pub(super) fn new(keys: Vec<PublicKey>) -> Screen {
        Screen { keys, believed: Seen::default(), refused: Seen::default(), budget: Budget::default() }
    }

    /// Looks at a packet that came at `now`, which is `date` by the wall clock in seconds of the NTP era.
    pub(super) fn look(&mut self, now: Time, date: u64, from: SocketAddr, packet: &[u8]) -> Verdict {
        let digest = *blake3::hash(packet).as_bytes();
        if self.believed.has(&digest) || self.refused.has(&digest) {
            return Verdict::Known;
        }
        if !self.budget.spend(now, from.ip()) {
            return Verdict::Refused(Outcome::Flood);
        }
        match self.read(date, packet) {
            Ok(believed) => {
                self.believed.add(digest);
                Verdict::Believed(Box::new(believed))
            }
            Err(reason) => {
                // The clock may have been wrong, and be set.
                if reason != Outcome::Expired {
                    self.refused.add(digest);
                }
                Verdict::Refused(reason)
            }
        }
    }

    fn read(&self, date: u64, packet: &[u8]) -> Result<Believed, Outcome> {
        let sap = Sap::decode(packet).map_err(|_| Outcome::Unreadable)?;
        let text = text(&sap).ok_or(Outcome::Unreadable)?;
        let named = text.lines().find_map(|line| line.trim_end().strip_prefix(KEY));
        let named: Option<[u8; 32]> = named.and_then(|hex| parse_hex(hex.trim()));
        let key = *self.keys.iter().find(|key| Some(key.to_bytes()) == named).ok_or(Outcome::OtherKey)?;
        if trust::is_signed(&text, &key) != Some(true) {
            return Err(Outcome::BadSignature);
        }
        let description: Description = text.parse().map_err(|_| Outcome::Unreadable)?;
        let (Some(epoch), Some(expires)) = (description.epoch, description.expires) else {
            return Err(Outcome::Unreadable);
        };
        if description.public_key != named {
            return Err(Outcome::OtherKey);
        }
        if expires <= date {
            return Err(Outcome::Expired);
        }
        let is_withdrawn = text.lines().any(|line| line.trim_end() == WITHDRAWN);
        Ok(Believed { key, description, epoch, is_withdrawn })
    }
}

/// Digests of packets, the last ones.
#[derive(Debug, Default)]
struct Seen {
    digests: BTreeSet<[u8; 32]>,
    order: VecDeque<[u8; 32]>,
}

impl Seen {
    fn has(&self, digest: &[u8; 32]) -> bool {
        self.digests.contains(digest)
    }

    fn add(&mut self, digest: [u8; 32]) {
        if self.digests.insert(digest) {
            self.order.push_back(digest);
        }
        if self.order.len() > MOST_SEEN
            && let Some(oldest) = self.order.pop_front()
        {
            self.digests.remove(&oldest);
        }
    }
}

/// Limits how many new announcements are checked. Each source address is hashed, with a secret key, to one of a few accounts. A flood from one
/// address uses up one account; a flood from forged addresses can use up all of them. A sender that shares its account with a flood is
/// heard once the key has changed.
#[derive(Clone)]
struct Budget {
    /// What is left of each, and since when.
    accounts: [(u64, Time); ACCOUNTS],
    hasher: RandomState,
    /// When the key of the hash changes.
    key_expires: Time,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { accounts: [(BURST, Time::ZERO); ACCOUNTS], hasher: RandomState::new(), key_expires: Time::ZERO }
    }
}

impl Budget {
    fn spend(&mut self, now: Time, from: IpAddr) -> bool {
        if now >= self.key_expires {
            self.hasher = RandomState::new();
            self.key_expires = now + KEY_LIFETIME;
        }
        let (left, since) = &mut self.accounts[(self.hasher.hash_one(from) % ACCOUNTS as u64) as usize];
        let earned = now.since(*since).as_secs();
        if earned > 0 {
            *left = left.saturating_add(earned.saturating_mul(EACH_SECOND)).min(BURST);
            *since = now;
        }
        let has_some = *left > 0;
        *left = left.saturating_sub(1);
        has_some
    }
}

const KEY: &str = "a=weir-key:ed25519 ";
const MOST_SEEN: usize = 1_024;
/// Announcements of one account, a second and at once: altogether 640 a second.
const EACH_SECOND: u64 = 10;
const BURST: u64 = 64;
const ACCOUNTS: usize = 64;
/// An account that a flood has used up is full again after 6.4 s.
const KEY_LIFETIME: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use weir_net::description::Sealing;
    use weir_object::keys::SecretKey;

    const DATE: u64 = 4_000_000_000;

    fn description(secret: &SecretKey, name: &str) -> Description {
        Description {
            name: name.to_owned(),
            tsi: 7,
            flute_version: 2,
            source: None,
            channels: vec!["239.255.0.1:5004".parse().expect("an address")],
            ttl: 1,
            control: None,
            symbol_size: Some(1_400),
            public_key: Some(secret.public().to_bytes()),
            epoch: Some(5),
            expires: Some(DATE + 3_600),
            control_address: None,
            receipt_key: None,
            priority: None,
            sessions: None,
            sealing: Sealing::default(),
            media: None,
        }
    }

    fn packet(text: &str) -> Vec<u8> {
        let payload = super::super::compressed(text).expect("memory takes it");
        let origin = IpAddr::from([192, 0, 2, 7]);
        let sap = Sap { is_deletion: false, is_compressed: true, hash: 0, origin, payload: &payload };
        let mut header = [0; weir_wire::sap::MAX_HEADER];
        let length = sap.encode_header(&mut header);
        [&header[..length], &payload[..]].concat()
    }

    fn from() -> SocketAddr {
        "192.0.2.7:9875".parse().expect("an address")
    }

    fn look(screen: &mut Screen, date: u64, text: &str) -> Verdict {
        screen.look(Time::from_secs(1), date, from(), &packet(text))
    }

    #[test]
    fn what_a_pinned_key_has_signed_is_believed_once_and_as_long_as_it_holds() {
        let [ours, other] = [1, 2].map(|seed| SecretKey::from_seed([seed; 32]));
        let mut screen = Screen::new(vec![ours.public()]);
        let text = |name| description(&ours, name).to_string();
        let good = trust::signed(&text("a"), &ours);
        assert_eq!(look(&mut screen, DATE + 3_600, &good), Verdict::Refused(Outcome::Expired));
        let Verdict::Believed(believed) = look(&mut screen, DATE, &good) else { panic!("it is good") };
        assert_eq!((believed.epoch, believed.is_withdrawn, believed.description.name.as_str()), (5, false, "a"));
        assert_eq!(look(&mut screen, DATE, &good), Verdict::Known);

        let cases = [
            (trust::signed(&description(&other, "b").to_string(), &other), Outcome::OtherKey),
            (trust::signed(&text("c"), &other), Outcome::BadSignature),
            (text("d"), Outcome::BadSignature),
            (good.replace("s=a", "s=e"), Outcome::BadSignature),
            ("v=0\r\n".to_owned(), Outcome::OtherKey),
            (trust::signed(&text("f").replace("v=0", "v=9"), &ours), Outcome::Unreadable),
            (trust::signed(&text("g").replace(&format!("t=0 {}", DATE + 3_600), "t=0 0"), &ours), Outcome::Unreadable),
            (
                trust::signed(&format!("{}a=weir-key:ed25519 {}\r\n", text("h"), "00".repeat(32)), &ours),
                Outcome::OtherKey,
            ),
        ];
        for (text, reason) in cases {
            assert_eq!(look(&mut screen, DATE, &text), Verdict::Refused(reason), "{text}");
            assert_eq!(look(&mut screen, DATE, &text), Verdict::Known, "{text}");
        }
        let ended = trust::signed(&format!("{}{WITHDRAWN}\r\n", text("a")), &ours);
        assert!(matches!(look(&mut screen, DATE, &ended), Verdict::Believed(believed) if believed.is_withdrawn));
    }

    #[test]
    fn a_flood_is_looked_at_now_and_then_and_takes_no_memory() {
        let ours = SecretKey::from_seed([1; 32]);
        let mut screen = Screen::new(vec![ours.public()]);
        let mut looked = 0_u32;
        for number in 0..50_000_u32 {
            // From 200 addresses, over ten seconds.
            let from = SocketAddr::from(([10, 0, 0, (number % 200) as u8], 9875));
            let now = Time::from_secs(u64::from(number) / 5_000);
            let verdict = screen.look(now, DATE, from, &number.to_be_bytes());
            looked += u32::from(verdict != Verdict::Refused(Outcome::Flood));
        }
        assert!(looked <= 64 * (64 + 10 * 10), "{looked}");
        assert!(screen.refused.digests.len() <= MOST_SEEN && screen.refused.order.len() <= MOST_SEEN);
    }

    #[test]
    fn who_floods_from_an_address_of_his_own_keeps_no_other_from_being_heard() {
        let ours = SecretKey::from_seed([1; 32]);
        let mut screen = Screen::new(vec![ours.public()]);
        let now = Time::from_secs(1);
        for number in 0..1_000_u32 {
            screen.look(now, DATE, SocketAddr::from(([10, 0, 0, 1], 9875)), &number.to_be_bytes());
        }
        // He shares an account with one address in 64.
        let packet = packet(&trust::signed(&description(&ours, "a").to_string(), &ours));
        let verdicts = (2..=255).filter(|last| {
            let from = SocketAddr::from(([192, 0, 2, *last], 9875));
            screen.budget.accounts[(screen.budget.hasher.hash_one(from.ip()) % ACCOUNTS as u64) as usize].0 > 0
        });
        assert!(verdicts.count() > 200);
        let free = (2..=255).map(|last| SocketAddr::from(([192, 0, 2, last], 9875)));
        let mut believed = free.map(|from| screen.look(now, DATE, from, &packet));
        assert!(believed.any(|verdict| matches!(verdict, Verdict::Believed(_))));
    }
    #[test]
    fn who_shares_an_account_with_a_flood_is_heard_again_when_the_key_has_changed() {
        let mut budget = Budget::default();
        let flooder = IpAddr::from([10, 0, 0, 1]);
        let mut unheard: Vec<IpAddr> =
            (0..4_096).map(|number| IpAddr::from((0x0a01_0000_u32 + number).to_be_bytes())).collect();
        let mut counts = Vec::new();
        for second in 0..60 {
            let now = Time::from_secs(second);
            while budget.spend(now, flooder) {}
            // Only the flood spends.
            unheard.retain(|address| !budget.clone().spend(now, *address));
            counts.push(unheard.len());
        }
        assert!(counts[0] > 0, "with 4096 addresses, some share the flood's account");
        assert_eq!(counts[9], counts[0], "the key holds for ten seconds");
        assert_eq!(counts.last(), Some(&0), "{counts:?}");
    }
}
