//! A simulated run as a packet capture, for Wireshark and other analysers: what leaves the bottleneck, and what it drops.
//!
//! Headers have their real encodings, built from what the simulator carries: IPv4 with UDP and LCT for a session's packets, with
//! UDP and a probe for its round-trip times, RTP and RTCP for a paced stream's, IPv4 with TCP for segments, UDP for datagrams.
//! Payload is left out; lengths and checksums count it, as zeros. Agent n has the address 10.x.y.z of n, channel c of session s
//! the group 239.s.c. Time zero of the run is that of 1970.

use std::net::Ipv4Addr;
use std::path::Path;

use weir_capture::{Capture, CaptureError, IpPacket, Transport};
use weir_link::DropReason;
use weir_sim::tcp::{Kind, Segment};
use weir_sim::{Address, AgentId, Body, LinkId, Monitor, Packet};
use weir_units::Time;
use weir_wire::{CciForm, Header, MAX_SPECIMEN, Specimen};

/// Writes what happens to packets at one link.
#[derive(Debug)]
pub struct PacketCapture {
    file: Capture,
    link: LinkId,
    form: CciForm,
    error: Option<CaptureError>,
}

impl PacketCapture {
    /// Writes the packets of `link` to a new file, or over an old one. `form` is that of the sessions' packets.
    pub fn create(path: &Path, link: LinkId, form: CciForm) -> Result<PacketCapture, CaptureError> {
        Ok(PacketCapture { file: Capture::create(path, "bottleneck")?, link, form, error: None })
    }

    /// Writes what is still in memory; gives the first error that there was.
    pub fn finish(mut self) -> Result<(), CaptureError> {
        match self.error {
            Some(error) => Err(error),
            None => self.file.flush(),
        }
    }

    fn record(&mut self, at: Time, packet: &Packet, comment: Option<&'static str>) {
        if self.error.is_some() {
            return;
        }
        let bytes = encoding(packet, self.form);
        let transport = match packet.body {
            Body::Endpoint(_) | Body::Datagram(_) => {
                Transport::Udp { from_port: SESSION_PORT, to_port: SESSION_PORT, payload: &bytes }
            }
            Body::Segment(_) => Transport::Tcp(&bytes),
        };
        let packet = IpPacket {
            from: address_of(packet.source).into(),
            to: destination(packet.to).into(),
            ttl: 64,
            traffic_class: packet.ecn.bits(),
            transport,
            size: u32::try_from(packet.size.count()).unwrap_or(u32::MAX),
        };
        self.error = self.file.record_packet(at.as_nanos(), &packet, comment).err();
    }
}

impl Monitor for PacketCapture {
    fn dequeue(&mut self, now: Time, link: LinkId, packet: &Packet) {
        if link == self.link {
            self.record(now, packet, None);
        }
    }

    fn drop(&mut self, at: Time, link: LinkId, packet: &Packet, reason: DropReason) {
        if link == self.link {
            let why = match reason {
                DropReason::Overflow => "dropped: the buffer was full",
                DropReason::Early => "dropped by the queue before it was full",
                DropReason::Lost => "lost on the way",
            };
            self.record(at, packet, Some(why));
        }
    }
}

/// What follows the UDP header, or a TCP header, as it is on the network.
fn encoding(packet: &Packet, form: CciForm) -> Vec<u8> {
    match &packet.body {
        Body::Endpoint(header) => protocol(header, packet, form),
        Body::Segment(segment) => tcp(segment, packet),
        Body::Datagram(number) => number.to_be_bytes().to_vec(),
    }
}

fn destination(to: Address) -> Ipv4Addr {
    match to {
        Address::Agent(agent) => address_of(agent),
        Address::Channel(session, channel) => {
            let [high, low] = channel.to_be_bytes();
            Ipv4Addr::new(239, session.index() as u8, high, low)
        }
    }
}

fn address_of(agent: AgentId) -> Ipv4Addr {
    let [_, b, c, d] = (agent.index() as u32 + 1).to_be_bytes();
    Ipv4Addr::new(10, b, c, d)
}

