//! A link as people describe it: `rate=2mbit,delay=20ms,buffer=100ms,loss=2%`, or with another queue
//! `rate=2mbit,delay=20ms,buffer=50p,queue=red(min=5,max=15)`.

mod grammar;
mod queue;
#[cfg(test)]
mod tests;
mod text;
mod way;

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use weir_units::{Rate, parse_span};

use crate::{Buffer, Loss, QueueConfig, Variation};
pub use grammar::{Grammar, grammar};
use text::{Described, Refused};
pub use text::{Key, LinkConfigError};

/// What a link is like.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkConfig {
    /// Bits per second, above zero; `None` is without limit, and then nothing ever waits.
    pub rate: Option<Rate>,
    /// Propagation delay.
    pub delay: Duration,
    /// What may wait.
    pub buffer: Buffer,
    /// What an idle link saves up, as a token bucket: so much of what its rate sends goes out at once.
    pub burst: Duration,
    /// Which packets are lost on the way.
    pub loss: Loss,
    /// How the delay varies from packet to packet.
    pub variation: Option<Variation>,
    /// Who waits, who goes first, and who is dropped.
    pub queue: QueueConfig,
}

impl LinkConfig {
    /// Whole nanoseconds, up to 584 years.
    pub(crate) fn delay_nanos(&self) -> u64 {
        nanos(self.delay)
    }

    /// The same of what it saves up.
    pub(crate) fn burst_nanos(&self) -> u64 {
        nanos(self.burst)
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

impl Default for LinkConfig {
    /// No limit, no delay, no loss; a drop-tail buffer of 100 ms, should a rate be set.
    fn default() -> LinkConfig {
        LinkConfig {
            rate: None,
            delay: Duration::ZERO,
            buffer: Buffer::Span(Duration::from_millis(100)),
            burst: Duration::ZERO,
            loss: Loss::None,
            variation: None,
            queue: QueueConfig::DropTail,
        }
    }
}

impl Described for LinkConfig {
    const OF: &'static str = "a link";
    const EXAMPLE: &'static str = "rate=2mbit,delay=20ms,buffer=100ms,loss=2%";
    const KEYS: &'static [Key] = &[
        Key::new(
            "rate",
            "bits per second above 0, such as 2mbit or 512k",
            "Default: no limit, and nothing ever waits.",
        ),
        Key::new("delay", "a span, such as 20ms", "The propagation delay."),
        Key::new(
            "buffer",
            "a span (100ms), bytes (64kB) or packets (80p)",
            "What may wait. A span is what the rate sends in it.",
        ),
        Key::new(
            "burst",
            "a span (2ms)",
            "What an idle link saves up, as a token bucket: what the rate sends in this time goes out at once.",
        ),
        Key::new("loss", way::LOSS, "Which packets are lost on the way."),
        Key::new("jitter", way::JITTER, "How the delay varies from packet to packet."),
        Key::new("queue", queue::QUEUE, "Which packets wait, which goes first, and which is dropped."),
    ];

    fn set(&mut self, key: &str, value: &str) -> Result<(), Refused> {
        match key {
            "rate" => self.rate = Some(value.parse().ok().filter(|rate| *rate > Rate::ZERO).ok_or(None)?),
            "delay" => self.delay = parse_span(value).map_err(|_| None)?,
            "buffer" => self.buffer = value.parse().map_err(|()| None)?,
            "burst" => self.burst = parse_span(value).map_err(|_| None)?,
            "loss" => self.loss = way::read_loss(value)?,
            "jitter" => self.variation = way::read_jitter(value)?,
            _ => self.queue = queue::read_queue(value)?,
        }
        Ok(())
    }
}

impl FromStr for LinkConfig {
    type Err = LinkConfigError;

    /// Comma-separated `key=value`, each key at most once and none of them needed.
    fn from_str(text: &str) -> Result<LinkConfig, LinkConfigError> {
        let mut link = LinkConfig::default();
        link.read(text)?;
        Ok(link)
    }
}

impl fmt::Display for LinkConfig {
    /// The text that reads back as this.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(rate) = self.rate {
            write!(f, "rate={}bit,", rate.bps())?;
        }
        write!(f, "delay={}ns,buffer={}", self.delay.as_nanos(), self.buffer)?;
        if !self.burst.is_zero() {
            write!(f, ",burst={}ns", self.burst.as_nanos())?;
        }
        if self.loss != Loss::None {
            write!(f, ",loss={}", self.loss)?;
        }
        if let Some(variation) = self.variation {
            write!(f, ",jitter={variation}")?;
        }
        if self.queue != QueueConfig::DropTail {
            write!(f, ",queue={}", self.queue)?;
        }
        Ok(())
    }
}
