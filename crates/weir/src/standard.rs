//! Standard input as a file that is sent, and standard output as the place of a file that is received.
//!
//! Both go through a working folder: a sender reads its files again and again, and a receiver gives out nothing that is not verified.

use std::borrow::Cow;
use std::env;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Read, Write};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tempfile::TempDir;

use crate::args::{Recv, SendFile};
use crate::events::ReceiverEvent;
use crate::exit::{Exit, Failure};
use crate::observer::Observer;

/// What stands for standard input and standard output.
const DASH: &str = "-";

/// What is sent: the paths that were given, and standard input as a file of a working folder.
#[derive(Debug)]
pub(crate) struct Input<'a> {
    pub(crate) paths: Cow<'a, [PathBuf]>,
    /// Where standard input is kept until the sender ends.
    _folder: Option<TempDir>,
}

/// Reads standard input to its end, if it is among the paths. `is_over` is told often how many bytes are read, and asked whether the user
/// wants to end.
pub(crate) fn input<'a>(args: &'a SendFile, is_over: &mut dyn FnMut(u64) -> bool) -> Result<Input<'a>, Failure> {
    let dashes = args.paths.iter().filter(|path| is_dash(path)).count();
    match dashes {
        0 => return Ok(Input { paths: Cow::Borrowed(&args.paths), _folder: None }),
        1 => {}
        _ => return Err(Failure::new(Exit::Usage, "standard input (-) can be sent once only")),
    }
    let stdin = io::stdin();
    if stdin.is_terminal() {
        let advice = "standard input (-) is a terminal; pipe something in: tar c FOLDER | weir send file - ...";
        return Err(Failure::new(Exit::Usage, advice));
    }
    let folder = working_folder()?;
    let path = folder.path().join(&args.stdin_name);
    spool(stdin.lock(), &path, is_over)?;
    let paths = args.paths.iter().map(|given| if is_dash(given) { path.clone() } else { given.clone() });
    Ok(Input { paths: Cow::Owned(paths.collect()), _folder: Some(folder) })
}

/// The name of standard input where it is the first thing that is sent, by which the session is called.
pub(crate) fn name_of(args: &SendFile) -> Option<&str> {
    args.paths.first().filter(|path| is_dash(path)).map(|_| args.stdin_name.as_str())
}

/// A file's name without a folder.
pub(crate) fn parse_name(text: &str) -> Result<String, String> {
    let is_plain = Path::new(text).file_name().is_some_and(|name| name == text);
    is_plain.then(|| text.to_owned()).ok_or_else(|| "a file's name, without a folder".to_owned())
}

fn spool(mut from: impl Read + AsFd, to: &Path, is_over: &mut dyn FnMut(u64) -> bool) -> Result<(), Failure> {
    let cannot = |error: io::Error| {
        let folder = to.parent().unwrap_or(to).display();
        let advice = "all of it is kept until the sender ends; TMPDIR names a folder with more room";
        Failure::new(Exit::Files, format!("cannot keep standard input in {folder}: {error}; {advice}"))
    };
    let mut file = File::create(to).map_err(cannot)?;
    let (mut buffer, mut bytes) = (vec![0; BUFFER], 0);
    loop {
        if is_over(bytes) {
            return Err(Failure::new(Exit::Interrupted, "interrupted while standard input was read; nothing was sent"));
        }
        if !is_ready(&from)? {
            continue;
        }
        match from.read(&mut buffer) {
            Ok(0) => return file.flush().map_err(cannot),
            Ok(read) => {
                file.write_all(&buffer[..read]).map_err(cannot)?;
                bytes += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Failure::new(Exit::Files, format!("cannot read standard input: {error}"))),
        }
    }
}

/// Waits a moment for input, so that the user can end it.
fn is_ready(from: &impl AsFd) -> Result<bool, Failure> {
    let mut waiting = [PollFd::new(from.as_fd(), PollFlags::POLLIN)];
    match poll(&mut waiting, PollTimeout::from(LOOK_MS)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(error) => Err(Failure::new(Exit::Files, format!("cannot read standard input: {error}"))),
    }
}

/// Whether the file of a session goes to standard output.
pub(crate) fn is_output(args: &Recv) -> bool {
    args.out.as_deref().is_some_and(is_dash)
}

