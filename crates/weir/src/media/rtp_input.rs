//! A programme that another program sends as RTP, in one stream or in a stream for each layer, as the bytes that a file of it would have.
//! What is lost on the way is lost in whole pictures; decoding goes on with the next key picture.

use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use weir_media::{Codec, Writer};
use weir_net::clock::Clock;

use self::layers::Layers;
use self::stream::Stream;

mod layers;
mod stream;

/// RTP as bytes: VP9 and AV1 as IVF with units of 1/90000 s, HEVC and H.264 as Annex B.
#[derive(Debug)]
pub(super) struct RtpInput {
    /// Each with the number of its stream.
    sockets: Vec<(UdpSocket, usize)>,
    /// All of them.
    poll: Epoll,
    clock: Clock,
    datagram: Vec<u8>,
    layers: Layers,
    /// What is read next, from a place on.
    out: Writer<Vec<u8>>,
    at: usize,
}

impl RtpInput {
    /// Waits for packets to these addresses of the host, or multicast groups: one for all layers, or one for each, the base first. Where
    /// there are several, RTCP comes to the port above each (RFC 3550 §11) or to the same.
    pub(super) fn open(all: &[SocketAddr], codec: Codec) -> io::Result<RtpInput> {
        let mut sockets = Vec::new();
        for (number, at) in all.iter().enumerate() {
            sockets.push((bind(*at)?, number));
            if let Some(control) = at.port().checked_add(1).filter(|_| all.len() > 1) {
                sockets.push((bind(SocketAddr::new(at.ip(), control))?, number));
            }
        }
        let poll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        for (socket, _) in &sockets {
            poll.add(socket, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
        }
        let layers = Layers::new(codec, all.iter().map(|at| (*at, Stream::new(codec))).collect());
        let (clock, datagram) = (Clock::new(), vec![0; 1 << 16]);
        let out = Writer::new(codec, Vec::new());
        Ok(RtpInput { sockets, poll, clock, datagram, layers, out, at: 0 })
    }

    /// How often something was missing before what was read.
    pub(super) fn gaps(&self) -> u64 {
        self.layers.gaps()
    }

    /// What the user is to know, once.
    pub(super) fn told(&mut self) -> Vec<String> {
        self.layers.told()
    }

    /// Takes what has come, or waits a while for something.
    fn receive(&mut self) -> io::Result<()> {
        let mut events = [EpollEvent::empty()];
        self.poll.wait(&mut events, LOOK_UP_MILLIS)?;
        for (socket, stream) in &self.sockets {
            for _ in 0..READS {
                match socket.recv_from(&mut self.datagram) {
                    Ok((len, from)) => {
                        self.layers.take(*stream, self.clock.now(), from, &self.datagram[..len]);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
        }
        while let Some(picture) = self.layers.next(self.clock.now())? {
            self.out.write(picture.time as u32, &picture.data)?;
        }
        Ok(())
    }
}

impl Read for RtpInput {
    /// The end never comes. Without bytes, [`io::ErrorKind::Interrupted`].
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.out.get_mut().len() {
            self.out.get_mut().clear();
            self.at = 0;
            self.receive()?;
        }
        let read = (&self.out.get_mut()[self.at..]).read(buffer)?;
        self.at += read;
        if read == 0 { Err(io::ErrorKind::Interrupted.into()) } else { Ok(read) }
    }
}

impl AsFd for RtpInput {
    /// Of all sockets.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poll.0.as_fd()
    }
}

fn bind(at: SocketAddr) -> io::Result<UdpSocket> {
    let failed = |error: io::Error| io::Error::new(error.kind(), format!("{at}: {error}"));
    let socket = UdpSocket::bind(at).map_err(failed)?;
    socket.set_nonblocking(true)?;
    if let SocketAddr::V4(group) = at
        && group.ip().is_multicast()
    {
        socket.join_multicast_v4(group.ip(), &Ipv4Addr::UNSPECIFIED)?;
    }
    Ok(socket)
}

/// Whoever waits looks now and then whether he is to stop.
const LOOK_UP_MILLIS: u16 = 200;
/// Datagrams that are read from a socket before the others have their turn.
const READS: usize = 64;
