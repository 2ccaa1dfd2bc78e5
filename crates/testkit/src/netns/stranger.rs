//! A host that nobody asked: it listens to a group and sends to it what it likes, with neither key nor description.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt::UdpGsoSegment};
use socket2::{Domain, Protocol, Socket, Type};
use weir_wire::alc::{Alc, Content, Profile};
use weir_wire::{CciForm, Layered};

use super::host::Host;
use super::topology::run;

/// What a stranger does, until it is done or this is dropped. It says how many packets it has sent.
#[derive(Debug)]
pub struct Stranger {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<u64>>,
}

impl Stranger {
    /// Has a stranger on `host` do this to the group, or to one host. Its socket hears what is sent to the group from before this returns.
    pub fn start(host: &Host, group: SocketAddrV4, work: impl FnOnce(&mut Air) + Send + 'static) -> Stranger {
        let is_over = Arc::<AtomicBool>::default();
        let local = host.ipv4();
        let (heard, hears) = std::sync::mpsc::channel();
        let thread = host.spawn({
            let is_over = Arc::clone(&is_over);
            move || {
                let socket = open(group, local).expect("a host can join a group");
                heard.send(()).expect("somebody waits for it");
                let mut air = Air { socket, group, local, is_over, sent: 0 };
                work(&mut air);
                air.sent
            }
        });
        hears.recv().expect("the stranger's socket is open");
        Stranger { is_over, thread: Some(thread) }
    }

    /// Waits until it has done what it wanted; how many packets it has sent.
    pub fn done(mut self) -> u64 {
        self.thread.take().map_or(0, |thread| thread.join().expect("the stranger does not panic"))
    }

    /// Has it end; how many packets it has sent.
    pub fn stop(self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        self.done()
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Its host may go next. A panic of its own has been reported.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A group as a stranger has it.
#[derive(Debug)]
pub struct Air {
    socket: UdpSocket,
    group: SocketAddrV4,
    local: Ipv4Addr,
    is_over: Arc<AtomicBool>,
    sent: u64,
}

impl Air {
    /// Whether the test wants it to end.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// How many packets it has sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// The next packet that somebody sends to the group; `None` when the test wants the stranger to end.
    pub fn hear(&mut self) -> Option<Heard> {
        while !self.is_over() {
            if let Some(heard) = self.hear_for(PATIENCE) {
                return Some(heard);
            }
        }
        None
    }

    /// The next packet that carries a symbol which `wanted` accepts.
    pub fn hear_symbol(&mut self, mut wanted: impl FnMut(&Content) -> bool) -> Option<Heard> {
        loop {
            let heard = self.hear()?;
            if heard.content().is_some_and(|content| wanted(&content)) {
                return Some(heard);
            }
        }
    }

    /// The same, of a packet that nothing comes after for a moment: what is sent now comes before the sender's next, which has the
    /// same sequence number.
    pub fn hear_last_symbol(&mut self, mut wanted: impl FnMut(&Content) -> bool) -> Option<Heard> {
        let mut last = self.hear_symbol(&mut wanted)?;
        loop {
            match self.hear_for(MOMENT) {
                None if self.is_over() => return None,
                None => return Some(last),
                Some(heard) => {
                    // Another packet's number would be a guess.
                    last = match heard.content().is_some_and(|content| wanted(&content)) {
                        true => heard,
                        false => self.hear_symbol(&mut wanted)?,
                    };
                }
            }
        }
    }

    /// The next packet, if one comes so soon.
    fn hear_for(&mut self, span: Duration) -> Option<Heard> {
        self.socket.set_read_timeout(Some(span)).expect("a socket has a timeout");
        let mut buffer = [0; 65_536];
        match self.socket.recv_from(&mut buffer) {
            Ok((length, SocketAddr::V4(from))) => Some(Heard { bytes: buffer[..length].to_vec(), from }),
            Ok((_, SocketAddr::V6(_))) => None,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => None,
            Err(error) => panic!("listening to {}: {error}", self.group),
        }
    }

    /// Sends to the group.
    pub fn say(&mut self, packet: &[u8]) {
        self.socket.send_to(packet, self.group).expect("a host can send to a group");
        self.sent += 1;
    }

    /// Sends to the group under the address of another.
    pub fn say_as(&mut self, from: SocketAddrV4, packet: &[u8]) {
        let sent = self.raw().send_to(&self.datagram(from, packet), &self.group.into());
        sent.expect("root can send under any address");
        self.sent += 1;
    }

    /// Floods the group from the address of another: this many packets a second, or as many as the kernel takes, until the test ends the
    /// stranger. The kernel gets them many at a time, so that the flood itself costs little of the processor that the test runs on.
    pub fn flood_as(&mut self, from: SocketAddrV4, packet: &[u8], per_sec: u32) {
        let socket = self.impostor(from);
        let length = i32::try_from(packet.len()).expect("a packet");
        setsockopt(&socket, UdpGsoSegment, &length).expect("the kernel makes packets of a batch");
        let batch = packet.repeat(BATCH as usize);
        let begun = Instant::now();
        while !self.is_over() {
            let due = (begun.elapsed().as_secs_f64() * f64::from(per_sec)) as u64;
            if due < self.sent + BATCH {
                std::thread::sleep(MOMENT / 4);
                continue;
            }
            // A queue that is full is what a flood is for.
            let _ = socket.send_to(&batch, self.group);
            self.sent += BATCH;
        }
    }

    /// A socket with the address of another, which this host has as well from now on, and tells nobody.
    fn impostor(&self, from: SocketAddrV4) -> UdpSocket {
        std::fs::write("/proc/sys/net/ipv4/conf/all/arp_ignore", "8").expect("root can set what a host answers");
        run("ip", &["address", "add", &format!("{}/32", from.ip()), "dev", "lo"]);
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).expect("a socket");
        socket.set_multicast_if_v4(&self.local).expect("a host has an interface");
        socket.set_multicast_loop_v4(false).expect("a socket has options");
        socket.bind(&from.into()).expect("its own address");
        socket.into()
    }

    /// A socket for datagrams that bring their own IP header. Its host does not hear them.
    fn raw(&self) -> Socket {
        let raw = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(RAW))).expect("root has raw sockets");
        raw.set_multicast_if_v4(&self.local).expect("a host has an interface");
        raw.set_multicast_loop_v4(false).expect("a socket has options");
        raw
    }

    /// A packet to the group with the headers of IP and UDP.
    fn datagram(&self, from: SocketAddrV4, packet: &[u8]) -> Vec<u8> {
        let to = self.group;
        let [length, udp_length] = [28, 8].map(|header| u16::try_from(header + packet.len()).expect("a small packet"));
        // IPv4: version and header length, length, TTL 1, UDP; the kernel adds identification and checksum. UDP: no checksum.
        let mut datagram = vec![0x45, 0];
        datagram.extend(length.to_be_bytes());
        datagram.extend([0, 0, 0, 0, 1, 17, 0, 0]);
        datagram.extend(from.ip().octets().into_iter().chain(to.ip().octets()));
        datagram.extend([from.port(), to.port(), udp_length, 0].into_iter().flat_map(u16::to_be_bytes));
        datagram.extend(packet);
        datagram
    }

    /// Waits; less long if the test wants it to end.
    pub fn pause(&self, span: Duration) {
        super::eventually(span, || self.is_over());
    }
}

