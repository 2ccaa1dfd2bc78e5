//! Values on the command line: how each is written, and what is said when it is not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use weir_core::registry::Setting;
use weir_net::groups::{self, GroupError};
use weir_units::{Bytes, Rate};

use crate::stream::{PREFIX, StreamAddress, StreamAddressError};

/// The lowest and the highest rate of a session: `256k..100M`, only the lowest, `256k..`, or one rate, `4M`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RateRange {
    /// The rate of the base layer.
    pub(crate) low: Rate,
    /// The rate of all layers together; `None` leaves it to the interface.
    pub(crate) high: Option<Rate>,
}

/// Where a session description is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionSource {
    /// A file.
    File(PathBuf),
    /// Standard input, written `-`.
    Stdin,
    /// An `http://` or `https://` address.
    Url(String),
    /// No description but a live stream: the host and port of its sender.
    Sender(String),
    /// A stream over a tree.
    Stream(Box<StreamAddress>),
}

/// A text that cannot be read as the value asked for. The text says what is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// Not a duration.
    #[error("expected a duration with its unit, such as 30s, 10m, 1h30m or 500ms")]
    Span,
    /// Longer than a live stream may be on its way.
    #[error("expected at most 30s: a live stream is not kept for longer")]
    Latency,
    /// Not where to listen.
    #[error(
        "expected an address and a port, such as 0.0.0.0:9469 or [::1]:9469, or a port of the loopback interface, such as 9469"
    )]
    LocalListener,
    /// Not a rate range.
    #[error("expected lowest..highest rate, such as 256k..100M or 256k.., or one rate, such as 4M, each 1k or more")]
    Rates,
    /// Not a group and port.
    #[error("expected a group and a port, such as 239.255.0.1:5004 or [ff15::77]:5004")]
    Group,
    /// Not a group of announcements.
    #[error("expected a multicast group and a port, such as 239.255.255.255:9875 or [ff05::2:7ffe]:9875")]
    Announcements,
    /// A unicast address.
    #[error(
        "that is not a multicast address; groups are 224.0.0.0 to 239.255.255.255 (239.255.x.y is for use within a site) and ff00::/8"
    )]
    NotMulticast,
    /// A group of others.
    #[error(transparent)]
    Taken(#[from] GroupError),
    /// Not a probability.
    #[error("expected a share of packets from 0 to below 100%, such as 2% or 0.02")]
    Loss,
    /// Not a setting.
    #[error("expected KEY=VALUE; `weir schemes` lists the keys")]
    Setting,
    /// Not a ratio.
    #[error("expected a number from 1.01 to 16, such as 1.5")]
    Ratio,
    /// Not a unicast port.
    #[error("expected a port, such as 5004, or one of this host's own addresses and a port, such as 192.0.2.7:5004")]
    Listener,
    /// Not an address and port.
    #[error("expected rtp:// or udp:// with an address and a port, such as rtp://127.0.0.1:5004")]
    RtpAddress,
    /// Another protocol.
    #[error(
        "expected -, a file, rtp://ADDR:PORT or udp://ADDR:PORT; other protocols have programs of their own, such as \
         ffmpeg -i srt://HOST:PORT -c copy -f mpegts udp://127.0.0.1:6000?pkt_size=1316, or srt-live-transmit"
    )]
    Protocol,
    /// Too few bytes.
    #[error("expected a number of bytes above zero, such as 256M or 64kB")]
    Size,
}

impl FromStr for RateRange {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<RateRange, ValueError> {
        let (low, high) = text.split_once("..").unwrap_or((text, text));
        let rate = |text: &str| text.trim().parse::<Rate>().map_err(|_| ValueError::Rates);
        let high = if high.trim().is_empty() { None } else { Some(rate(high)?) };
        let range = RateRange { low: rate(low)?, high };
        let usable = range.low >= Rate::from_kbps(1) && range.high.is_none_or(|high| range.low <= high);
        usable.then_some(range).ok_or(ValueError::Rates)
    }
}

impl FromStr for SessionSource {
    type Err = StreamAddressError;

