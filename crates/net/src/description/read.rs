//! Descriptions from SDP text.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use weir_core::layers::Ladder;
use weir_core::registry::Setting;
use weir_units::{Bytes, Rate, is_unprintable, parse_hex};
use weir_wire::CciForm;

use super::write::{family, form_name};
use super::{Control, Description, MediaFormat, Sealing};

/// Why a text is not a session description.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DescriptionError {
    /// A line cannot be read.
    #[error("{0}")]
    Line(LineError),
    /// Something that a FLUTE session needs is not there.
    #[error("the description has no {0}")]
    Missing(&'static str),
    /// Lines contradict each other.
    #[error("the description contradicts itself: {0}")]
    Contradiction(&'static str),
    /// More than a description can be.
    #[error("the description is too long: {0}")]
    TooLong(&'static str),
}

/// A line that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineError {
    /// Its number, from 1.
    pub line: usize,
    /// Its beginning.
    pub text: String,
    /// What would have been accepted.
    pub expected: &'static str,
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of the description, {:?}: expected {}", self.line, self.text, self.expected)
    }
}

impl FromStr for Description {
    type Err = DescriptionError;

    /// Reads SDP text. Attributes that are not known are skipped, media that are not FLUTE too.
    fn from_str(text: &str) -> Result<Description, DescriptionError> {
        if text.len() > MAX_TEXT {
            return Err(DescriptionError::TooLong("more than 256 KiB"));
        }
        let mut reader = Reader::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_end();
            if line.contains(is_unprintable) {
                return Err(refusal(number, line, "text without control characters"));
            }
            if line.len() > MAX_LINE {
                return Err(DescriptionError::TooLong("a line of more than 6000 bytes"));
            }
            if !line.is_empty() {
                reader.line(number, line).map_err(|expected| refusal(number, line, expected))?;
            }
        }
        reader.finish()
    }
}

/// What a line should have been.
pub(super) type Expected = &'static str;

/// What has been read so far.
#[derive(Default)]
struct Reader {
    is_begun: bool,
    name: Option<String>,
    tsi: Option<u16>,
    announced_channels: Option<usize>,
    source: Option<IpAddr>,
    connection: Option<Connection>,
    scheme: Option<(String, Vec<Setting>)>,
    form: Option<CciForm>,
    packet_size: Option<Bytes>,
    ladder: Option<Ladder>,
    symbol_size: Option<u16>,
    flute_version: Option<u8>,
    hops: Option<u8>,
    public_key: Option<[u8; 32]>,
    epoch: Option<u64>,
    expires: Option<u64>,
    control_address: Option<SocketAddr>,
    receipt_key: Option<[u8; 32]>,
    priority: Option<u16>,
    sessions: Option<u16>,
    sealing: Sealing,
    format: Option<MediaFormat>,
    latency_ms: Option<u16>,
    media: Vec<Media>,
    /// Within the section of a medium that is not of the session.
    is_skipping: bool,
}

/// A `c=` line: the first group, how many follow it, and the TTL.
#[derive(Clone, Copy)]
struct Connection {
    group: IpAddr,
    count: usize,
    ttl: Option<u8>,
}

