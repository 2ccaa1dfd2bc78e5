//! Interfaces that are taken away and made again, or get other addresses, while something runs. Needs root; see
//! `weir_testkit::netns::require_root`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_testkit::netns::{
    Host, Network, Process, Scratch, Session, generated_file, pause, require_root, same_content,
};

use super::{MINUTE, WEIR, number};

/// A network card that is unplugged, or a virtual interface that is set up anew, has another number afterwards.
#[test]
fn a_session_goes_on_when_the_interface_of_either_end_is_made_again() {
    if !require_root() {
        return;
    }
    for index in [0, 1] {
        let site = Site::new();
        let (sender, receiver) = site.start();
        let host = [site.network.sender(), site.network.receiver(0)][index];
        site.replug(host);
        let (sent, received) = (sender.wait(MINUTE), receiver.wait(MINUTE));
        assert!(sent.is_success() && received.is_success(), "host {index}: {}\n{}", sent.told(), received.told());
        assert!(same_content(&site.file, &site.out.join("file")));
        let is_told = sent.told().contains("nothing could be sent") && sent.told().contains("packets go out again");
        assert_eq!(is_told, index == 0, "host {index}: {}", sent.told());
    }
}

/// As DHCP may give one. Its socket was connected from the old one, and has nothing to connect from for a while.
#[test]
fn a_receiver_with_another_address_still_tells_that_it_has_everything() {
    if !require_root() {
        return;
    }
    let site = Site::new();
    let (sender, receiver) = site.start();
    let [host, other] = [site.network.receiver(0).ipv4(), "10.77.0.200".parse().expect("an address")];
    site.network.unaddress(site.network.receiver(0));
    pause(UNPLUGGED);
    site.network.readdress(site.network.receiver(0), other);
    let (sent, received) = (sender.wait(MINUTE), receiver.wait(MINUTE));
    assert!(sent.is_success() && received.is_success(), "{}\n{}", sent.told(), received.told());
    let from = sent.last_event("receipt")["from"].to_string();
    assert!(from.contains(&other.to_string()) && !from.contains(&format!("{host}:")), "{from}");
}

/// Receivers know the sender by its address.
#[test]
fn a_sender_that_has_lost_its_address_says_so_and_goes_on_once_it_has_it_again() {
    if !require_root() {
        return;
    }
    let site = Site::new();
    let (sender, receiver) = site.start();
    let (host, other) = (site.network.sender(), "10.77.0.200".parse().expect("an address"));
    site.network.readdress(host, other);
    let told = |part: &str| sender.event("error", MINUTE, |error| error["message"].to_string().contains(part));
    told("e0 has lost the address 10.77.0.1, by which receivers know this session");
    site.network.readdress(host, host.ipv4());
    told("packets go out again");
    let (sent, received) = (sender.wait(MINUTE), receiver.wait(MINUTE));
    assert!(sent.is_success() && received.is_success(), "{}\n{}", sent.told(), received.told());
}

/// A service outlives many interfaces.
#[test]
fn a_receiver_that_is_always_on_hears_announcements_after_its_interface_was_made_again() {
    if !require_root() {
        return;
    }
    let site = Site::new();
    let host = site.network.receiver(0);
    let receiver = host.command(WEIR).args(["recv", "--announced", "--json", "--iface", host.interface()]);
    let receiver =
        receiver.arg("--sender-key").arg(site.scratch.join("sender.key")).arg("--out").arg(&site.out).start();
    receiver.event("listening", MINUTE, |_| true);
    site.replug(host);
    let _sender = site.session.send(site.network.sender()).arg("--announce").start();
    let end = receiver.event("end", MINUTE, |_| true);
    assert_eq!(end["complete"], true, "{end}");
    assert!(receiver.terminate().is_success());
}

/// A sender and a receiver, and a file that takes six seconds.
struct Site {
    network: Network,
    scratch: Scratch,
    session: Session,
    file: PathBuf,
    out: PathBuf,
}

impl Site {
    fn new() -> Site {
        let network = Network::new().receivers(1).build();
        let scratch = Scratch::new();
        let (file, out) = (scratch.join("file"), scratch.folder("out"));
        generated_file(&file, 6_000_000, 1);
        let session = Session::new(Path::new(WEIR), &file, scratch.path()).to("239.255.7.7:5004", 7);
        let session = session.words(["--rates", "256k..8M", "--receipts", "1"]);
        session.describe(network.sender());
        Site { network, scratch, session, file, out }
    }

    /// Takes the host's interface away for a while.
    fn replug(&self, host: &Host) {
        let before = self.network.interface_number(host);
        let card = self.network.unplug(host);
        pause(UNPLUGGED);
        self.network.plug(host, &card);
        assert_ne!(self.network.interface_number(host), before, "it is another interface of the same name");
    }

    /// The sender and the receiver, once that has some of the file.
    fn start(&self) -> (Process, Process) {
        let receiver = self.session.recv(self.network.receiver(0), &self.out).start();
        let sender = self.session.send(self.network.sender()).start();
        receiver.event("progress", MINUTE, |progress| number(progress, "received_bytes") > 500_000);
        (sender, receiver)
    }
}

/// Longer than the two seconds after which a sender tells that nothing could be sent.
const UNPLUGGED: Duration = Duration::from_secs(4);
