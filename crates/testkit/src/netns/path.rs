//! Two hosts and one bottleneck between them, for TCP connections of the kernel: a router with a token bucket, or a modelled
//! link.

use std::net::Ipv4Addr;
use std::process::Command as Program;
use std::sync::atomic::{AtomicU32, Ordering};

use weir_link::LinkConfig;

use super::cleanup::{PREFIX, remove_leftovers, remove_namespace};
use super::link::TokenBucket;
use super::modelled::ModelledLink;
use super::rival::Rival;
use super::topology::{batch, run, set_kernel};
use super::tun::Carries;

/// What is between the hosts.
#[derive(Debug, Clone)]
pub enum Between {
    /// A router, and a token bucket of its kernel on the way there. Nothing delays.
    Bucket(TokenBucket),
    /// A modelled link, which counts packets of IP without link-layer headers: the way there, and back.
    Modelled(Box<[LinkConfig; 2]>),
}

/// The hosts and what is between them. They go away with this value.
#[derive(Debug)]
pub struct Path {
    sender: String,
    receiver: String,
    router: Option<String>,
    link: Option<ModelledLink>,
}

impl Path {
    /// Makes hosts that segment in software, as if their interfaces knew no offload, and that forget what earlier connections saw.
    pub fn new(between: &Between) -> Path {
        static MADE: AtomicU32 = AtomicU32::new(0);
        remove_leftovers();
        let id = format!("{PREFIX}{}-p{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let [sender, receiver] = ["sender", "receiver"].map(|role| format!("{id}-{role}"));
        let router = matches!(between, Between::Bucket(_)).then(|| format!("{id}-router"));
        let mut path = Path { sender, receiver, router, link: None };
        for namespace in [Some(&path.sender), Some(&path.receiver), path.router.as_ref()].into_iter().flatten() {
            run("ip", &["netns", "add", namespace]);
            set_kernel(namespace, "net/ipv6/conf/all/disable_ipv6", "1");
            set_kernel(namespace, "net/ipv4/tcp_no_metrics_save", "1");
        }
        match between {
            Between::Bucket(bucket) => path.join_by_router(*bucket),
            Between::Modelled(ways) => path.join_by_link(ways),
        }
        path
    }

    /// A connection from the sender to the receiver under this congestion control, as fast as it goes.
    pub fn connect(&self, number: u16, control: &str) -> Rival {
        Rival::between(&self.sender, &self.receiver, (RECEIVER, PORT + number), control, Some(PRIORITY))
    }

    /// Packets that wait for the bottleneck now, and that it has dropped so far.
    pub fn waiting_and_dropped(&self) -> (u64, u64) {
        if let Some(link) = &self.link {
            return (link.waiting_packets(), link.dropped());
        }
        let router = self.router.as_deref().expect("a path has a router or a link");
        let text = run("tc", &["-n", router, "-j", "-s", "qdisc", "show", "dev", "r1"]);
        let list: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let count = |key: &str| list[0][key].as_u64().unwrap_or_else(|| panic!("no {key} in what tc prints: {text}"));
        (count("qlen"), count("drops"))
    }

    fn join_by_router(&mut self, bucket: TokenBucket) {
        let router = self.router.as_deref().expect("there is one");
        set_kernel(router, "net/ipv4/ip_forward", "1");
        for (end, (host, address)) in [(&self.sender, SENDER), (&self.receiver, RECEIVER)].into_iter().enumerate() {
            let gateway = Ipv4Addr::new(10, 79, end as u8, 254);
            let cable = format!(
                "link add r{end} type veth peer name {DEVICE} netns {host}\naddress add {gateway}/24 dev r{end}\n\
                 link set r{end} txqueuelen {QUEUE} up\n"
            );
            batch(&["-n", router, "-batch", "-"], &cable);
            let own = format!(
                "link set lo up\naddress add {address}/24 dev {DEVICE}\nlink set {DEVICE} txqueuelen {QUEUE} up\n\
                 route add default via {gateway}\n"
            );
            batch(&["-n", host, "-batch", "-"], &own);
            for (namespace, device) in [(host.as_str(), DEVICE.to_owned()), (router, format!("r{end}"))] {
                let words =
                    ["netns", "exec", namespace, "ethtool", "-K", &device, "tso", "off", "gso", "off", "gro", "off"];
                run("ip", &words);
            }
        }
        let words = bucket.words();
        let mut all = vec!["-n", router, "qdisc", "add", "dev", "r1", "root"];
        all.extend(words.iter().map(String::as_str));
        run("tc", &all);
    }

    fn join_by_link(&mut self, ways: &[LinkConfig; 2]) {
        let devices = [(self.sender.as_str(), DEVICE), (self.receiver.as_str(), DEVICE)];
        self.link = Some(ModelledLink::start(devices, Carries::Packets, [&ways[0], &ways[1]]));
        for (host, address, other) in [(&self.sender, SENDER, RECEIVER), (&self.receiver, RECEIVER, SENDER)] {
            let own = format!(
                "link set lo up\naddress add {address}/32 dev {DEVICE}\nlink set {DEVICE} txqueuelen {QUEUE} up\n\
                 route add {other} dev {DEVICE}\n"
            );
            batch(&["-n", host, "-batch", "-"], &own);
        }
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.link = None;
        for namespace in [Some(&self.sender), Some(&self.receiver), self.router.as_ref()].into_iter().flatten() {
            remove_namespace(namespace);
        }
    }
}

/// Whether `ethtool`, which a [`Path`] with a router needs, is there.
pub fn has_ethtool() -> bool {
    Program::new("ethtool").arg("--version").output().is_ok()
}

const SENDER: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 1);
const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 79, 1, 1);
const DEVICE: &str = "e0";
/// The first connection's; the others' follow.
const PORT: u16 = 5201;
/// A program that is kept from running while it holds its socket keeps acknowledgements waiting.
const PRIORITY: i32 = 10;
/// Room for a whole window that is sent at once.
const QUEUE: u32 = 10_000;
