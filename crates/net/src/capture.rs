//! Packet captures in pcapng, of what a driver sent or received, for Wireshark and its kin.
//!
//! A capture wraps a driver from outside: one record a datagram (batches are split again), each with the IP and UDP
//! headers that it has on the network, checksums included, at wall time in nanoseconds. Written after the pcapng
//! specification (draft-ietf-opsawg-pcapng §4.1 section header, §4.2 interface description, §4.3 enhanced packet).

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use crate::error::NetError;

/// A capture file that is being written.
#[derive(Debug)]
pub struct Capture {
    file: BufWriter<File>,
    path: String,
    record: Vec<u8>,
}

/// One datagram, as it goes over the network.
#[derive(Debug, Clone, Copy)]
pub struct Datagram<'a> {
    /// Wall time, nanoseconds since 1970.
    pub unix_nanos: u64,
    /// Source.
    pub from: SocketAddr,
    /// Destination, of the same family.
    pub to: SocketAddr,
    /// TTL or hop limit.
    pub ttl: u8,
    /// What the UDP header is followed by.
    pub payload: &'a [u8],
    /// A remark about it, such as that the emulated link dropped it.
    pub comment: Option<&'a str>,
}

impl Capture {
    /// Begins a capture in a new file, or over an old one. `interface` is the name that readers show.
    pub fn create(path: &Path, interface: &str) -> Result<Capture, NetError> {
        let shown = path.display().to_string();
        let failed = |source| NetError::Capture { path: shown.clone(), source };
        let file = BufWriter::with_capacity(1 << 18, File::create(path).map_err(failed)?);
        let mut capture = Capture { file, path: shown.clone(), record: Vec::with_capacity(2048) };
        capture.begin(interface).map_err(failed)?;
        Ok(capture)
    }

    /// Adds a datagram.
    pub fn record(&mut self, datagram: &Datagram<'_>) -> Result<(), NetError> {
        self.write_packet(datagram).map_err(|source| self.failed(source))
    }

    /// Adds a packet of which only the beginning is kept: `bytes`, from its IP header on, of `size` on the network.
    pub fn record_start(
        &mut self,
        unix_nanos: u64,
        bytes: &[u8],
        size: u32,
        comment: Option<&str>,
    ) -> Result<(), NetError> {
        self.begin_packet(unix_nanos, bytes.len() as u32, size);
        self.record.extend(bytes);
        self.end_packet(comment).map_err(|source| self.failed(source))
    }

