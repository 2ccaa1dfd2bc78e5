//! What a member needs to know of a stream, as one line that people can hand on.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use weir_core::registry::{Habitat, Setting, Stream};
use weir_net::socket::header_len;
use weir_net::tree::TreeSession;
use weir_object::keys::PublicKey;
use weir_units::Bytes;
use weir_wire::mtcp::{ACK_LEN, DATA_LEN};

use super::seal;
use crate::exit::{Exit, Failure};

/// `stream://HOST:PORT/GROUP:PORT/TSI/BYTES[?sender=KEY&SETTING=VALUE&…]`: where the sender takes members, the group of the data,
/// the number of the session, bytes of a full packet, the sender's public key, and settings of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamAddress {
    /// Host and port where the sender takes members.
    pub sender: String,
    /// Group and port of the data.
    pub channel: SocketAddr,
    /// Transport session identifier.
    pub tsi: u16,
    /// Bytes of a full packet on the network, all headers included.
    pub packet_size: u16,
    /// The key that signs the stream's digest; without, nobody checks whose it is.
    pub sender_key: Option<PublicKey>,
    /// Settings of MTCP that differ from its defaults.
    pub settings: Vec<Setting>,
}

/// The parameter with the sender's key.
const KEY: &str = "sender";
/// What addresses of streams begin with.
pub(crate) const PREFIX: &str = "stream://";

/// Not an address of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected the address that `weir send stream` prints, such as stream://192.0.2.7:5005/239.255.0.1:5004/4711/1456"
)]
pub struct StreamAddressError;

impl FromStr for StreamAddress {
    type Err = StreamAddressError;

    fn from_str(text: &str) -> Result<StreamAddress, StreamAddressError> {
        let rest = text.strip_prefix(PREFIX).ok_or(StreamAddressError)?;
        let (place, settings) = rest.split_once('?').unwrap_or((rest, ""));
        let mut parts = place.split('/');
        let mut part = || parts.next().ok_or(StreamAddressError);
        let (sender, channel) = (part()?, part()?.parse::<SocketAddr>().map_err(|_| StreamAddressError)?);
        let mut number = || part()?.parse::<u16>().map_err(|_| StreamAddressError);
        let (tsi, packet_size) = (number()?, number()?);
        let setting = |text: &str| {
            let (key, value) = text.split_once('=').ok_or(StreamAddressError)?;
            Ok(Setting { key: key.to_owned(), value: value.to_owned() })
        };
        let mut settings: Vec<Setting> =
            settings.split('&').filter(|text| !text.is_empty()).map(setting).collect::<Result<_, _>>()?;
        let key = settings.iter().position(|setting| setting.key == KEY).map(|place| settings.remove(place));
        let sender_key = key.map(|key| key.value.parse()).transpose().map_err(|_| StreamAddressError)?;
        let is_host =
            sender.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        let is_usable = is_host && parts.next().is_none() && channel.ip().is_multicast() && packet_size >= LEAST_PACKET;
        is_usable
            .then(|| StreamAddress { sender: sender.to_owned(), channel, tsi, packet_size, sender_key, settings })
            .ok_or(StreamAddressError)
    }
}

impl fmt::Display for StreamAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StreamAddress { sender, channel, tsi, packet_size, sender_key, settings } = self;
        write!(f, "{PREFIX}{sender}/{channel}/{tsi}/{packet_size}")?;
        let key = sender_key.map(|key| (KEY, blake3::Hash::from_bytes(key.to_bytes()).to_hex().to_string()));
        let settings = settings.iter().map(|Setting { key, value }| (key.as_str(), value.clone()));
        key.into_iter()
            .chain(settings)
            .enumerate()
            .try_for_each(|(number, (key, value))| write!(f, "{}{key}={value}", if number == 0 { '?' } else { '&' }))
    }
}

impl StreamAddress {
    /// What the sockets need to know.
    pub(super) fn session(&self) -> TreeSession {
        TreeSession { tsi: self.tsi, channel: self.channel }
    }

    /// What the protocol needs to know.
    pub(super) fn stream(&self) -> Stream {
        let headers = header_len(self.channel.ip());
        Stream {
            packet_size: Bytes::new(self.packet_size.into()),
            feedback_size: Bytes::new(headers + ACK_LEN as u64),
            habitat: Habitat::Sockets,
        }
    }

    /// Bytes of the stream in a full payload.
    pub(super) fn payload_len(&self) -> usize {
        usize::from(self.packet_size) - header_len(self.channel.ip()) as usize - DATA_LEN - seal::OVERHEAD
    }
}

/// The address of a host, which may be a name.
pub(super) fn resolve(host: &str, like: SocketAddr) -> Result<SocketAddr, Failure> {
    let found = host.to_socket_addrs().map_err(Failure::of(Exit::Network, format!("cannot find {host}")))?;
    let usable = found.into_iter().find(|address| address.is_ipv4() == like.is_ipv4());
    let family = if like.is_ipv4() { "IPv4" } else { "IPv6" };
    usable
        .ok_or_else(|| Failure::new(Exit::Network, format!("{host} has no {family} address, and the group is {like}")))
}

/// All headers fit, and a payload that is worth it.
pub(crate) const LEAST_PACKET: u16 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_comes_back_as_it_was_printed() {
        for text in [
            "stream://192.0.2.7:5005/239.255.0.1:5004/4711/1456",
            "stream://[2001:db8::7]:5005/[ff15::77]:5004/1/1500?buffer=100&rules=literal",
            "stream://relay.example.org:9/239.255.0.1:5004/65535/9000",
            "stream://192.0.2.7:5005/239.255.0.1:5004/1/1456?sender=d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a&buffer=9",
        ] {
            let address: StreamAddress = text.parse().expect("an address");
            assert_eq!(address.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_address_of_a_stream_is_refused() {
        for text in [
            "stream://",
            "http://192.0.2.7:5005/239.255.0.1:5004/4711/1456",
            "stream://192.0.2.7/239.255.0.1:5004/4711/1456",
            "stream://192.0.2.7:5005/192.0.2.9:5004/4711/1456",
            "stream://192.0.2.7:5005/239.255.0.1:5004/4711",
            "stream://192.0.2.7:5005/239.255.0.1:5004/4711/100",
            "stream://192.0.2.7:5005/239.255.0.1:5004/4711/1456/7",
            "stream://192.0.2.7:5005/239.255.0.1:5004/4711/1456?buffer",
            "stream://192.0.2.7:5005/239.255.0.1:5004/4711/1456?sender=1234",
        ] {
            assert_eq!(text.parse::<StreamAddress>(), Err(StreamAddressError), "{text}");
        }
    }
}
