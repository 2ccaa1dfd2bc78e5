//! Where the pictures of a programme go: to a file or a pipe as a decoder reads them, or as RTP to a player. A thread of its own
//! writes, so that a slow reader does not hold up what comes.

use std::io::{self, BufWriter, Write};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use weir_media::{Codec, Packetizer, ParameterSets, Picture, Writer, sdp_lines};
use weir_wire::rtp::Rtp;

use crate::live::Outlet;

/// The thread that writes.
pub(super) struct Screen {
    pictures: Option<SyncSender<Picture>>,
    ended: Receiver<io::Result<()>>,
    thread: Option<JoinHandle<()>>,
    /// Handed over, and perhaps not written yet, is at most this.
    is_full: bool,
    waiting: Option<Picture>,
}

/// What takes pictures.
enum Sink {
    Bytes(Box<Writer<Box<dyn Write + Send>>>),
    Rtp(Player),
}

/// A player of RTP: all layers are one stream to it.
struct Player {
    socket: UdpSocket,
    packetizer: Packetizer,
    sequence: u16,
    ssrc: u32,
}

impl Player {
    fn play(&mut self, picture: &Picture) -> io::Result<()> {
        for payload in self.packetizer.packetize(picture) {
            let header = Rtp {
                marker: payload.marker,
                payload_type: PLAYER_TYPE,
                sequence: self.sequence,
                timestamp: picture.timestamp,
                ssrc: self.ssrc,
                origin: None,
            };
            self.sequence = self.sequence.wrapping_add(1);
            crate::live::sent(self.socket.send(&[&header.encode()[..], &payload.data].concat()))?;
        }
        Ok(())
    }
}

impl Sink {
    fn new(outlet: Outlet, codec: Codec, ssrc: u32) -> Sink {
        match outlet {
            Outlet::Bytes(out) => Sink::Bytes(Box::new(Writer::new(codec, out))),
            Outlet::Rtp(socket) | Outlet::Udp(socket) => {
                let packetizer = Packetizer::new(codec, PLAYER_PAYLOAD);
                Sink::Rtp(Player { socket, packetizer, sequence: ssrc as u16, ssrc })
            }
        }
    }

    fn put(&mut self, picture: &Picture) -> io::Result<()> {
        match self {
            Sink::Bytes(writer) => writer.write(picture.timestamp, &picture.data),
            Sink::Rtp(player) => player.play(picture),
        }
    }
}

impl Screen {
    /// Begins to wait for pictures, which go to this output.
    pub(super) fn new(outlet: Outlet, codec: Codec, ssrc: u32) -> io::Result<Screen> {
        let mut sink = Sink::new(outlet, codec, ssrc);
        let (pictures, waiting) = sync_channel::<Picture>(AHEAD);
        let (end, ended) = sync_channel(1);
        let thread = thread::Builder::new().name("output".to_owned()).spawn(move || {
            let outcome = waiting.iter().try_for_each(|picture| sink.put(&picture));
            let _nobody_asks = end.send(outcome);
        })?;
        Ok(Screen { pictures: Some(pictures), ended, thread: Some(thread), is_full: false, waiting: None })
    }

    /// Whether nothing can be handed over, as whoever reads is too slow.
    pub(super) fn is_full(&mut self) -> bool {
        if let Some(picture) = self.waiting.take() {
            self.put(picture);
        }
        self.is_full
    }

    /// Hands a picture over. Not to be called while [`Screen::is_full`].
    pub(super) fn put(&mut self, picture: Picture) {
        let Some(pictures) = &self.pictures else { return };
        match pictures.try_send(picture) {
            Err(TrySendError::Full(picture)) => (self.is_full, self.waiting) = (true, Some(picture)),
            Ok(()) | Err(TrySendError::Disconnected(_)) => self.is_full = false,
        }
    }

    /// How writing ended, if it did before the end.
    pub(super) fn failure(&mut self) -> Option<io::Error> {
        self.ended.try_recv().ok()?.err()
    }

    /// Waits until all is written, unless nobody reads it.
    pub(super) fn close(&mut self) -> io::Result<()> {
        let (Some(pictures), Some(thread)) = (self.pictures.take(), self.thread.take()) else { return Ok(()) };
        if let Some(picture) = self.waiting.take() {
            let _is_full = pictures.try_send(picture);
        }
        drop(pictures);
        match self.ended.recv_timeout(PATIENCE) {
            Ok(outcome) => {
                let _it_has_ended = thread.join();
                outcome
            }
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "whoever reads it has stopped reading")),
        }
    }
}

/// Writes the description that a player of the RTP at `to` needs.
pub(super) fn write_sdp(path: &Path, to: SocketAddr, codec: Codec) -> io::Result<()> {
    let family = if to.is_ipv4() { "IP4" } else { "IP6" };
    let (ip, port) = (to.ip(), to.port());
    let mut text = format!(
        "v=0\r\no=- 0 0 IN {family} {ip}\r\ns=weir media\r\nc=IN {family} {ip}\r\nt=0 0\r\nm=video {port} RTP/AVP {PLAYER_TYPE}\r\n"
    );
    for line in sdp_lines(codec, PLAYER_TYPE, &ParameterSets::default()) {
        text += &format!("{line}\r\n");
    }
    let mut file = BufWriter::new(std::fs::File::create(path)?);
    write!(file, "{text}a=recvonly\r\n")?;
    file.flush()
}

/// RTP payload type for players.
const PLAYER_TYPE: u8 = 96;
/// Bytes of payload in a packet to a player, which is on this host or near.
const PLAYER_PAYLOAD: usize = 1400;
/// Pictures that wait for whoever reads: two seconds of them, about.
const AHEAD: usize = 64;
/// How long whoever reads has at the end.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);
