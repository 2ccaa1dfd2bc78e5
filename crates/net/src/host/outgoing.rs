//! What goes out: packets are laid one behind the other into a batch, and a batch goes to the kernel in one call.

use std::net::SocketAddr;

use socket2::SockAddr;
use weir_core::{ChannelId, Packet, PeerId};
use weir_units::{Ecn, Time};
use weir_wire::Header;

use super::outlets::{Group, Sealed, Unicast};
use super::record::Recorder;
use super::statistics::Statistics;
use crate::clock::Clock;
use crate::error::Result;
use crate::interface::Interface;
use crate::profile::MAX_HEADER;
use crate::seal::pair::PairSealer;
use crate::seal::{ControlKey, Sealer};
use crate::socket::{
    Arrival, MAX_BATCH_BYTES, MAX_BATCH_PACKETS, Output, SendOutcome, Way, header_len, rescoped, scoped,
};

/// Where a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Channel(ChannelId),
    /// Through a unicast socket, to an address.
    Unicast(usize, SocketAddr),
}

/// A packet that is to go out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Laid<'a> {
    pub(super) target: Target,
    /// To which peer it goes, if to one.
    pub(super) peer: Option<PeerId>,
    pub(super) packet: &'a Packet,
    pub(super) payload: Option<&'a [u8]>,
    /// Together with the next.
    pub(super) with_next: bool,
}

/// Sockets to send through, and the batch.
#[derive(Debug)]
pub(super) struct Outgoing {
    clock: Clock,
    /// By session: what sends to its channels.
    groups: Vec<Group>,
    channels: Vec<Channel>,
    unicasts: Vec<Unicast>,
    batch: Batch,
    /// The batch with its seals.
    sealed: Vec<u8>,
    /// The packet added last is to go out together with the next.
    in_train: bool,
    pub(super) recorder: Recorder,
}

/// A channel to send to.
#[derive(Debug)]
struct Channel {
    /// Which of the outputs; `None` where nothing is sent to channels.
    output: Option<usize>,
    address: SocketAddr,
    ttl: u8,
    /// The last header sent there.
    last: Option<Header>,
}

/// Packets to one target, one behind the other, all but the last one of the same length.
#[derive(Debug)]
struct Batch {
    bytes: Vec<u8>,
    len: usize,
    to: Option<(Target, Ecn)>,
    peer: Option<PeerId>,
    packet_len: usize,
    /// The most bytes that a packet's seals take.
    reserve: usize,
    /// By packet: the length of its payload, if it has one.
    payloads: Vec<Option<usize>>,
    /// When its first packet was written.
    time: Time,
}

impl Batch {
    /// Whether packets to `target` can be part of it.
    fn is_for(&self, target: Target, ecn: Ecn) -> bool {
        self.payloads.is_empty() || self.to == Some((target, ecn))
    }

    /// Whether a packet of `len` bytes can follow those that are there.
    fn has_room_for(&self, len: usize) -> bool {
        let packets = self.payloads.len();
        // Nothing can follow a packet that is shorter than the others.
        let is_ended = self.len < packets * self.packet_len;
        let sealed = self.len + len + (packets + 1) * self.reserve;
        let fits = packets < MAX_BATCH_PACKETS && len <= self.packet_len && sealed <= MAX_BATCH_BYTES;
        packets == 0 || (fits && !is_ended)
    }

    /// The next `len` bytes are a packet.
    fn push(&mut self, target: Target, ecn: Ecn, len: usize, payload: Option<usize>) {
        if self.payloads.is_empty() {
            (self.to, self.packet_len) = (Some((target, ecn)), len);
        }
        self.payloads.push(payload);
        self.len += len;
    }
}

impl Outgoing {
    pub(super) fn new(clock: Clock) -> Outgoing {
        let bytes = vec![0; 2 * MAX_BATCH_BYTES];
        let payloads = Vec::with_capacity(MAX_BATCH_PACKETS);
        Outgoing {
            clock,
            groups: Vec::new(),
            channels: Vec::new(),
            unicasts: Vec::new(),
            batch: Batch { bytes, len: 0, to: None, peer: None, packet_len: 0, reserve: 0, payloads, time: Time::ZERO },
            sealed: Vec::new(),
            in_train: false,
            recorder: Recorder::new(clock),
        }
    }

    /// Adds the channels of a session; without an output nothing can be sent there.
    pub(super) fn add_channels(&mut self, interface: u32, channels: &[SocketAddr], ttl: u8, output: Option<Output>) {
        let number = output.is_some().then_some(self.groups.len());
        let first = self.channels.len() as u16;
        self.groups.extend(output.map(|output| Group::new(output, first)));
        let channel =
            |address: &SocketAddr| Channel { output: number, address: scoped(*address, interface), ttl, last: None };
        self.channels.extend(channels.iter().map(channel));
    }

