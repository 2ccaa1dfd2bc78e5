//! A receiver that waits says why: what it saw and did not take, and where it saw nothing, what to check.
//!
//! Not here: whether to go on. A receiver waits for as long as it was told.

mod words;

use std::net::IpAddr;
use std::time::Duration;

use weir_net::Interface;
use weir_net::description::Description;
use weir_net::diagnosis::{self, Facts, Watch};
use weir_net::host::{Statistics, Strange, Stranger};
use weir_net::seal::Refusal;
use weir_object::store::Progress;
use weir_units::Time;

use crate::events::{Seen, SeenWhat, Waiting};

/// Watches a receiver for silence.
#[derive(Debug)]
pub(crate) struct Silence {
    description: Description,
    interface: Interface,
    /// The session among those of this receiver's host.
    session: usize,
    /// What the system said when the last packet came.
    before: Facts,
    /// A look at the interface itself, while nothing comes and where this user may.
    watch: Option<Watch>,
    may_watch: bool,
    /// How long nothing may come.
    patience: Duration,
    packets: u64,
    first_packet: Option<Time>,
    last_packet: Time,
    /// Packets of strangers that had come before this silence.
    strangers_before: Vec<Stranger>,
    /// When to speak next, and after how long again.
    next: Time,
    interval: Duration,
    /// What was told last: when that changes, it is told again.
    told: Option<Told>,
}

/// What a user was told of, without its numbers.
type Told = (Lack, Vec<(SeenWhat, Option<u64>)>);

/// What is lacking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lack {
    /// No packet of the session comes.
    Packets,
    /// Packets come, and every table of files is refused.
    GoodTables,
    /// Packets come, and no table of files.
    Tables,
}

impl Silence {
    /// Begins at `now`. `session` is the session's place among those of this receiver's host.
    pub(crate) fn new(description: &Description, interface: &Interface, session: usize, now: Time) -> Silence {
        Silence {
            description: description.clone(),
            interface: interface.clone(),
            session,
            before: diagnosis::facts(interface),
            watch: None,
            may_watch: true,
            patience: patience(description),
            packets: 0,
            first_packet: None,
            last_packet: now,
            strangers_before: Vec::new(),
            next: now,
            interval: patience(description),
            told: None,
        }
    }

    /// Nothing was to come until `now`.
    pub(crate) fn begin_again(&mut self, now: Time) {
        self.last_packet = now;
    }

    /// What to tell at `now`, if it is time to. The event's time is left to the caller.
    pub(crate) fn look(&mut self, now: Time, statistics: &Statistics, store: &Progress) -> Option<Waiting> {
        self.note_packets(now, statistics);
        let Some(lack) = self.lack(now, store) else {
            (self.next, self.interval, self.told) = (now, self.patience, None);
            return None;
        };
        let seen = self.seen(lack, statistics, store);
        let told = (lack, seen.iter().map(|seen| (seen.what, seen.tsi)).collect());
        let is_news = self.told.as_ref().is_some_and(|before| *before != told);
        let is_due = now >= self.next || is_news && now + self.interval >= self.next + self.patience;
        if !is_due {
            return None;
        }
        (self.next, self.interval) =
            (now + self.interval, (self.interval * 2).min(LONGEST_INTERVAL.max(self.patience)));
        self.told = Some(told);
        let waited = now.since(if lack == Lack::Packets { self.last_packet } else { self.first_packet? });
        Some(self.tell(lack, waited, seen))
    }

    fn note_packets(&mut self, now: Time, statistics: &Statistics) {
        if statistics.received.packets > self.packets {
            (self.packets, self.last_packet) = (statistics.received.packets, now);
            self.first_packet.get_or_insert(now);
            self.watch = None;
            self.strangers_before = self.strangers(statistics).copied().collect();
        } else if self.watch.is_none() && self.may_watch && now.since(self.last_packet) >= SOON {
            self.before = diagnosis::facts(&self.interface);
            self.watch = Watch::start(&self.interface, &self.description.channels).ok();
            self.may_watch = self.watch.is_some();
        }
    }