/// An `m=` section.
struct Media {
    port: u16,
    connection: Option<Connection>,
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) -> Result<(), Expected> {
        if !self.is_begun {
            self.is_begun = true;
            return if number == 0 && line == "v=0" { Ok(()) } else { Err("v=0: this is not SDP") };
        }
        let (kind, value) = line.split_once('=').ok_or("a letter, an equals sign and a value")?;
        match kind {
            "m" => self.media(value),
            _ if self.is_skipping => Ok(()),
            "s" => {
                self.name = Some(value.trim().to_owned());
                Ok(())
            }
            "t" if self.media.is_empty() => {
                let end = value.split_ascii_whitespace().nth(1).and_then(self::number);
                self.expires = end.filter(|end| *end != 0);
                Ok(())
            }
            "c" => self.connection(value),
            "a" => self.attribute(value),
            _ => Ok(()),
        }
    }

    /// The protocol of the session's channels.
    fn protocol(&self) -> &'static str {
        if self.format.is_some() { "RTP/AVP" } else { "FLUTE/UDP" }
    }

    fn media(&mut self, value: &str) -> Result<(), Expected> {
        let mut words = value.split_ascii_whitespace();
        let (_, port, protocol) = (words.next(), words.next(), words.next());
        self.is_skipping = protocol != Some(self.protocol());
        if self.is_skipping {
            return Ok(());
        }
        if self.media.len() == MAX_CHANNELS {
            return Err("at most 256 channels");
        }
        let port = port.and_then(|port| port.parse().ok()).filter(|port| *port != 0);
        let port = port.ok_or("m= with a port from 1 to 65535")?;
        self.media.push(Media { port, connection: None });
        Ok(())
    }

    fn connection(&mut self, value: &str) -> Result<(), Expected> {
        let connection = Connection::read(value)
            .ok_or("c=IN IP4 GROUP/TTL or c=IN IP6 GROUP with a multicast group, 224.0.0.0/4 or ff00::/8")?;
        match self.media.last_mut() {
            Some(media) => media.connection = Some(connection),
            None => self.connection = Some(connection),
        }
        Ok(())
    }

    fn attribute(&mut self, attribute: &str) -> Result<(), Expected> {
        let (name, value) = attribute.split_once(':').unwrap_or((attribute, ""));
        let value = value.trim();
        match name {
            "flute-tsi" => self.session(value, "a=flute-tsi:N with N from 0 to 65535")?,
            "weir-tsi" => self.session(value, "a=weir-tsi:N with N from 0 to 65535")?,
            "flute-ch" => {
                let count = number(value).filter(|count| (1..=MAX_CHANNELS).contains(count));
                self.announced_channels = Some(count.ok_or("a=flute-ch:N with N from 1 to 256")?);
            }
            "source-filter" => {
                let source = source_filter(value).ok_or("a=source-filter: incl IN IP4 * SOURCE with one source")?;
                if self.source.replace(source).is_some_and(|other| other != source) {
                    return Err("the same source as before: one sender a session");
                }
            }
            _ => {
                let is_taken = self.sealing.read(name, value)?;
                return if is_taken { Ok(()) } else { self.weir_attribute(name, value) };
            }
        }
        Ok(())
    }

    /// The session's number.
    fn session(&mut self, value: &str, expected: Expected) -> Result<(), Expected> {
        let tsi = number(value).ok_or(expected)?;
        match self.tsi.replace(tsi).is_some_and(|other| other != tsi) {
            true => Err("the same TSI as before: one session a description"),
            false => Ok(()),
        }
    }

    fn weir_attribute(&mut self, name: &str, value: &str) -> Result<(), Expected> {
        match name {
            "weir-cc" => self.scheme = Some(scheme(value).ok_or("a=weir-cc:NAME and then settings as key=value")?),
            "weir-cci" => {
                let form = [CciForm::Short, CciForm::Long, CciForm::Clocked]
                    .into_iter()
                    .find(|form| form_name(*form) == value);
                self.form = Some(form.ok_or("a=weir-cci:short, long or clocked")?);
            }
            "weir-packet" => {
                let size = number(value).filter(|bytes| (MIN_PACKET..=MAX_PACKET).contains(bytes));
                self.packet_size = Some(Bytes::new(size.ok_or("a=weir-packet:N with N from 64 to 65535 bytes")?));
            }
            "weir-ladder" => {
                let ladder = ladder(value).ok_or("a=weir-ladder: and up to 256 rising rates in bits per second")?;
                let is_usable = |rate: &Rate| (LOWEST_RATE..=HIGHEST_RATE).contains(rate);
                if !ladder.rates().iter().all(is_usable) {
                    return Err("a=weir-ladder: and rates from 1 kbit/s to 1 Tbit/s");
                }
                self.ladder = Some(ladder);
            }
            "weir-symbol" => {
                let size = number(value).filter(|bytes| *bytes > 0);
                self.symbol_size = Some(size.ok_or("a=weir-symbol:N with N from 1 to 65535 bytes")?);
            }
            "weir-flute" => {
                let version = number(value).filter(|version| matches!(version, 1 | 2));
                self.flute_version = Some(version.ok_or("a=weir-flute:1 or 2")?);
            }
            "weir-media" => self.format = Some(MediaFormat::read(value)?),
            "weir-latency" => {
                self.latency_ms = Some(number(value).ok_or("a=weir-latency:MS with MS from 0 to 65535")?);
            }
            "weir-hops" => self.hops = Some(number(value).ok_or("a=weir-hops:N with N from 0 to 255")?),
            "weir-key" => {
                let key = value.strip_prefix("ed25519 ").and_then(|hex| parse_hex(hex.trim()));
                self.public_key = Some(key.ok_or("a=weir-key:ed25519 and 64 hexadecimal digits")?);
            }
            "weir-epoch" => self.epoch = Some(number(value).ok_or("a=weir-epoch:N with N from 0 to 2^64 - 1")?),
            "weir-receipt" => {
                self.receipt_key = Some(parse_hex(value).ok_or("a=weir-receipt: and 64 hexadecimal digits")?);
            }
            "weir-priority" => {
                let priority = number(value).filter(|priority| (1..=1000).contains(priority));
                self.priority = Some(priority.ok_or("a=weir-priority:N with N from 1 to 1000")?);
            }
            "weir-sessions" => {
                let sessions = number(value).filter(|sessions| (1..=1000).contains(sessions));
                self.sessions = Some(sessions.ok_or("a=weir-sessions:N with N from 1 to 1000")?);
            }
            "weir-control" => {
                self.control_address = Some(unicast(value).ok_or("a=weir-control:ADDRESS:PORT of the sender")?);
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<Description, DescriptionError> {
        if !self.is_begun {
            return Err(DescriptionError::Missing("v=0 line: it is empty"));
        }
        let channels = self.channels()?;
        let first = channels.first().ok_or(DescriptionError::Missing("channel: m=application PORT FLUTE/UDP 0"))?.ip();
        if channels.iter().any(|channel| channel.is_ipv4() != first.is_ipv4()) {
            return Err(DescriptionError::Contradiction("some channels are IPv4, some IPv6"));
        }
        let mut sorted: Vec<&SocketAddr> = channels.iter().collect();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(DescriptionError::Contradiction("two channels have the same group and port"));
        }
        if self.announced_channels.is_some_and(|announced| announced != channels.len()) {
            return Err(DescriptionError::Contradiction(
                "a=flute-ch announces another number of channels than there are",
            ));
        }
        if self.format.as_ref().is_some_and(|format| format.layers.len() != channels.len()) {
            return Err(DescriptionError::Contradiction(
                "a=weir-media names layers for another number of channels than there are",
            ));
        }
        if self.format.is_some() && self.flute_version.is_some() {
            return Err(DescriptionError::Contradiction("a=weir-flute is of files, and a=weir-media is there"));
        }
        if self.source.is_some_and(|source| source.is_ipv4() != first.is_ipv4()) {
            return Err(DescriptionError::Contradiction("a=source-filter is of another family than the channels"));
        }
        if self.receipt_key.is_some() && self.control_address.is_none() {
            return Err(DescriptionError::Missing(
                "place for the receipts that a=weir-receipt asks for: a=weir-control",
            ));
        }
        if let Some(missing) = self.sealing.missing(self.public_key.is_some()) {
            return Err(DescriptionError::Missing(missing));
        }
        let tsi = self.tsi.ok_or(DescriptionError::Missing("transport session identifier: a=flute-tsi:N"))?;
        let ttl = self.media.iter().filter_map(|media| media.connection).chain(self.connection).find_map(|c| c.ttl);
        let control = self.control()?;
        if self.format.is_some() && control.is_none() {
            return Err(DescriptionError::Missing("a=weir-cc, which a=weir-media needs"));
        }
        let latency_ms = self.latency_ms.unwrap_or(0);
        let media = self.format.map(|format| MediaFormat { latency_ms, ..format });
        Ok(Description {
            name: self.name.filter(|name| !name.is_empty()).unwrap_or_else(|| "-".to_owned()),
            tsi,
            flute_version: self.flute_version.unwrap_or(2),
            source: self.source,
            channels,
            ttl: ttl.or(self.hops).unwrap_or(1),
            control,
            symbol_size: self.symbol_size,
            public_key: self.public_key,
            epoch: self.epoch,
            expires: self.expires,
            control_address: self.control_address,
            receipt_key: self.receipt_key,
            priority: self.priority,
            sessions: self.sessions,
            sealing: self.sealing,
            media,
        })
    }

    fn channels(&self) -> Result<Vec<SocketAddr>, DescriptionError> {
        let mut channels = Vec::new();
        for media in &self.media {
            let connection = media.connection.or(self.connection);
            let connection = connection.ok_or(DescriptionError::Missing("c= line for one of its m= lines"))?;
            let base = SocketAddr::new(connection.group, media.port);
            let more = Description::channels_from(base, connection.count)
                .ok_or(DescriptionError::Contradiction("a c= line counts beyond the multicast addresses"))?;
            channels.extend(more);
            if channels.len() > MAX_CHANNELS {
                return Err(DescriptionError::TooLong("more than 256 channels"));
            }
        }
        Ok(channels)
    }

    fn control(&self) -> Result<Option<Control>, DescriptionError> {
        let Some((scheme, settings)) = self.scheme.clone() else {
            return Ok(None);
        };
        let ladder = self.ladder.clone().ok_or(DescriptionError::Missing("a=weir-ladder, which a=weir-cc needs"))?;
        let packet_size = self.packet_size.ok_or(DescriptionError::Missing("a=weir-packet, which a=weir-cc needs"))?;
        Ok(Some(Control { scheme, settings, ladder, form: self.form.unwrap_or_default(), packet_size }))
    }
}

impl Connection {
    /// `IN IP4 GROUP[/TTL[/COUNT]]` or `IN IP6 GROUP[/COUNT]` (RFC 8866 §5.7).
    fn read(value: &str) -> Option<Connection> {
        let rest = value.strip_prefix("IN ")?.trim_start();
        let (kind, address) = rest.split_once(' ')?;
        let mut parts = address.trim().split('/');
        let group: IpAddr = parts.next()?.parse().ok()?;
        if kind != family(group) || !group.is_multicast() {
            return None;
        }
        // The TTL stands in the lines of IPv4 only.
        let ttl = match if group.is_ipv4() { parts.next() } else { None } {
            Some(ttl) => Some(number(ttl)?),
            None => None,
        };
        let count = match parts.next() {
            Some(count) => number(count).filter(|count| (1..=MAX_CHANNELS).contains(count))?,
            None => 1,
        };
        parts.next().is_none().then_some(Connection { group, count, ttl })
    }
}

/// `incl IN IP4 DESTINATION SOURCE` (RFC 4570 §3).
fn source_filter(value: &str) -> Option<IpAddr> {
    let mut words = value.split_ascii_whitespace();
    let (mode, net, _family) = (words.next()?, words.next()?, words.next()?);
    let (_destination, source) = (words.next()?, words.next()?);
    let source: IpAddr = source.parse().ok()?;
    let is_usable = !source.is_multicast() && !source.is_unspecified();
    (mode == "incl" && net == "IN" && words.next().is_none() && is_usable).then_some(source)
}

fn scheme(value: &str) -> Option<(String, Vec<Setting>)> {
    let mut words = value.split_ascii_whitespace();
    let name = words.next()?.to_owned();
    let setting = |word: &str| {
        let (key, value) = word.split_once('=')?;
        (!key.is_empty()).then(|| Setting { key: key.to_owned(), value: value.to_owned() })
    };
    let settings: Option<Vec<Setting>> = words.map(setting).collect();
    Some((name, settings?))
}

fn ladder(value: &str) -> Option<Ladder> {
    let rates: Option<Vec<Rate>> = value.split_ascii_whitespace().map(|bps| number(bps).map(Rate::from_bps)).collect();
    Ladder::from_rates(rates?)
}

/// Somewhere that one host can be reached.
fn unicast(value: &str) -> Option<SocketAddr> {
    let is_usable = |at: &SocketAddr| {
        at.port() != 0 && !at.ip().is_multicast() && !at.ip().is_unspecified() && !is_broadcast(at.ip())
    };
    value.parse().ok().filter(is_usable)
}

fn is_broadcast(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(v4) if v4.is_broadcast())
}

/// Decimal digits and nothing else.
pub(super) fn number<N: FromStr>(digits: &str) -> Option<N> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

fn refusal(number: usize, line: &str, expected: Expected) -> DescriptionError {
    let text = line.chars().take(60).collect();
    DescriptionError::Line(LineError { line: number + 1, text, expected })
}

/// Slower than a packet in ten seconds nobody sends, and faster than this no network is.
const LOWEST_RATE: Rate = Rate::from_kbps(1);
const HIGHEST_RATE: Rate = Rate::from_bps(1_000_000_000_000);
const MAX_TEXT: usize = 256 << 10;
/// A ladder of 256 rates, each of 20 digits, fits.
const MAX_LINE: usize = 6_000;
/// As many as a ladder can have.
const MAX_CHANNELS: usize = 256;
const MIN_PACKET: u64 = 64;
const MAX_PACKET: u64 = 65_535;
