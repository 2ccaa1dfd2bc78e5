//! What goes out: packets are laid one behind the other into a batch, and a batch goes to the kernel in one call.

use std::net::SocketAddr;

use socket2::SockAddr;
use weir_capture::{Capture, Datagram};
use weir_core::Packet;
use weir_units::{Bytes, Ecn, Time};
use weir_wire::Header;

use super::Statistics;
use crate::clock::Clock;
use crate::error::NetError;
use crate::profile::MAX_HEADER;
use crate::socket::{MAX_BATCH_BYTES, MAX_BATCH_PACKETS, Output, SendOutcome, header_len};

/// Where a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// To the channel of this number.
    Channel(usize),
    /// Through the unicast socket of this number.
    Unicast(usize, SocketAddr),
}

/// Sockets to send through, and the batch.
#[derive(Debug)]
pub(super) struct Outgoing {
    clock: Clock,
    /// By session: what sends to its channels.
    groups: Vec<Output>,
    channels: Vec<Channel>,
    unicasts: Vec<Output>,
    batch: Batch,
    /// The packet added last is to go out together with the next.
    in_train: bool,
    pub(super) capture: Option<Capture>,
}

/// A channel to send to.
#[derive(Debug)]
struct Channel {
    /// Which of the outputs; `None` where nothing is sent to channels.
    output: Option<usize>,
    address: SocketAddr,
    sockaddr: SockAddr,
    ttl: u8,
    /// The last header sent there.
    last: Option<Header>,
}

/// Packets to one target, one behind the other, all but the last one of the same length.
#[derive(Debug)]
struct Batch {
    bytes: Vec<u8>,
    len: usize,
    target: Target,
    ecn: Ecn,
    packet_len: usize,
    packets: usize,
    /// Bytes before the payloads, over all packets; and how many have a payload.
    header_bytes: usize,
    with_payload: usize,
    /// When its first packet was written.
    time: Time,
}

impl Batch {
    fn new() -> Batch {
        Batch {
            bytes: vec![0; 2 * MAX_BATCH_BYTES],
            len: 0,
            target: Target::Channel(0),
            ecn: Ecn::NotEct,
            packet_len: 0,
            packets: 0,
            header_bytes: 0,
            with_payload: 0,
            time: Time::ZERO,
        }
    }

    /// The last packet is shorter, so nothing can follow it.
    fn is_ended(&self) -> bool {
        self.len < self.packets * self.packet_len
    }

    fn has_room_for(&self, target: Target, ecn: Ecn, len: usize) -> bool {
        self.packets == 0
            || (self.target == target
                && self.ecn == ecn
                && self.packets < MAX_BATCH_PACKETS
                && len <= self.packet_len
                && self.len + len <= MAX_BATCH_BYTES
                && !self.is_ended())
    }

    fn clear(&mut self) {
        (self.len, self.packets, self.header_bytes, self.with_payload) = (0, 0, 0, 0);
    }
}

impl Outgoing {
    pub(super) fn new(clock: Clock) -> Outgoing {
        Outgoing {
            clock,
            groups: Vec::new(),
            channels: Vec::new(),
            unicasts: Vec::new(),
            batch: Batch::new(),
            in_train: false,
            capture: None,
        }
    }

    /// Adds the channels of a session; without an output nothing can be sent there.
    pub(super) fn add_channels(&mut self, interface: u32, channels: &[SocketAddr], ttl: u8, output: Option<Output>) {
        let number = output.map(|output| {
            self.groups.push(output);
            self.groups.len() - 1
        });
        self.channels.extend(channels.iter().map(|address| Channel {
            output: number,
            address: *address,
            sockaddr: crate::socket::sockaddr(*address, interface),
            ttl,
            last: None,
        }));
    }

    pub(super) fn add_unicast(&mut self, output: Output) {
        self.unicasts.push(output);
    }

    /// What sends to channels.
    pub(super) fn groups(&self) -> &[Output] {
        &self.groups
    }

    pub(super) fn unicast(&self, number: usize) -> Option<&Output> {
        self.unicasts.get(number)
    }

    /// The address that a capture shows for what comes by a channel or a unicast socket, and its TTL.
    pub(super) fn shown(&self, target: Target) -> Option<(SocketAddr, u8)> {
        match target {
            Target::Channel(channel) => self.channels.get(channel).map(|channel| (channel.address, channel.ttl)),
            Target::Unicast(number, other) => {
                self.unicasts.get(number).map(|output| (own_address(output.local(), other), UNICAST_TTL))
            }
        }
    }

