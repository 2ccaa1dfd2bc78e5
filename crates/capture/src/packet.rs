//! The bytes of a packet: IPv4 and IPv6 headers, UDP headers, and the checksums of both and of TCP.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IP packet, or the beginning of one.
#[derive(Debug, Clone, Copy)]
pub struct IpPacket<'a> {
    /// Source.
    pub from: IpAddr,
    /// Destination, of the same address family.
    pub to: IpAddr,
    /// TTL or hop limit.
    pub ttl: u8,
    /// DSCP and ECN: the type of service in IPv4, the traffic class in IPv6.
    pub traffic_class: u8,
    /// What follows the IP header, as far as it is known.
    pub transport: Transport<'a>,
    /// Bytes on the network, IP header included. A packet has at least the bytes that are given; any that are missing count as
    /// zeros in its checksum. The length fields of a packet that is too long for them show the largest length that fits.
    pub size: u32,
}

/// What follows the IP header.
#[derive(Debug, Clone, Copy)]
pub enum Transport<'a> {
    /// A UDP header, which is made from the ports, and the payload.
    Udp {
        /// The source's port.
        from_port: u16,
        /// The destination's port.
        to_port: u16,
        /// What follows the UDP header.
        payload: &'a [u8],
    },
    /// A TCP header with a checksum of zero, which is replaced, and any payload.
    Tcp(&'a [u8]),
}

/// Why there is no such packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PacketError {
    #[error("source and destination are of different address families")]
    Families,
    #[error("an IP packet has at most 65535 bytes")]
    TooLong,
}

