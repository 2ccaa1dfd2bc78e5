//! Where a live stream goes: bytes to standard output or a file, RTP to a player, payloads as datagrams.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use weir_wire::rtp::Rtp;

use super::input::{MP2T, is_url};
use crate::args::{Recv, ValueError};
use crate::exit::{Exit, Failure};

/// Where a live stream goes, as the user says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Output {
    /// Standard output.
    Stdout,
    /// A file.
    File(PathBuf),
    /// RTP to a player.
    Rtp(SocketAddr),
    /// Each payload in a datagram of its own.
    Udp(SocketAddr),
}

impl Output {
    /// Where the stream goes; options that mean nothing for one are refused.
    pub(crate) fn wanted(args: &Recv) -> Result<Output, Failure> {
        let usage = |text: String| Failure::new(Exit::Usage, text);
        let given =
            [("--link", args.link.is_some()), ("--iface", args.iface.is_some()), ("--any-sender", args.any_sender)];
        if let Some((name, _)) = given.iter().find(|(_, is_given)| *is_given) {
            return Err(usage(format!(
                "{name} is for sessions that a description tells of; a live stream has no use for it"
            )));
        }
        let text = args.out.as_deref().map_or(Some("-"), Path::to_str);
        let text = text.ok_or_else(|| usage("--out must be text".to_owned()))?;
        let output: Output = text.parse().map_err(|error: ValueError| usage(format!("--out {text}: {error}")))?;
        if args.output.json && output == Output::Stdout {
            return Err(usage(
                "with --json, events take standard output; send the stream elsewhere with --out".to_owned(),
            ));
        }
        if args.sdp.is_some() && !matches!(output, Output::Rtp(_)) {
            return Err(usage("--sdp describes what --out rtp://ADDR:PORT sends; give that too".to_owned()));
        }
        Ok(output)
    }
}

impl FromStr for Output {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Output, ValueError> {
        let address = |text: &str| text.parse().map_err(|_| ValueError::RtpAddress);
        if let Some(to) = text.strip_prefix("rtp://") {
            return address(to).map(Output::Rtp);
        }
        if let Some(to) = text.strip_prefix("udp://") {
            return address(to).map(Output::Udp);
        }
        if is_url(text) {
            return Err(ValueError::Protocol);
        }
        Ok(if text == "-" { Output::Stdout } else { Output::File(text.into()) })
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Output::Stdout => f.write_str("standard output"),
            Output::File(path) => write!(f, "{}", path.display()),
            Output::Rtp(address) => write!(f, "rtp://{address}"),
            Output::Udp(address) => write!(f, "udp://{address}"),
        }
    }
}

/// An output that is open.
pub(crate) enum Outlet {
    /// Bytes one behind the other.
    Bytes(Box<dyn Write + Send>),
    /// RTP packets.
    Rtp(UdpSocket),
    /// Payloads.
    Udp(UdpSocket),
}

impl Outlet {
    /// Opens an output; a file that exists is replaced only if `overwrite`.
    pub(crate) fn open(output: &Output, overwrite: bool) -> io::Result<Outlet> {
        Ok(match output {
            Output::Stdout => Outlet::Bytes(Box::new(BufWriter::with_capacity(BUFFER, io::stdout()))),
            Output::File(path) => {
                let is_special = path.metadata().is_ok_and(|metadata| !metadata.is_file());
                let file = match overwrite || is_special {
                    true => File::create(path)?,
                    false => File::create_new(path)?,
                };
                Outlet::Bytes(Box::new(BufWriter::with_capacity(BUFFER, file)))
            }
            Output::Rtp(to) => Outlet::Rtp(socket(*to)?),
            Output::Udp(to) => Outlet::Udp(socket(*to)?),
        })
    }

    /// Puts out a packet of the stream.
    pub(crate) fn put(&mut self, header: &Rtp, payload: &[u8]) -> io::Result<()> {
        match self {
            _ if payload.is_empty() => Ok(()),
            Outlet::Bytes(out) => out.write_all(payload),
            Outlet::Rtp(socket) => sent(socket.send(&[&header.encode()[..], payload].concat())),
            Outlet::Udp(socket) => sent(socket.send(payload)),
        }
    }

    /// What was put out is out.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Outlet::Bytes(out) => out.flush(),
            Outlet::Rtp(_) | Outlet::Udp(_) => Ok(()),
        }
    }
}