/// An endpoint's header as it stands on the network. The agents that send are the synchronisation sources.
fn protocol(header: &Header, packet: &Packet, form: CciForm) -> Vec<u8> {
    let to_ssrc = match packet.to {
        Address::Agent(agent) => agent.index() as u32,
        Address::Channel(..) => 0,
    };
    let from_ssrc = packet.source.index() as u32;
    let specimen = Specimen { form, tsi: TSI, payload_type: DYNAMIC_PAYLOAD_TYPE, from_ssrc, to_ssrc };
    let mut bytes = [0; MAX_SPECIMEN];
    let len = specimen.encode(header, &mut bytes);
    bytes[..len].to_vec()
}

/// The TCP header of a segment; its numbers count segments, on the network they count bytes.
fn tcp(segment: &Segment, packet: &Packet) -> Vec<u8> {
    let data_size = match segment.kind {
        Kind::Data => packet.size.count().saturating_sub(40),
        // Acknowledgements do not know; a thousand bytes a segment keep the numbers readable.
        Kind::Ack => ACKNOWLEDGED_BYTES,
    };
    let number = |segments: u64| (segments.wrapping_mul(data_size) as u32).to_be_bytes();
    let port = 5001u16.wrapping_add(packet.flow.index() as u16).to_be_bytes();
    let mut flags = 0x10;
    let (seq, ack) = match segment.kind {
        Kind::Data => (number(segment.seq), [0; 4]),
        Kind::Ack => ([0; 4], number(segment.seq)),
    };
    flags |= if segment.ecn_echo { 0x40 } else { 0 } | if segment.window_reduced { 0x80 } else { 0 };
    let mut header = [&port[..], &port, &seq, &ack, &[0x50, flags, 0xff, 0xff, 0, 0, 0, 0]].concat();
    let blocks: Vec<(u64, u64)> = segment.sack_blocks().collect();
    if !blocks.is_empty() {
        header.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
        blocks.iter().for_each(|(start, end)| header.extend([number(*start), number(*end)].concat()));
        header[12] = ((header.len() / 4) as u8) << 4;
    }
    header
}

/// Every session's: their groups tell them apart.
const TSI: u16 = 1;
/// The port that SDP examples use for media and FLUTE sessions.
const SESSION_PORT: u16 = 5004;
const ACKNOWLEDGED_BYTES: u64 = 1000;
/// The first of the payload types that are agreed on elsewhere (RFC 3551 §3).
const DYNAMIC_PAYLOAD_TYPE: u8 = 96;

#[cfg(test)]
mod tests {
    use super::*;
    use weir_sim::tcp::{Config, Flavour};
    use weir_sim::{Network, Times, topology};

    #[test]
    fn every_packet_of_the_bottleneck_is_in_the_capture_and_drops_say_why() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.pcapng");
        let mut net = Network::new(1);
        let link = |text: &str| text.parse::<weir_link::LinkConfig>().expect("a valid link");
        let bottleneck = link("rate=1M,delay=10ms,buffer=10p");
        let bell = topology::dumbbell(&mut net, &bottleneck, &bottleneck);
        let from = topology::add_host(&mut net, bell.left, &link("delay=1ms"));
        let to = topology::add_host(&mut net, bell.right, &link("delay=1ms"));
        net.add_tcp(from, to, Config::ns2(Flavour::Sack), Times::from(Time::ZERO)).expect("a way");
        let mut capture = PacketCapture::create(&path, bell.forward, CciForm::Short).expect("a file");
        net.run_until(Time::from_secs(5), &mut capture);
        capture.finish().expect("written");
        let bytes = std::fs::read(&path).expect("there is a file");
        let counters = net.link_counters(bell.forward);
        let text = b"dropped: the buffer was full";
        let comments = bytes.windows(text.len()).filter(|window| window == text).count() as u64;
        assert!(counters.dropped > 0 && comments == counters.dropped, "{comments} comments, {counters:?}");
        let packets = counters.delivered + counters.dropped;
        assert!(bytes.len() as u64 > packets * 72 && (bytes.len() as u64) < packets * 140, "{} bytes", bytes.len());
    }
}
