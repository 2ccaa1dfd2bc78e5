//! The hosts that a sender expects, and what became of each.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use weir_net::receipts::{Entry, ReceiptBook, Verdicts};
use weir_object::keys::{PublicKey, SecretKey};
use weir_object::manifest::Edition;
use weir_object::source::SourceSet;
use weir_units::Time;
use weir_wire::receipt::{Kind, NAME_LEN, Receipt};

use crate::events::{HostOutcome, HostResult};
use crate::exit::{Exit, Failure};
use crate::proof::{About, Content, Leaves};
use crate::session::Offer;

/// A receiver that is expected: by its name, and by its key where that is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expected {
    name: String,
    key: Option<[u8; 32]>,
}

/// Reads the list of hosts that an option names.
pub(crate) fn read(option: &str, path: &Path) -> Result<Vec<Expected>, Failure> {
    let refuse = |error: String| Failure::new(Exit::Usage, format!("{option} {}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
    parse(&text).map_err(refuse)
}

/// What receivers have to prove that they have.
pub(crate) fn content(sources: &SourceSet) -> Content {
    let mut content = Content::default();
    sources.files().iter().for_each(|file| content.add(file.name.clone(), Leaves::Known(file.leaves())));
    content
}

/// A set of files that a session sends, or sent before some of them were lost.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) content: Content,
    pub(crate) edition: Edition,
}

/// The book of receipts, if the session asks for them.
pub(crate) fn book(offer: &Offer, sending: Arc<Sending>, expected: &[Expected]) -> Option<ReceiptBook> {
    let key = offer.description.receipt_key?;
    let (tsi, epoch) = (offer.description.tsi, sending.edition.epoch);
    Some(ReceiptBook::new(key, tsi, epoch, verdicts(tsi, offer.secret.clone(), vec![sending], expected)))
}

/// What the book of session `tsi` is to go by: a receiver has everything if it has all of one of these sets.
pub(crate) fn verdicts(tsi: u16, secret: SecretKey, sets: Vec<Arc<Sending>>, expected: &[Expected]) -> Verdicts {
    let is_of_content = move |receipt: &Receipt| {
        let is_of = |set: &Arc<Sending>| {
            let about = About { receiver: &receipt.receiver, tsi, edition: set.edition };
            match receipt.kind {
                Kind::Receipt => set.content.proof(&about).is_ok_and(|own| own == receipt.proof),
                // Before the table has come, a receiver has nothing.
                Kind::Report => receipt.proof == about.mark() || (receipt.proof == [0; 32] && receipt.share == 0),
            }
        };
        sets.iter().any(is_of)
    };
    let names = Names::of(expected);
    Verdicts {
        is_signed: |key, bytes, signature| PublicKey::from_bytes(key).is_ok_and(|key| key.verifies(bytes, signature)),
        is_of_content: Box::new(is_of_content),
        is_expected: Box::new(move |receipt| names.has(receipt)),
        sign: Box::new(move |bytes| secret.sign(bytes)),
    }
}

/// A host a line: its name, and perhaps its public key. What follows a number sign is for people.
fn parse(text: &str) -> Result<Vec<Expected>, String> {
    let mut all: Vec<Expected> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let Some(name) = words.next() else { continue };
        let key =
            words.next().map(str::parse::<PublicKey>).transpose().map_err(|error| format!("line {number}: {error}"))?;
        if words.next().is_some() {
            return Err(format!("line {number}: expected a name, and perhaps a public key"));
        }
        let key = key.map(|key| key.to_bytes());
        if name.len() > NAME_LEN {
            return Err(format!("line {number}: a name has at most {NAME_LEN} bytes, as receivers send no more"));
        }
        if all.iter().any(|other| other.name == name) {
            return Err(format!("line {number}: {name} is named twice"));
        }
        if let Some(other) = all.iter().find(|other| key.is_some() && other.key == key) {
            return Err(format!("line {number}: the key of {name} is that of {}, too", other.name));
        }
        all.push(Expected { name: name.to_owned(), key });
    }
    if all.is_empty() { Err("it names no host".to_owned()) } else { Ok(all) }
}

impl Expected {
    /// What it is called.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its public key, if the list has it.
    pub(crate) fn key(&self) -> Option<PublicKey> {
        self.key.and_then(|key| PublicKey::from_bytes(&key).ok())
    }
}

/// Which of the expected a receiver is. One that is expected by its key is no other, whatever it calls itself.
#[derive(Debug)]
struct Names {
    /// The place in the list of each host whose key is in it.
    keys: HashMap<[u8; 32], usize>,
    /// And of each other one, by its name.
    names: HashMap<String, usize>,
}

impl Names {
    fn of(expected: &[Expected]) -> Names {
        let mut names = Names { keys: HashMap::new(), names: HashMap::new() };
        for (place, host) in expected.iter().enumerate() {
            match host.key {
                Some(key) => names.keys.insert(key, place),
                None => names.names.insert(host.name.clone(), place),
            };
        }
        names
    }

    fn place(&self, receipt: &Receipt) -> Option<usize> {
        self.keys.get(&receipt.receiver).or_else(|| self.names.get(receipt.name())).copied()
    }

    fn has(&self, receipt: &Receipt) -> bool {
        self.place(receipt).is_some()
    }
}

/// How many of the expected have everything.
pub(crate) fn complete<'e>(expected: &[Expected], entries: impl Iterator<Item = &'e Entry>) -> u64 {
    let names = Names::of(expected);
    let finished = entries.filter(|entry| entry.is_finished()).filter_map(|entry| names.place(&entry.last));
    finished.collect::<HashSet<usize>>().len() as u64
}

