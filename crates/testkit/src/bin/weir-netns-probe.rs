//! Sends, receives and counts plain packets, so that tests of the namespaces need no other tool.
//!
//! ```text
//! weir-netns-probe send GROUP:PORT OWN-ADDRESS BITS-PER-SECOND SECONDS [segmented]
//! weir-netns-probe count GROUP:PORT OWN-ADDRESS SECONDS    a line "packets bytes" at the end
//! weir-netns-probe tcp-send ADDRESS:PORT SECONDS
//! weir-netns-probe tcp-count ADDRESS:PORT                  a line "bytes seconds" after the first connection
//! ```

#![expect(clippy::disallowed_methods, reason = "drives real sockets: it waits and reads the clock")]

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt::UdpGsoSegment};
use socket2::{Domain, Socket, Type};

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["send", to, from, rate, secs] => send(to.parse()?, from.parse()?, rate.parse()?, seconds(secs)?, false),
        ["send", to, from, rate, secs, "segmented"] => {
            send(to.parse()?, from.parse()?, rate.parse()?, seconds(secs)?, true)
        }
        ["count", group, own, secs] => count(group.parse()?, own.parse()?, seconds(secs)?),
        ["tcp-send", to, secs] => tcp_send(to, seconds(secs)?),
        ["tcp-count", at] => tcp_count(at),
        _ => Err("see the top of weir-netns-probe.rs for the commands".into()),
    }
}

fn seconds(text: &str) -> Result<Duration, Box<dyn Error>> {
    Ok(Duration::try_from_secs_f64(text.parse()?)?)
}

/// Packets of 1000 bytes, in batches: one call each, or all in one segmented call.
fn send(to: SocketAddrV4, from: Ipv4Addr, bits_per_sec: u64, span: Duration, segmented: bool) -> Outcome {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    socket.set_multicast_if_v4(&from)?;
    socket.bind(&SocketAddrV4::new(from, 0).into())?;
    if segmented {
        setsockopt(&socket, UdpGsoSegment, &i32::try_from(PACKET)?)?;
    }
    let batch = if segmented { 40 } else { 1 };
    let payload = vec![0; PACKET * batch];
    let gap = Duration::from_nanos((PACKET * batch) as u64 * 8_000_000_000 / bits_per_sec);
    let start = Instant::now();
    let mut due = start;
    while due < start + span {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        socket.send_to(&payload, &to.into())?;
        due += gap;
    }
    Ok(())
}

fn count(group: SocketAddrV4, own: Ipv4Addr, span: Duration) -> Outcome {
    let socket = UdpSocket::bind(group)?;
    socket.join_multicast_v4(group.ip(), &own)?;
    let (mut packets, mut bytes) = (0u64, 0u64);
    let mut buffer = [0; 2048];
    let end = Instant::now() + span;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        socket.set_read_timeout(Some(left))?;
        match socket.recv(&mut buffer) {
            Ok(len) => {
                packets += 1;
                bytes += len as u64;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
    println!("{packets} {bytes}");
    Ok(())
}

fn tcp_send(to: &str, span: Duration) -> Outcome {
    let mut stream = TcpStream::connect(to)?;
    let payload = vec![0; 1 << 16];
    let end = Instant::now() + span;
    while Instant::now() < end {
        stream.write_all(&payload)?;
    }
    Ok(())
}

fn tcp_count(at: &str) -> Outcome {
    let listener = TcpListener::bind(at)?;
    println!("listening");
    let (mut stream, _) = listener.accept()?;
    let mut buffer = vec![0; 1 << 16];
    let mut first = None;
    let mut bytes = 0;
    loop {
        match stream.read(&mut buffer)? {
            0 => break,
            read => bytes += read,
        }
        first.get_or_insert_with(Instant::now);
    }
    println!("{bytes} {}", first.map_or(0.0, |first| first.elapsed().as_secs_f64()));
    Ok(())
}

/// Bytes of payload in a packet.
const PACKET: usize = 1000;