    /// Whether a packet can be sent there.
    pub(super) fn can_reach(&self, target: Target) -> bool {
        match target {
            Target::Channel(channel) => self.channels.get(channel).is_some_and(|channel| channel.output.is_some()),
            Target::Unicast(number, _) => number < self.unicasts.len(),
        }
    }

    /// Whether packets to channels leave this host from that address.
    pub(super) fn is_own(&self, from: SocketAddr) -> bool {
        let is_same = |local: SocketAddr| (local.ip(), local.port()) == (from.ip(), from.port());
        self.groups.iter().any(|output| is_same(output.local()))
    }

    /// When the next packet of the batch leaves, and the wall clock that it carries, in microseconds since the NTP epoch. The
    /// packets of a batch leave together.
    pub(super) fn stamp(&mut self) -> (Time, u64) {
        if self.batch.packets == 0 {
            self.batch.time = self.clock.now();
        }
        (self.batch.time, self.clock.ntp_micros(self.batch.time))
    }

    /// Makes sure that a packet to this target finds room, and that a train of packets begins a batch of its own.
    pub(super) fn make_room(
        &mut self,
        target: Target,
        ecn: Ecn,
        with_next: bool,
        statistics: &mut Statistics,
    ) -> Result<(), NetError> {
        let begins_train = with_next && !self.in_train;
        self.in_train = with_next;
        if begins_train || !self.batch.has_room_for(target, ecn, 0) {
            self.flush(statistics)?;
        }
        Ok(())
    }

    /// Adds a packet: `write` puts all that stands before the payload into the bytes that it is given and says how many they
    /// are, or that it cannot. Says whether it could.
    pub(super) fn add(
        &mut self,
        target: Target,
        packet: &Packet,
        payload: Option<&[u8]>,
        write: impl FnOnce(&mut [u8]) -> Option<usize>,
        statistics: &mut Statistics,
    ) -> Result<bool, NetError> {
        let data = payload.unwrap_or_default();
        if MAX_HEADER + data.len() > MAX_BATCH_BYTES {
            statistics.refused += 1;
            return Ok(true);
        }
        let start = self.batch.len;
        let Some(header) = write(&mut self.batch.bytes[start..start + MAX_HEADER]) else { return Ok(false) };
        let len = header + data.len();
        self.batch.bytes[start + header..start + len].copy_from_slice(data);
        if !self.batch.has_room_for(target, packet.ecn, len) {
            // It turned out longer than the others: they go, and it begins the next batch.
            self.flush(statistics)?;
            self.batch.bytes.copy_within(start..start + len, 0);
        }
        if self.batch.packets == 0 {
            (self.batch.target, self.batch.ecn, self.batch.packet_len) = (target, packet.ecn, len);
        }
        if let (Target::Channel(channel), true) = (target, payload.is_some()) {
            self.channels[channel].last = Some(packet.header);
        }
        self.batch.packets += 1;
        self.batch.len += len;
        self.batch.header_bytes += header;
        self.batch.with_payload += usize::from(payload.is_some());
        Ok(true)
    }

    /// Sends a message at once: an answer, a step of the handshake. If it is lost, the other side asks again.
    pub(super) fn message(
        &mut self,
        socket: usize,
        to: SocketAddr,
        message: &[u8],
        statistics: &mut Statistics,
    ) -> Result<(), NetError> {
        self.flush(statistics)?;
        let Some(output) = self.unicasts.get_mut(socket) else { return Ok(()) };
        let address = SockAddr::from(output.reachable(to));
        output.send(Some(&address), Ecn::NotEct, message, message.len().max(1));
        let target = Target::Unicast(socket, to);
        record(&mut self.capture, &self.clock, output.local(), target_address(target, &self.channels), message)
    }

