//! A program in a namespace: its lines of output with the time of each, its end, its CPU time, and limits on its life.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command as Program, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

/// A program to be started in a namespace.
#[derive(Debug)]
pub struct Command {
    name: String,
    program: Program,
}

impl Command {
    /// `program` in `namespace`; it gets a mount namespace of its own too, so what it mounts goes with it.
    pub(super) fn new(namespace: &str, program: &OsStr) -> Command {
        let mut command = Program::new("ip");
        keep_apart(&mut command);
        // `ip netns exec` becomes the program, so its process number is the program's.
        command.args(["netns", "exec", namespace]).arg(program).stdin(Stdio::null());
        let short = Path::new(program).file_name().unwrap_or(program).to_string_lossy();
        Command { name: format!("{short} in {namespace}"), program: command }
    }

    /// `program` in the namespace that this process is in.
    pub fn here(program: impl AsRef<OsStr>) -> Command {
        let mut command = Program::new(program.as_ref());
        keep_apart(&mut command);
        command.stdin(Stdio::null());
        Command { name: program.as_ref().to_string_lossy().into_owned(), program: command }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Command {
        self.program.arg(arg);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Command {
        self.program.args(args);
        self
    }

    /// Starts in this folder.
    #[must_use]
    pub fn folder(mut self, folder: impl AsRef<Path>) -> Command {
        self.program.current_dir(folder);
        self
    }

    /// Mounts an empty file system of `bytes` in memory on `folder`, seen by this program only, before it starts.
    #[must_use]
    ///
    /// For programs on a [`super::Host`], which have a mount namespace of their own.
    pub fn with_small_disk(self, folder: &Path, bytes: u64) -> Command {
        self.in_shell(&format!("mount -t tmpfs -o size={bytes} tmpfs '{}' && exec \"$@\"", folder.display()))
    }

    /// Runs a script of bash in its place, in which `"$@"` is the program with its arguments. For programs on a [`super::Host`].
    #[must_use]
    pub fn in_shell(self, script: &str) -> Command {
        assert_eq!(self.program.get_program(), "ip", "only a program on a host can be put into a shell");
        assert!(self.program.get_current_dir().is_none(), "the folder is set after the shell");
        let words: Vec<OsString> = self.program.get_args().skip(3).map(OsStr::to_owned).collect();
        let namespace = self.program.get_args().nth(2).expect("a command names its namespace").to_string_lossy();
        let shell = Command::new(&namespace, OsStr::new("bash")).args(["-c", script, "bash"]).args(words);
        Command { name: self.name, ..shell }
    }

    /// Starts it. Panics if it cannot be started.
    #[expect(clippy::zombie_processes, reason = "a thread reaps it, in a way that tells what it used")]
    pub fn start(mut self) -> Process {
        self.program.stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = Instant::now();
        let mut child = self.program.spawn().unwrap_or_else(|error| panic!("cannot start {}: {error}", self.name));
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("process numbers are positive"));
        let shared = Arc::<Shared>::default();
        let stdout = child.stdout.take().expect("standard output is a pipe");
        let stderr = child.stderr.take().expect("standard error is a pipe");
        let readers = [read_lines(stdout, Stream::Out, &shared), read_lines(stderr, Stream::Err, &shared)];
        let waiter = wait_for_end(pid, readers, &shared);
        Process { name: self.name, pid, started, shared, waiter: Some(waiter) }
    }
}

/// Neither the keys of the user who runs the tests count in them, nor what the tests learn for him.
fn keep_apart(command: &mut Program) {
    let folder = std::env::temp_dir().join("weir-tests");
    command.env("XDG_STATE_HOME", folder.join("state")).env("XDG_CONFIG_HOME", folder.join("config"));
}

/// A program that was started. It is killed when this is dropped.
#[derive(Debug)]
pub struct Process {
    name: String,
    pid: Pid,
    started: Instant,
    shared: Arc<Shared>,
    waiter: Option<JoinHandle<()>>,
}

impl Process {
    /// When it was started.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// The lines of standard output so far.
    pub fn lines(&self) -> Vec<Line> {
        self.shared.lock().out.clone()
    }

    /// The first line of standard output that `wanted` accepts, waited for. Panics after `limit`, or if the program ends
    /// without one.
    pub fn line(&self, limit: Duration, mut wanted: impl FnMut(&str) -> bool) -> Line {
        let mut seen = 0;
        let mut found = None;
        let state = self.until(limit, |state| {
            found = state.out[seen..].iter().find(|line| wanted(&line.text)).cloned();
            seen = state.out.len();
            found.is_some() || state.finished.is_some()
        });
        let told = state.told();
        drop(state);
        found.unwrap_or_else(|| panic!("{}: the line waited for did not come within {limit:?}\n{told}", self.name))
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.shared.lock().finished.is_some()
    }

    /// Waits for its end, and kills it and panics if that does not come within `limit`.
    pub fn wait(&self, limit: Duration) -> Finished {
        let state = self.until(limit, |state| state.finished.is_some());
        let finished = state.finished.clone();
        let told = state.told();
        drop(state);
        finished.unwrap_or_else(|| {
            self.signal(Signal::SIGKILL);
            panic!("{}: not done within {limit:?}\n{told}", self.name)
        })
    }

    /// Kills it at once (SIGKILL) and waits for its end.
    pub fn kill(&self) -> Finished {
        self.signal(Signal::SIGKILL);
        self.wait(KILL_LIMIT)
    }

    /// Asks it to end (SIGTERM) and waits for its end.
    pub fn terminate(&self) -> Finished {
        self.signal(Signal::SIGTERM);
        self.wait(KILL_LIMIT)
    }

