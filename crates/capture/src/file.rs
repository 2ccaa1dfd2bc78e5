//! The file: `pcap-file` writes the blocks of pcapng, and this module decides what is in them.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::{DataLink, Endianness, PcapError};

use crate::error::CaptureError;
use crate::packet::{IpPacket, Transport};

/// A capture file that is being written.
pub struct Capture {
    file: PcapNgWriter<BufWriter<File>>,
    path: PathBuf,
    /// Memory for the bytes of one packet, kept from packet to packet.
    packet: Vec<u8>,
}

/// A whole UDP datagram.
#[derive(Debug, Clone, Copy)]
pub struct Datagram<'a> {
    /// Wall time, nanoseconds since 1970.
    pub unix_nanos: u64,
    /// Source.
    pub from: SocketAddr,
    /// Destination, of the same address family.
    pub to: SocketAddr,
    /// TTL or hop limit.
    pub ttl: u8,
    /// What follows the UDP header.
    pub payload: &'a [u8],
    /// A comment on the packet, such as that the emulated link dropped it.
    pub comment: Option<&'static str>,
}

impl Capture {
    /// Begins a capture in a new file, or over an old one. `interface` is the name that analysers show.
    pub fn create(path: &Path, interface: &str) -> Result<Capture, CaptureError> {
        let file = begin(path, interface).map_err(|source| CaptureError { path: path.to_owned(), source })?;
        Ok(Capture { file, path: path.to_owned(), packet: Vec::with_capacity(2048) })
    }

    /// Adds a datagram.
    pub fn record(&mut self, datagram: &Datagram<'_>) -> Result<(), CaptureError> {
        let Datagram { from, to, ttl, payload, .. } = *datagram;
        let transport = Transport::Udp { from_port: from.port(), to_port: to.port(), payload };
        let packet = IpPacket { from: from.ip(), to: to.ip(), ttl, traffic_class: 0, transport, size: 0 };
        self.record_packet(datagram.unix_nanos, &packet, datagram.comment)
    }

    /// Adds a packet, of which the end may be missing.
    pub fn record_packet(
        &mut self,
        unix_nanos: u64,
        packet: &IpPacket<'_>,
        comment: Option<&'static str>,
    ) -> Result<(), CaptureError> {
        self.write_packet(unix_nanos, packet, comment).map_err(|source| self.failed(source))
    }

    /// Writes out what is still in memory.
    pub fn flush(&mut self) -> Result<(), CaptureError> {
        self.file.get_mut().flush().map_err(|source| self.failed(source))
    }

    fn write_packet(
        &mut self,
        unix_nanos: u64,
        packet: &IpPacket<'_>,
        comment: Option<&'static str>,
    ) -> io::Result<()> {
        self.packet.clear();
        let wrong = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        packet.append_to(&mut self.packet).map_err(wrong)?;
        let comment = comment.map(|comment| EnhancedPacketOption::Comment(Cow::Borrowed(comment)));
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos(unix_nanos),
            original_len: packet.size.max(self.packet.len() as u32),
            data: Cow::Borrowed(&self.packet),
            options: comment.into_iter().collect(),
        };
        self.file.write_pcapng_block(block).map_err(io_error)?;
        Ok(())
    }

    fn failed(&self, source: io::Error) -> CaptureError {
        CaptureError { path: self.path.clone(), source }
    }
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Makes the file, with its section header and the description of its only interface.
fn begin(path: &Path, interface: &str) -> io::Result<PcapNgWriter<BufWriter<File>>> {
    let out = BufWriter::with_capacity(BUFFER, File::create(path)?);
    // The same bytes on every machine.
    let mut file = PcapNgWriter::with_endianness(out, Endianness::Little).map_err(io_error)?;
    let options = vec![
        InterfaceDescriptionOption::IfName(Cow::Borrowed(interface)),
        InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
    ];
    // Packets begin with their IP header, and no snap length limits them.
    let description = InterfaceDescriptionBlock { linktype: DataLink::RAW, snaplen: 0, options };
    file.write_pcapng_block(description).map_err(io_error)?;
    Ok(file)
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        error => io::Error::other(error),
    }
}

/// A quarter of a megabyte goes to the system at once.
const BUFFER: usize = 1 << 18;
/// The resolution of times: 10^-9 s, the unit that `pcap-file` writes.
const NANOSECONDS: u8 = 9;