    fn from_str(text: &str) -> Result<SessionSource, StreamAddressError> {
        let is_url = ["http://", "https://"]
            .iter()
            .any(|scheme| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
        Ok(match text {
            "-" => SessionSource::Stdin,
            stream if stream.starts_with(PREFIX) => SessionSource::Stream(Box::new(stream.parse()?)),
            url if is_url => SessionSource::Url(url.to_owned()),
            host if is_host_and_port(host) => SessionSource::Sender(host.to_owned()),
            path => SessionSource::File(path.into()),
        })
    }
}

impl std::fmt::Display for SessionSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SessionSource::File(path) => write!(f, "{}", path.display()),
            SessionSource::Stdin => f.write_str("standard input"),
            SessionSource::Url(text) | SessionSource::Sender(text) => f.write_str(text),
            SessionSource::Stream(address) => address.fmt(f),
        }
    }
}

/// Whether a text is a unicast host with a port, and no file has this name.
fn is_host_and_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_host = match ip {
        Ok(ip) => !ip.is_multicast(),
        Err(_) => !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')),
    };
    is_host && port.parse::<u16>().is_ok_and(|port| port > 0) && !PathBuf::from(text).exists()
}

/// A port on all addresses, or one address and a port.
pub(crate) fn listener(text: &str) -> Result<SocketAddr, ValueError> {
    let any = text.parse().ok().map(|port| SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port));
    let address = any.or_else(|| text.parse().ok()).ok_or(ValueError::Listener)?;
    if address.port() == 0 || address.ip().is_multicast() { Err(ValueError::Listener) } else { Ok(address) }
}

/// Where to listen: an address and a port, or a port of the loopback interface.
pub(crate) fn local_listener(text: &str) -> Result<SocketAddr, ValueError> {
    match text.parse() {
        Ok(port) => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        Err(_) => text.parse().map_err(|_| ValueError::LocalListener),
    }
}

/// How long a live stream is on its way: up to 30 seconds.
pub(crate) fn latency(text: &str) -> Result<Duration, ValueError> {
    span(text).and_then(|latency| if latency <= LONGEST_LATENCY { Ok(latency) } else { Err(ValueError::Latency) })
}

/// A duration: spans with units in a row, as in `1h30m`. A bare number is refused: people mean different units by it.
pub(crate) fn span(text: &str) -> Result<Duration, ValueError> {
    let mut rest = text.trim();
    let mut sum = Duration::ZERO;
    loop {
        let unit_at = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
        let unit_len = rest[unit_at..].find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len() - unit_at);
        let (part, after) = rest.split_at(unit_at + unit_len);
        let part = weir_units::parse_span(part).map_err(|_| ValueError::Span)?;
        sum = sum.checked_add(part).filter(|sum| *sum <= LONGEST_SPAN).ok_or(ValueError::Span)?;
        rest = after.trim_start();
        if rest.is_empty() {
            return Ok(sum);
        }
    }
}

/// A multicast group and a port other than 0.
pub(crate) fn group(text: &str) -> Result<SocketAddr, ValueError> {
    let address: SocketAddr = text.parse().map_err(|_| ValueError::Group)?;
    match address.ip() {
        _ if address.port() == 0 => Err(ValueError::Group),
        // Whether a group of one source has one is not known here.
        ip if ip.is_multicast() => Ok(groups::check(ip, true).map(|()| address)?),
        IpAddr::V4(_) | IpAddr::V6(_) => Err(ValueError::NotMulticast),
    }
}

/// A group of announcements and a port other than 0; the usual ones are in blocks that sessions may not use.
pub(crate) fn announcements(text: &str) -> Result<SocketAddr, ValueError> {
    let address: SocketAddr = text.parse().map_err(|_| ValueError::Announcements)?;
    if address.ip().is_multicast() && address.port() != 0 { Ok(address) } else { Err(ValueError::Announcements) }
}

/// A share of packets, as a probability: `2%` or `0.02`.
pub(crate) fn loss(text: &str) -> Result<f64, ValueError> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 0.01));
    let chance = number.trim().parse::<f64>().map_err(|_| ValueError::Loss)? * scale;
    (0.0..1.0).contains(&chance).then_some(chance).ok_or(ValueError::Loss)
}

/// A setting of a scheme, `KEY=VALUE`.
pub(crate) fn setting(text: &str) -> Result<Setting, ValueError> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok(Setting { key: key.trim().to_owned(), value: value.trim().to_owned() })
        }
        _ => Err(ValueError::Setting),
    }
}