    /// The interface has been made again: what goes to channels leaves from there.
    pub(super) fn attach(&mut self, interface: &Interface) -> Result<()> {
        for (number, group) in self.groups.iter_mut().enumerate() {
            group.output.attach(interface)?;
            for channel in self.channels.iter_mut().filter(|channel| channel.output == Some(number)) {
                channel.address = rescoped(channel.address, interface.index);
            }
        }
        Ok(())
    }

    pub(super) fn add_unicast(&mut self, output: Output) {
        self.unicasts.push(Unicast::new(output));
    }

    /// Packets to the channels of the session of this channel are sealed.
    pub(super) fn seal(&mut self, channel: u16, sealer: Sealer) {
        if let Some(group) = self.channels[usize::from(channel)].output {
            self.groups[group].sealer = Some(sealer);
        }
    }

    /// What goes out through a unicast socket is tagged.
    pub(super) fn tag(&mut self, socket: usize, key: ControlKey) {
        self.unicasts[socket].key = Some(key);
    }

    /// The most bytes that the seals of a packet to `target` take.
    fn reserve(&self, target: Target) -> usize {
        match target {
            Target::Channel(ChannelId(channel)) => {
                self.channels[usize::from(channel)].output.map_or(0, |group| self.groups[group].reserve())
            }
            Target::Unicast(socket, to) => self.unicasts[socket].reserve(to),
        }
    }

    /// Packets to a peer are sealed, by keys that both share; `is_there` says of whom this still holds.
    pub(super) fn pair(
        &mut self,
        socket: usize,
        to: SocketAddr,
        pair: PairSealer,
        is_there: impl Fn(SocketAddr) -> bool,
    ) {
        self.unicasts[socket].pair(to, pair, is_there);
    }

    /// What sends to the channels of the first session that is sent to.
    pub(super) fn group(&self) -> Option<&Output> {
        self.groups.first().map(|group| &group.output)
    }

    pub(super) fn unicast(&self, number: usize) -> Option<&Output> {
        self.unicasts.get(number).map(|unicast| &unicast.output)
    }

    /// Whether anything can be sent to a channel.
    pub(super) fn has_channel(&self, channel: ChannelId) -> bool {
        self.channels.get(usize::from(channel.0)).is_some_and(|known| known.output.is_some())
    }

    /// Records a packet that arrived this way, and perhaps goes no further.
    #[inline]
    pub(super) fn record_arrival(
        &mut self,
        arrival: &Arrival,
        way: Way,
        packet: &[u8],
        is_dropped: bool,
    ) -> Result<()> {
        if !self.recorder.is_on() {
            return Ok(());
        }
        let (socket, ttl) = match way {
            Way::Channel(ChannelId(channel)) => {
                let channel = &self.channels[usize::from(channel)];
                (channel.address, channel.ttl)
            }
            Way::Unicast(number) => (self.unicasts[number].output.local(), UNICAST_TTL),
        };
        self.recorder.arrived(arrival, socket, ttl, packet, is_dropped)
    }

    /// Whether packets to channels leave this host from that address.
    pub(super) fn is_own(&self, from: SocketAddr) -> bool {
        let is_same = |local: SocketAddr| (local.ip(), local.port()) == (from.ip(), from.port());
        self.groups.iter().any(|group| is_same(group.output.local()))
    }

    /// Adds a packet to the batch, with all that `write` puts before its payload. Says whether `write` could: it is given the
    /// bytes and the time at which they leave, and says how many it took.
    pub(super) fn add(
        &mut self,
        laid: Laid<'_>,
        write: impl FnOnce(&mut [u8], Time) -> Option<usize>,
        statistics: &mut Statistics,
    ) -> Result<bool> {
        let Laid { target, peer, packet, payload, with_next } = laid;
        let data = payload.unwrap_or_default();
        if MAX_HEADER + data.len() + self.reserve(target) > MAX_BATCH_BYTES {
            statistics.refused += 1;
            return Ok(true);
        }
        // A train of packets begins a batch of its own.
        let begins_train = !std::mem::replace(&mut self.in_train, with_next) && with_next;
        if begins_train || !self.batch.is_for(target, packet.ecn) || !self.batch.has_room_for(0) {
            self.flush(statistics)?;
        }
        if self.batch.payloads.is_empty() {
            self.batch.reserve = self.reserve(target);
        }
        let (start, leaves) = (self.batch.len, self.leaves());
        let Some(header) = write(&mut self.batch.bytes[start..start + MAX_HEADER], leaves) else { return Ok(false) };
        let len = header + data.len();
        self.batch.bytes[start + header..start + len].copy_from_slice(data);
        if !self.batch.has_room_for(len) {
            // It turned out longer than the others: they go, and it begins the next batch.
            self.flush(statistics)?;
            self.batch.bytes.copy_within(start..start + len, 0);
        }
        if let (Target::Channel(ChannelId(channel)), true) = (target, payload.is_some()) {
            self.channels[usize::from(channel)].last = Some(packet.header);
        }
        self.batch.push(target, packet.ecn, len, payload.map(<[u8]>::len));
        self.batch.peer = peer;
        Ok(true)
    }