/// A packet of the base layer that a stranger has heard, as a pattern for others.
#[derive(Debug, Clone)]
pub struct Heard {
    bytes: Vec<u8>,
    from: SocketAddrV4,
}

impl Heard {
    /// The packet itself.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Who sent it.
    pub fn from(&self) -> SocketAddrV4 {
        self.from
    }

    /// What it says about its symbol.
    pub fn content(&self) -> Option<Content> {
        Alc::decode(&self.bytes).ok()?.content
    }

    /// A packet that comes right after this one as far as congestion control can tell, and carries something else.
    pub fn followed_by(&self, content: &Content, symbol: &[u8]) -> Vec<u8> {
        let (profile, layered) = self.layered();
        let layered = Layered { sequence: layered.sequence.wrapping_add(1), ..layered };
        packet(&profile, &layered, content, symbol)
    }

    /// This packet once more, with a number so far ahead of its own and a clock that is wrong by so many microseconds.
    pub fn displaced(&self, ahead: u32, clock_micros: i64) -> Vec<u8> {
        let (profile, layered) = self.layered();
        let most = u32::MAX >> (32 - profile.form.sequence_bits());
        let layered = Layered {
            sequence: layered.sequence.wrapping_add(ahead) & most,
            clock_micros: layered.clock_micros.wrapping_add_signed(clock_micros),
            ..layered
        };
        let alc = Alc::decode(&self.bytes).expect("it was heard as a packet");
        packet(&profile, &layered, &alc.content.expect("it has a symbol"), alc.symbol)
    }

    /// A packet that says that the session is over.
    pub fn closing(&self) -> Vec<u8> {
        let (profile, layered) = self.layered();
        let mut packet = vec![0; weir_wire::alc::MAX_OVERHEAD];
        let length = profile.encode_close(&layered, &mut packet);
        packet.truncate(length);
        packet
    }

    /// What the packets of its session have in common, and what this one tells congestion control.
    fn layered(&self) -> (Profile, Layered) {
        let alc = Alc::decode(&self.bytes).expect("it was heard as a packet");
        let form =
            [CciForm::Short, CciForm::Long, CciForm::Clocked].into_iter().find(|form| form.len() == alc.cci.len());
        let form = form.expect("congestion control information has one of three lengths");
        let layered = alc.layered(form).expect("it was heard as a packet");
        (Profile { tsi: u16::try_from(alc.tsi).expect("a TSI of Weir's"), form }, layered)
    }
}

fn packet(profile: &Profile, layered: &Layered, content: &Content, symbol: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; weir_wire::alc::MAX_OVERHEAD];
    let header = profile.encode(layered, content, &mut packet);
    packet.truncate(header);
    packet.extend_from_slice(symbol);
    packet
}

fn open(group: SocketAddrV4, local: Ipv4Addr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(true)?;
    if group.ip().is_multicast() {
        socket.bind(&group.into())?;
        socket.join_multicast_v4(group.ip(), &local)?;
    }
    socket.set_multicast_if_v4(&local)?;
    socket.set_multicast_loop_v4(false)?;
    Ok(socket.into())
}

/// How often a stranger looks whether it is to end.
const PATIENCE: Duration = Duration::from_millis(50);
/// Longer than a burst's packets are apart.
const MOMENT: Duration = Duration::from_millis(2);
/// Packets from one look at the clock to the next.
const BATCH: u64 = 64;
/// IPPROTO_RAW: the datagram brings its own IP header.
const RAW: i32 = 255;
