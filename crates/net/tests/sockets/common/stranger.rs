//! Sockets that say whatever a test wants: a client by hand, a sender by hand, rubbish.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use weir_units::Random;
use weir_wire::Feedback;
use weir_wire::rtcp::handshake::{Kind, Message, Terms};
use weir_wire::rtcp::{self, Bye, congestion};
use weir_wire::rtp::Rtp;

/// Somebody on the loopback who knows where a tenant listens.
pub(crate) struct Stranger {
    socket: UdpSocket,
    pub(crate) ssrc: u32,
    /// The stream's SSRC, once it is known.
    pub(crate) stream: u32,
}

impl Stranger {
    pub(crate) fn new(port: u16) -> Stranger {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        socket.connect((Ipv4Addr::LOCALHOST, port)).expect("an address");
        socket.set_read_timeout(Some(Duration::from_millis(300))).expect("not zero");
        Stranger { socket, ssrc: 0x5151_5151, stream: 0 }
    }

    pub(crate) fn send(&self, datagram: &[u8]) {
        let _ = self.socket.send(datagram);
    }

    pub(crate) fn receive(&self) -> Option<Vec<u8>> {
        let mut datagram = vec![0; 2_000];
        let len = self.socket.recv(&mut datagram).ok()?;
        datagram.truncate(len);
        Some(datagram)
    }

    /// Proves its address; the start that did.
    pub(crate) fn start(&mut self) -> Message {
        self.send(&Message::plain(Kind::Hello, self.ssrc).encode());
        let offer = message(&self.receive().expect("an answer")).expect("an offer");
        assert_eq!(offer.kind, Kind::Offer);
        self.stream = offer.ssrc;
        let start = Message { cookie: offer.cookie, ..Message::plain(Kind::Start, self.ssrc) };
        self.send(&start.encode());
        start
    }

    /// Becomes a peer.
    pub(crate) fn meet(&mut self) {
        self.start();
        let answer = message(&self.receive().expect("an answer")).expect("a message");
        assert_eq!(answer.kind, Kind::Alive);
    }

    /// Asks and starts the stream; the number of the first packet.
    pub(crate) fn become_viewer(&mut self) -> u16 {
        self.start();
        loop {
            let datagram = self.receive().expect("the stream starts");
            if !rtcp::is_rtcp(&datagram) {
                return Rtp::decode(&datagram).expect("it is RTP").0.sequence;
            }
        }
    }

    pub(crate) fn answer(&self, reporter: u32, stream: u32, feedback: &Feedback) {
        let mut datagram = [0; congestion::MAX_LEN];
        let len = congestion::encode(reporter, stream, feedback, 0, &mut datagram);
        self.send(&datagram[..len]);
    }

    pub(crate) fn say_bye(&self, ssrc: u32) {
        self.send(&Bye { ssrc }.encode());
    }
}

/// The message in a datagram, if it is one.
pub(crate) fn message(datagram: &[u8]) -> Option<Message> {
    Message::decode(&rtcp::packets(datagram).next()?.ok()?).ok()
}

/// A stream that is sent by hand.
pub(crate) struct Stream {
    socket: UdpSocket,
    viewer: SocketAddr,
    ssrc: u32,
}

/// Answers the first viewer that asks.
pub(crate) fn serve(socket: &UdpSocket) -> Stream {
    let mut datagram = [0; 2_000];
    let ssrc = 0x7777_7777;
    let terms = Terms::new(96, 140, "metronome").expect("a short name");
    loop {
        let (len, viewer) = socket.recv_from(&mut datagram).expect("somebody asks");
        let offer = Message { kind: Kind::Offer, ssrc, cookie: [1; 16], terms };
        match message(&datagram[..len]).expect("a message").kind {
            Kind::Start => {
                return Stream { socket: socket.try_clone().expect("a socket"), viewer, ssrc };
            }
            _ => socket.send_to(&offer.encode(), viewer).expect("it goes"),
        };
    }
}

impl Stream {
    pub(crate) fn send(&self, datagram: &[u8]) {
        self.socket.send_to(datagram, self.viewer).expect("it goes");
    }

    /// A packet whose payload is this number. It says that it can be marked, as those of a source do.
    pub(crate) fn send_data(&self, number: u64) {
        let ect = nix::sys::socket::sockopt::Ipv4Tos;
        nix::sys::socket::setsockopt(&self.socket, ect, &2).expect("any socket can");
        let header = Rtp { payload_type: 96, ssrc: self.ssrc, ..Rtp::default() };
        self.send(&[&header.encode()[..], &number.to_be_bytes()].concat());
    }

    pub(crate) fn say_bye(&self) {
        self.send(&Bye { ssrc: self.ssrc }.encode());
    }
}

/// Thousands of datagrams of random bytes, of truncated feedback and messages, and of nothing at all.
pub(crate) fn flood(mut send: impl FnMut(&[u8])) {
    let mut random = Random::new(4, "rubbish");
    let mut feedback = [0; congestion::MAX_LEN];
    let long = Feedback { newest: 9, reports: 32, arrived: u32::MAX, marked: 0, held: 1 };
    let len = congestion::encode(1, 2, &long, 3, &mut feedback);
    let hello = Message::plain(Kind::Hello, 1).encode();
    for round in 0..3_000 {
        let mut noise: Vec<u8> = (0..random.below(200)).map(|_| random.below(256) as u8).collect();
        match round % 4 {
            0 => {}
            1 => noise.splice(0..noise.len().min(2), [0x8b, 205]).for_each(drop),
            2 => noise = feedback[..random.below(len as u64) as usize].to_vec(),
            _ => noise = hello[..random.below(hello.len() as u64) as usize].to_vec(),
        }
        send(&noise);
        if round % 50 == 0 {
            // What is read slower than it comes would be dropped by the system, and try nothing.
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
