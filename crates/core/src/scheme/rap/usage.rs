//! How much of its rate the application has used lately (decision 13; RFC 7661's pipeACK, as a rate).

use core::time::Duration;

use weir_units::Time;

/// Packets that were acknowledged, in a span of time and in the one before.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usage {
    /// When the span began: the first with the first packet.
    began: Option<Time>,
    packets: u64,
    /// Packets a second of the span before; `None` in the first.
    before: Option<f64>,
    /// When a packet could have gone and there was none, last.
    limited: Option<Time>,
}

impl Usage {
    /// A packet was acknowledged.
    pub(super) fn acknowledged(&mut self, now: Time, round_trip: f64) {
        self.turn(now, round_trip);
        self.packets += 1;
    }

    /// A packet could have gone and there was none.
    pub(super) fn limited(&mut self, now: Time) {
        self.limited = Some(now);
    }

    /// The most that may be allowed, packets a second; `None` while the application uses all it is allowed.
    pub(super) fn bound(&mut self, now: Time, round_trip: f64) -> Option<f64> {
        self.turn(now, round_trip);
        let span = span(round_trip);
        let since = now.since(self.limited?);
        let packets = self.packets as f64;
        let lately = match self.before {
            Some(before) => (packets / span.as_secs_f64()).max(before),
            None => packets / now.since(self.began?).max(shortest(round_trip)).as_secs_f64(),
        };
        (since <= span * 2).then(|| (lately * ALLOWED).max(LEAST / span.as_secs_f64()))
    }

    /// Begins the next span, if this one is over.
    fn turn(&mut self, now: Time, round_trip: f64) {
        let (passed, span) = (now.since(*self.began.get_or_insert(now)), span(round_trip));
        if passed < span {
            return;
        }
        let packets = self.packets as f64;
        self.before = Some(match passed < span * 2 {
            true => packets / passed.as_secs_f64(),
            // After a pause the application may have again what it used before.
            false => self.before.unwrap_or_default().max(packets / span.as_secs_f64()),
        });
        (self.began, self.packets) = (Some(now), 0);
    }
}

/// Over what time packets are counted (RFC 7661 §4.2).
fn span(round_trip: f64) -> Duration {
    shortest(round_trip).max(Duration::from_secs(1))
}

/// Over what time at least.
fn shortest(round_trip: f64) -> Duration {
    Duration::from_secs_f64(3.0 * round_trip)
}

/// How many times what was acknowledged may be allowed (RFC 7661 §4.3: a rate is validated while half of it is used).
const ALLOWED: f64 = 2.0;
/// Packets that may be allowed in a span in any case: the window with which a TCP begins (RFC 6928).
const LEAST: f64 = 10.0;
