//! `--hook COMMAND`: a command that runs after each session, and is told of it in its environment.
//!
//! No shell reads anything here. What came from the network is in variables alone, so that a name is never a command.

use std::io;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use weir_net::clock::Clock;

use crate::args::Recv;
use crate::events::{HookDone, ReceiverEnd, ReceiverEvent, ReceiverStart, Trouble};
use crate::exit::Exit;
use crate::observer::Observer;

/// A command and how long it may take.
#[derive(Debug, Clone)]
pub(crate) struct Hook {
    command: String,
    limit: Duration,
}

impl Hook {
    /// The one that the options ask for.
    pub(crate) fn of(args: &Recv) -> Option<Hook> {
        args.hook.clone().map(|command| Hook { command, limit: args.hook_timeout })
    }
}

/// An observer that runs the hook when a session ends, before it passes on that it has.
pub(crate) struct Hooked<'a> {
    inner: &'a mut dyn Observer<ReceiverEvent>,
    hook: Option<Hook>,
    start: ReceiverStart,
    /// What came in this run; the rest was there before.
    new_bytes: u64,
    worst: Option<String>,
}

impl<'a> Hooked<'a> {
    /// Tells `inner` of everything, and the hook, if there is one, of how a session ends.
    pub(crate) fn new(hook: Option<Hook>, inner: &'a mut dyn Observer<ReceiverEvent>) -> Hooked<'a> {
        Hooked { inner, hook, start: ReceiverStart::default(), new_bytes: 0, worst: None }
    }

    /// A session that could not even start. Only an always-on receiver goes on after it.
    pub(crate) fn failed(&mut self, start: ReceiverStart, exit: Exit, message: &str) {
        self.start = start;
        let trouble = Trouble { t_s: 0.0, message: message.to_owned(), exit_code: Some(exit.code()) };
        let _ = self.event(&ReceiverEvent::Error(trouble));
        let _ = self.event(&ReceiverEvent::End(ReceiverEnd { exit_code: exit.code(), ..ReceiverEnd::default() }));
    }

    fn run(&mut self, end: &ReceiverEnd) -> Option<HookDone> {
        let hook = self.hook.clone()?;
        // A user who interrupts a receiver wants it to end, and will receive the rest later.
        if end.exit_code == Exit::Interrupted.code() {
            return None;
        }
        let clock = Clock::new();
        let started = clock.now();
        let inner = &*self.inner;
        let outcome =
            self.start(&hook.command, end).and_then(|child| wait(child, hook.limit, || inner.is_interrupted()));
        let seconds = clock.now().since(started).as_secs_f64();
        let (status, timed_out) = outcome.as_ref().map_or((None, false), |(status, late)| (Some(*status), *late));
        let message = match &outcome {
            Err(error) => Some(format!("the hook {:?} cannot be run: {error}", hook.command)),
            Ok((_, true)) => Some(format!(
                "the hook {:?} was ended: it may take {} s, as --hook-timeout says, and no longer than a receiver that is asked to stop",
                hook.command,
                hook.limit.as_secs()
            )),
            Ok((status, false)) if !status.success() => Some(format!("the hook {:?} failed: {status}", hook.command)),
            Ok(_) => None,
        };
        Some(HookDone {
            t_s: end.t_s + seconds,
            command: hook.command,
            result: result(end).to_owned(),
            exit_status: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
            timed_out,
            seconds,
            message,
        })
    }

    fn start(&self, command: &str, end: &ReceiverEnd) -> io::Result<Child> {
        let mut words = command.split_ascii_whitespace();
        let program = words.next().ok_or(io::ErrorKind::InvalidInput)?;
        // Standard output is for events and results.
        let errors = Stdio::from(io::stderr().as_fd().try_clone_to_owned()?);
        let start = &self.start;
        Command::new(program)
            .args(words)
            .env("WEIR_RESULT", result(end))
            .env("WEIR_EXIT_CODE", end.exit_code.to_string())
            .env("WEIR_SESSION", &start.session)
            .env("WEIR_TSI", start.tsi.to_string())
            .env("WEIR_EPOCH", end.epoch.map_or_else(String::new, |epoch| epoch.to_string()))
            .env("WEIR_SENDER_KEY", start.sender_key.as_deref().unwrap_or(""))
            .env("WEIR_VERIFIED", if end.verified { "1" } else { "0" })
            .env("WEIR_OUT", &start.out)
            .env("WEIR_FILES", end.files.to_string())
            .env("WEIR_BYTES", end.bytes.to_string())
            .env("WEIR_NEW_BYTES", self.new_bytes.to_string())
            .env("WEIR_SECONDS", format!("{:.3}", end.seconds))
            .env("WEIR_MESSAGE", self.worst.as_deref().unwrap_or(""))
            .stdin(Stdio::null())
            .stdout(errors)
            // A group of its own, so that what it has started ends with it.
            .process_group(0)
            .spawn()
    }
}

/// How the session ended, for the hook.
fn result(end: &ReceiverEnd) -> &'static str {
    if end.complete { "complete" } else { "failed" }
}

/// Waits for the end of the command, and ends it and all that it has started when its time is up.
fn wait(mut child: Child, limit: Duration, is_interrupted: impl Fn() -> bool) -> io::Result<(ExitStatus, bool)> {
    let clock = Clock::new();
    let mut ends = clock.now() + limit;
    let group = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    let mut is_asked = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((status, false));
        }
        if is_interrupted() && !std::mem::replace(&mut is_asked, true) {
            ends = ends.min(clock.now() + GRACE);
            let _it_may_have_ended = killpg(group, Signal::SIGTERM);
        }
        if clock.now() >= ends {
            let _it_may_have_ended = killpg(group, Signal::SIGKILL);
            return Ok((child.wait()?, true));
        }
        std::thread::park_timeout(LOOK);
    }
}

