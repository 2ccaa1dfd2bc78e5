//! What a source is run with: where payloads come from, who hears of it, and how.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::Duration;

use nix::errno::Errno;
use weir_core::{Endpoint, Observation};
use weir_units::{Bytes, Time};

use super::super::door::Viewer;
use super::super::{Amount, Ignored, SILENCE, Secret};

/// Where payloads come from.
pub trait Supply {
    /// What to wait on for more; `None` while there is no room for more, or no more will come.
    fn readable(&self) -> Option<BorrowedFd<'_>>;

    /// There is something to read.
    fn fill(&mut self, now: Time);

    /// How many payloads wait. It falls by [`Supply::next`] only: what replaces a payload takes its place.
    fn waiting(&self) -> u64;

    /// The payload that has waited longest.
    fn next(&mut self, now: Time) -> Option<Payload<'_>>;

    /// Whether no more will come; some may wait.
    fn is_over(&self) -> bool;

    /// Payloads that were dropped because they had waited for too long or do not fit.
    fn dropped(&self) -> u64 {
        0
    }

    /// RTP payload type of the stream.
    fn payload_type(&self) -> u8;

    /// Bytes of a full payload.
    fn payload_len(&self) -> usize;
}

/// A payload and what its RTP header says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payload<'a> {
    /// Marker bit.
    pub marker: bool,
    /// Payload type.
    pub payload_type: u8,
    /// Timestamp.
    pub timestamp: u32,
    /// The payload itself.
    pub bytes: &'a [u8],
}

/// What an application hears from a running source.
pub trait SourceApplication {
    /// A viewer came; an endpoint that sends packets of `packet_size` to it.
    fn came(&mut self, now: Time, viewer: Viewer, packet_size: Bytes) -> Box<dyn Endpoint>;

    /// The viewer is not there any more.
    fn left(&mut self, now: Time, viewer: Viewer, why: Leave);

    /// The endpoint observed something.
    fn observe(&mut self, now: Time, observation: &Observation);

    /// Called every [`SourceConfig::tick`]. Break ends the stream.
    fn tick(&mut self, now: Time, statistics: &SourceStatistics, supply: &dyn Supply) -> ControlFlow<()>;
}

/// Why a viewer is not there any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// It said goodbye.
    Bye,
    /// Everything was sent.
    Finished,
    /// The application ended the stream.
    Stopped,
    /// It has said nothing for too long.
    Silent,
    /// Its host says that nobody listens there, and it has said nothing since.
    Refused,
}

/// How to run a source.
#[derive(Debug, Clone)]
pub struct SourceConfig {
    /// Where viewers ask.
    pub listen: SocketAddr,
    /// Name of the scheme, for the viewer.
    pub scheme: &'static str,
    /// Random; numbers and cookies are made of it.
    pub secret: Secret,
    /// A viewer that says nothing for this long is gone.
    pub silence: Duration,
    /// How often the application is called.
    pub tick: Duration,
    /// A pcapng file of all that is sent and received.
    pub capture: Option<PathBuf>,
}

impl SourceConfig {
    /// The usual silence of [`SILENCE`], a tick of 100 ms, no capture.
    pub fn new(listen: SocketAddr, scheme: &'static str, secret: Secret) -> SourceConfig {
        SourceConfig { listen, scheme, secret, silence: SILENCE, tick: Duration::from_millis(100), capture: None }
    }
}

/// What a source did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SourceStatistics {
    /// Data packets sent.
    pub sent: Amount,
    /// Bytes of payload in them.
    pub payload: Bytes,
    /// Feedback that counted.
    pub feedback: u64,
    /// What came and was ignored.
    pub ignored: Ignored,
    /// Packets not sent because the kernel's queue was full.
    pub queue_full: u64,
    /// Packets not sent because the system refused them.
    pub refused: u64,
    /// What it said when it last refused.
    pub last_refusal: Option<Errno>,
    /// Packets sent empty, as the supply had less than it had said.
    pub starved: u64,
    /// Viewers so far.
    pub viewers: u64,
    /// Questions of others while there was a viewer.
    pub turned_away: u64,
    /// Deadlines of the endpoint that were met more than a millisecond late.
    pub late_deadlines: u64,
    /// How late the latest was.
    pub worst_lateness: Duration,
}
