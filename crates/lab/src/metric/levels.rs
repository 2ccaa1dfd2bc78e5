//! Measures of subscription levels. A client's levels are steps: each holds from its time until the next; before the first
//! one the level is 0.

use std::time::Duration;

use weir_units::Time;

use super::ClientRecord;

/// Seconds from the last join to the first instant from which every client stays at or above `optimum` for `hold` (AVMRC
/// §4.4); `None` if there is no such instant before the end.
pub(super) fn convergence_secs(clients: &[ClientRecord], optimum: usize, hold: Duration, end: Time) -> Option<f64> {
    let last_join = clients.iter().map(|client| client.joined).max()?;
    let mut since = None;
    for (at, levels) in steps(clients, last_join) {
        let all = levels.iter().all(|level| *level >= optimum);
        if let Some(start) = since.filter(|start| at.since(*start) >= hold) {
            return Some(start.since(last_join).as_secs_f64());
        }
        since = if all { since.or(Some(at)) } else { None };
    }
    since.filter(|start: &Time| end.since(*start) >= hold).map(|start| start.since(last_join).as_secs_f64())
}

/// Seconds from `from` to the first instant at which every client's level is as wished; `None` if there is none before `to`.
pub(super) fn reached(clients: &[ClientRecord], from: Time, to: Time, wished: impl Fn(usize) -> bool) -> Option<f64> {
    let mut steps = steps(clients, from).into_iter().filter(|(at, _)| *at < to);
    let (at, _) = steps.find(|(_, levels)| levels.iter().all(|level| wished(*level)))?;
    Some(at.since(from).as_secs_f64())
}

/// Per cent of the time between `from` and `to` in which all clients are at the same level.
pub(super) fn agreement_percent(clients: &[ClientRecord], from: Time, to: Time) -> Option<f64> {
    let steps = steps(clients, from);
    let agreed = spans(&steps, to).filter(|(levels, _)| levels.windows(2).all(|pair| pair[0] == pair[1]));
    percent(agreed.map(|(_, span)| span).sum(), from, to)
}

/// Per cent of the time between `from` and `to` at `level` or above.
pub(super) fn percent_at_or_above(levels: &[(Time, usize)], level: usize, from: Time, to: Time) -> Option<f64> {
    let spent = since(levels, from);
    percent(spans(&spent, to).filter(|(now, _)| **now >= level).map(|(_, span)| span).sum(), from, to)
}

/// The level between `from` and `to`, averaged over time.
pub(super) fn mean_level(levels: &[(Time, usize)], from: Time, to: Time) -> Option<f64> {
    let steps = since(levels, from);
    let sum: f64 = spans(&steps, to).map(|(level, span)| *level as f64 * span.as_secs_f64()).sum();
    (to > from).then(|| sum / to.since(from).as_secs_f64())
}

/// How often the level changes between `from` and `to`: instants, however many layers are added or dropped in one.
pub(super) fn changes(levels: &[(Time, usize)], from: Time, to: Time) -> usize {
    let mut settled = since(levels, from);
    settled.retain(|(at, _)| *at < to);
    // Of several changes at one instant the last counts.
    settled.dedup_by(|later, earlier| {
        let is_same = later.0 == earlier.0;
        if is_same {
            earlier.1 = later.1;
        }
        is_same
    });
    settled.windows(2).filter(|pair| pair[0].1 != pair[1].1).count()
}

/// The level at `from` and its changes after.
pub(super) fn since(levels: &[(Time, usize)], from: Time) -> Vec<(Time, usize)> {
    let past = levels.partition_point(|(at, _)| *at <= from);
    let first = past.checked_sub(1).map_or(0, |last| levels[last].1);
    std::iter::once((from, first)).chain(levels[past..].iter().copied()).collect()
}

/// All clients' levels at `from` and at each change after.
fn steps(clients: &[ClientRecord], from: Time) -> Vec<(Time, Vec<usize>)> {
    let mut now = vec![0; clients.len()];
    let mut changes = Vec::new();
    for (i, client) in clients.iter().enumerate() {
        let mut steps = since(&client.levels, from).into_iter();
        now[i] = steps.next().map_or(0, |(_, level)| level);
        changes.extend(steps.map(|(at, level)| (at, i, level)));
    }
    changes.sort_by_key(|(at, _, _)| *at);
    let mut steps = vec![(from, now.clone())];
    for (at, client, level) in changes {
        now[client] = level;
        match steps.last_mut() {
            Some(last) if last.0 == at => last.1.clone_from(&now),
            _ => steps.push((at, now.clone())),
        }
    }
    steps
}