    /// When the next packet of the batch leaves. The packets of a batch leave together.
    fn leaves(&mut self) -> Time {
        if self.batch.payloads.is_empty() {
            self.batch.time = self.clock.now();
        }
        self.batch.time
    }

    /// Sends a message at once: an answer, a goodbye. If it is lost, the other side asks again.
    pub(super) fn message(
        &mut self,
        socket: usize,
        to: SocketAddr,
        message: &[u8],
        statistics: &mut Statistics,
    ) -> Result<()> {
        self.flush(statistics)?;
        let Some(unicast) = self.unicasts.get_mut(socket) else { return Ok(()) };
        let mut sealed = std::mem::take(&mut self.sealed);
        unicast.seal(to, message, message.len().max(1), &mut sealed);
        let sent = self.send_clear(socket, to, &sealed);
        self.sealed = sealed;
        sent
    }

    /// Sends a step of the handshake at once, as it is: keys are known only after it.
    pub(super) fn handshake(
        &mut self,
        socket: usize,
        to: SocketAddr,
        message: &[u8],
        statistics: &mut Statistics,
    ) -> Result<()> {
        self.flush(statistics)?;
        self.send_clear(socket, to, message)
    }

    fn send_clear(&mut self, socket: usize, to: SocketAddr, message: &[u8]) -> Result<()> {
        let Some(Unicast { output, .. }) = self.unicasts.get_mut(socket) else { return Ok(()) };
        let address = SockAddr::from(output.reachable(to));
        output.send(Some(&address), Ecn::NotEct, message, message.len().max(1));
        self.recorder.sent(output.local(), to, UNICAST_TTL, message)
    }

    /// Hands the batch to the kernel, with its seals.
    pub(super) fn flush(&mut self, statistics: &mut Statistics) -> Result<()> {
        let Batch { bytes, len, to, peer, packet_len, payloads, .. } = &mut self.batch;
        let Some((target, ecn)) = to.take() else { return Ok(()) };
        let (mut bytes, mut packet_len) = (&bytes[..std::mem::take(len)], *packet_len);
        let (output, channel, to, ttl) = match target {
            Target::Channel(ChannelId(number)) => {
                let channel = &self.channels[usize::from(number)];
                let group = &mut self.groups[channel.output.expect("packets go where they can be sent")];
                match group.seal(number, bytes, packet_len, &mut self.sealed) {
                    Sealed::No => {}
                    Sealed::Longer(overhead) => (bytes, packet_len) = (&self.sealed, packet_len + overhead),
                    Sealed::TooLong => {
                        statistics.refused += payloads.len() as u64;
                        payloads.clear();
                        return Ok(());
                    }
                }
                (&mut group.output, Some(usize::from(number)), channel.address, channel.ttl)
            }
            Target::Unicast(number, to) => {
                let unicast = &mut self.unicasts[number];
                let overhead = unicast.reserve(to);
                if overhead > 0 {
                    unicast.seal(to, bytes, packet_len, &mut self.sealed);
                    (bytes, packet_len) = (&self.sealed, packet_len + overhead);
                }
                (&mut unicast.output, None, to, UNICAST_TTL)
            }
        };
        let address = SockAddr::from(output.reachable(to));
        let outcome = output.send(Some(&address), ecn, bytes, packet_len);
        let sent = note(statistics, outcome, payloads.len());
        for (packet, payload) in bytes.chunks(packet_len).zip(payloads.iter()).take(sent) {
            statistics.note_sent(channel, *peer, packet.len() as u64 + header_len(to.ip()), *payload);
            self.recorder.sent(output.local(), to, ttl, packet)?;
        }
        payloads.clear();
        Ok(())
    }

    /// Sends to every channel what `write` makes of its number and the last header sent there, if anything. Whether it sent
    /// anything.
    pub(super) fn close(
        &mut self,
        mut write: impl FnMut(ChannelId, Option<&Header>, Time, &mut [u8]) -> Option<usize>,
        statistics: &mut Statistics,
    ) -> Result<bool> {
        self.flush(statistics)?;
        let mut has_sent = false;
        for channel in (0..self.channels.len()).map(|number| ChannelId(number as u16)) {
            if !self.has_channel(channel) {
                continue;
            }
            let (leaves, last) = (self.leaves(), self.channels[usize::from(channel.0)].last);
            let Some(len) = write(channel, last.as_ref(), leaves, &mut self.batch.bytes) else { continue };
            self.batch.push(Target::Channel(channel), Ecn::NotEct, len, Some(0));
            self.batch.peer = None;
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

/// What Linux gives to unicast packets, for captures.
const UNICAST_TTL: u8 = 64;
