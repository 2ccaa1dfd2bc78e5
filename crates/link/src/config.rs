//! A link as people describe it: `rate=2mbit,delay=20ms,buffer=100ms,loss=2%`.

use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use weir_units::{Rate, parse_span};

use crate::Buffer;

/// What a link is like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkConfig {
    /// Bits per second; `None` is without limit, and then nothing ever waits.
    pub rate: Option<Rate>,
    /// Propagation delay.
    pub delay: Duration,
    /// What may wait.
    pub buffer: Buffer,
    /// Probability that a packet is lost on the way, 0 to 1.
    pub loss: f64,
}

impl Default for LinkConfig {
    /// No limit, no delay, no loss; a buffer of 100 ms, should a rate be set.
    fn default() -> LinkConfig {
        LinkConfig { rate: None, delay: Duration::ZERO, buffer: Buffer::Span(Duration::from_millis(100)), loss: 0.0 }
    }
}

/// A description that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkConfigError {
    /// A part is not `key=value`.
    #[error("{part:?} is not key=value; a link is described as in rate=2mbit,delay=20ms,buffer=100ms,loss=2%")]
    NotAPair {
        /// The part.
        part: String,
    },
    /// There is no such key.
    #[error("a link has no {key:?}; it has rate, delay, buffer and loss")]
    UnknownKey {
        /// The key.
        key: String,
    },
    /// A key comes twice.
    #[error("{key} is given twice")]
    Repeated {
        /// The key.
        key: &'static str,
    },
    /// The value of a key cannot be used.
    #[error("{key}={value}: expected {expected}")]
    BadValue {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What would have been accepted.
        expected: &'static str,
    },
}

impl FromStr for LinkConfig {
    type Err = LinkConfigError;

    /// Comma-separated `rate`, `delay`, `buffer` and `loss`, each at most once and none of them needed.
    fn from_str(text: &str) -> Result<LinkConfig, LinkConfigError> {
        let mut link = LinkConfig::default();
        let mut given = [false; KEYS.len()];
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (key, value) =
                part.split_once('=').ok_or_else(|| LinkConfigError::NotAPair { part: part.to_string() })?;
            let (key, value) = (key.trim(), value.trim());
            let index = KEYS
                .iter()
                .position(|(name, _)| *name == key)
                .ok_or_else(|| LinkConfigError::UnknownKey { key: key.to_string() })?;
            let (key, expected) = KEYS[index];
            if core::mem::replace(&mut given[index], true) {
                return Err(LinkConfigError::Repeated { key });
            }
            let read = match key {
                "rate" => value.parse().ok().filter(|rate| *rate > Rate::ZERO).map(|rate| link.rate = Some(rate)),
                "delay" => parse_span(value).ok().map(|delay| link.delay = delay),
                "buffer" => value.parse().ok().map(|buffer| link.buffer = buffer),
                _ => probability(value).map(|loss| link.loss = loss),
            };
            read.ok_or_else(|| LinkConfigError::BadValue { key, value: value.to_string(), expected })?;
        }
        Ok(link)
    }
}

impl fmt::Display for LinkConfig {
    /// The text that reads back as this.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(rate) = self.rate {
            write!(f, "rate={}bit,", rate.bps())?;
        }
        write!(f, "delay={}ns,buffer=", self.delay.as_nanos())?;
        match self.buffer {
            Buffer::Span(span) => write!(f, "{}ns", span.as_nanos())?,
            other => write!(f, "{other}")?,
        }
        if self.loss > 0.0 {
            write!(f, ",loss={}", self.loss)?;
        }
        Ok(())
    }
}

/// `2%` or `0.02`.
fn probability(text: &str) -> Option<f64> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    number.trim_end().parse::<f64>().ok().map(|p| p / scale).filter(|p| (0.0..=1.0).contains(p))
}

const KEYS: [(&str, &str); 4] = [
    ("rate", "bits per second above 0, such as 2mbit or 512k"),
    ("delay", "a span, such as 20ms"),
    ("buffer", "a span (100ms), bytes (64kB) or packets (80p)"),
    ("loss", "a share from 0 to 1, or in per cent (2%)"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_units::Bytes;

    #[test]
    fn a_link_is_read_as_the_command_line_gives_it() {
        let link = LinkConfig {
            rate: Some(Rate::from_mbps(2)),
            delay: Duration::from_millis(20),
            buffer: Buffer::Span(Duration::from_millis(100)),
            loss: 0.02,
        };
        assert_eq!("rate=2mbit,delay=20ms,buffer=100ms,loss=2%".parse(), Ok(link));
        assert_eq!("loss=0.02, buffer=100ms,delay=20ms, rate=2M".parse(), Ok(link));
        assert_eq!("".parse(), Ok(LinkConfig::default()));
    }

    #[test]
    fn a_buffer_is_a_span_bytes_or_packets() {
        for (text, buffer) in [
            ("80p", Buffer::Packets(80)),
            ("80packets", Buffer::Packets(80)),
            ("64kB", Buffer::Bytes(Bytes::new(64_000))),
            ("64KiB", Buffer::Bytes(Bytes::new(65_536))),
            ("2.5s", Buffer::Span(Duration::from_millis(2500))),
            ("0ms", Buffer::Span(Duration::ZERO)),
        ] {
            assert_eq!(text.parse(), Ok(buffer), "{text}");
        }
        for text in ["80", "", "p", "-1p", "1.5p", "full", "ms"] {
            assert_eq!(text.parse::<Buffer>(), Err(()), "{text}");
        }
    }

    #[test]
    fn errors_say_which_key_and_what_is_accepted() {
        let message = |text: &str| text.parse::<LinkConfig>().expect_err("must be refused").to_string();
        assert_eq!(message("rate=0"), "rate=0: expected bits per second above 0, such as 2mbit or 512k");
        assert_eq!(message("delay=20"), "delay=20: expected a span, such as 20ms");
        assert_eq!(message("buffer=80"), "buffer=80: expected a span (100ms), bytes (64kB) or packets (80p)");
        assert_eq!(message("loss=2"), "loss=2: expected a share from 0 to 1, or in per cent (2%)");
        assert_eq!(message("speed=2"), "a link has no \"speed\"; it has rate, delay, buffer and loss");
        assert_eq!(message("delay=1ms,delay=2ms"), "delay is given twice");
        assert!(message("2mbit").contains("\"2mbit\" is not key=value"));
    }

    proptest! {
        #[test]
        fn a_link_reads_back_as_it_is_shown(
            rate in proptest::option::of(1u64..1_000_000_000), delay in 0u64..1_000_000_000, loss in 0.0f64..=1.0,
            buffer in prop_oneof![
                (0usize..10_000).prop_map(Buffer::Packets),
                (0u64..1_000_000).prop_map(|bytes| Buffer::Bytes(Bytes::new(bytes))),
                (0u64..1_000_000_000).prop_map(|nanos| Buffer::Span(Duration::from_nanos(nanos))),
            ],
        ) {
            let link = LinkConfig { rate: rate.map(Rate::from_bps), delay: Duration::from_nanos(delay), buffer, loss };
            prop_assert_eq!(link.to_string().parse(), Ok(link));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,40}") {
            let _ = text.parse::<LinkConfig>();
        }
    }
}
