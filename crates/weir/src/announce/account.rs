//! What was announced and is not believed: told at once, and then once a minute for each reason.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use weir_units::Time;

use crate::events::{Announced, Outcome};

/// The account, one line a reason.
#[derive(Debug, Default)]
pub(super) struct Account {
    lines: BTreeMap<Outcome, Line>,
}

#[derive(Debug)]
struct Line {
    untold: u64,
    from: SocketAddr,
    told: Option<Time>,
}

impl Account {
    /// Notes an announcement that is not believed.
    pub(super) fn note(&mut self, reason: Outcome, from: SocketAddr) {
        let line = self.lines.entry(reason).or_insert(Line { untold: 0, from, told: None });
        line.untold += 1;
        line.from = from;
    }

    /// What is to be told now.
    pub(super) fn due(&mut self, now: Time) -> Vec<Announced> {
        let due = |line: &Line| line.untold > 0 && line.told.is_none_or(|told| now.since(told) >= INTERVAL);
        let due = self.lines.iter_mut().filter(|(_, line)| due(line));
        due.map(|(reason, line)| {
            line.told = Some(now);
            let announcements = std::mem::take(&mut line.untold);
            Announced {
                outcome: *reason,
                from: line.from.to_string(),
                announcements,
                message: words(*reason, announcements, line.from),
                ..Announced::default()
            }
        })
        .collect()
    }
}

fn words(reason: Outcome, announcements: u64, from: SocketAddr) -> String {
    let what = match reason {
        Outcome::OtherKey => {
            "not signed by a key of --sender-key, and not taken: of another sender, or of a key that is to be given too"
        }
        Outcome::BadSignature => {
            "not taken: changed on the way, or forged in the name of a sender that --sender-key names"
        }
        Outcome::Expired => {
            "not taken, as they do not hold any more by this host's clock: somebody plays old ones again, or the clock of this host or the \
             sender's is wrong"
        }
        Outcome::Unreadable => "not taken: they are no announcements of Weir",
        Outcome::Flood => "not looked at, as more come than can be: find the host that sends them",
        _ => "not taken",
    };
    format!("{announcements} announcements, the last from {from}, are {what}")
}

const INTERVAL: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_told_at_once_and_then_with_its_count_once_a_minute() {
        let from = |last: u8| SocketAddr::from(([10, 0, 0, last], 9875));
        let mut account = Account::default();
        let at = Time::from_secs;
        account.note(Outcome::OtherKey, from(1));
        account.note(Outcome::Flood, from(2));
        let told = account.due(at(1));
        assert_eq!(
            told.iter().map(|told| (told.outcome, told.announcements)).collect::<Vec<_>>(),
            [(Outcome::OtherKey, 1), (Outcome::Flood, 1)]
        );
        for _ in 0..500 {
            account.note(Outcome::OtherKey, from(3));
        }
        assert!(account.due(at(60)).is_empty());
        let [told] = &account.due(at(61))[..] else { panic!("one is due") };
        assert_eq!((told.announcements, told.from.as_str()), (500, "10.0.0.3:9875"));
        assert!(account.due(at(1_000)).is_empty());
    }
}
