//! A link of a given rate in front of a host: a token bucket with a drop-tail queue, on the bridge's side.

use std::time::Duration;

use serde_json::Value;
use weir_units::{Bytes, Rate};

/// A link's rate and its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenBucket {
    /// Rate, link-layer headers (14 bytes) included.
    pub rate: Rate,
    /// Room for waiting packets.
    pub buffer: Bytes,
    /// Bytes that may pass at once after a pause.
    pub burst: Bytes,
}

impl TokenBucket {
    /// A link of this rate with 100 ms of buffer, and bursts of 1 ms, or two packets where that is more.
    ///
    /// Segmented batches that are larger than the burst are cut by the kernel before they queue, so that small bursts do
    /// not block them.
    pub fn new(rate: Rate) -> TokenBucket {
        let burst = (rate * Duration::from_millis(1)).max(Bytes::new(TWO_PACKETS));
        TokenBucket { rate, buffer: rate * Duration::from_millis(100), burst }
    }

    /// The words after `tc qdisc … DEVICE root`.
    pub(super) fn words(&self) -> [String; 7] {
        let (rate, burst, limit) = (self.rate.bps(), self.burst.count(), self.buffer.count());
        [
            "tbf".into(),
            "rate".into(),
            format!("{rate}bit"),
            "burst".into(),
            burst.to_string(),
            "limit".into(),
            limit.to_string(),
        ]
    }
}

/// What a link has done since it was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkCounters {
    /// Bytes that passed, link-layer headers included.
    pub sent_bytes: u64,
    /// Packets that passed.
    pub sent_packets: u64,
    /// Packets that found the queue full.
    pub dropped_packets: u64,
    /// How often a packet had to wait for its turn.
    pub delays: u64,
}

impl LinkCounters {
    /// From `tc -j -s qdisc show`.
    pub(super) fn from_json(text: &str) -> Option<LinkCounters> {
        let list: Value = serde_json::from_str(text).ok()?;
        let qdisc = list.as_array()?.iter().find(|qdisc| qdisc["kind"] == "tbf")?;
        Some(LinkCounters {
            sent_bytes: qdisc["bytes"].as_u64()?,
            sent_packets: qdisc["packets"].as_u64()?,
            dropped_packets: qdisc["drops"].as_u64()?,
            delays: qdisc["overlimits"].as_u64()?,
        })
    }
}

/// Two full Ethernet frames: less, and a token bucket passes nothing.
const TWO_PACKETS: u64 = 2 * 1514;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_has_a_tenth_of_a_second_of_buffer() {
        let link = TokenBucket::new(Rate::from_mbps(100));
        assert_eq!(link.words(), ["tbf", "rate", "100000000bit", "burst", "12500", "limit", "1250000"]);
        assert_eq!(TokenBucket::new(Rate::from_mbps(2)).burst, Bytes::new(3028));
    }

    #[test]
    fn counters_are_read_from_what_tc_prints() {
        let text =
            r#"[{"kind":"tbf","handle":"8001:","root":true,"bytes":7,"packets":6,"drops":5,"overlimits":4,"qlen":0}]"#;
        let counters = LinkCounters { sent_bytes: 7, sent_packets: 6, dropped_packets: 5, delays: 4 };
        assert_eq!(LinkCounters::from_json(text), Some(counters));
        assert_eq!(LinkCounters::from_json(r#"[{"kind":"noqueue"}]"#), None);
    }
}
