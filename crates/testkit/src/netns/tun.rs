//! A TUN or TAP device: what a namespace sends to it is read here, and what is written here arrives there.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::libc;

/// What a device carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carries {
    /// Packets of IP (TUN).
    Packets,
    /// Ethernet frames (TAP): it can be a port of a bridge.
    Frames,
}

impl Carries {
    /// Bytes in front of the IP header.
    pub(super) fn link_header(self) -> usize {
        match self {
            Carries::Packets => 0,
            Carries::Frames => 14,
        }
    }
}

/// The device, as long as this lives.
#[derive(Debug)]
pub(super) struct Tun(File);

impl Tun {
    /// Makes the device `name` in the namespace that this thread is in. It is not up yet.
    pub(super) fn open(name: &str, carries: Carries) -> io::Result<Tun> {
        let file = OpenOptions::new().read(true).write(true).open("/dev/net/tun")?;
        make(&file, name, carries)?;
        let flags = nix::fcntl::OFlag::O_NONBLOCK;
        nix::fcntl::fcntl(&file, nix::fcntl::FcntlArg::F_SETFL(flags))?;
        Ok(Tun(file))
    }

    /// The next packet that the namespace has sent, if there is one.
    pub(super) fn read(&self, buffer: &mut [u8]) -> Option<usize> {
        nix::unistd::read(&self.0, buffer).ok()
    }

    /// Hands a packet to the namespace.
    pub(super) fn write(&self, packet: &[u8]) {
        // A namespace that goes away takes no more, and this thread ends soon.
        let _ = nix::unistd::write(&self.0, packet);
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[expect(unsafe_code, reason = "TUNSETIFF takes a structure that no safe wrapper knows")]
fn make(file: &File, name: &str, carries: Carries) -> io::Result<()> {
    let layer = match carries {
        Carries::Packets => libc::IFF_TUN,
        Carries::Frames => libc::IFF_TAP,
    };
    // SAFETY: all-zero bytes are a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
        *place = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (layer | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the descriptor is open, and the request is a live ifreq that the call reads and fills in.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