/// Runs `receive` with a working folder in the place of standard output, and writes the one file that came there to it.
pub(crate) fn output(
    args: &Recv,
    observer: &mut dyn Observer<ReceiverEvent>,
    receive: impl FnOnce(&Path, &mut dyn Observer<ReceiverEvent>) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    if args.output.json {
        let message = "--json writes events to standard output, and --out - the file: choose one of them";
        return Err(Failure::new(Exit::Usage, message));
    }
    let folder = working_folder()?;
    let mut only = OnlyOne { inner: observer, first: None, has_more: false };
    let exit = receive(folder.path(), &mut only)?;
    let OnlyOne { first, has_more, .. } = only;
    if has_more {
        let message = "the session has more than one file, and standard output takes one: name a folder with --out";
        return Err(Failure::new(Exit::Usage, message));
    }
    match first.filter(|_| exit == Exit::Done) {
        Some(path) => print(&path).map(|()| exit),
        None => Ok(exit),
    }
}

/// Passes events on, and ends the run at the second file.
struct OnlyOne<'a> {
    inner: &'a mut dyn Observer<ReceiverEvent>,
    first: Option<PathBuf>,
    has_more: bool,
}

impl Observer<ReceiverEvent> for OnlyOne<'_> {
    fn event(&mut self, event: &ReceiverEvent) -> ControlFlow<()> {
        if let ReceiverEvent::File(file) = event {
            self.has_more |= self.first.as_ref().is_some_and(|first| *first != file.path);
            self.first.get_or_insert_with(|| file.path.clone());
        }
        let flow = self.inner.event(event);
        if self.has_more { ControlFlow::Break(()) } else { flow }
    }

    fn is_interrupted(&self) -> bool {
        self.has_more || self.inner.is_interrupted()
    }
}

fn print(path: &Path) -> Result<(), Failure> {
    let cannot = |error: io::Error| Failure::new(Exit::Files, format!("cannot write to standard output: {error}"));
    let mut file = File::open(path).map_err(Failure::of(Exit::Files, path.display()))?;
    let mut stdout = io::stdout().lock();
    io::copy(&mut file, &mut stdout).map_err(cannot)?;
    stdout.flush().map_err(cannot)
}

/// A folder of our own that goes when it is dropped: in TMPDIR, or in `/var/tmp`, which is not in memory.
fn working_folder() -> Result<TempDir, Failure> {
    let large = Path::new("/var/tmp");
    let parent = match env::var_os("TMPDIR").filter(|path| !path.is_empty()) {
        Some(path) => PathBuf::from(path),
        None if fs::metadata(large).is_ok_and(|metadata| metadata.is_dir()) => large.to_owned(),
        None => env::temp_dir(),
    };
    let made = tempfile::Builder::new().prefix("weir-").tempdir_in(&parent);
    made.map_err(Failure::of(Exit::Files, format!("cannot make a working folder in {}", parent.display())))
}

fn is_dash(path: impl AsRef<Path>) -> bool {
    path.as_ref() == Path::new(DASH)
}

const BUFFER: usize = 1 << 18;
/// How long it waits for input before it looks whether the user wants to end, in milliseconds.
const LOOK_MS: u16 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_kept_to_its_end_and_an_interruption_ends_the_wait() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("stdin");
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let all: Vec<u8> = (0..1_000_000_u32).map(|number| (number % 251) as u8).collect();
        let sent = all.clone();
        let writing = std::thread::spawn(move || writer.write_all(&sent));
        let mut told = 0;
        let mut watch = |bytes| {
            assert!(bytes >= told);
            told = bytes;
            false
        };
        spool(reader, &path, &mut watch).expect("it comes to its end");
        writing.join().expect("it ends").expect("all is taken");
        assert_eq!((fs::read(&path).expect("it is there"), told), (all, 1_000_000));

        let (silent, _open) = io::pipe().expect("a pipe");
        let failure = spool(silent, &path, &mut |_| true).expect_err("nothing comes, and the user ends it");
        assert_eq!(failure.exit, Exit::Interrupted);
    }

    #[test]
    fn a_full_disk_names_the_folder_and_what_to_do() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        writer.write_all(b"some").expect("there is room in a pipe");
        drop(writer);
        let failure = spool(reader, Path::new("/dev/full"), &mut |_| false).expect_err("nothing can be kept there");
        assert_eq!(failure.exit, Exit::Files);
        assert!(failure.message.contains("/dev") && failure.message.contains("TMPDIR"), "{failure}");
    }

    #[test]
    fn the_name_of_standard_input_is_a_file_s() {
        assert_eq!(parse_name("image.iso"), Ok("image.iso".to_owned()));
        for wrong in ["", ".", "..", "a/b", "/etc/passwd", "a/"] {
            assert!(parse_name(wrong).is_err(), "{wrong:?}");
        }
    }
}
