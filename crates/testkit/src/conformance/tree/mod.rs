//! Scenarios for streams over a tree, with every scheme of the registry that is for them.
//!
//! What is claimed is the same everywhere, since it is what such a scheme is for: every payload comes once and in order to
//! every receiver, the stream ends for everyone, and the sender hears of that. A scenario says what is done to the
//! packets, and each of these impairments must have struck. Not here: rates, which schemes claim by arithmetic of their own.

mod scenarios;
pub mod simulated;
pub mod sockets;
mod tapped;

use std::fmt;
use std::time::Duration;

use weir_core::registry::{Parties, SCHEMES, Scheme};
use weir_link::LinkConfig;
use weir_units::Time;

/// Members of a tree, and what happens to them and their packets.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// The claim in short.
    pub name: &'static str,
    /// Who is in the tree besides the sender.
    pub members: &'static [Member],
    /// What happens.
    pub impairments: &'static [Impairment],
    /// By how many seconds each member's clock is ahead of the sender's; zero where the list is too short.
    pub clocks_ahead: &'static [i64],
    /// How many payloads the sender has.
    pub payloads: u64,
    /// Within how many seconds from the sender's start everything must be done.
    pub seconds: u64,
}

/// A member on a host of its own, behind a link of its own.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    /// The number of the one above it: 0 is the sender, 1 the first member.
    pub above: usize,
    /// It has no application, but members below it.
    pub is_agent: bool,
    /// Its link without impairments, either way.
    pub link: &'static str,
}

/// What is done to packets or applications.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Impairment {
    /// Every member's link loses packets both ways: a link's `loss`.
    Loss(&'static str),
    /// This share of all packets, of data as well as of what is said about it, goes out twice.
    Doubling(f64),
    /// The delay of every member's link varies so that packets overtake one another both ways: a link's `jitter`.
    Overtaking(&'static str),
    /// The application of a member takes this many milliseconds for a payload, where the others read as fast as they come.
    SlowReader {
        /// The member's number.
        member: usize,
        /// From one payload to the next.
        gap_ms: u64,
    },
}

/// A scenario with a scheme.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// The scenario.
    pub scenario: Scenario,
    /// The scheme.
    pub scheme: &'static Scheme,
}

/// Every scenario with every scheme of the registry for streams over a tree.
pub fn cases() -> impl Iterator<Item = Case> {
    let trees = SCHEMES.iter().copied().filter(|scheme| matches!(scheme.parties, Parties::Tree(_)));
    trees.flat_map(|scheme| scenarios::SCENARIOS.iter().map(move |&scenario| Case { scenario, scheme }))
}

/// What came of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// When the sender said that its stream is with everyone, from its start on.
    pub confirmed: Vec<Duration>,
    /// By member.
    pub members: Vec<MemberOutcome>,
    /// Packets that went out twice.
    pub doubled: u64,
    /// By how many seconds each member's clock was ahead of the sender's.
    pub clocks_ahead: Vec<i64>,
}

/// What came of a member.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemberOutcome {
    /// The numbers of the payloads that its application got.
    pub delivered: Vec<u64>,
    /// When it said that it has delivered the last payload, from the sender's start on, and how many it had delivered then.
    pub complete: Vec<(Duration, usize)>,
    /// Packets that its link lost: to it, and from it; on sockets from all members that the same node is above.
    pub lost: [u64; 2],
    /// Packets that others overtook on its link, likewise.
    pub overtaken: [u64; 2],
    /// Payloads that it sent to members below it.
    pub repaired: u64,
    /// Packets that it sent to others than the one above it and those below it. Not seen on sockets, where a member asks others for
    /// a place in the tree.
    pub misdirected: u64,
}

impl Case {
    /// Asserts that everything holds. Panics with all that does not; `run` says what gave the outcome.
    pub fn assert_holds(&self, outcome: &Outcome, run: &str) {
        let broken = self.broken(outcome);
        assert!(broken.is_empty(), "{self}, {run}:\n  {}", broken.join("\n  "));
    }

