//! Round-trip probes over unicast: [`ProbeDesk`] takes them in at the sender and sends the answers, [`Prober`] is a
//! receiver's way to that desk and back.
//!
//! Not here: when to ask and whom to answer, which the endpoints decide. Nobody is remembered: an answer goes to the address
//! that asked, at once or never, and a receiver hears nobody but the address in the session's description.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use weir_core::PeerId;
use weir_units::{Ecn, Time};
use weir_wire::Probe;
use weir_wire::probe::{Kind, LEN};

use crate::clock::Clock;
use crate::error::NetError;
use crate::interface::Interface;
use crate::socket::{Received, UnicastSocket, scoped};

/// The sender's side.
#[derive(Debug)]
pub(crate) struct ProbeDesk {
    socket: UnicastSocket,
    tsi: u16,
}

impl ProbeDesk {
    /// A desk of session `tsi` on `address` of an interface.
    pub(crate) fn open(address: SocketAddr, interface: &Interface, tsi: u16) -> Result<ProbeDesk, NetError> {
        Ok(ProbeDesk { socket: UnicastSocket::listen(scoped(address, interface.index))?, tsi })
    }

    pub(crate) fn local(&self) -> SocketAddr {
        self.socket.local()
    }

    /// Waits until somebody asks or it is `until`; `true` if somebody does.
    pub(crate) fn wait(&self, until: Time) -> Result<bool, NetError> {
        self.socket.wait(None, until).map(|ready| ready.socket)
    }

    /// Reads what is there, as far as memory reaches; how many datagrams.
    pub(crate) fn receive(&mut self, clock: &Clock) -> Result<usize, NetError> {
        read(&mut self.socket, clock)?;
        Ok(self.socket.received().len())
    }

    /// Datagram `number` of the last read, if it is a probe of this session, and who asks: known by that name until the
    /// next read.
    pub(crate) fn probe(&self, number: usize) -> Option<(PeerId, Probe)> {
        let received = self.socket.received().get(number)?;
        let probe = decode(self.socket.payload(received), self.tsi).filter(|probe| probe.kind == Kind::Probe)?;
        Some((PeerId(number as u32), probe))
    }

    /// Sends an answer. Gives the message and the address if it is on its way.
    pub(crate) fn answer(&self, peer: PeerId, echo: &Probe) -> Option<([u8; LEN], SocketAddr)> {
        let to = self.socket.received().get(peer.0 as usize)?.from;
        let message = echo.encode(self.tsi);
        self.socket.send(to, Ecn::NotEct, &[&message]).is_ok().then_some((message, to))
    }
}

/// A receiver's side.
#[derive(Debug)]
pub(crate) struct Prober {
    socket: UnicastSocket,
    desk: SocketAddr,
    tsi: u16,
    /// How many of the last read have been taken.
    taken: usize,
}

impl Prober {
    /// Asks the desk of session `tsi` at `desk`, which is reached by an interface if its address does not tell.
    pub(crate) fn new(desk: SocketAddr, interface: &Interface, tsi: u16) -> Result<Prober, NetError> {
        let desk = scoped(desk, interface.index);
        Ok(Prober { socket: UnicastSocket::connect(desk)?, desk, tsi, taken: 0 })
    }

    pub(crate) fn local(&self) -> SocketAddr {
        self.socket.local()
    }

    /// To wait on for answers.
    pub(crate) fn readable(&self) -> BorrowedFd<'_> {
        self.socket.readable()
    }

    /// Sends a probe. One that cannot be sent is as good as lost.
    pub(crate) fn ask(&self, probe: &Probe) {
        let _ = self.socket.send(self.desk, Ecn::NotEct, &[&probe.encode(self.tsi)]);
    }

    /// Reads what is there, once all that was read before has been taken.
    pub(crate) fn receive(&mut self, clock: &Clock) -> Result<(), NetError> {
        if self.taken < self.socket.received().len() {
            return Ok(());
        }
        self.taken = 0;
        read(&mut self.socket, clock)
    }

    /// The next datagram that arrived by `until`.
    pub(crate) fn take(&mut self, until: Time) -> Option<Received> {
        let received = *self.socket.received().get(self.taken).filter(|received| received.time <= until)?;
        self.taken += 1;
        Some(received)
    }

    /// What a datagram that was taken holds, until the next read.
    pub(crate) fn message(&self, received: &Received) -> &[u8] {
        self.socket.payload(received)
    }
}

/// The echo in a message, if it is one of session `tsi`.
pub(crate) fn echo(message: &[u8], tsi: u16) -> Option<Probe> {
    decode(message, tsi).filter(|probe| probe.kind == Kind::Echo)
}

fn decode(message: &[u8], tsi: u16) -> Option<Probe> {
    Probe::decode(message).ok().filter(|(_, of)| *of == tsi).map(|(probe, _)| probe)
}

/// Reads, and forgets whose ports are closed: nothing was promised to them.
fn read(socket: &mut UnicastSocket, clock: &Clock) -> Result<(), NetError> {
    socket.refusals();
    socket.receive(clock)
}

/// What Linux gives to unicast packets, for captures.
pub(crate) const UNICAST_TTL: u8 = 64;
