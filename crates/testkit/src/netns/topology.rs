//! A bridge with one sender and any number of receivers on it, each a namespace; perhaps a second bridge behind a router.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::process::{Command as Program, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use weir_link::LinkConfig;
use weir_units::{Bytes, Rate};

use super::cleanup::{PREFIX, remove_leftovers, remove_namespace};
use super::counters::{Snooping, Traffic, member_ports};
use super::host::{Host, INTERFACE};
use super::igmp::IgmpWatch;
use super::link::{LinkCounters, TokenBucket};
use super::modelled::ModelledLink;
use super::tun::Carries;

/// What a network is to be like.
#[derive(Debug, Clone)]
pub struct Builder {
    links: Vec<Option<TokenBucket>>,
    /// Of the receivers, so many at the end are on the island.
    islanders: usize,
    fast_leave: bool,
    /// Between the bridge and every receiver: to the receiver, and back.
    modelled: Option<[LinkConfig; 2]>,
}

impl Builder {
    /// This many receivers more, on links as fast as the machine.
    #[must_use]
    pub fn receivers(mut self, count: usize) -> Builder {
        self.links.resize(self.links.len() + count, None);
        self
    }

    /// One receiver more for each rate, behind a [`TokenBucket`] of it.
    #[must_use]
    pub fn links(mut self, rates: impl IntoIterator<Item = Rate>) -> Builder {
        self.links.extend(rates.into_iter().map(|rate| Some(TokenBucket::new(rate))));
        self
    }

    /// This many receivers more on a second bridge. A router leads there that routes no multicast, as between most sites.
    #[must_use]
    pub fn island(mut self, count: usize) -> Builder {
        self.islanders += count;
        self.receivers(count)
    }

    /// Whether the bridge stops at once when a host leaves a group (the default), or asks whether another host on that
    /// port is still there, which takes two seconds.
    #[must_use]
    pub fn fast_leave(mut self, fast_leave: bool) -> Builder {
        self.fast_leave = fast_leave;
        self
    }

    /// Puts a modelled link in place of each receiver's cable: to the receiver, and back. A [`TokenBucket`] stays in front of
    /// it, on the bridge's side. Groups, and the messages by which they are joined, pass as they do through a cable.
    #[must_use]
    pub fn modelled(mut self, ways: [LinkConfig; 2]) -> Builder {
        self.modelled = Some(ways);
        self
    }

    /// Makes the namespaces, the bridge and the links, and waits until the bridge snoops.
    pub fn build(self) -> Network {
        static MADE: AtomicU32 = AtomicU32::new(0);
        assert!(self.links.len() <= MAX_RECEIVERS, "a network has at most {MAX_RECEIVERS} receivers");
        remove_leftovers();
        let id = format!("{PREFIX}{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let hosts = 1 + self.links.len();
        let host = |index: usize| {
            let role = if index == 0 { "sender".to_owned() } else { format!("receiver{}", index - 1) };
            Host { namespace: format!("{id}-{role}"), index, is_islander: index >= hosts - self.islanders }
        };
        let router = (self.islanders > 0).then(|| format!("{id}-router"));
        let hosts = (0..hosts).map(host).collect();
        let mut network = Network { bridge: format!("{id}-bridge"), router, hosts, modelled: Vec::new() };
        network.make_bridges();
        for host in &network.hosts {
            let modelled = self.modelled.as_ref().filter(|_| host.index > 0);
            let link = network.cable(host, modelled);
            network.connect(host, self.fast_leave);
            network.modelled.extend(link);
        }
        let querying = Instant::now();
        for bridge in network.bridges() {
            run("ip", &["-n", &network.bridge, "link", "set", bridge, "type", "bridge", "mcast_querier", "1"]);
        }
        for (index, link) in self.links.iter().enumerate() {
            network.set_link(index, *link);
        }
        // A bridge floods until it has waited this long for another querier.
        super::pause((QUERIER_WAIT + Duration::from_millis(200)).saturating_sub(querying.elapsed()));
        network
    }
}

/// A bridge and the hosts on it. They go away with this value, with every process in them.
#[derive(Debug)]
pub struct Network {
    bridge: String,
    /// Between the bridges, if there are two.
    router: Option<String>,
    hosts: Vec<Host>,
    /// Of each receiver, or none.
    modelled: Vec<ModelledLink>,
}

impl Network {
    /// A network with no receivers yet.
    #[expect(clippy::new_ret_no_self, reason = "a network is made by its builder")]
    pub fn new() -> Builder {
        Builder { links: Vec::new(), islanders: 0, fast_leave: true, modelled: None }
    }

