//! What unicast flows send: TCP transfers, web objects, datagrams, paced streams; and what these must fulfil.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use weir_core::registry::{self, Setting};
use weir_sim::tcp::{self, Flavour};
use weir_units::{Bytes, Rate};
use weir_wire::rtp::Rtp;

use super::check::{find, holds, settings};
use super::defaults::{Hosts, Settings, UDP_OVER_IPV4};
use super::setup::{no, zero};
use super::values::{Sizes, Spans, Text};

/// What a flow sends.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Traffic {
    /// An endless transfer by TCP.
    Ftp(Tcp),
    /// A user who fetches web objects by TCP, one after the other, and thinks between.
    Http(Http),
    /// Datagrams at a fixed rate, without congestion control; with `on` and `off`, in turns.
    Udp(Udp),
    /// A paced unicast stream: a source under a scheme's control, and a sink that answers it.
    Stream(Stream),
}

/// A TCP sender.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tcp {
    /// Its congestion control. Default cubic today, newreno in 2000.
    pub flavour: Option<Text<Flavour>>,
    /// Whose initial window, timers and acknowledgements it has: `2000`, with an initial window of 2 and every packet acknowledged,
    /// as ns-2 has it, or `today`, as Linux has it (docs/tcp.md). Default: the scenario's.
    pub host: Option<Text<Hosts>>,
    /// Bytes of a full packet on the network. Default 1500 today, 1000 in 2000.
    pub packet_size: Option<Text<Bytes>>,
    /// Largest window, packets. Default: no limit today, 64 in 2000.
    pub max_window: Option<Text<usize>>,
    /// Whether it asks for congestion marks and answers them (RFC 3168). Default no.
    #[serde(default = "no")]
    pub ecn: Text<bool>,
    /// Whether Reno and CUBIC of hosts of today are paced, as Linux's `fq` queueing discipline does it. BBR always is. Default no.
    #[serde(default = "no")]
    pub paced: Text<bool>,
    /// How much it has to send. Default: without end.
    pub size: Option<Text<Bytes>>,
    /// What the window allows is sent late by a random time, uniform between 0 and this. Default 0s.
    #[serde(default = "zero")]
    pub overhead: Text<Duration>,
    /// How coarse the clock of its timer is. Default 1ms today, 10ms in 2000.
    pub tick: Option<Text<Duration>>,
    #[serde(skip)]
    defaults: Hosts,
}

/// A web user.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Http {
    /// The TCP sender of the responses. Default: as for ftp.
    #[serde(default)]
    pub tcp: Tcp,
    /// Sizes of the responses.
    pub response: Text<Sizes>,
    /// From the end of a response to the next request.
    pub think: Text<Spans>,
}

/// A source of datagrams.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Udp {
    /// While it is on.
    pub rate: Text<Rate>,
    /// Bytes of a packet on the network. Default 1000.
    #[serde(default = "packet_size")]
    pub packet_size: Text<Bytes>,
    /// How long it is on each time. Default: always on.
    pub on: Option<Text<Spans>>,
    /// How long it is off each time.
    pub off: Option<Text<Spans>>,
}

/// A paced unicast stream.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// The scheme, by its registered name: `weir schemes` lists them with their settings.
    pub scheme: String,
    /// Settings of the scheme, by name.
    #[serde(default)]
    pub settings: BTreeMap<String, Text<String>>,
    /// Bytes of a full data packet on the network. Default 1484 if it is deployed, and 1000 in a paper.
    pub packet_size: Option<Text<Bytes>>,
    /// Bytes of the sink's answers. Default 40.
    #[serde(default = "feedback_size")]
    pub feedback_size: Text<Bytes>,
    /// What the source does on a deadline is late by a random time, uniform between 0 and this. Default 0s.
    #[serde(default = "zero")]
    pub overhead: Text<Duration>,
    /// What the application hands over, if it is less than the source could send.
    pub supply: Option<Supply>,
    #[serde(skip)]
    defaults: Settings,
}

/// An application that has a payload now and then.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Supply {
    /// How fast it hands over full packets, while it is on.
    pub rate: Text<Rate>,
    /// How long it is on each time. Default: always on.
    pub on: Option<Text<Spans>>,
    /// How long it is off each time.
    pub off: Option<Text<Spans>>,
}