    /// Hands the batch to the kernel.
    pub(super) fn flush(&mut self, statistics: &mut Statistics) -> Result<(), NetError> {
        let Batch { len, target, ecn, packet_len, packets, header_bytes, with_payload, .. } = self.batch;
        if packets == 0 {
            return Ok(());
        }
        self.batch.clear();
        let bytes = &self.batch.bytes[..len];
        let (output, outcome, ip) = match target {
            Target::Channel(channel) => {
                let channel = &self.channels[channel];
                let output = &mut self.groups[channel.output.expect("packets go where they can be sent")];
                let outcome = output.send(Some(&channel.sockaddr), ecn, bytes, packet_len);
                (output, outcome, channel.address.ip())
            }
            Target::Unicast(number, to) => {
                let output = &mut self.unicasts[number];
                let address = SockAddr::from(output.reachable(to));
                let outcome = output.send(Some(&address), ecn, bytes, packet_len);
                (output, outcome, to.ip())
            }
        };
        let sent = note(statistics, outcome, packets);
        if sent == 0 {
            return Ok(());
        }
        let payload_bytes = (sent * packet_len).min(len);
        if with_payload == 0 {
            statistics.control_sent += sent as u64;
        } else {
            let on_the_network = payload_bytes as u64 + sent as u64 * header_len(ip);
            statistics.sent.add(sent as u64, on_the_network);
            let headers = header_bytes * sent / packets;
            statistics.sent_payload += Bytes::new((payload_bytes - headers.min(payload_bytes)) as u64);
            if let Target::Channel(channel) = target {
                statistics.channels[channel].add(sent as u64, on_the_network);
            }
        }
        let captured = if self.capture.is_some() { sent } else { 0 };
        for packet in bytes.chunks(packet_len).take(captured) {
            let shown = target_address(target, &self.channels);
            record(&mut self.capture, &self.clock, output.local(), shown, packet)?;
        }
        Ok(())
    }

    /// Sends to every channel what `write` makes of its number and the last header sent there, if anything. Whether it sent
    /// anything.
    pub(super) fn close(
        &mut self,
        mut write: impl FnMut(usize, Option<&Header>, u64, &mut [u8]) -> Option<usize>,
        statistics: &mut Statistics,
    ) -> Result<bool, NetError> {
        self.flush(statistics)?;
        let mut has_sent = false;
        for channel in 0..self.channels.len() {
            if self.channels[channel].output.is_none() {
                continue;
            }
            let (_, ntp_micros) = self.stamp();
            let last = self.channels[channel].last;
            let Some(len) = write(channel, last.as_ref(), ntp_micros, &mut self.batch.bytes) else { continue };
            (self.batch.target, self.batch.ecn) = (Target::Channel(channel), Ecn::NotEct);
            (self.batch.len, self.batch.packet_len, self.batch.packets) = (len, len, 1);
            (self.batch.header_bytes, self.batch.with_payload) = (len, 1);
            self.flush(statistics)?;
            has_sent = true;
        }
        Ok(has_sent)
    }
}

/// Counts a batch; how many packets of it are on their way.
fn note(statistics: &mut Statistics, outcome: SendOutcome, packets: usize) -> usize {
    statistics.batches += 1;
    let sent = match outcome {
        SendOutcome::Sent(sent) => sent,
        SendOutcome::Full => 0,
        SendOutcome::Refused(error) => {
            statistics.last_refusal = Some(error);
            statistics.refused += packets as u64;
            return 0;
        }
    };
    statistics.queue_full += (packets - sent) as u64;
    sent
}

fn target_address(target: Target, channels: &[Channel]) -> (SocketAddr, u8) {
    match target {
        Target::Channel(channel) => (channels[channel].address, channels[channel].ttl),
        Target::Unicast(_, to) => (to, UNICAST_TTL),
    }
}

/// Writes down a datagram that is sent.
fn record(
    capture: &mut Option<Capture>,
    clock: &Clock,
    local: SocketAddr,
    (to, ttl): (SocketAddr, u8),
    payload: &[u8],
) -> Result<(), NetError> {
    let Some(capture) = capture else { return Ok(()) };
    let unix_nanos = clock.unix_nanos(clock.now());
    Ok(capture.record(&Datagram { unix_nanos, from: own_address(local, to), to, ttl, payload, comment: None })?)
}

/// The own address as a capture shows it next to `other`: of the same family.
fn own_address(local: SocketAddr, other: SocketAddr) -> SocketAddr {
    match local.is_ipv4() == other.is_ipv4() {
        true => local,
        false => SocketAddr::new(std::net::Ipv4Addr::UNSPECIFIED.into(), local.port()),
    }
}

/// What Linux gives to unicast packets, for captures.
const UNICAST_TTL: u8 = 64;