    fn strangers<'s>(&self, statistics: &'s Statistics) -> impl Iterator<Item = &'s Stranger> + use<'s> {
        let session = self.session;
        statistics.strangers.iter().filter(move |stranger| stranger.session == session)
    }

    fn lack(&self, now: Time, store: &Progress) -> Option<Lack> {
        let has_table = store.manifest_complete || store.files_total > 0;
        let since_first = self.first_packet.map_or(Duration::ZERO, |first| now.since(first));
        if now.since(self.last_packet) >= self.patience {
            Some(Lack::Packets)
        } else if !has_table && store.rejected_manifests > 0 && since_first >= self.patience {
            Some(Lack::GoodTables)
        } else if !has_table && since_first >= PATIENCE_FOR_TABLES.max(self.patience) {
            Some(Lack::Tables)
        } else {
            None
        }
    }

    /// What came in this silence and was not taken.
    fn seen(&mut self, lack: Lack, statistics: &Statistics, store: &Progress) -> Vec<Seen> {
        let mut seen = Vec::new();
        // Where packets of the session come, others next to them are nobody's business.
        for stranger in self.strangers(statistics).filter(|_| lack == Lack::Packets) {
            let is_same = |old: &&Stranger| (old.why, old.from) == (stranger.why, stranger.from);
            let before = self.strangers_before.iter().find(is_same).map_or(0, |old| old.packets);
            if stranger.packets > before {
                seen.push(of_stranger(stranger, stranger.packets - before));
            }
        }
        if store.rejected_manifests > 0 && lack == Lack::GoodTables {
            seen.push(Seen::new(SeenWhat::UnsignedTable, None, store.rejected_manifests));
        }
        if lack == Lack::Packets && seen.is_empty() {
            seen.extend(self.passed_by());
        }
        seen.sort_by_key(|seen| std::cmp::Reverse(seen.packets));
        seen
    }

    /// What reaches the interface, and not this program.
    fn passed_by(&mut self) -> Option<Seen> {
        let seen = self.watch.as_mut()?.look();
        let source = self.description.sender_address();
        let what = match seen.sender {
            Some(sender) if source.is_some_and(|source| source != sender) => SeenWhat::OtherSource,
            _ if seen.first_channel > 0 => SeenWhat::Blocked,
            _ => SeenWhat::Flooded,
        };
        let packets = if seen.first_channel > 0 { seen.first_channel } else { seen.other_channels };
        (packets > 0).then(|| Seen::new(what, seen.sender, packets))
    }

    fn tell(&mut self, lack: Lack, waited: Duration, seen: Vec<Seen>) -> Waiting {
        let querier = self.watch.as_mut().map(|watch| watch.look().querier);
        let facts = diagnosis::facts(&self.interface);
        let reverse_path_drops = facts.reverse_path_drops.zip(self.before.reverse_path_drops);
        let about = words::About {
            description: &self.description,
            interface: &self.interface,
            facts: &facts,
            querier,
            has_reverse_path_drops: reverse_path_drops.is_some_and(|(now, before)| now > before),
        };
        let check = if seen.is_empty() { about.check(lack) } else { Vec::new() };
        let message = about.message(lack, waited, &seen, &check);
        Waiting { t_s: 0.0, waited_s: waited.as_secs_f64(), message, seen, check }
    }
}

/// As long as a user waits before he wonders, or a few packets of the lowest rate take.
fn patience(description: &Description) -> Duration {
    let lowest = description.control.as_ref().and_then(|control| {
        let rate = control.ladder.rates().first()?;
        Some(control.packet_size / *rate * PACKETS_TO_WAIT_FOR)
    });
    lowest.unwrap_or(Duration::ZERO).max(PATIENCE)
}

fn of_stranger(stranger: &Stranger, packets: u64) -> Seen {
    let (what, number) = match stranger.why {
        Strange::Session(tsi) => (SeenWhat::OtherSession, Some(tsi)),
        Strange::Source => (SeenWhat::OtherSource, None),
        Strange::Channel => (SeenWhat::OtherChannel, None),
        Strange::Code(code) => (SeenWhat::UnknownFec, Some(u64::from(code))),
        Strange::Unreadable => (SeenWhat::Unreadable, None),
        Strange::Seal(Refusal::Unsealed) => (SeenWhat::Unsealed, None),
        Strange::Seal(Refusal::Forged) => (SeenWhat::Forged, None),
        Strange::Seal(Refusal::Old | Refusal::Repeated) => (SeenWhat::Replayed, None),
    };
    let seen = Seen::new(what, Some(stranger.from), packets);
    match what {
        SeenWhat::UnknownFec => Seen { fec: number, ..seen },
        _ => Seen { tsi: number, ..seen },
    }
}

impl Seen {
    fn new(what: SeenWhat, from: Option<IpAddr>, packets: u64) -> Seen {
        Seen { what, from: from.map(|from| from.to_string()), tsi: None, fec: None, packets }
    }
}

/// A user who waits for this long begins to wonder. It has to be below five seconds with what a busy machine adds.
const PATIENCE: Duration = Duration::from_secs(4);
/// So many lost in a row are no accident.
const PACKETS_TO_WAIT_FOR: u32 = 3;
/// From now on it is worth looking closer.
const SOON: Duration = Duration::from_secs(1);
/// A large table on the lowest channel alone takes a while.
const PATIENCE_FOR_TABLES: Duration = Duration::from_secs(15);
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests;