/// Opens an output, or says what to do.
pub(crate) fn open_outlet(output: &Output, overwrite: bool) -> Result<Outlet, Failure> {
    Outlet::open(output, overwrite).map_err(|error| {
        let advice = match error.kind() {
            io::ErrorKind::AlreadyExists => "; with --overwrite it is replaced",
            _ => "",
        };
        Failure::new(Exit::Files, format!("cannot write to {output}: {error}{advice}"))
    })
}

/// A player that is not there yet is no failure, nor is one that cannot keep up.
pub(crate) fn sent(outcome: io::Result<usize>) -> io::Result<()> {
    match outcome {
        Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::WouldBlock) => Ok(()),
        other => other.map(|_| ()),
    }
}

fn socket(to: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr =
        if to.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let socket = UdpSocket::bind(any)?;
    socket.set_nonblocking(true)?;
    socket.connect(to)?;
    Ok(socket)
}

/// Writes the description that a player of the RTP at `to` needs.
pub(crate) fn write_sdp(path: &Path, to: SocketAddr, payload_type: u8) -> io::Result<()> {
    std::fs::write(path, sdp(to, payload_type))
}

/// SDP (RFC 8866) of RTP to `to`. What a dynamic payload type holds is known to the sender only.
fn sdp(to: SocketAddr, payload_type: u8) -> String {
    let family = if to.is_ipv4() { "IP4" } else { "IP6" };
    let (media, format) = match payload_type {
        MP2T => ("video", "a=rtpmap:33 MP2T/90000\r\n".to_owned()),
        0..=95 => ("audio", String::new()),
        dynamic => ("application", format!("a=rtpmap:{dynamic} octet-stream/90000\r\n")),
    };
    let (ip, port) = (to.ip(), to.port());
    format!(
        "v=0\r\no=- 0 0 IN {family} {ip}\r\ns=weir live\r\nc=IN {family} {ip}\r\nt=0 0\r\n\
         m={media} {port} RTP/AVP {payload_type}\r\n{format}a=recvonly\r\n"
    )
}

const BUFFER: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_named_as_people_write_them() {
        assert_eq!("-".parse(), Ok(Output::Stdout));
        assert_eq!("a.ts".parse(), Ok(Output::File("a.ts".into())));
        assert_eq!("rtp://[::1]:5004".parse(), Ok(Output::Rtp((Ipv6Addr::LOCALHOST, 5004).into())));
        assert_eq!("udp://127.0.0.1:1".parse(), Ok(Output::Udp((Ipv4Addr::LOCALHOST, 1).into())));
        assert_eq!("udp://127.0.0.1".parse::<Output>(), Err(ValueError::RtpAddress));
        assert_eq!("srt://127.0.0.1:1".parse::<Output>(), Err(ValueError::Protocol));
    }

    #[test]
    fn a_player_gets_what_it_needs_to_know() {
        let text = sdp(([127, 0, 0, 1], 5004).into(), MP2T);
        assert!(text.contains("c=IN IP4 127.0.0.1\r\n") && text.contains("m=video 5004 RTP/AVP 33\r\n"), "{text}");
        assert!(sdp(([127, 0, 0, 1], 5004).into(), 97).contains("a=rtpmap:97 "));
    }

    #[test]
    fn rtp_goes_out_with_the_numbers_of_the_stream() {
        let player = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        let to = player.local_addr().expect("it is bound");
        let mut outlet = Outlet::open(&Output::Rtp(to), false).expect("a socket");
        let header = Rtp { payload_type: MP2T, sequence: 77, ssrc: 5, ..Rtp::default() };
        outlet.put(&header, b"picture").expect("it goes");
        let mut datagram = [0; 100];
        let len = player.recv(&mut datagram).expect("it comes");
        assert_eq!(Rtp::decode(&datagram[..len]), Ok((header, &b"picture"[..])));
    }

    #[test]
    fn a_file_that_is_there_is_left_alone_unless_told_otherwise() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("old.ts");
        std::fs::write(&path, "old").expect("it takes text");
        let output = Output::File(path.clone());
        assert!(Outlet::open(&output, false).is_err());
        let mut outlet = Outlet::open(&output, true).expect("it is replaced");
        outlet.put(&Rtp::default(), b"new").and_then(|()| outlet.flush()).expect("it takes bytes");
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "new");
    }
}