    /// Writes out what is still in memory.
    pub fn flush(&mut self) -> Result<(), NetError> {
        self.file.flush().map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> NetError {
        NetError::Capture { path: self.path.clone(), source }
    }

    fn begin(&mut self, interface: &str) -> io::Result<()> {
        // Byte order magic, version 1.0, section length unknown.
        self.record.clear();
        self.record.extend(0x1a2b_3c4d_u32.to_le_bytes());
        self.record.extend(1_u16.to_le_bytes());
        self.record.extend(0_u16.to_le_bytes());
        self.record.extend(u64::MAX.to_le_bytes());
        self.write_block(SECTION_HEADER)?;
        // Link type, reserved, snap length 0 for none, then the options: name, time in 10^-9 s, end.
        self.record.clear();
        self.record.extend(LINKTYPE_RAW.to_le_bytes());
        self.record.extend([0; 6]);
        self.option(OPTION_IF_NAME, interface.as_bytes());
        self.option(OPTION_IF_TSRESOL, &[9]);
        self.option(OPTION_END, &[]);
        self.write_block(INTERFACE_DESCRIPTION)
    }

    fn write_packet(&mut self, datagram: &Datagram<'_>) -> io::Result<()> {
        let header = ip_udp_header(datagram)?;
        let header = header.bytes();
        let len = (header.len() + datagram.payload.len()) as u32;
        self.begin_packet(datagram.unix_nanos, len, len);
        self.record.extend(header);
        self.record.extend(datagram.payload);
        self.end_packet(datagram.comment)
    }

    fn begin_packet(&mut self, unix_nanos: u64, captured: u32, len: u32) {
        self.record.clear();
        self.record.extend(0_u32.to_le_bytes());
        self.record.extend(((unix_nanos >> 32) as u32).to_le_bytes());
        self.record.extend((unix_nanos as u32).to_le_bytes());
        self.record.extend(captured.to_le_bytes());
        self.record.extend(len.to_le_bytes());
    }

    fn end_packet(&mut self, comment: Option<&str>) -> io::Result<()> {
        self.pad();
        if let Some(comment) = comment {
            self.option(OPTION_COMMENT, comment.as_bytes());
            self.option(OPTION_END, &[]);
        }
        self.write_block(ENHANCED_PACKET)
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.record.extend(code.to_le_bytes());
        self.record.extend((value.len() as u16).to_le_bytes());
        self.record.extend(value);
        self.pad();
    }

    fn pad(&mut self) {
        self.record.resize(self.record.len().next_multiple_of(4), 0);
    }

    fn write_block(&mut self, kind: u32) -> io::Result<()> {
        let len = (self.record.len() as u32 + 12).to_le_bytes();
        self.file.write_all(&kind.to_le_bytes())?;
        self.file.write_all(&len)?;
        self.file.write_all(&self.record)?;
        self.file.write_all(&len)
    }
}

/// IP and UDP headers, 28 or 48 bytes.
struct HeaderBytes([u8; 48], usize);

impl HeaderBytes {
    fn bytes(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

fn ip_udp_header(datagram: &Datagram<'_>) -> io::Result<HeaderBytes> {
    let udp_len = u16::try_from(datagram.payload.len() + 8)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a UDP packet has at most 65535 bytes"))?;
    let mut out = HeaderBytes([0; 48], 28);
    let (ip_len, addresses) = match (datagram.from.ip(), datagram.to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let total = udp_len
                .checked_add(20)
                .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "an IPv4 packet has at most 65535 bytes"))?;
            out.0[0] = 0x45;
            out.0[2..4].copy_from_slice(&total.to_be_bytes());
            out.0[6] = 0x40; // don't fragment
            out.0[8] = datagram.ttl;
            out.0[9] = UDP;
            out.0[12..16].copy_from_slice(&from.octets());
            out.0[16..20].copy_from_slice(&to.octets());
            let sum = checksum(0, &out.0[..20]);
            out.0[10..12].copy_from_slice(&sum.to_be_bytes());
            (20, 12..20)
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            out.1 = 48;
            out.0[0] = 0x60;
            out.0[4..6].copy_from_slice(&udp_len.to_be_bytes());
            out.0[6] = UDP;
            out.0[7] = datagram.ttl;
            out.0[8..24].copy_from_slice(&from.octets());
            out.0[24..40].copy_from_slice(&to.octets());
            (40, 8..40)
        }
        _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "source and destination are of two families")),
    };
    out.0[ip_len..ip_len + 2].copy_from_slice(&datagram.from.port().to_be_bytes());
    out.0[ip_len + 2..ip_len + 4].copy_from_slice(&datagram.to.port().to_be_bytes());
    out.0[ip_len + 4..ip_len + 6].copy_from_slice(&udp_len.to_be_bytes());
    // The UDP checksum covers a pseudo-header of addresses, protocol and length (RFC 768, RFC 8200 §8.1).
    let pseudo = sum_words(u64::from(UDP) + u64::from(udp_len), &out.0[addresses]);
    let header = sum_words(pseudo, &out.0[ip_len..ip_len + 8]);
    let sum = match checksum(header, datagram.payload) {
        0 => 0xffff, // zero on the wire would mean that there is none
        sum => sum,
    };
    out.0[ip_len + 6..ip_len + 8].copy_from_slice(&sum.to_be_bytes());
    Ok(out)
}

/// The Internet checksum (RFC 1071) of `bytes`, begun with `start`.
pub fn checksum(start: u64, bytes: &[u8]) -> u16 {
    let mut sum = sum_words(start, bytes);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// 65 536 words of 16 bits fit 64 bits many times over.
fn sum_words(start: u64, bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(2);
    let odd = words.remainder().first().map_or(0, |last| u64::from(*last) << 8);
    words.fold(start + odd, |sum, word| sum + u64::from(u16::from_be_bytes([word[0], word[1]])))
}

const UDP: u8 = 17;
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// Packets begin with their IP header.
const LINKTYPE_RAW: u16 = 101;
const OPTION_END: u16 = 0;
const OPTION_COMMENT: u16 = 1;
const OPTION_IF_NAME: u16 = 2;
const OPTION_IF_TSRESOL: u16 = 9;

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram<'a>(from: &str, to: &str, payload: &'a [u8]) -> Datagram<'a> {
        let parse = |text: &str| text.parse().expect("an address");
        Datagram { unix_nanos: 1, from: parse(from), to: parse(to), ttl: 1, payload, comment: None }
    }

    #[test]
    fn the_checksum_of_rfc_1071_s_example_comes_out() {
        // §3: the words 0001 f203 f4f5 f6f7 sum to ddf2.
        assert_eq!(checksum(0, &[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    #[test]
    fn a_header_checks_to_zero() {
        let header = ip_udp_header(&datagram("192.0.2.1:1000", "239.1.2.3:5004", b"odd")).expect("fits");
        assert_eq!(checksum(0, &header.bytes()[..20]), 0);
        let pseudo = sum_words(u64::from(UDP) + 11, &header.bytes()[12..20]);
        assert_eq!(checksum(sum_words(pseudo, &header.bytes()[20..]), b"odd"), 0);
    }

    #[test]
    fn families_do_not_mix_and_size_is_bounded() {
        assert!(ip_udp_header(&datagram("192.0.2.1:1", "[ff15::1]:2", b"")).is_err());
        assert!(ip_udp_header(&datagram("192.0.2.1:1", "239.0.0.1:2", &[0; 65_530])).is_err());
        assert_eq!(ip_udp_header(&datagram("[fd00::1]:1", "[ff15::1]:2", b"")).expect("fits").bytes().len(), 48);
    }
}