    /// Stops it where it is (SIGSTOP) until [`Process::resume`]: it neither runs nor ends meanwhile.
    pub fn suspend(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Lets it run again (SIGCONT).
    pub fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        let state = self.shared.lock();
        // Under the lock: the number may be another's once the waiter has reaped it.
        if state.finished.is_none() {
            kill(self.pid, signal).unwrap_or_else(|error| panic!("cannot signal {}: {error}", self.name));
        }
    }

    fn until(&self, limit: Duration, mut done: impl FnMut(&mut State) -> bool) -> MutexGuard<'_, State> {
        let state = self.shared.lock();
        let (state, _) =
            self.shared.changed.wait_timeout_while(state, limit, |state| !done(state)).expect(NOT_POISONED);
        state
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
        if let Some(waiter) = self.waiter.take() {
            // Its panic has been printed; another one here would end the process.
            let _ = waiter.join();
        }
    }
}

/// A line of output and when it was read.
#[derive(Debug, Clone)]
pub struct Line {
    /// When.
    pub at: Instant,
    /// The line, without its end.
    pub text: String,
}

/// How a program ended.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Its exit status.
    pub status: ExitStatus,
    /// When it ended.
    pub ended: Instant,
    /// Its standard output.
    pub out: Vec<Line>,
    /// Its standard error.
    pub err: Vec<Line>,
    /// What it used.
    pub usage: Usage,
}

impl Finished {
    /// Whether it ended with exit code 0.
    pub fn is_success(&self) -> bool {
        self.status.success()
    }

    /// The exit code; none if a signal ended it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// All of its output, for messages.
    pub fn told(&self) -> String {
        format!("{}\n{}", tell(&self.out, &self.err), self.status)
    }
}

/// What a process used, as the kernel charged it. Work that the network does in interrupts is often charged to whoever
/// was running, or to nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// CPU time in the program.
    pub user: Duration,
    /// CPU time in the kernel on its behalf.
    pub system: Duration,
    /// Most memory that it had at once, in bytes.
    pub peak_memory_bytes: u64,
}

impl Usage {
    /// All of its CPU time.
    pub fn cpu(&self) -> Duration {
        self.user + self.system
    }
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect(NOT_POISONED)
    }
}

#[derive(Debug, Default)]
struct State {
    out: Vec<Line>,
    err: Vec<Line>,
    finished: Option<Finished>,
}

impl State {
    fn told(&self) -> String {
        tell(&self.out, &self.err)
    }
}

#[derive(Clone, Copy)]
enum Stream {
    Out,
    Err,
}

fn tell(out: &[Line], err: &[Line]) -> String {
    let last = |lines: &[Line]| {
        let skipped = lines.len().saturating_sub(TOLD_LINES);
        let shown: Vec<&str> = lines[skipped..].iter().map(|line| line.text.as_str()).collect();
        (if skipped > 0 { format!("… {skipped} lines …\n") } else { String::new() }) + &shown.join("\n")
    };
    format!("standard output:\n{}\nstandard error:\n{}", last(out), last(err))
}

fn read_lines(pipe: impl Read + Send + 'static, stream: Stream, shared: &Arc<Shared>) -> JoinHandle<()> {
    let shared = Arc::clone(shared);
    std::thread::spawn(move || {
        let mut reader = BufReader::new(pipe);
        let mut bytes = Vec::new();
        while reader.read_until(b'\n', &mut bytes).is_ok_and(|read| read > 0) {
            let text = String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_owned();
            let mut state = shared.lock();
            let lines = match stream {
                Stream::Out => &mut state.out,
                Stream::Err => &mut state.err,
            };
            lines.push(Line { at: Instant::now(), text });
            bytes.clear();
            drop(state);
            shared.changed.notify_all();
        }
    })
}

/// Waits for the process and its output, then reaps it and says how it ended.
fn wait_for_end(pid: Pid, readers: [JoinHandle<()>; 2], shared: &Arc<Shared>) -> JoinHandle<()> {
    let shared = Arc::clone(shared);
    std::thread::spawn(move || {
        while let Err(error) = waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) {
            assert_eq!(error, nix::errno::Errno::EINTR, "our own child can be waited for");
        }
        let ended = Instant::now();
        // A grandchild may hold the pipes open for longer than its parent lived: what it writes is not waited for.
        let end = ended + PIPE_LIMIT;
        while readers.iter().any(|reader| !reader.is_finished()) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut state = shared.lock();
        let (status, usage) = reap(pid);
        let (out, err) = (state.out.clone(), state.err.clone());
        state.finished = Some(Finished { status, ended, out, err, usage });
        drop(state);
        shared.changed.notify_all();
    })
}

#[expect(unsafe_code, reason = "only wait4 tells what one child used, and no safe wrapper has it")]
fn reap(pid: Pid) -> (ExitStatus, Usage) {
    use nix::libc;
    use std::os::unix::process::ExitStatusExt;

    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are to live, writable values of the types that wait4 fills in.
    let reaped = unsafe { libc::wait4(pid.as_raw(), &raw mut status, 0, usage.as_mut_ptr()) };
    assert_eq!(reaped, pid.as_raw(), "our own child is ours to reap");
    // SAFETY: all-zero bytes are a valid rusage, and wait4 has succeeded.
    let usage = unsafe { usage.assume_init() };
    let span = |time: libc::timeval| {
        Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0))
            + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
    };
    let usage = Usage {
        user: span(usage.ru_utime),
        system: span(usage.ru_stime),
        peak_memory_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
    };
    (ExitStatus::from_raw(status), usage)
}

const NOT_POISONED: &str = "no thread panics while it holds the output";

/// A killed process that is not gone by then is stuck in the kernel.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// What is in the pipe at the end is read in less.
const PIPE_LIMIT: Duration = Duration::from_secs(2);

/// How many lines of output a message shows.
const TOLD_LINES: usize = 40;
