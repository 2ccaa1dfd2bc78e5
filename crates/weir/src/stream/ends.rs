//! The two ends of a stream as [`Write`] and [`Read`], for programs that have bytes and no command line.
//!
//! A thread runs the session, and a pipe leads to it, so that both ends wait for each other as the ends of a pipe do.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};

use super::address::StreamAddress;
use super::events::StreamEvent;
use super::{member, send};
use crate::args::{Recv, SendStream};
use crate::exit::{Exit, Failure};
use crate::trust;

/// What is written here goes to all receivers, in order. A write waits while the slowest receiver does.
#[derive(Debug)]
pub struct StreamWriter {
    pipe: PipeWriter,
    address: StreamAddress,
    session: Session,
}

/// The bytes of a stream, in order. While nobody reads, the whole stream waits.
#[derive(Debug)]
pub struct StreamReader {
    pipe: PipeReader,
    session: Session,
}

/// A session that runs on a thread of its own.
type Session = JoinHandle<Result<Exit, Failure>>;

impl StreamWriter {
    /// Begins to send; [`SendStream::input`] is not used. Returns when receivers can join.
    pub fn start(args: SendStream) -> Result<StreamWriter, Failure> {
        let (input, pipe) = io::pipe().map_err(Failure::of(Exit::Files, "no pipe"))?;
        let (sender, begun) = mpsc::channel();
        let mut observer = move |event: &StreamEvent| {
            if let StreamEvent::Start(start) = event {
                // Nobody listens any more once the first one has come.
                let _ = sender.send(start.stream.clone());
            }
            ControlFlow::Continue(())
        };
        let file = File::from(OwnedFd::from(input));
        let session = thread::spawn(move || send::from_file(&args, file, &mut observer));
        match address(&begun) {
            Some(address) => Ok(StreamWriter { pipe, address, session }),
            None => Err(end(session).err().unwrap_or_else(|| Failure::new(Exit::Internal, "the stream did not begin"))),
        }
    }

    /// What receivers need to know.
    pub fn address(&self) -> &StreamAddress {
        &self.address
    }

    /// This was all. Returns when all receivers have everything.
    pub fn finish(self) -> Result<Exit, Failure> {
        drop(self.pipe);
        end(self.session)
    }
}

impl StreamReader {
    /// Begins to receive; of `args` the session, [`Recv::out`] and what is about files is not used.
    pub fn start(args: Recv, address: StreamAddress) -> Result<StreamReader, Failure> {
        let (pipe, output) = io::pipe().map_err(Failure::of(Exit::Files, "no pipe"))?;
        let file = File::from(OwnedFd::from(output));
        let mut observer = |_: &StreamEvent| ControlFlow::Continue(());
        let key = trust::of_stream(&args, &address)?;
        let session = thread::spawn(move || member::to_file(&args, &address, key, file, "a pipe", &mut observer));
        Ok(StreamReader { pipe, session })
    }

    /// How it ended, once everything has been read: [`Exit::Done`] if the bytes are those that the sender has signed.
    pub fn finish(self) -> Result<Exit, Failure> {
        drop(self.pipe);
        end(self.session)
    }
}

impl Write for StreamWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pipe.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pipe.flush()
    }
}

impl Read for StreamReader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.pipe.read(bytes)
    }
}

/// The address of the stream, once it is known; `None` if the session has ended before.
fn address(begun: &Receiver<String>) -> Option<StreamAddress> {
    begun.recv().ok()?.parse().ok()
}

fn end(session: Session) -> Result<Exit, Failure> {
    session.join().unwrap_or_else(|_| Err(Failure::new(Exit::Internal, "the thread of the stream has failed")))
}
