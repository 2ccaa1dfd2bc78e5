//! Counts the IGMP messages that receivers send, where their cables meet the bridge. The bridge's own counters know some kinds only.

use std::collections::BTreeSet;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{LinkAddr, recvfrom};
use socket2::{Domain, Protocol, SockFilter, Socket, Type};

use super::thread::spawn_in;

/// IGMP messages by which hosts join and leave groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IgmpCount {
    /// Messages.
    pub messages: u64,
    /// Groups that they speak of: one a message in IGMPv2, one a group record in IGMPv3.
    pub groups: u64,
}

/// A count that goes on until this is dropped.
#[derive(Debug)]
pub struct IgmpWatch {
    counts: Arc<[AtomicU64; 2]>,
    is_over: Arc<AtomicBool>,
    counting: Option<JoinHandle<()>>,
}

impl IgmpWatch {
    /// Counts what comes in on these ports of a bridge in `namespace`.
    pub(super) fn start(namespace: &str, ports: Vec<String>) -> IgmpWatch {
        let (counts, is_over) = (Arc::<[AtomicU64; 2]>::default(), Arc::<AtomicBool>::default());
        let (adding, over) = (Arc::clone(&counts), Arc::clone(&is_over));
        let (listening, is_listening) = std::sync::mpsc::channel();
        let counting = spawn_in(namespace, move || {
            let index = |port: String| if_nametoindex(port.as_str()).expect("a port of this bridge") as usize;
            let ports: BTreeSet<usize> = ports.into_iter().map(index).collect();
            let socket = packets().expect("root may look at packets");
            listening.send(()).expect("somebody waits");
            while !over.load(Ordering::Relaxed) {
                let Some(count) = next(&socket, &ports) else { continue };
                adding[0].fetch_add(count.messages, Ordering::Relaxed);
                adding[1].fetch_add(count.groups, Ordering::Relaxed);
            }
        });
        is_listening.recv().expect("it listens");
        IgmpWatch { counts, is_over, counting: Some(counting) }
    }

    /// The count so far.
    pub fn count(&self) -> IgmpCount {
        let [messages, groups] = self.counts.each_ref().map(|count| count.load(Ordering::Relaxed));
        IgmpCount { messages, groups }
    }
}

impl Drop for IgmpWatch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(counting) = self.counting.take() {
            // Its panic has been printed; another one here would end the process.
            let _ = counting.join();
        }
    }
}

/// A socket that gets every IGMP packet of its namespace, with its Ethernet header.
fn packets() -> std::io::Result<Socket> {
    let all = (libc::ETH_P_ALL as u16).to_be();
    let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(i32::from(all))))?;
    socket.attach_filter(&FILTER.map(|(code, jt, jf, k)| SockFilter::new(code, jt, jf, k)))?;
    socket.set_read_timeout(Some(LOOK_UP))?;
    Ok(socket)
}

/// What the next packet adds to the count; `None` if none came in time, or if it is not one of a host's on these ports.
fn next(socket: &Socket, ports: &BTreeSet<usize>) -> Option<IgmpCount> {
    let mut frame = [0; 2048];
    let (len, from) = match recvfrom::<LinkAddr>(socket.as_raw_fd(), &mut frame) {
        Ok(received) => received,
        Err(Errno::EAGAIN | Errno::EINTR) => return None,
        Err(error) => panic!("cannot look at packets: {error}"),
    };
    let is_a_host_s =
        from.is_some_and(|from| ports.contains(&from.ifindex()) && from.pkttype() != libc::PACKET_OUTGOING);
    is_a_host_s.then(|| of_frame(&frame[..len]))?
}

/// What an Ethernet frame adds to the count.
fn of_frame(frame: &[u8]) -> Option<IgmpCount> {
    let ip = frame.get(ETHERNET_LEN..).filter(|ip| ip.get(9) == Some(&IGMP))?;
    let message = ip.get(usize::from(ip[0] & 0x0f) * 4..)?;
    let groups = match *message.first()? {
        V1_REPORT | V2_REPORT | LEAVE => 1,
        V3_REPORT => u64::from(u16::from_be_bytes(message.get(6..8)?.try_into().ok()?)),
        _ => return None,
    };
    Some(IgmpCount { messages: 1, groups })
}

const ETHERNET_LEN: usize = 14;
const IGMP: u8 = 2;
/// RFC 2236 §2.1, RFC 3376 §4.
const V1_REPORT: u8 = 0x12;
const V2_REPORT: u8 = 0x16;
const LEAVE: u8 = 0x17;
const V3_REPORT: u8 = 0x22;
/// Half word 12 is 0x0800 and byte 23 is IGMP: take all of it; else nothing.
const FILTER: [(u16, u8, u8, u32); 6] = [
    (0x28, 0, 0, 12),
    (0x15, 0, 3, 0x0800),
    (0x30, 0, 0, 23),
    (0x15, 0, 1, IGMP as u32),
    (0x06, 0, 0, 0xffff),
    (0x06, 0, 0, 0),
];
/// How often it looks whether it is over.
const LOOK_UP: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(message: &[u8]) -> Vec<u8> {
        // A router alert makes the IP header of IGMP 24 bytes long.
        let mut ip = [0; 24];
        (ip[0], ip[9]) = (0x46, IGMP);
        [&[0; ETHERNET_LEN][..], &ip, message].concat()
    }

    #[test]
    fn messages_count_once_and_each_group_that_they_speak_of() {
        let count = |messages, groups| Some(IgmpCount { messages, groups });
        assert_eq!(of_frame(&frame(&[V2_REPORT, 0, 0, 0, 239, 0, 0, 1])), count(1, 1));
        assert_eq!(of_frame(&frame(&[LEAVE, 0, 0, 0, 239, 0, 0, 1])), count(1, 1));
        assert_eq!(of_frame(&frame(&[V3_REPORT, 0, 0, 0, 0, 0, 0, 3])), count(1, 3));
        assert_eq!(of_frame(&frame(&[0x11, 0, 0, 0])), None, "a query is a router's");
        assert_eq!(of_frame(&frame(&[V3_REPORT, 0])), None);
        assert_eq!(of_frame(&[0; 20]), None);
    }
}