impl Traffic {
    /// Tells what the scenario says for all that say nothing themselves.
    pub(super) fn set_defaults(&mut self, settings: Settings, host: Hosts) {
        match self {
            Traffic::Ftp(tcp) => tcp.defaults = host,
            Traffic::Http(http) => http.tcp.defaults = host,
            Traffic::Stream(stream) => stream.defaults = settings,
            Traffic::Udp(_) => {}
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        match self {
            Traffic::Ftp(tcp) => tcp.check(),
            Traffic::Http(http) => http.tcp.check(),
            Traffic::Udp(udp) => holds("packet_size", udp.packet_size.0, UDP_OVER_IPV4)
                .and_then(|()| both_or_neither("udp", udp.on.is_some(), udp.off.is_some())),
            Traffic::Stream(stream) => stream.check(),
        }
    }

    /// Bytes of a packet that are not payload, and how much payload there is to send, if it ends.
    pub fn header_and_size(&self) -> (u64, Option<Bytes>) {
        match self {
            Traffic::Ftp(tcp) => (tcp.config().ack_size.count(), tcp.size.map(|size| size.0)),
            Traffic::Http(http) => (http.tcp.config().ack_size.count(), None),
            Traffic::Udp(_) => (UDP_OVER_IPV4, None),
            Traffic::Stream(_) => (UDP_OVER_IPV4 + Rtp::LEN as u64, None),
        }
    }
}

fn both_or_neither(of: &str, on: bool, off: bool) -> Result<(), String> {
    if on == off { Ok(()) } else { Err(format!("{of} needs both on and off, or neither")) }
}

impl Stream {
    fn check(&self) -> Result<(), String> {
        holds("packet_size", self.packet_size(), UDP_OVER_IPV4 + Rtp::LEN as u64 + 1)?;
        holds("feedback_size", self.feedback_size.0, UDP_OVER_IPV4)?;
        if let Some(supply) = &self.supply {
            both_or_neither("supply", supply.on.is_some(), supply.off.is_some())?;
        }
        find(&self.scheme)?.check_stream(&self.agreed(), &self.settings()).map_err(|error| error.to_string())
    }

    /// What its ends agree on.
    pub fn agreed(&self) -> registry::Stream {
        let (packet_size, feedback_size) = (self.packet_size(), self.feedback_size.0);
        registry::Stream { packet_size, feedback_size, habitat: self.defaults.habitat() }
    }

    /// Bytes of a full packet on the network.
    pub fn packet_size(&self) -> Bytes {
        self.packet_size.map_or_else(|| self.defaults.packet_size(), |size| size.0)
    }

    /// The scheme's settings, as its registry entry takes them.
    pub fn settings(&self) -> Vec<Setting> {
        settings(&self.settings)
    }
}

impl Default for Tcp {
    fn default() -> Tcp {
        Tcp {
            flavour: None,
            host: None,
            packet_size: None,
            max_window: None,
            ecn: no(),
            paced: no(),
            size: None,
            overhead: zero(),
            tick: None,
            defaults: Hosts::default(),
        }
    }
}

impl Tcp {
    fn check(&self) -> Result<(), String> {
        if self.tick.as_ref().is_some_and(|tick| tick.0.is_zero()) {
            return Err("tick must be above 0s".to_owned());
        }
        if self.size.is_some_and(|size| size.0 == Bytes::ZERO) {
            return Err("size must be above 0".to_owned());
        }
        // An acknowledgement is headers and nothing else.
        let config = self.config();
        if config.paced && !config.is_linux() {
            return Err(
                "paced needs Linux's TCP: flavour cubic or bbr, or reno, newreno or sack with host today".to_owned()
            );
        }
        holds("packet_size", config.segment_size, config.ack_size.count() + 1)
    }

    /// A connection like that, as the simulator knows it.
    pub fn config(&self) -> tcp::Config {
        let host = self.host.map_or(self.defaults, |host| host.0);
        let config = host.config(self.flavour.map_or_else(|| host.flavour(), |flavour| flavour.0));
        let window = self.max_window.map(|window| u32::try_from(window.0).unwrap_or(u32::MAX).max(1));
        let segment_size = self.packet_size.map_or(config.segment_size, |size| size.0);
        let payload = segment_size.count().saturating_sub(config.ack_size.count()).max(1);
        let granularity = self.tick.map_or(config.timers.granularity, |tick| tick.0);
        tcp::Config {
            segment_size,
            supply: self.size.map(|size| size.0.count().div_ceil(payload)),
            max_window: window.unwrap_or(config.max_window),
            ecn: self.ecn.0,
            paced: self.paced.0,
            overhead: self.overhead.0,
            timers: tcp::Timers { granularity, ..config.timers },
            ..config
        }
    }
}

fn packet_size() -> Text<Bytes> {
    Text(Bytes::new(1000))
}

fn feedback_size() -> Text<Bytes> {
    Text(Bytes::new(40))
}