impl IpPacket<'_> {
    /// Appends what is known of the packet.
    pub(crate) fn append_to(&self, out: &mut Vec<u8>) -> Result<(), PacketError> {
        let (len, addresses_len) = match (self.from, self.to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let len = self.transport_len(IPV4_HEADER, MAX_LEN - IPV4_HEADER)?;
                self.append_ipv4(from, to, len, out);
                (len, 8)
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let len = self.transport_len(IPV6_HEADER, MAX_LEN)?;
                self.append_ipv6(from, to, len, out);
                (len, 32)
            }
            _ => return Err(PacketError::Families),
        };
        // The checksum covers a pseudo-header of addresses, protocol and length (RFC 768, RFC 9293 §3.1, RFC 8200 §8.1). Both
        // IP headers end with the addresses.
        let addresses = &out[out.len() - addresses_len..];
        let pseudo_sum = sum_words(u64::from(self.protocol()) + u64::from(len), addresses);
        self.append_transport(len, pseudo_sum, out);
        Ok(())
    }

    fn protocol(&self) -> u8 {
        match self.transport {
            Transport::Udp { .. } => 17,
            Transport::Tcp(_) => 6,
        }
    }

    /// Bytes that follow the IP header on the network.
    fn transport_len(&self, header: usize, max: usize) -> Result<u16, PacketError> {
        let known = match self.transport {
            Transport::Udp { payload, .. } => UDP_HEADER + payload.len(),
            Transport::Tcp(segment) => segment.len(),
        };
        let whole = (self.size as usize).saturating_sub(header).min(max);
        u16::try_from(known.max(whole)).ok().filter(|len| usize::from(*len) <= max).ok_or(PacketError::TooLong)
    }

    fn append_ipv4(&self, from: Ipv4Addr, to: Ipv4Addr, len: u16, out: &mut Vec<u8>) {
        let mut header = [0; IPV4_HEADER];
        header[0] = 0x45;
        header[1] = self.traffic_class;
        header[2..4].copy_from_slice(&(len + IPV4_HEADER as u16).to_be_bytes());
        header[6] = 0x40; // don't fragment
        header[8] = self.ttl;
        header[9] = self.protocol();
        header[12..16].copy_from_slice(&from.octets());
        header[16..].copy_from_slice(&to.octets());
        let sum = checksum(0, &header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        out.extend(header);
    }

    fn append_ipv6(&self, from: Ipv6Addr, to: Ipv6Addr, len: u16, out: &mut Vec<u8>) {
        out.extend((6 << 28 | u32::from(self.traffic_class) << 20).to_be_bytes());
        out.extend(len.to_be_bytes());
        out.extend([self.protocol(), self.ttl]);
        out.extend(from.octets());
        out.extend(to.octets());
    }

    fn append_transport(&self, len: u16, pseudo_sum: u64, out: &mut Vec<u8>) {
        let start = out.len();
        let sum_at = match self.transport {
            Transport::Udp { from_port, to_port, payload } => {
                [from_port, to_port, len, 0].iter().for_each(|word| out.extend(word.to_be_bytes()));
                out.extend(payload);
                start + 6
            }
            Transport::Tcp(segment) => {
                out.extend(segment);
                start + 16
            }
        };
        let sum = match (checksum(pseudo_sum, &out[start..]), self.transport) {
            (0, Transport::Udp { .. }) => 0xffff, // zero in UDP would mean that there is none
            (sum, _) => sum,
        };
        out[sum_at..sum_at + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

/// The Internet checksum (RFC 1071) of `bytes`, begun with `start`.
fn checksum(start: u64, bytes: &[u8]) -> u16 {
    let mut sum = sum_words(start, bytes);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The sum of `start` and of 16-bit words, which 64 bits hold for any packet.
fn sum_words(start: u64, bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(2);
    let odd = words.remainder().first().map_or(0, |last| u64::from(*last) << 8);
    words.fold(start + odd, |sum, word| sum + u64::from(u16::from_be_bytes([word[0], word[1]])))
}

const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const UDP_HEADER: usize = 8;
/// What a length field of 16 bits can show.
const MAX_LEN: usize = 65_535;

#[cfg(test)]
mod tests {
    use super::*;

    fn udp<'a>(from: &str, to: &str, payload: &'a [u8], size: u32) -> IpPacket<'a> {
        let parse = |text: &str| text.parse().expect("an address");
        let transport = Transport::Udp { from_port: 1000, to_port: 5004, payload };
        IpPacket { from: parse(from), to: parse(to), ttl: 1, traffic_class: 2, transport, size }
    }

    fn bytes(packet: &IpPacket<'_>) -> Result<Vec<u8>, PacketError> {
        let mut bytes = Vec::new();
        packet.append_to(&mut bytes).map(|()| bytes)
    }

    /// What a receiver computes over pseudo-header and transport: zero if the checksum is right.
    fn check(packet: &[u8], addresses: std::ops::Range<usize>, protocol: u64) -> u16 {
        let transport = &packet[addresses.end..];
        checksum(sum_words(protocol + transport.len() as u64, &packet[addresses]), transport)
    }

    #[test]
    fn the_checksum_of_rfc_1071_s_example_comes_out() {
        // §3: the words 0001 f203 f4f5 f6f7 sum to ddf2.
        assert_eq!(checksum(0, &[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    #[test]
    fn a_receiver_finds_the_checksums_right() {
        let v4 = bytes(&udp("192.0.2.1", "239.1.2.3", b"odd", 0)).expect("it fits");
        assert_eq!((v4.len(), checksum(0, &v4[..20]), check(&v4, 12..20, 17)), (31, 0, 0));
        let v6 = bytes(&udp("fd00::1", "ff15::1", b"odd", 0)).expect("it fits");
        assert_eq!((v6.len(), check(&v6, 8..40, 17)), (51, 0));
        let tcp = IpPacket {
            transport: Transport::Tcp(&[7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 0, 0]),
            ..udp("192.0.2.1", "192.0.2.2", b"", 0)
        };
        let tcp = bytes(&tcp).expect("it fits");
        assert_eq!((tcp.len(), tcp[9], check(&tcp, 12..20, 6)), (40, 6, 0));
    }

    #[test]
    fn a_udp_checksum_is_never_zero() {
        // Protocol, the length twice and the ports sum to 17 + 10 + 10 + 1000 + 5004. This word makes that ffff.
        let word = (0xffff - (17 + 10 + 10 + 1000 + 5004_u16)).to_be_bytes();
        let packet = bytes(&udp("0.0.0.0", "0.0.0.0", &word, 0)).expect("it fits");
        assert_eq!(packet[26..28], [0xff, 0xff]);
    }

    #[test]
    fn lengths_are_those_on_the_network() {
        let part = bytes(&udp("192.0.2.1", "239.1.2.3", b"beginning", 1500)).expect("it fits");
        assert_eq!(
            (part.len(), &part[2..4], &part[24..26]),
            (37, &1500_u16.to_be_bytes()[..], &1480_u16.to_be_bytes()[..])
        );
        let huge = bytes(&udp("192.0.2.1", "239.1.2.3", b"beginning", 1 << 20)).expect("it fits");
        assert_eq!((huge.len(), &huge[2..4]), (37, &[0xff, 0xff][..]));
    }

    #[test]
    fn what_no_ip_packet_can_be_is_refused() {
        assert_eq!(bytes(&udp("192.0.2.1", "ff15::1", b"", 0)), Err(PacketError::Families));
        assert_eq!(bytes(&udp("192.0.2.1", "239.0.0.1", &[0; 65_508], 0)), Err(PacketError::TooLong));
        assert!(bytes(&udp("192.0.2.1", "239.0.0.1", &[0; 65_507], 0)).is_ok());
        assert!(bytes(&udp("fd00::1", "ff15::1", &[0; 65_527], 0)).is_ok());
    }
}
