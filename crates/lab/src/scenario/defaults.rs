//! What a scenario leaves out: sessions as they are deployed or as the papers simulated them, TCP hosts of today or of 2000.

use std::time::Duration;

use weir_core::registry::Habitat;
use weir_sim::tcp::{self, Flavour};
use weir_units::Bytes;

use super::values::Written;

/// Whose settings sessions, trees and streams have where the scenario does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Settings {
    /// Those of `weir send` and `weir recv`.
    #[default]
    Deployed,
    /// Those of the papers' simulations.
    Paper,
}

/// Whose hosts TCPs run on where the scenario does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hosts {
    /// Linux of today.
    #[default]
    Today,
    /// ns-2's, as the papers had them.
    Of2000,
}

impl Settings {
    /// Where the schemes' endpoints take themselves to run.
    pub(crate) fn habitat(self) -> Habitat {
        match self {
            Settings::Deployed => Habitat::Sockets,
            Settings::Paper => Habitat::Lab,
        }
    }

    /// Bytes of a full packet on the network: what `weir send` puts into UDP over IPv4, or the papers' 1 KB.
    pub(crate) fn packet_size(self) -> Bytes {
        Bytes::new(match self {
            Settings::Deployed => 1456 + UDP_OVER_IPV4,
            Settings::Paper => 1000,
        })
    }

    /// Whether fair queues tell a session's channels apart: real ones do, the papers' take a session for one flow.
    pub(crate) fn splits_sessions(self) -> bool {
        self == Settings::Deployed
    }

    /// How long a leave takes to act: the last member query of IGMPv2 and of MLD, twice its interval of 1 s (RFC 2236 §8.8), or
    /// nothing at all.
    pub(crate) fn leave_latency(self) -> Duration {
        match self {
            Settings::Deployed => Duration::from_secs(2),
            Settings::Paper => Duration::ZERO,
        }
    }
}

impl Hosts {
    /// The connection of such a host.
    pub(crate) fn config(self, flavour: Flavour) -> tcp::Config {
        match self {
            Hosts::Today => tcp::Config::today(flavour),
            Hosts::Of2000 => tcp::Config { max_window: 64, ..tcp::Config::ns2(flavour) },
        }
    }

    /// The congestion control that such hosts come with.
    pub(crate) fn flavour(self) -> Flavour {
        match self {
            Hosts::Today => Flavour::Cubic,
            Hosts::Of2000 => Flavour::NewReno,
        }
    }
}

impl Written for Settings {
    const NAME: &'static str = "settings";
    const HELP: &'static str = "deployed (what weir send and weir recv do) or paper (what the papers simulated)";

    fn read(text: &str) -> Result<Settings, String> {
        match text {
            "deployed" => Ok(Settings::Deployed),
            "paper" => Ok(Settings::Paper),
            _ => Err(format!("{text:?}: expected {}", Settings::HELP)),
        }
    }
}

impl Written for Hosts {
    const NAME: &'static str = "host";
    const HELP: &'static str = "today (Linux of today) or 2000 (ns-2's)";

    fn read(text: &str) -> Result<Hosts, String> {
        match text {
            "today" => Ok(Hosts::Today),
            "2000" => Ok(Hosts::Of2000),
            _ => Err(format!("{text:?}: expected {}", Hosts::HELP)),
        }
    }
}

impl Written for Flavour {
    const NAME: &'static str = "TCP";
    const HELP: &'static str = "tahoe, reno, newreno, sack, sack1 (as ns-2 recovers), vegas, cubic or bbr";

    fn read(text: &str) -> Result<Flavour, String> {
        let known = Flavour::ALL.into_iter().find(|flavour| flavour.name() == text);
        known.ok_or_else(|| {
            let suggestion = super::did_you_mean(text, Flavour::ALL.map(Flavour::name));
            format!("there is no TCP {text:?}; there are {}{suggestion}", Flavour::HELP)
        })
    }
}

/// Bytes of both headers.
pub(super) const UDP_OVER_IPV4: u64 = 28;