/// Each step's value with how long it lasts, up to `to`.
fn spans<T>(steps: &[(Time, T)], to: Time) -> impl Iterator<Item = (&T, Duration)> {
    let ends = steps.iter().skip(1).map(|(at, _)| *at).chain([to]);
    steps.iter().zip(ends).map(move |((at, value), end)| (value, end.min(to).since(*at)))
}

fn percent(part: Duration, from: Time, to: Time) -> Option<f64> {
    (to > from).then(|| part.as_secs_f64() / to.since(from).as_secs_f64() * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(at: u64) -> Time {
        Time::from_secs(at)
    }

    fn client(joined: u64, levels: &[(u64, usize)]) -> ClientRecord {
        let levels = levels.iter().map(|(at, level)| (secs(*at), *level)).collect();
        ClientRecord { joined: secs(joined), levels, ..ClientRecord::default() }
    }

    const HOLD: Duration = Duration::from_secs(10);

    #[test]
    fn convergence_counts_from_the_last_join_to_the_start_of_the_first_hold() {
        let early = client(0, &[(0, 1), (3, 7)]);
        let late = client(4, &[(4, 1), (6, 7), (9, 6), (12, 7)]);
        assert_eq!(convergence_secs(&[early.clone(), late.clone()], 7, HOLD, secs(100)), Some(8.0));
        assert_eq!(convergence_secs(&[early, late], 6, HOLD, secs(100)), Some(2.0));
    }

    #[test]
    fn going_above_the_optimum_is_not_leaving_it() {
        let client = client(0, &[(0, 1), (2, 7), (5, 8), (6, 7)]);
        assert_eq!(convergence_secs(&[client], 7, HOLD, secs(100)), Some(2.0));
    }

    #[test]
    fn a_hold_that_the_end_cuts_short_does_not_count() {
        let client = client(0, &[(0, 1), (2, 7)]);
        assert_eq!(convergence_secs(std::slice::from_ref(&client), 7, HOLD, secs(11)), None);
        assert_eq!(convergence_secs(std::slice::from_ref(&client), 7, HOLD, secs(12)), Some(2.0));
        assert_eq!(convergence_secs(&[client], 8, HOLD, secs(100)), None);
    }

    #[test]
    fn clients_who_are_there_before_the_last_join_have_converged_at_once() {
        let early = client(0, &[(0, 7)]);
        let late = client(5, &[(5, 7)]);
        assert_eq!(convergence_secs(&[early, late], 7, HOLD, secs(100)), Some(0.0));
    }

    #[test]
    fn reached_is_the_first_instant_at_which_all_are_there() {
        let clients = [client(0, &[(0, 7), (201, 5), (204, 6)]), client(0, &[(0, 7), (203, 5), (300, 7)])];
        assert_eq!(reached(&clients, secs(200), secs(300), |level| level <= 5), Some(3.0));
        assert_eq!(reached(&clients, secs(200), secs(300), |level| level <= 4), None);
        assert_eq!(reached(&clients, secs(210), secs(400), |level| level >= 6), Some(90.0));
        assert_eq!(reached(&clients, secs(100), secs(200), |level| level >= 7), Some(0.0));
    }

    #[test]
    fn agreement_is_the_time_at_equal_levels() {
        let clients = [client(0, &[(0, 7), (10, 8), (12, 7)]), client(0, &[(0, 7), (11, 8), (13, 7)])];
        assert_eq!(agreement_percent(&clients, secs(0), secs(20)), Some(90.0), "apart from 10 to 11 and 12 to 13");
        assert_eq!(agreement_percent(&clients, secs(20), secs(20)), None);
    }

    #[test]
    fn time_at_a_level_and_the_mean_level_weigh_by_time() {
        let levels = [(secs(1), 4), (secs(3), 6)];
        assert_eq!(percent_at_or_above(&levels, 5, secs(0), secs(4)), Some(25.0));
        assert_eq!(percent_at_or_above(&levels, 4, secs(2), secs(4)), Some(100.0));
        assert_eq!(mean_level(&levels, secs(0), secs(4)), Some(3.5));
        assert_eq!(mean_level(&[], secs(0), secs(4)), Some(0.0));
    }
}
