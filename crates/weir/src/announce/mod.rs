//! Sessions are announced while they are sent, and an always-on receiver takes those of its senders: `docs/announcements.md`.
//!
//! An announcement is a packet of the Session Announcement Protocol (RFC 2974) with the description of the session as its sender has
//! signed it, compressed. It says until when it holds; a withdrawal is signed too.

mod account;
mod memory;
mod pace;
mod receive;
mod running;
mod screen;
mod send;

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use weir_wire::Sap;

pub(crate) use receive::receive;
pub(crate) use send::{Announcing, Plan};

/// The payload of an announcement of this description.
fn compressed(text: &str) -> io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes())?;
    encoder.finish()
}

/// The description that is announced; `None` if it is too long or no text.
fn text(sap: &Sap<'_>) -> Option<String> {
    let mut bytes = Vec::new();
    if sap.is_compressed {
        ZlibDecoder::new(sap.payload).take(MAX_TEXT + 1).read_to_end(&mut bytes).ok()?;
    } else {
        bytes.extend_from_slice(sap.payload);
    }
    if bytes.len() as u64 > MAX_TEXT { None } else { String::from_utf8(bytes).ok() }
}

/// A session of 256 channels is described in some 30 kB.
const MAX_TEXT: u64 = 64 << 10;

/// The line by which a sender says, under its signature, that a session has ended.
const WITHDRAWN: &str = "a=weir-withdrawn";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_comes_back_and_a_bomb_does_not() {
        let sap = |payload, is_compressed| Sap {
            is_deletion: false,
            is_compressed,
            hash: 1,
            origin: std::net::Ipv4Addr::LOCALHOST.into(),
            payload,
        };
        let payload = compressed("v=0\r\n").expect("memory takes it");
        assert_eq!(text(&sap(&payload, true)).as_deref(), Some("v=0\r\n"));
        assert_eq!(text(&sap(b"v=0\r\n", false)).as_deref(), Some("v=0\r\n"));
        let bomb = compressed(&"a".repeat(40 << 20)).expect("memory takes it");
        assert!(bomb.len() < 65_536 && text(&sap(&bomb, true)).is_none());
        assert_eq!([text(&sap(b"rubbish", true)), text(&sap(&[0xff], false))], [None, None]);
    }
}
