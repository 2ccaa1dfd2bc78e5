//! Whether a group works on an interface: joins it, sends greetings to it, and hears its own, those of others who do the same,
//! and the sessions that use it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use socket2::SockAddr;
use weir_core::ChannelId;
use weir_units::{Ecn, Time};
use weir_wire::alc::Alc;

use crate::clock::{self, Clock};
use crate::error::NetError;
use crate::interface::Interface;
use crate::socket::{Input, Output, ReceiveConfig, SendConfig, SendOutcome, sockaddr};

/// A group that is being tried.
#[derive(Debug)]
pub struct Echo {
    input: Input,
    output: Output,
    to: SockAddr,
    own: Hello,
    clock: Clock,
    heard: Heard,
}

/// A greeting: magic `WDOC`, version 1, three bytes of zero, and the number of the one who sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello(pub u64);

/// What came from the group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Heard {
    /// Greetings sent.
    pub sent: u64,
    /// Greetings of this one.
    pub own: u64,
    /// Hosts that greet, too.
    pub others: BTreeSet<IpAddr>,
    /// Packets of each session, by its number and sender.
    pub sessions: BTreeMap<(u64, IpAddr), u64>,
    /// Packets that are neither.
    pub unreadable: u64,
}

impl Hello {
    const MAGIC: [u8; 8] = *b"WDOC\x01\0\0\0";

    /// The greeting as bytes.
    pub fn encode(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&Hello::MAGIC);
        bytes[8..].copy_from_slice(&self.0.to_be_bytes());
        bytes
    }

    /// The greeting in these bytes, if they are one.
    pub fn decode(bytes: &[u8]) -> Option<Hello> {
        let number = bytes.strip_prefix(&Hello::MAGIC)?;
        Some(Hello(u64::from_be_bytes(number.try_into().ok()?)))
    }
}

impl Echo {
    /// Joins `group` on `interface`, of `source` if one is given. Greetings pass as many routers as `ttl` says, less one; `own` is a
    /// random number.
    ///
    /// # Errors
    /// [`NetError`] if the group cannot be joined.
    pub fn start(
        interface: &Interface,
        group: SocketAddr,
        source: Option<IpAddr>,
        ttl: u8,
        own: Hello,
    ) -> Result<Echo, NetError> {
        let mut input = Input::new(&ReceiveConfig { offload: false, ..ReceiveConfig::default() });
        input.add_channels(interface, &[group], source, false, true)?;
        input.join(ChannelId(0))?;
        let output = Output::to_channels(interface, group.ip(), &SendConfig { ttl, ..SendConfig::default() })?;
        let to = sockaddr(group, interface.index);
        Ok(Echo { input, output, to, own, clock: Clock::new(), heard: Heard::default() })
    }

    /// Greets and listens for this long; gives all that was heard so far.
    ///
    /// # Errors
    /// [`NetError`] if the network fails meanwhile.
    pub fn listen(&mut self, span: Duration) -> Result<&Heard, NetError> {
        let end = self.clock.now() + span;
        let mut next = Time::ZERO;
        while self.clock.now() < end {
            if self.clock.now() >= next {
                next = self.clock.now() + GREETING_INTERVAL;
                let sent = self.output.send(Some(&self.to), Ecn::NotEct, &self.own.encode(), 16);
                self.heard.sent += u64::from(sent == SendOutcome::Sent(1));
            }
            self.wait(next.min(end))?;
            self.read()?;
        }
        Ok(&self.heard)
    }

    /// The receive buffer of a session that asks for the usual one.
    pub fn buffer(&self) -> crate::socket::BufferSize {
        self.input.capabilities().buffer
    }

    fn wait(&mut self, until: Time) -> Result<(), NetError> {
        let mut waiting: Vec<_> = self.input.waiting().collect();
        clock::wait(&mut waiting, until).map_err(|error| NetError::Wait(error.into()))?;
        let found: Vec<_> = waiting.iter().map(clock::found).collect();
        drop(waiting);
        self.input.set_ready(found.into_iter(), self.clock.now());
        Ok(())
    }

    fn read(&mut self) -> Result<(), NetError> {
        let reading = self.input.receive()?;
        for arrival in reading.arrivals() {
            reading.packets(arrival).for_each(|packet| self.heard.take(self.own, arrival.from.ip(), packet));
        }
        self.input.recycle(reading);
        Ok(())
    }
}

impl Heard {
    fn take(&mut self, own: Hello, from: IpAddr, packet: &[u8]) {
        match (Hello::decode(packet), Alc::decode(packet)) {
            (Some(hello), _) if hello == own => self.own += 1,
            (Some(_), _) if self.others.len() < MOST => drop(self.others.insert(from)),
            (Some(_), _) => {}
            (None, Ok(alc)) if self.sessions.len() < MOST || self.sessions.contains_key(&(alc.tsi, from)) => {
                *self.sessions.entry((alc.tsi, from)).or_default() += 1;
            }
            (None, _) => self.unreadable += 1,
        }
    }
}

const GREETING_INTERVAL: Duration = Duration::from_millis(200);
/// As many hosts and sessions as anyone reads.
const MOST: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_is_read_by_its_number_and_nothing_else_is_one() {
        let hello = Hello(0x0102_0304_0506_0708);
        assert_eq!(Hello::decode(&hello.encode()), Some(hello));
        assert_eq!(
            (Hello::decode(&hello.encode()[..15]), Hello::decode(b"WDOC\x02\0\0\0\0\0\0\0\0\0\0\0")),
            (None, None)
        );
    }

    #[test]
    fn a_host_hears_itself_over_loopback() {
        let group: SocketAddr = "239.255.77.13:50713".parse().expect("a group and port");
        let interface = Interface::choose(&"lo".parse().expect("a name"), group.ip()).expect("lo is there");
        let mut echo = Echo::start(&interface, group, None, 0, Hello(1)).expect("lo has groups");
        let mut other = Echo::start(&interface, group, None, 0, Hello(2)).expect("lo has groups");
        other.listen(Duration::from_millis(30)).expect("it works");
        let heard = echo.listen(Duration::from_millis(300)).expect("it works");
        assert!(heard.own > 0 && heard.own <= heard.sent, "{heard:?}");
        assert_eq!((heard.others.len(), heard.unreadable, heard.sessions.len()), (1, 0, 0), "{heard:?}");
    }
}
