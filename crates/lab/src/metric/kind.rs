//! What can be measured, and what is taken of several values.

use schemars::JsonSchema;
use serde::Deserialize;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Seconds from the last join of `session` to the first instant from which every client stays at or above `level` for
    /// `window` (§4.4). Absent if that never comes.
    ConvergenceTime,
    /// Per cent of the packets of `session` that the link dropped, from the first join until all its clients have
    /// left their start-up phase (§4.4).
    TransientLoss,
    /// How many packets that is.
    TransientLostPackets,
    /// Per cent of the packets of `session`, `tree` or `flow` that the link dropped between `from` and `to` (§4.4).
    SteadyLoss,
    /// kbit/s of `session`, `tree` or `flow` that left the link between `from` and `to` (§4.4).
    Throughput,
    /// Per cent of the link's rate that all sessions, trees and flows of the names given got together between `from` and `to`.
    Share,
    /// kbit/s that `client` of `session` received between `from` and `to`; `from` is by default when that client has left
    /// its start-up phase (§4.4). Of a `tree`, what `client` gave to its application, packets counted whole.
    ClientRate,
    /// kbit/s that the slowest member of `tree` gave to its application between `from` and `to`, packets counted whole.
    SlowestRate,
    /// kbit/s of payload between `from` and `to`: what the clients of `session` (or `client`) gave to their applications, what the
    /// receiver of `flow` had in order, what the slowest member of `tree` gave to its application.
    Goodput,
    /// Seconds from the join of a client of `session`, or of a member of `tree`, until it had `size` of payload; or from the start of
    /// `flow`, whose own size is the default. Absent if it never had.
    CompletionTime,
    /// `completion_time` as a multiple of what the link takes for as much, headers left out.
    CompletionRatio,
    /// Per cent of the acknowledgements of `tree` that a link dropped, any link, over the whole run.
    AcknowledgementLoss,
    /// Milliseconds until the sender of `tree` follows when the window of `client` falls into slow start: until the least window
    /// that the sender knows has come half of the way down. The 95th percentile of all falls between `from` and `to` to at most half of
    /// what the sender knew.
    WindowReaction,
    /// The same for the fall that took longest.
    SlowestWindowReaction,
    /// How often that happened.
    WindowFalls,
    /// Per cent of the time between `from` (default: its join) and `to` that `client` of `session` spent at `level` or above.
    TimeAtLevel,
    /// The level of `client` of `session` between `from` and `to`, averaged over time.
    MeanLevel,
    /// How often the level of `client` of `session` changed between `from` and `to`: instants, however many layers were added or
    /// dropped in each.
    LevelChanges,
    /// Per cent of the time between `from` and `to` that all clients of `session` were at the same level.
    Agreement,
    /// Seconds from `from` until all clients of `session` are at `level` or below. Absent if not before `to`.
    FallTime,
    /// Seconds from `from` until all clients of `session` are at `level` or above. Absent if not before `to`.
    RiseTime,
    /// The largest share of the packets of `session`, in per cent, that was dropped in any `window` between `from` and `to`.
    WorstLoss,
    /// How often between `from` and `to` packets of `session` were dropped, drops less than `window` apart being one time.
    LossEpisodes,
    /// Packets that the TCP senders of `flow` had on the way between `from` and `to`, averaged over time.
    OutstandingPackets,
    /// Packets: the congestion windows of the TCP senders of `flow` between `from` and `to`, averaged over time; with `percentile`,
    /// that of their values.
    CongestionWindow,
    /// Milliseconds: the round trips that the senders of `flow` measured between `from` and `to`; the mean, or with `percentile` that.
    RoundTrip,
    /// How often a minute the sources of the stream `flow` backed off between `from` and `to`.
    BackOffs,
    /// How many layers a minute the sources of the stream `flow` added or dropped between `from` and `to`, each one counted.
    StreamLayerChanges,
    /// How many layers the sources of the stream `flow` sent between `from` and `to`, averaged over time.
    MeanLayers,
    /// How often the receivers of the stream `flow` had nothing of the base layer to play between `from` and `to`, as its source knows
    /// it: what was not acknowledged when it should have played was not there.
    BaseUnderflows,
    /// For how many seconds that was.
    BaseMissing,
    /// Milliseconds between the 5th and the 95th percentile of the round trips that the sources of the stream `flow`
    /// measured between `from` and `to`.
    RoundTripRange,
    /// How often in 100 s the TCP senders of `flow` timed out between `from` and `to`.
    TimeOuts,
    /// How often a second `client` of `session` joined or left a channel between `from` and `to`.
    Memberships,
    /// What the link carried of `session` in the `window` between `from` and `to` in which that was the largest multiple
    /// of what the fastest client received in it (STAIR Definition 2). The clients are all behind it.
    Dilation,
    /// Per cent of all packets that the link dropped between `from` and `to`; `from` is by default the start of the run.
    LinkLoss,
    /// Per cent of the link's rate that was used between `from` and `to`; `from` is by default the start of the run.
    LinkUse,
    /// kbit/s that the link could carry between `from` and `to`: what others are divided by in claims.
    LinkRate,
    /// Packets that wait on the link between `from` and `to`, the one that is being sent not counted; the mean over time, or with
    /// `percentile` the number that no more wait than for so much of the time.
    QueueLength,
    /// Milliseconds that packets waited on the link which came between `from` and `to`; the mean, or with `percentile` that. Those of
    /// `session`, `tree` or `flow`, or all.
    QueuingDelay,
    /// Per cent of the packets of `session`, `tree` or `flow` that left the link between `from` and `to` and that it had marked.
    Marks,
    /// kbit/s of all sessions together that left the link between `from` and `to`.
    AllSessions,
}

/// What is taken of several values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// Their mean.
    #[default]
    Mean,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// Their sum.
    Sum,
    /// The mean of those above 0: of those that were there at all.
    Present,
    /// Jain's fairness index: 1 if all are alike, one over their number if one has everything.
    Jain,
    /// The largest as a multiple of the smallest.
    Spread,
}

impl Over {
    pub(super) fn of(self, values: &[f64]) -> Option<f64> {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = values.iter().sum();
        let count = values.len() as f64;
        let value = match self {
            _ if values.is_empty() => return None,
            Over::Mean => sum / count,
            Over::Min => least,
            Over::Max => most,
            Over::Sum => sum,
            Over::Present => sum / values.iter().filter(|value| **value > 0.0).count() as f64,
            Over::Jain => sum * sum / (count * values.iter().map(|value| value * value).sum::<f64>()),
            Over::Spread => most / least,
        };
        value.is_finite().then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_values_become_one() {
        let values = [2.0, 4.0, 3.0];
        let over = |over: Over| over.of(&values);
        assert_eq!(over(Over::Mean), Some(3.0));
        assert_eq!((over(Over::Min), over(Over::Max)), (Some(2.0), Some(4.0)));
        assert_eq!((over(Over::Sum), over(Over::Spread)), (Some(9.0), Some(2.0)));
        assert_eq!(over(Over::Jain), Some(81.0 / (3.0 * 29.0)));
        assert_eq!(Over::Present.of(&[2.0, 0.0, 4.0]), Some(3.0));
        assert_eq!((Over::Sum.of(&[]), Over::Present.of(&[0.0])), (None, None));
        assert_eq!(Over::Spread.of(&[0.0, 1.0]), None, "there is no multiple of nothing");
    }
}
