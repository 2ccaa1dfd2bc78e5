//! The session manager (PSLM §2.1): how what the sessions of a host get is divided among them.

use weir_units::Rate;

use crate::layers::Ladder;

/// The readings of the paper's session manager (decision 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Every session takes its own share.
    None,
    /// A session gets no more than its priority over the highest one says, of the share of that session; or of its own while that
    /// one is not there (the paper's Conclusion).
    Static,
    /// The same, but while the session with the highest priority is not there, the next one counts as the highest.
    Active,
    /// All shares together are divided in proportion to the priorities.
    Weight,
    /// Of all shares together, the highest priority takes what it can use but for the base layers of the others, then the next.
    Pool,
}

/// What is known of a session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claim<'a> {
    /// A higher number goes first.
    pub(super) priority: u32,
    /// The highest priority among the sessions that were announced with it.
    pub(super) announced: u32,
    /// Whether it is being received.
    pub(super) is_active: bool,
    pub(super) ladder: &'a Ladder,
    /// What it found to be its share; `None` if it has not found out.
    pub(super) share: Option<Rate>,
    /// Whether that is only the rate that it has.
    pub(super) tries: bool,
    /// The most that it could get through.
    pub(super) at_most: Option<Rate>,
}

impl Sharing {
    /// What session `of` is to have; `None` if that is just its share, or nothing tells: then it decides for itself. `capped` by what
    /// it could get through.
    pub(super) fn allot(self, claims: &[Claim<'_>], of: usize, capped: bool) -> Option<Rate> {
        let claim = &claims[of];
        let share = claim.share?;
        let rate = match self {
            Sharing::None => return None,
            Sharing::Static => below(claim, share, highest(claims.iter())).min(announced_part(claims, of, share)),
            Sharing::Active => below(claim, share, highest(claims.iter().filter(|claim| claim.is_active))),
            // What is only somebody's rate cannot be put together and divided: it would follow what is made of it.
            Sharing::Weight | Sharing::Pool if claims.iter().any(|claim| claim.is_active && claim.tries) => {
                below(claim, share, highest(claims.iter().filter(|claim| claim.is_active)))
            }
            Sharing::Weight | Sharing::Pool if !can_pool(claims) => share,
            Sharing::Weight => {
                let priorities = claims.iter().filter(|claim| claim.is_active).map(|claim| claim.priority).sum();
                capped_by(part(pool(claims), claim.priority, priorities), claim, capped)
            }
            Sharing::Pool => from_pool(claims, of, capped),
        };
        (rate != share).then_some(rate)
    }
}

/// Shares can be put together once all are known.
fn can_pool(claims: &[Claim<'_>]) -> bool {
    claims.iter().all(|claim| !claim.is_active || claim.share.is_some())
}

fn pool(claims: &[Claim<'_>]) -> Rate {
    let active = claims.iter().filter(|claim| claim.is_active);
    active.filter_map(|claim| claim.share).fold(Rate::ZERO, |sum, share| sum + share)
}

fn highest<'a, 'b>(claims: impl Iterator<Item = &'a Claim<'b>>) -> Option<&'a Claim<'b>>
where
    'b: 'a,
{
    claims.max_by_key(|claim| claim.priority)
}

/// What a session may have of its own share where a session with a higher priority was announced that this host does not receive.
fn announced_part(claims: &[Claim<'_>], of: usize, share: Rate) -> Rate {
    let received = claims.iter().map(|claim| claim.priority).max().unwrap_or(1);
    let announced = claims.iter().map(|claim| claim.announced).max().unwrap_or(0);
    if announced > received { part(share, claims[of].priority, announced) } else { share }
}

/// What a session may have below the highest one. A share that follows what is allotted, as that of a scheme which finds its rate by
/// trying, is not lowered again and again by that: the highest session's is not limited.
fn below(claim: &Claim<'_>, share: Rate, highest: Option<&Claim<'_>>) -> Rate {
    match highest {
        Some(highest) if highest.priority > claim.priority => {
            share.min(part(highest.share.unwrap_or(share), claim.priority, highest.priority))
        }
        _ => share,
    }
}

fn part(rate: Rate, of: u32, all: u32) -> Rate {
    Rate::from_bps((u128::from(rate.bps()) * u128::from(of) / u128::from(all.max(1))) as u64)
}

fn capped_by(rate: Rate, claim: &Claim<'_>, capped: bool) -> Rate {
    claim.at_most.filter(|_| capped).map_or(rate, |at_most| rate.min(at_most))
}

/// Goes from the highest priority down to session `of`; of equal ones the earlier is first.
fn from_pool(claims: &[Claim<'_>], of: usize, capped: bool) -> Rate {
    let goes_first = |a: usize, b: usize| (claims[a].priority, b) > (claims[b].priority, a);
    let base = |claim: &Claim<'_>| claim.ladder.level_rate(1);
    let mut left = pool(claims);
    let mut done = alloc::vec![false; claims.len()];
    loop {
        let waiting = (0..claims.len()).filter(|i| claims[*i].is_active && !done[*i]);
        let Some(next) = waiting.reduce(|a, b| if goes_first(a, b) { a } else { b }) else { return Rate::ZERO };
        let later = (0..claims.len()).filter(|i| claims[*i].is_active && !done[*i] && *i != next);
        let bases = later.fold(Rate::ZERO, |sum, i| sum + base(&claims[i]));
        let mut others = (0..claims.len()).filter(|i| claims[*i].is_active && *i != next);
        let has_equal = others.any(|i| claims[i].priority == claims[next].priority);
        let fair = claims[next].share.unwrap_or(Rate::ZERO);
        let room = left.saturating_sub(bases);
        // Nobody takes from its equals.
        let rate = if has_equal { room.min(fair) } else { capped_by(room, &claims[next], capped) };
        if next == of {
            return rate;
        }
        // What the cap keeps it from now is not for the others: as long as they use it, it cannot get there.
        let wanted = if has_equal { rate } else { room };
        let level = claims[next].ladder.levels_below(wanted).max(1);
        left = left.saturating_sub(claims[next].ladder.level_rate(level));
        done[next] = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder() -> Ladder {
        Ladder::from_rates((3..=12).map(|n| Rate::from_kbps(n * 50)).collect()).expect("rising")
    }

    fn claim(ladder: &Ladder, priority: u32, kbps: u64) -> Claim<'_> {
        Claim {
            priority,
            announced: 0,
            is_active: true,
            ladder,
            share: Some(Rate::from_kbps(kbps)),
            tries: false,
            at_most: None,
        }
    }

    fn kbps(sharing: Sharing, claims: &[Claim<'_>], capped: bool) -> [u64; 2] {
        [0, 1].map(|i| sharing.allot(claims, i, capped).or(claims[i].share).expect("known").bps() / 1000)
    }

    #[test]
    fn the_readings_give_the_paper_s_two_sessions_on_450_kbps() {
        let ladder = ladder();
        let two = [claim(&ladder, 1, 225), claim(&ladder, 2, 225)];
        assert_eq!(Sharing::None.allot(&two, 0, true), None);
        assert_eq!(kbps(Sharing::Static, &two, true), [112, 225]);
        assert_eq!(kbps(Sharing::Active, &two, true), [112, 225]);
        assert_eq!(kbps(Sharing::Weight, &two, true), [150, 300]);
        // The higher one has 300 and takes level 3, 250; 200 is left.
        assert_eq!(kbps(Sharing::Pool, &two, true), [200, 300]);
        let alone = [claim(&ladder, 1, 450), Claim { is_active: false, share: None, ..claim(&ladder, 2, 0) }];
        let lower = |sharing: Sharing| sharing.allot(&alone, 0, true).map(|rate| rate.bps() / 1000);
        assert_eq!([Sharing::Static, Sharing::Active, Sharing::Pool].map(lower), [Some(225), None, None]);
    }

    #[test]
    fn a_session_that_was_announced_and_is_not_received_counts_where_priorities_are_static() {
        let ladder = ladder();
        let two = [Claim { announced: 4, ..claim(&ladder, 1, 400) }, claim(&ladder, 2, 400)];
        assert_eq!(kbps(Sharing::Static, &two, true), [100, 200]);
        assert_eq!(kbps(Sharing::Active, &two, true), [200, 400]);
    }

    #[test]
    fn sessions_of_one_priority_share_as_without_a_manager() {
        let ladder = ladder();
        let two = [claim(&ladder, 1, 225), claim(&ladder, 1, 225)];
        for sharing in [Sharing::Static, Sharing::Active, Sharing::Weight, Sharing::Pool] {
            assert_eq!(kbps(sharing, &two, true), [225, 225], "{sharing:?}");
        }
    }

    #[test]
    fn a_cap_keeps_a_session_to_what_it_can_get_through() {
        let ladder = ladder();
        let higher = Claim { at_most: Some(Rate::from_kbps(600)), ..claim(&ladder, 2, 500) };
        let two = [claim(&ladder, 1, 500), higher];
        assert_eq!(kbps(Sharing::Weight, &two, true)[1], 600);
        assert_eq!(kbps(Sharing::Weight, &two, false)[1], 666);
        assert_eq!(kbps(Sharing::Pool, &two, true)[1], 600);
        assert_eq!(kbps(Sharing::Pool, &two, false)[1], 850);
    }
}
