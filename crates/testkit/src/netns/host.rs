//! A host on a bridge: its names, its addresses, and programs on it.

use std::ffi::OsStr;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::process::Command;

/// A host: a namespace with one interface, `e0`, and its own loopback.
#[derive(Debug)]
pub struct Host {
    pub(super) namespace: String,
    /// 0 is the sender, 1 the first receiver.
    pub(super) index: usize,
    /// It is behind the router.
    pub(super) is_islander: bool,
}

impl Host {
    /// A program to be run on this host.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        Command::new(&self.namespace, program.as_ref())
    }

    /// The name of its interface.
    pub fn interface(&self) -> &'static str {
        INTERFACE
    }

    /// Its address: 10.77.0.1 for the sender, 10.77.0.10 for receiver 0, and so on; on the island 10.78 instead of 10.77.
    pub fn ipv4(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 77 + u8::from(self.is_islander), 0, self.last_octet())
    }

    /// Its address: fd77::1 for the sender, fd77::a for receiver 0, and so on. It has a link-local one too.
    pub fn ipv6(&self) -> Ipv6Addr {
        Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, u16::from(self.last_octet()))
    }

    /// The name of its namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    fn last_octet(&self) -> u8 {
        if self.index == 0 { 1 } else { u8::try_from(self.index + 9).expect("at most 240 receivers") }
    }

    /// Its port of the bridge.
    pub(super) fn port(&self) -> String {
        format!("p{}", self.index)
    }
}

/// The name of every host's interface.
pub(super) const INTERFACE: &str = "e0";