/// The ratio of neighbouring rates.
pub(crate) fn ratio(text: &str) -> Result<f64, ValueError> {
    let ratio: f64 = text.parse().map_err(|_| ValueError::Ratio)?;
    (1.01..=16.0).contains(&ratio).then_some(ratio).ok_or(ValueError::Ratio)
}

/// A number of bytes above zero.
pub(crate) fn size(text: &str) -> Result<Bytes, ValueError> {
    text.parse::<Bytes>().ok().filter(|size| *size > Bytes::ZERO).ok_or(ValueError::Size)
}

/// Ten years: beyond that somebody has mistyped, and sums of times stay far from their end.
const LONGEST_LATENCY: Duration = Duration::from_secs(30);
const LONGEST_SPAN: Duration = Duration::from_secs(10 * 366 * 86_400);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_units() {
        let table = [("30s", 30_000), ("10m", 600_000), ("1h30m", 5_400_000), ("500ms", 500), ("1.5s", 1_500)];
        for (text, millis) in table {
            assert_eq!(span(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(span("24h 120m"), Ok(Duration::from_secs(26 * 3600)));
        for text in ["", "10", "m", "10x", "-3s", "1..5s", "99999999h", "3s4"] {
            assert_eq!(span(text), Err(ValueError::Span), "{text}");
        }
    }

    #[test]
    fn rate_ranges_are_two_rates_or_one() {
        let range = |low, high| Ok(RateRange { low: Rate::from_kbps(low), high: Some(Rate::from_kbps(high)) });
        assert_eq!("256k..100M".parse(), range(256, 100_000));
        assert_eq!("4M".parse(), range(4_000, 4_000));
        assert_eq!("256k..".parse(), Ok(RateRange { low: Rate::from_kbps(256), high: None }));
        for text in ["", "..", "..100M", "0..", "100M..256k", "0..4M", "1..2..3"] {
            assert_eq!(text.parse::<RateRange>(), Err(ValueError::Rates), "{text}");
        }
    }

    #[test]
    fn losses_are_shares_below_one() {
        assert_eq!([loss("2%"), loss("0.02"), loss("0")], [Ok(0.02), Ok(0.02), Ok(0.0)]);
        for text in ["", "100%", "1", "-1%", "nan", "%"] {
            assert_eq!(loss(text), Err(ValueError::Loss), "{text}");
        }
    }

    #[test]
    fn groups_are_multicast_addresses_with_a_port() {
        assert!(group("239.255.0.1:5004").is_ok() && group("[ff15::77]:5004").is_ok());
        assert_eq!(group("239.255.0.1"), Err(ValueError::Group));
        assert_eq!(group("239.255.0.1:0"), Err(ValueError::Group));
        assert_eq!(group("10.0.0.1:5004"), Err(ValueError::NotMulticast));
        for taken in ["224.0.0.1:5004", "224.0.1.1:123", "239.255.255.250:1900", "[ff02::fb]:5353"] {
            assert!(matches!(group(taken), Err(ValueError::Taken(_))), "{taken}");
        }
    }

    #[test]
    fn sessions_come_from_a_file_standard_input_or_the_web() {
        let source = |text: &str| text.parse::<SessionSource>().expect("any text is a source");
        assert_eq!(source("weir.sdp"), SessionSource::File("weir.sdp".into()));
        assert_eq!(source("-"), SessionSource::Stdin);
        assert_eq!(source("HTTPS://example.org/a.sdp"), SessionSource::Url("HTTPS://example.org/a.sdp".into()));
        assert_eq!(source("httpd.sdp"), SessionSource::File("httpd.sdp".into()));
        assert_eq!(source("überhttp"), SessionSource::File("überhttp".into()));
    }

    #[test]
    fn settings_and_numbers_have_their_bounds() {
        assert_eq!(setting("tau = 100ms"), Ok(Setting { key: "tau".into(), value: "100ms".into() }));
        assert_eq!(setting("tau"), Err(ValueError::Setting));
        assert_eq!(setting("=1"), Err(ValueError::Setting));
        assert_eq!(
            (ratio("1.15"), ratio("1"), ratio("nan")),
            (Ok(1.15), Err(ValueError::Ratio), Err(ValueError::Ratio))
        );
        assert_eq!((size("256M"), size("0")), (Ok(Bytes::new(256_000_000)), Err(ValueError::Size)));
    }
}