/// What became of each, the expected first, in their order, and then some of the others; `t_s` gives the time of an event.
pub(crate) fn results<'e>(
    expected: &[Expected],
    entries: impl Iterator<Item = &'e Entry>,
    t_s: impl Fn(Time) -> f64,
) -> Vec<HostResult> {
    let entries: Vec<&Entry> = entries.collect();
    let mut claimants: HashMap<&[u8], u64> = HashMap::new();
    entries.iter().for_each(|entry| *claimants.entry(&entry.last.name).or_default() += 1);
    let of = |entry: &Entry| HostResult {
        host: entry.last.name().to_owned(),
        expected: false,
        outcome: if entry.is_finished() { HostOutcome::Complete } else { HostOutcome::Partial },
        percent: f64::from(entry.last.share) / 100.0,
        heard_s: Some(t_s(entry.heard)),
        seconds: entry.is_finished().then_some(entry.last.elapsed_millis as f64 / 1e3),
        receiver: PublicKey::from_bytes(&entry.last.receiver).ok().map(|key| key.to_string()),
        claimants: claimants.get(&entry.last.name[..]).copied().unwrap_or(0),
    };
    // Of several that say they are it, the one that is furthest.
    let (names, mut found) = (Names::of(expected), vec![None; expected.len()]);
    for entry in &entries {
        let far = |entry: &Entry| (entry.is_finished(), entry.last.share);
        if let Some(place) = names.place(&entry.last)
            && found[place].is_none_or(|before| far(before) <= far(entry))
        {
            found[place] = Some(*entry);
        }
    }
    let of_expected = expected.iter().zip(&found).map(|(host, entry)| {
        let result = entry.map(of).unwrap_or_default();
        HostResult { host: host.name.clone(), expected: true, ..result }
    });
    let told: HashSet<&[u8; 32]> = found.iter().flatten().map(|entry| &entry.last.receiver).collect();
    let others = entries.iter().filter(|entry| !told.contains(&entry.last.receiver));
    of_expected.chain(others.take(MOST_OTHERS).map(|entry| of(entry))).collect()
}

/// Whoever has the description can invent receivers.
const MOST_OTHERS: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;
    use weir_wire::receipt::name_bytes;

    fn entry(key: u8, name: &str, kind: Kind, share: u16) -> Entry {
        let last = Receipt {
            kind,
            tsi: 7,
            receiver: [key; 32],
            received_bytes: 0,
            elapsed_millis: 1_500,
            share,
            proof: [0; 32],
            name: name_bytes(name),
        };
        Entry { last, heard: Time::from_secs(9) }
    }

    #[test]
    fn a_list_is_names_with_keys_or_without() {
        let key = weir_object::keys::SecretKey::from_seed([1; 32]).public();
        let hosts = parse(&format!("# the site\nalpha\n\n  beta {key}  # new\n")).expect("a list");
        assert_eq!(hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>(), ["alpha", "beta"]);
        assert_eq!((hosts[0].key, hosts[1].key), (None, Some(key.to_bytes())));
        for (wrong, why) in [("", "no host"), ("a b", "public key"), ("a\na", "line 2"), ("a b c", "line 1")] {
            assert!(parse(wrong).expect_err(wrong).contains(why), "{wrong}");
        }
        let twice = parse(&format!("alpha {key}\nbeta {key}")).expect_err("one receipt would count for both");
        assert!(twice.contains("line 2: the key of beta is that of alpha"), "{twice}");
        assert!(parse(&"n".repeat(65)).expect_err("no receiver can be called so").contains("64 bytes"));
        assert!(parse(&"n".repeat(64)).is_ok());
    }

    #[test]
    fn who_is_expected_by_key_is_no_other_host_whatever_it_calls_itself() {
        let hosts = [("alpha", None), ("beta", Some([2; 32]))];
        let hosts = hosts.map(|(name, key)| Expected { name: name.to_owned(), key });
        let entries = [entry(2, "alpha", Kind::Receipt, 10_000)];
        assert_eq!(complete(&hosts, entries.iter()), 1);
        let results = results(&hosts, entries.iter(), |_| 0.0);
        let outcomes: Vec<_> = results.iter().map(|it| it.outcome).collect();
        assert_eq!(outcomes, [HostOutcome::NeverHeard, HostOutcome::Complete]);
    }

    #[test]
    fn every_expected_host_has_a_result_and_others_follow() {
        let hosts = [("alpha", None), ("beta", None), ("gamma", None), ("delta", Some([4; 32]))];
        let hosts = hosts.map(|(name, key)| Expected { name: name.to_owned(), key });
        let entries = [
            entry(1, "alpha", Kind::Receipt, 10_000),
            entry(2, "beta", Kind::Report, 4_321),
            entry(3, "beta", Kind::Report, 100),
            // Another one that says it is delta.
            entry(5, "delta", Kind::Receipt, 10_000),
        ];
        assert_eq!(complete(&hosts, entries.iter()), 1);
        let results = results(&hosts, entries.iter(), |at| at.as_micros() as f64 / 1e6);
        let told: Vec<_> =
            results.iter().map(|it| (it.host.as_str(), it.expected, it.outcome, it.percent, it.claimants)).collect();
        assert_eq!(
            told,
            [
                ("alpha", true, HostOutcome::Complete, 100.0, 1),
                ("beta", true, HostOutcome::Partial, 43.21, 2),
                ("gamma", true, HostOutcome::NeverHeard, 0.0, 0),
                ("delta", true, HostOutcome::NeverHeard, 0.0, 0),
                ("beta", false, HostOutcome::Partial, 1.0, 2),
                ("delta", false, HostOutcome::Complete, 100.0, 1),
            ]
        );
        assert_eq!((results[0].seconds, results[1].seconds, results[1].heard_s), (Some(1.5), None, Some(9.0)));
    }
}
