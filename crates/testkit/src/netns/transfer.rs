//! One of several sessions of a test: a generated file on its way to one receiver.

use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_units::Bytes;

use super::files::{Scratch, generated_file, same_content};
use super::process::{Finished, Process};
use super::session::Session;

/// What is sent, and where it is to arrive. Nothing is started.
#[derive(Debug)]
pub struct Transfer {
    /// The session, as session 20 plus its place in the test.
    pub session: Session,
    /// What is sent.
    pub file: PathBuf,
    /// The folder that it is to arrive in.
    pub out: PathBuf,
}

impl Transfer {
    /// Session number `index` of a test. It sends a generated file of `bytes` bytes; `words` are more options of `weir send file`.
    pub fn new<W: Into<String>>(
        program: &Path,
        scratch: &Scratch,
        index: usize,
        bytes: Bytes,
        words: impl IntoIterator<Item = W>,
    ) -> Transfer {
        let name = |what: &str| format!("{what}{index}-{}", bytes.count());
        let file = scratch.folder(name("sent")).join(format!("input{index}"));
        generated_file(&file, bytes.count(), index as u64 + 1);
        let number = 20 + u16::try_from(index).expect("a test has few sessions");
        let session = Session::new(program, &file, scratch.path()).to(&Transfer::group(index).to_string(), number);
        Transfer { session: session.words(words), file, out: scratch.folder(name("out")) }
    }

    /// The base layer's group of session `index`; the groups of its other channels come after it.
    pub fn group(index: usize) -> SocketAddrV4 {
        format!("239.255.{}.1:{}", 10 * (index + 1), 5004 + 10 * index).parse().expect("a group and a port")
    }

    /// Waits until the receiver has ended. Panics if it has not verified the file, or if that is another.
    pub fn verified_by(&self, receiver: &Process, limit: Duration) -> Finished {
        let done = receiver.wait(limit);
        assert!(done.is_success() && done.last_event("end")["verified"] == true, "{}", done.told());
        let name = self.file.file_name().expect("a file has a name");
        assert!(same_content(&self.file, &self.out.join(name)), "something else arrived");
        done
    }
}
