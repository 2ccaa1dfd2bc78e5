//! A modelled link between two namespaces: what one sends to its device goes through a `weir-link` in real time and comes out
//! of the other's. Between hosts the devices are TUN; between a bridge and a host they are TAP, so that the bridge snoops
//! and forwards groups as on any other port.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::libc;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use weir_link::{Label, Link, LinkConfig};
use weir_units::{Bytes, Ecn, Random, Time};

use super::thread::spawn_in;
use super::tun::{Carries, Tun};

/// The link, both ways, and the thread that runs it.
#[derive(Debug)]
pub(super) struct ModelledLink {
    told: Arc<Told>,
    forwarder: Option<JoinHandle<()>>,
}

/// What the thread tells of the way there.
#[derive(Debug, Default)]
struct Told {
    is_over: AtomicBool,
    waiting_packets: AtomicU64,
    dropped: AtomicU64,
    lost: AtomicU64,
    delivered: AtomicU64,
}

impl ModelledLink {
    /// Makes both devices, each a namespace and a name; the first of `configs` leads from the first to the second. Packets
    /// pass once both are up.
    pub(super) fn start(devices: [(&str, &str); 2], carries: Carries, configs: [&LinkConfig; 2]) -> ModelledLink {
        let devices = devices.map(|(namespace, name)| {
            let own = name.to_owned();
            let opened =
                spawn_in(namespace, move || Tun::open(&own, carries)).join().expect("the thread does not panic");
            opened.unwrap_or_else(|error| panic!("{name}: {error}"))
        });
        let told = Arc::<Told>::default();
        let ways = configs.map(|config| Link::new(config.clone(), Random::new(1, "modelled link")));
        let forwarder = Forwarder { devices, carries, ways, told: Arc::clone(&told), time: clock() };
        let forwarder = std::thread::spawn(move || {
            hurry(FORWARDER_PRIORITY);
            forwarder.run();
        });
        ModelledLink { told, forwarder: Some(forwarder) }
    }

    /// Packets that wait on the way there, not counting the one that is being sent.
    pub(super) fn waiting_packets(&self) -> u64 {
        self.told.waiting_packets.load(Ordering::Relaxed)
    }

    /// Packets dropped on the way there.
    pub(super) fn dropped(&self) -> u64 {
        self.told.dropped.load(Ordering::Relaxed)
    }

    /// Packets that were lost on the way there, and those that came out.
    pub(super) fn lost_and_delivered(&self) -> (u64, u64) {
        (self.told.lost.load(Ordering::Relaxed), self.told.delivered.load(Ordering::Relaxed))
    }
}

impl Drop for ModelledLink {
    fn drop(&mut self) {
        self.told.is_over.store(true, Ordering::Relaxed);
        if let Some(forwarder) = self.forwarder.take() {
            let _ = forwarder.join();
        }
    }
}

/// Device 0 and the way from it, device 1 and the way from it.
struct Forwarder {
    devices: [Tun; 2],
    carries: Carries,
    ways: [Link<Vec<u8>>; 2],
    told: Arc<Told>,
    time: Time,
}

impl Forwarder {
    fn run(mut self) {
        while !self.told.is_over.load(Ordering::Relaxed) {
            self.release();
            self.told.waiting_packets.store(self.ways[0].waiting(self.time) as u64, Ordering::Relaxed);
            let counters = self.ways[0].counters();
            self.told.dropped.store(counters.dropped, Ordering::Relaxed);
            self.told.lost.store(counters.lost, Ordering::Relaxed);
            self.told.delivered.store(counters.delivered, Ordering::Relaxed);
            self.wait();
            self.take();
        }
    }

    /// What has come out of the links goes to the hosts. They may answer at once.
    fn release(&mut self) {
        for way in 0..2 {
            self.time = self.time.max(clock());
            while let Some(out) = self.ways[way].dequeue(self.time, &mut drop) {
                self.devices[1 - way].write(&out.packet);
            }
        }
    }

    /// Until a packet comes out of a link, or a host sends one.
    fn wait(&self) {
        let next = self.ways.iter().filter_map(Link::next_arrival).min();
        let span = next.map_or(LOOK_UP, |at| at.since(clock()).min(LOOK_UP));
        let mut ready = self.devices.each_ref().map(|device| PollFd::new(device.as_fd(), PollFlags::POLLIN));
        // Interrupted or not, the loop looks at everything.
        let _ = ppoll(&mut ready, Some(TimeSpec::from_duration(span)), None);
    }

    /// What the hosts have sent enters the links.
    fn take(&mut self) {
        let mut buffer = [0; LONGEST];
        for way in 0..2 {
            for _ in 0..BATCH {
                let Some(len) = self.devices[way].read(&mut buffer) else { break };
                let packet = buffer[..len].to_vec();
                self.time = self.time.max(clock());
                let inner = packet.get(self.carries.link_header()..).unwrap_or_default();
                let label = Label { flow: flow_of(inner), ecn: ecn_of(inner) };
                self.ways[way].enqueue(self.time, Bytes::new(len as u64), label, packet, &mut drop);
            }
        }
    }
}

/// Runs this thread before all that are not in a hurry: a link that is late is another link.
#[expect(unsafe_code, reason = "no safe wrapper sets a scheduling policy")]
pub(super) fn hurry(priority: i32) {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the structure lives through the call, which is about this thread.
    let done = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    if done != 0 {
        eprintln!("no real-time scheduling here: figures may suffer from other load");
    }
}

fn clock() -> Time {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has this clock");
    Time::from_nanos(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

/// What fair queues tell flows apart by: both addresses and both ports of an IPv4 packet of TCP or UDP without options.
fn flow_of(packet: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    packet.get(12..24).hash(&mut hasher);
    hasher.finish()
}

fn ecn_of(packet: &[u8]) -> Ecn {
    match packet.get(1).map(|octet| octet & 3) {
        Some(1 | 2) => Ecn::Ect,
        Some(3) => Ecn::Ce,
        _ => Ecn::NotEct,
    }
}

/// Above the programs that send and receive.
const FORWARDER_PRIORITY: i32 = 20;
/// How often the thread looks whether it is over.
const LOOK_UP: Duration = Duration::from_millis(20);
/// Packets of one host that are taken before the links are looked at again.
const BATCH: usize = 64;
/// More than the largest packet of a device with an MTU of 1500.
const LONGEST: usize = 2048;