    /// The sender.
    pub fn sender(&self) -> &Host {
        &self.hosts[0]
    }

    /// Receiver `index`, from 0.
    pub fn receiver(&self, index: usize) -> &Host {
        &self.receivers()[index]
    }

    /// The receivers.
    pub fn receivers(&self) -> &[Host] {
        &self.hosts[1..]
    }

    /// Whether the bridge sends a group only to the ports that asked for it (as it does from the beginning), or to all.
    pub fn set_snooping(&self, snoops: bool) {
        let value = if snoops { "1" } else { "0" };
        for bridge in self.bridges() {
            run("ip", &["-n", &self.bridge, "link", "set", bridge, "type", "bridge", "mcast_snooping", value]);
        }
    }

    /// Puts receiver `index` behind this link, empty and with counters at zero, or behind none.
    pub fn set_link(&self, index: usize, link: Option<TokenBucket>) {
        let port = self.receiver(index).port();
        // There may be none yet.
        let _ = Program::new("tc").args(["-n", &self.bridge, "qdisc", "del", "dev", &port, "root"]).output();
        if let Some(link) = link {
            let words = link.words();
            let mut all = vec!["-n", &self.bridge, "qdisc", "add", "dev", &port, "root"];
            all.extend(words.iter().map(String::as_str));
            run("tc", &all);
        }
    }

    /// Turns the link in front of receiver `index` into another while it is in use; what waits stays. Panics if there is none.
    pub fn change_link(&self, index: usize, link: TokenBucket) {
        let (port, words) = (self.receiver(index).port(), link.words());
        let mut all = vec!["-n", &self.bridge, "qdisc", "change", "dev", &port, "root"];
        all.extend(words.iter().map(String::as_str));
        run("tc", &all);
    }

    /// What the link in front of receiver `index` has done. Panics if there is none.
    pub fn link_counters(&self, index: usize) -> LinkCounters {
        let text = run("tc", &["-n", &self.bridge, "-j", "-s", "qdisc", "show", "dev", &self.receiver(index).port()]);
        LinkCounters::from_json(&text).unwrap_or_else(|| panic!("receiver {index} is behind no link: {text}"))
    }

    /// What the link in front of receiver `index` passes, link-layer headers included, measured for `span`.
    pub fn measured_rate(&self, index: usize, span: Duration) -> Rate {
        let (before, start) = (self.link_counters(index), Instant::now());
        super::pause(span);
        let (after, elapsed) = (self.link_counters(index), start.elapsed());
        Bytes::new(after.sent_bytes - before.sent_bytes).per(elapsed)
    }

    /// Packets to receiver `index` that its modelled link has lost, and that it has delivered. Panics if there is none.
    pub fn lost_and_delivered(&self, index: usize) -> (u64, u64) {
        self.modelled.get(index).expect("the receiver is behind a modelled link").lost_and_delivered()
    }

    /// What a host has sent and received.
    pub fn traffic(&self, host: &Host) -> Traffic {
        let text = run("ip", &["-n", &self.bridge, "-j", "-s", "link", "show", "dev", &host.port()]);
        Traffic::from_json(&text).unwrap_or_else(|| panic!("no counters in what ip prints: {text}"))
    }

    /// Counts the IGMP messages that receivers send from now on.
    pub fn watch_igmp(&self) -> IgmpWatch {
        IgmpWatch::start(&self.bridge, self.receivers().iter().map(Host::port).collect())
    }

    /// The membership messages that the bridge has seen.
    pub fn snooping(&self) -> Snooping {
        let text = run("ip", &["-n", &self.bridge, "-j", "-s", "link", "xstats", "type", "bridge", "dev", "br0"]);
        Snooping::from_json(&text).unwrap_or_else(|| panic!("no counters in what ip prints: {text}"))
    }

    /// The receivers that the bridge takes for members of this group, by index.
    pub fn members(&self, group: &str) -> Vec<usize> {
        let text = run("bridge", &["-n", &self.bridge, "-j", "mdb", "show"]);
        let ports = member_ports(&text, group).unwrap_or_else(|| panic!("no table in what bridge prints: {text}"));
        let is_member = |host: &&Host| ports.contains(&host.port());
        self.receivers().iter().filter(is_member).map(|host| host.index - 1).collect()
    }