    /// What does not hold.
    pub fn broken(&self, outcome: &Outcome) -> Vec<String> {
        let mut broken = Vec::new();
        let mut check = |holds: bool, what: String| broken.extend((!holds).then_some(what));
        let confirmed = outcome.confirmed.first().copied();
        check(outcome.confirmed.len() == 1, format!("the end is confirmed at {:?}", outcome.confirmed));
        for ((member, what), number) in self.scenario.members.iter().zip(&outcome.members).zip(1..) {
            let (asked, ahead) = (self.ahead(number), outcome.clocks_ahead[number - 1]);
            check(asked == ahead, format!("the clock of member {number} was {ahead} s ahead"));
            check(what.misdirected == 0, format!("member {number} wrote to {} strangers", what.misdirected));
            if member.is_agent {
                check(what.delivered.is_empty(), format!("agent {number} delivers {} payloads", what.delivered.len()));
                continue;
            }
            let came = &what.delivered;
            let count = self.scenario.payloads;
            check(came.iter().copied().eq(0..count), format!("receiver {number} got {} payloads", runs(came)));
            let ends = matches!(what.complete[..], [(_, delivered)] if delivered as u64 == count);
            check(ends, format!("receiver {number} is complete at {:?}", what.complete));
            // What its application has not read yet is with the receiver.
            let is_slow = self.slow_reader().is_some_and(|(slow, _)| slow == number);
            let is_first =
                what.complete.first().is_some_and(|(at, _)| confirmed.is_some_and(|confirmed| *at <= confirmed));
            check(is_slow || is_first, format!("confirmed at {confirmed:?}, complete at {:?}", what.complete));
        }
        self.scenario.impairments.iter().for_each(|impairment| self.check_strikes(*impairment, outcome, &mut check));
        broken
    }

    /// Each impairment struck.
    fn check_strikes(&self, impairment: Impairment, outcome: &Outcome, check: &mut impl FnMut(bool, String)) {
        for (what, number) in outcome.members.iter().zip(1..) {
            match impairment {
                Impairment::Loss(_) => {
                    check(!what.lost.contains(&0), format!("link {number} lost {:?} packets", what.lost));
                    let is_agent = self.scenario.members[number - 1].is_agent;
                    check(!is_agent || what.repaired > 0, format!("agent {number} had nothing to repair"));
                }
                Impairment::Overtaking(_) => {
                    let overtaken = format!("on link {number} {:?} packets were overtaken", what.overtaken);
                    check(!what.overtaken.contains(&0), overtaken);
                }
                Impairment::Doubling(_) | Impairment::SlowReader { .. } => {}
            }
        }
        match impairment {
            // The share is of thousands of packets.
            Impairment::Doubling(share) => {
                let least = (self.scenario.payloads as f64 * share / 2.0) as u64;
                check(outcome.doubled >= least, format!("{} packets were doubled", outcome.doubled));
            }
            Impairment::SlowReader { gap_ms, .. } => {
                let held = self.scenario.payloads.saturating_sub(BUFFER + READER_ROOM);
                let least = Duration::from_millis(held * gap_ms);
                let waited = outcome.confirmed.first().is_some_and(|confirmed| *confirmed >= least);
                check(waited, format!("the sender waited for nobody until {least:?}"));
            }
            Impairment::Loss(_) | Impairment::Overtaking(_) => {}
        }
    }

    /// A link with the impairments of links.
    fn impaired(&self, link: &str) -> LinkConfig {
        let mut link = link.to_owned();
        for impairment in self.scenario.impairments {
            match impairment {
                Impairment::Loss(loss) => link += &format!(",loss={loss}"),
                Impairment::Overtaking(jitter) => link += &format!(",jitter={jitter}"),
                Impairment::Doubling(_) | Impairment::SlowReader { .. } => {}
            }
        }
        link.parse().expect("the list has links that there are")
    }

    /// What share of packets goes out twice.
    fn doubled_share(&self) -> f64 {
        let share = self.scenario.impairments.iter().find_map(|impairment| match impairment {
            Impairment::Doubling(share) => Some(*share),
            _ => None,
        });
        share.unwrap_or(0.0)
    }

    fn ahead(&self, member: usize) -> i64 {
        self.scenario.clocks_ahead.get(member - 1).copied().unwrap_or(0)
    }

    fn slow_reader(&self) -> Option<(usize, Duration)> {
        self.scenario.impairments.iter().find_map(|impairment| match *impairment {
            Impairment::SlowReader { member, gap_ms } => Some((member, Duration::from_millis(gap_ms))),
            _ => None,
        })
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.scheme.name, self.scenario.name)
    }
}

/// The numbers as runs, such as `0..5 7..9`.
fn runs(numbers: &[u64]) -> String {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, end)) if end == number => *end += 1,
            _ => runs.push((*number, number + 1)),
        }
    }
    let shown = runs.iter().map(|(start, end)| format!("{start}..{end}")).collect::<Vec<_>>();
    shown.join(" ")
}

/// When the sender starts; the members are there before.
const BEGIN: Time = Time::from_secs(1);
/// Packets that a member stores, where the scheme has a setting for it and somebody reads slowly.
const BUFFER: u64 = 64;
/// Payloads for which a slow reader has room.
const READER_ROOM: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_numbers_show_what_is_missing_and_what_came_again() {
        assert_eq!(runs(&[0, 1, 2, 4, 5, 5]), "0..3 4..6 5..6");
        assert_eq!(runs(&[]), "");
    }
}
