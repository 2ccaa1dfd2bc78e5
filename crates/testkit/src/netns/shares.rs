//! What a flow of `weir` and a kernel's TCP connection get of a link that they share.

use std::time::Duration;

use weir_units::{Bytes, Rate};

use super::pause;
use super::rival::Rival;
use super::topology::Network;

/// What each got: content, without headers.
#[derive(Debug, Clone, Copy)]
pub struct Shares {
    /// The flow of `weir`.
    pub weir: Rate,
    /// The TCP connection.
    pub tcp: Rate,
    /// Packets that the link dropped meanwhile.
    pub dropped: u64,
}

impl Shares {
    /// The flow's rate over the connection's.
    pub fn ratio(&self) -> f64 {
        self.weir.bps() as f64 / self.tcp.bps().max(1) as f64
    }

    /// A connection under `control` joins the flow that uses the link of receiver 0 and has brought `received_bytes` so far: the
    /// rates of both over `span`, `warm_up` after the connection began.
    pub fn measure(
        network: &Network,
        control: &str,
        warm_up: Duration,
        span: Duration,
        received_bytes: impl Fn() -> u64,
    ) -> Shares {
        let rival = Rival::start(network, 0, control);
        let counts = || (received_bytes(), rival.received_bytes(), network.link_counters(0).dropped_packets);
        pause(warm_up);
        let before = counts();
        pause(span);
        let after = counts();
        let rate = |before: u64, after: u64| Bytes::new(after - before).per(span);
        Shares { weir: rate(before.0, after.0), tcp: rate(before.1, after.1), dropped: after.2 - before.2 }
    }
}