    /// Has every host use this TCP congestion control, such as `reno`, `cubic` or `bbr`.
    pub fn set_tcp_congestion_control(&self, name: &str) {
        for host in &self.hosts {
            set_kernel(&host.namespace, "net/ipv4/tcp_congestion_control", name);
        }
    }

    /// Has every host speak this version of IGMP: 2, which has a message for every join and every leave, or 3, where what
    /// changes within a few milliseconds goes in one report.
    pub fn set_igmp_version(&self, version: u8) {
        for host in &self.hosts {
            set_kernel(&host.namespace, "net/ipv4/conf/all/force_igmp_version", &version.to_string());
        }
    }

    /// Takes the host's interface away, as when its network card is unplugged; returns the card's hardware address. No link or modelled link
    /// may be in front of it.
    pub fn unplug(&self, host: &Host) -> String {
        let path = format!("/sys/class/net/{INTERFACE}/address");
        let address = run("ip", &["netns", "exec", &host.namespace, "cat", &path]);
        run("ip", &["-n", &host.namespace, "link", "delete", INTERFACE]);
        address.trim().to_owned()
    }

    /// Gives it the card with this hardware address again. The interface has the same name and addresses, and another number.
    pub fn plug(&self, host: &Host, card: &str) {
        // The number of the old one may be free again.
        run("ip", &["-n", &host.namespace, "link", "add", "other0", "type", "veth"]);
        self.cable(host, None);
        run("ip", &["-n", &host.namespace, "link", "set", INTERFACE, "address", card]);
        self.connect(host, true);
    }

    /// The number of the host's interface.
    pub fn interface_number(&self, host: &Host) -> u32 {
        let path = format!("/sys/class/net/{INTERFACE}/ifindex");
        run("ip", &["netns", "exec", &host.namespace, "cat", &path]).trim().parse().expect("a number")
    }

    /// The host has no IPv4 address from now on.
    pub fn unaddress(&self, host: &Host) {
        run("ip", &["-n", &host.namespace, "-4", "address", "flush", "dev", INTERFACE]);
    }

    /// The host has this IPv4 address and no other from now on.
    pub fn readdress(&self, host: &Host, address: Ipv4Addr) {
        self.unaddress(host);
        let change = format!("address add {address}/24 dev {INTERFACE}\nroute add 224.0.0.0/4 dev {INTERFACE}\n");
        batch(&["-n", &host.namespace, "-batch", "-"], &change);
    }

    fn bridges(&self) -> &'static [&'static str] {
        if self.router.is_some() { &["br0", "br1"] } else { &["br0"] }
    }

    fn make_bridges(&self) {
        let mut script = format!("netns add {}\n", self.bridge);
        for namespace in self.hosts.iter().map(|host| &host.namespace).chain(&self.router) {
            writeln!(script, "netns add {namespace}").expect(WRITES);
        }
        batch(&["-batch", "-"], &script);
        let mut bridges = "link set lo up\n".to_owned();
        for bridge in self.bridges() {
            // The querier is switched on last: until the response interval is set it would wait for ten seconds.
            let options = "mcast_snooping 1 mcast_igmp_version 3 mcast_mld_version 2 mcast_query_response_interval 100 \
                 mcast_startup_query_interval 100 mcast_stats_enabled 1";
            writeln!(bridges, "link add {bridge} type bridge {options}\nlink set {bridge} up").expect(WRITES);
        }
        batch(&["-n", &self.bridge, "-batch", "-"], &bridges);
        self.router.iter().for_each(|router| self.make_router(router));
    }

    /// A router between the bridges, whose kernel forwards what is for one host.
    fn make_router(&self, router: &str) {
        set_kernel(router, "net/ipv4/ip_forward", "1");
        let mut own = "link set lo up\n".to_owned();
        for (site, bridge) in self.bridges().iter().enumerate() {
            let cable = format!(
                "link add router{site} type veth peer name e{site} netns {router}\n\
                 link set router{site} master {bridge} up\n"
            );
            batch(&["-n", &self.bridge, "-batch", "-"], &cable);
            let address = router_address(site == 1);
            writeln!(own, "address add {address}/24 dev e{site}\nlink set e{site} up").expect(WRITES);
        }
        batch(&["-n", router, "-batch", "-"], &own);
    }

