//! A kernel's TCP connection next to whatever else shares a link: from the sender to a receiver, as fast as it goes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::modelled::hurry;
use super::thread::spawn_in;
use super::topology::Network;

/// The connection. It ends when this is dropped.
#[derive(Debug)]
pub struct Rival {
    received_bytes: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    ends: Option<[JoinHandle<()>; 2]>,
}

impl Rival {
    /// A connection from the sender to receiver `index` of `network`, under this congestion control. It is chosen for its
    /// socket, as a namespace of its own takes only those that the system lets everybody use.
    pub fn start(network: &Network, index: usize, control: &str) -> Rival {
        let receiver = network.receiver(index);
        Rival::between(network.sender().namespace(), receiver.namespace(), (receiver.ipv4(), ANY_PORT), control, None)
    }

    /// The same between any two namespaces, to this address and port of the second; with a priority, before all other programs.
    pub(super) fn between(
        from: &str,
        to: &str,
        address: (Ipv4Addr, u16),
        control: &str,
        priority: Option<i32>,
    ) -> Rival {
        let (received_bytes, is_over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (host, address) = (to, SocketAddr::from(address));
        let (counter, over) = (Arc::clone(&received_bytes), Arc::clone(&is_over));
        let (listening, is_listening) = std::sync::mpsc::channel();
        let taker = spawn_in(host, move || {
            priority.into_iter().for_each(hurry);
            let listener = TcpListener::bind(address).expect("a port of this host's own");
            listening.send(listener.local_addr().expect("it is bound")).expect("somebody waits");
            let (stream, _) = listener.accept().expect("the sender connects");
            take(stream, &counter, &over);
        });
        let to = is_listening.recv().expect("it listens");
        let over = Arc::clone(&is_over);
        let control = control.to_owned();
        let giver = spawn_in(from, move || {
            priority.into_iter().for_each(hurry);
            let stream = TcpStream::connect(to).expect("a listener");
            let chosen = socket2::SockRef::from(&stream).set_tcp_congestion(control.as_bytes());
            chosen.unwrap_or_else(|error| panic!("the kernel has no congestion control {control}: {error}"));
            give(stream, &over);
        });
        Rival { received_bytes, is_over, ends: Some([taker, giver]) }
    }

    /// What the receiver's program has got so far.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Rival {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for end in self.ends.take().into_iter().flatten() {
            // Its panic has been printed; another one here would end the process.
            let _ = end.join();
        }
    }
}

fn take(mut stream: TcpStream, counter: &AtomicU64, is_over: &AtomicBool) {
    stream.set_read_timeout(Some(LOOK_UP)).expect("not zero");
    let mut buffer = vec![0; 1 << 16];
    while !is_over.load(Ordering::Relaxed) {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(len) => _ = counter.fetch_add(len as u64, Ordering::Relaxed),
            Err(_) => {}
        }
    }
}

fn give(mut stream: TcpStream, is_over: &AtomicBool) {
    stream.set_write_timeout(Some(LOOK_UP)).expect("not zero");
    let buffer = vec![0; 1 << 16];
    while !is_over.load(Ordering::Relaxed) {
        let _ = stream.write(&buffer);
    }
}

const ANY_PORT: u16 = 0;
/// How often the ends look whether it is over.
const LOOK_UP: Duration = Duration::from_millis(200);
