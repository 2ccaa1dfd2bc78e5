//! Measures of what the clients of a session do and cost. `from` belongs to the interval, `to` does not.

use std::time::Duration;

use weir_core::layers::dilation;
use weir_units::Time;

use super::{ClientRecord, SessionRecord, passage};

/// Joins and leaves a second.
pub(super) fn memberships_per_sec(client: &ClientRecord, from: Time, to: Time) -> Option<f64> {
    let count = client.memberships.iter().filter(|at| (from..to).contains(*at)).count();
    (to > from).then(|| count as f64 / to.since(from).as_secs_f64())
}

/// The largest dilation of a link in any span of `window` that begins with a bin of what clients received; `None` if
/// none of them received anything.
pub(super) fn worst_dilation(
    session: &SessionRecord,
    link: usize,
    window: Duration,
    from: Time,
    to: Time,
) -> Option<f64> {
    let starts = std::iter::successors(Some(from), |start| Some(*start + ClientRecord::BIN));
    let spans = starts.map(|start| (start, start + window)).take_while(|(_, end)| *end <= to);
    let of_span = |(start, end)| {
        let taken = session.clients.iter().filter_map(|client| client.received_kbps(start, end));
        dilation::of(passage::kbps(session.packets.at(link), start, end)?, taken)
    };
    spans.filter_map(of_span).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::super::{Fate, Packets, Passage};
    use super::*;

    #[test]
    fn joins_and_leaves_are_counted_a_second() {
        let memberships = [1, 2, 3, 9].map(Time::from_secs).to_vec();
        let client = ClientRecord { memberships, ..ClientRecord::default() };
        assert_eq!(memberships_per_sec(&client, Time::from_secs(2), Time::from_secs(6)), Some(0.5));
        assert_eq!(memberships_per_sec(&client, Time::ZERO, Time::ZERO), None);
    }

    #[test]
    fn dilation_is_what_the_link_carries_over_what_the_fastest_takes_at_its_worst() {
        let client = |received: &[u64]| ClientRecord { received: received.to_vec(), ..ClientRecord::default() };
        let passage = |tenth: u64, bytes| Passage {
            at: Time::from_millis(100 * tenth + 50),
            bytes,
            fate: Fate::Left,
            marked: false,
        };
        let session = SessionRecord {
            clients: vec![client(&[100, 100, 200]), client(&[50, 50, 200])],
            packets: Packets::at_bottleneck(vec![passage(0, 100), passage(1, 150), passage(2, 240)]),
            ..SessionRecord::default()
        };
        let worst =
            |window| worst_dilation(&session, 0, Duration::from_millis(window), Time::ZERO, Time::from_millis(300));
        let is = |window, expected: f64| worst(window).is_some_and(|worst| (worst - expected).abs() < 1e-9);
        assert!(is(100, 1.5) && is(300, 490.0 / 400.0));
        assert_eq!(worst(400), None, "there is no such window");
    }
}