    /// A cable between the host's `e0` and its port of the bridge, or a modelled link.
    fn cable(&self, host: &Host, modelled: Option<&[LinkConfig; 2]>) -> Option<ModelledLink> {
        let (port, namespace) = (host.port(), host.namespace.as_str());
        // Duplicate address detection would keep IPv6 waiting for seconds, and nobody else is here.
        set_kernel(namespace, "net/ipv6/conf/default/accept_dad", "0");
        let Some([there, back]) = modelled else {
            let cable = format!("link add {port} type veth peer name {INTERFACE} netns {namespace}\n");
            batch(&["-n", &self.bridge, "-batch", "-"], &cable);
            return None;
        };
        let devices = [(self.bridge.as_str(), port.as_str()), (namespace, INTERFACE)];
        let link = ModelledLink::start(devices, Carries::Frames, [there, back]);
        for (namespace, device) in devices {
            let room = DEVICE_QUEUE.to_string();
            run("ip", &["-n", namespace, "link", "set", device, "txqueuelen", &room]);
        }
        Some(link)
    }

    /// Addresses, routes for groups, and the port's place in the bridge.
    fn connect(&self, host: &Host, fast_leave: bool) {
        let (port, namespace) = (host.port(), &host.namespace);
        let fast_leave = if fast_leave { "on" } else { "off" };
        let bridge = self.bridges()[usize::from(host.is_islander)];
        let bridge_end = format!(
            "link set {port} master {bridge} up\nlink set {port} type bridge_slave mcast_fast_leave {fast_leave}\n"
        );
        batch(&["-n", &self.bridge, "-batch", "-"], &bridge_end);
        let host_end = format!(
            "link set lo up\naddress add {}/24 dev {INTERFACE}\naddress add {}/64 dev {INTERFACE} nodad\n\
             link set {INTERFACE} up\nroute add 224.0.0.0/4 dev {INTERFACE}\n",
            host.ipv4(),
            host.ipv6(),
        );
        batch(&["-n", namespace, "-batch", "-"], &host_end);
        if self.router.is_some() {
            let router = router_address(host.is_islander).to_string();
            run("ip", &["-n", namespace, "route", "add", "default", "via", &router]);
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.modelled.clear();
        for namespace in self.hosts.iter().map(|host| &host.namespace).chain(&self.router) {
            remove_namespace(namespace);
        }
        remove_namespace(&self.bridge);
    }
}

/// The router's address on the first bridge, or on the island.
fn router_address(is_on_island: bool) -> Ipv4Addr {
    Ipv4Addr::new(10, 77 + u8::from(is_on_island), 0, 254)
}

/// Sets a parameter of the kernel in a namespace.
pub(super) fn set_kernel(namespace: &str, parameter: &str, value: &str) {
    let path = format!("/proc/sys/{parameter}");
    run("ip", &["netns", "exec", namespace, "sh", "-c", "echo \"$1\" > \"$2\"", "sh", value, &path]);
}

/// Runs a program of the system and returns what it printed. Panics if it fails.
pub(super) fn run(program: &str, words: &[&str]) -> String {
    let done = Program::new(program).args(words).stdin(Stdio::null()).output();
    let done = done.unwrap_or_else(|error| panic!("cannot run {program}: {error}"));
    let complaint = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{program} {}: {} {complaint}", words.join(" "), done.status);
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// Has `ip` carry out a script. Panics if a line of it fails.
pub(super) fn batch(words: &[&str], script: &str) {
    let pipe = Stdio::piped;
    let mut ip = Program::new("ip").args(words).stdin(pipe()).stdout(pipe()).stderr(pipe()).spawn().expect("ip starts");
    ip.stdin.take().expect("standard input is a pipe").write_all(script.as_bytes()).expect("ip reads its script");
    let done = ip.wait_with_output().expect("ip is our child");
    let complaint = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "ip {}: {complaint}in\n{script}", words.join(" "));
}

/// Room for packets that the program of a modelled link has not taken yet: it is the model that drops.
const DEVICE_QUEUE: u32 = 10_000;

/// Addresses 10 to 249.
const MAX_RECEIVERS: usize = 240;

/// The query response interval that the bridge is given.
const QUERIER_WAIT: Duration = Duration::from_secs(1);

const WRITES: &str = "writing to a string cannot fail";