impl Observer<ReceiverEvent> for Hooked<'_> {
    fn event(&mut self, event: &ReceiverEvent) -> ControlFlow<()> {
        match event {
            ReceiverEvent::Start(start) => self.start = start.clone(),
            ReceiverEvent::File(file) => self.new_bytes += file.new_bytes,
            ReceiverEvent::Error(trouble) if trouble.exit_code.is_some() => self.worst = Some(trouble.message.clone()),
            ReceiverEvent::End(end) => {
                if let Some(done) = self.run(end) {
                    let _ = self.inner.event(&ReceiverEvent::Hook(done));
                }
            }
            _ => {}
        }
        self.inner.event(event)
    }

    fn is_interrupted(&self) -> bool {
        self.inner.is_interrupted()
    }
}

/// How long a hook has after it was asked to end.
const GRACE: Duration = Duration::from_secs(5);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::FileDone;

    /// What the observer was told when a session with this name ended.
    fn run(command: &str, limit: Duration, name: &str, end: ReceiverEnd) -> Vec<ReceiverEvent> {
        let mut told = Vec::new();
        let mut inner = |event: &ReceiverEvent| {
            told.push(event.clone());
            ControlFlow::Continue(())
        };
        let hook = Hook { command: command.to_owned(), limit };
        let mut hooked = Hooked::new(Some(hook), &mut inner);
        let start = ReceiverStart { session: name.to_owned(), out: "/srv/a b".to_owned(), ..ReceiverStart::default() };
        let _ = hooked.event(&ReceiverEvent::Start(start));
        let _ = hooked.event(&ReceiverEvent::File(FileDone { new_bytes: 5, ..FileDone::default() }));
        let _ = hooked.event(&ReceiverEvent::End(end));
        told
    }

    fn script(folder: &std::path::Path, text: &str) -> String {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.join("hook");
        std::fs::write(&path, text).expect("room");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).expect("it is ours");
        path.display().to_string()
    }

    fn complete() -> ReceiverEnd {
        ReceiverEnd { complete: true, verified: true, files: 2, bytes: 9, ..ReceiverEnd::default() }
    }

    fn hook(told: &[ReceiverEvent]) -> &HookDone {
        let [_, _, ReceiverEvent::Hook(done), ReceiverEvent::End(_)] = told else { panic!("{told:?}") };
        done
    }

    #[test]
    fn a_hook_has_the_facts_and_a_name_from_the_network_is_no_command() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let text = "#!/bin/sh\nprintf '%s|' \"$1\" \"$WEIR_SESSION\" \"$WEIR_OUT\" \"$WEIR_FILES\" \"$WEIR_BYTES\" \"$WEIR_NEW_BYTES\" \
                    \"$WEIR_RESULT\" > \"$1\"\nexit 3\n";
        let (command, out) = (script(folder.path(), text), folder.path().join("out").display().to_string());
        let sly = "$(touch evil); `touch evil` & touch evil";
        let told = run(&format!("{command} {out}"), Duration::from_secs(20), sly, complete());
        let done = hook(&told);
        assert_eq!((done.exit_status, done.timed_out, done.result.as_str()), (Some(3), false, "complete"));
        assert!(done.message.as_ref().is_some_and(|message| message.contains("exit status: 3")), "{done:?}");
        let written = std::fs::read_to_string(&out).expect("the hook ran");
        assert_eq!(written, format!("{out}|{sly}|/srv/a b|2|9|5|complete|"));
        assert!(!std::path::Path::new("evil").exists());
    }

    #[test]
    fn a_hook_that_hangs_is_ended_with_all_that_it_has_started() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let pid = folder.path().join("pid").display().to_string();
        let command = script(folder.path(), "#!/bin/sh\nsleep 600 &\necho $! > \"$1\"\nwait\n");
        let told = run(&format!("{command} {pid}"), Duration::from_secs(2), "a", complete());
        let done = hook(&told);
        assert!(done.timed_out && done.signal == Some(9), "{done:?}");
        let child: i32 = std::fs::read_to_string(pid).expect("it got so far").trim().parse().expect("a number");
        // It was killed with its group, and takes a moment to go.
        let status = || std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        let is_gone = || status().is_empty() || status().contains(") Z ");
        let looks = (0..1_000).find(|_| {
            is_gone() || {
                std::thread::park_timeout(LOOK);
                false
            }
        });
        assert!(looks.is_some(), "still there: {}", status());
    }

    #[test]
    fn a_hook_that_is_not_there_is_told_and_an_interrupted_session_has_none() {
        let told = run("/no/such/hook", Duration::from_secs(2), "a", ReceiverEnd::default());
        let done = hook(&told);
        assert_eq!((done.exit_status, done.result.as_str()), (None, "failed"));
        assert!(done.message.as_ref().is_some_and(|message| message.contains("cannot be run")), "{done:?}");
        let interrupted = ReceiverEnd { exit_code: Exit::Interrupted.code(), ..ReceiverEnd::default() };
        assert_eq!(run("/no/such/hook", Duration::from_secs(2), "a", interrupted).len(), 3);
    }
}
