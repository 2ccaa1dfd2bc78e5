//! Exit codes, the same for every command, and the failure that carries one with a text for people.

use std::fmt::{self, Display, Write};
use std::process::ExitCode;

/// How a command ended. Scripts may rely on the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Exit {
    /// All done; what was received is verified.
    Done = 0,
    /// Weir itself is at fault.
    Internal = 1,
    /// The command line cannot be used.
    Usage = 2,
    /// The session description cannot be read or used.
    Session = 3,
    /// The network cannot be used.
    Network = 4,
    /// The time was up before everything had come, or the other end of a live stream is gone.
    Incomplete = 5,
    /// What came is not what the sender signed.
    Unverified = 6,
    /// A file cannot be read or written.
    Files = 7,
    /// Fewer receivers than asked have sent a receipt.
    Receipts = 8,
    /// Stopped by the user.
    Interrupted = 130,
}

impl Exit {
    /// A claim does not hold. It has the number that shells and build servers expect of a test that fails.
    pub const RED: Exit = Exit::Internal;

    /// All of them, by number.
    pub const ALL: [Exit; 10] = [
        Exit::Done,
        Exit::Internal,
        Exit::Usage,
        Exit::Session,
        Exit::Network,
        Exit::Incomplete,
        Exit::Unverified,
        Exit::Files,
        Exit::Receipts,
        Exit::Interrupted,
    ];

    /// The number that the shell sees.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// What the number means, for the table in the help.
    pub const fn meaning(self) -> &'static str {
        match self {
            Exit::Done => "all done; everything received is verified, or with --any-sender complete",
            Exit::Internal => "a claim does not hold (lab verify), or else a fault of weir itself",
            Exit::Usage => "the command line cannot be used",
            Exit::Session => "the session description cannot be read or used",
            Exit::Network => "the network cannot be used (interface, group, permission)",
            Exit::Incomplete => {
                "the time was up, or the other end of a stream gone, before all had come; what came is kept"
            }
            Exit::Unverified => {
                "what came is not what the sender signed, or not of the sender that is believed; nothing took its final name"
            }
            Exit::Files => "a file cannot be read or written (exists, disk full, no permission)",
            Exit::Receipts => "the time was up with fewer receipts than --receipts asks for",
            Exit::Interrupted => "interrupted; what came is kept for the next try",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// Why a command could not do what it was asked: the exit code, and a text that says what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// One or more lines for people.
    pub message: String,
}

impl Failure {
    /// A failure of this kind.
    pub fn new(exit: Exit, message: impl Into<String>) -> Failure {
        Failure { exit, message: message.into() }
    }

    /// Turns an error into a failure of kind `exit` that begins with what was being done: `map_err(Failure::of(…))`.
    pub fn of<E: Display>(exit: Exit, doing: impl Display) -> impl FnOnce(E) -> Failure {
        move |error| Failure::new(exit, format!("{doing}: {error}"))
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// The table of exit codes as the long help prints it.
pub(crate) fn table() -> String {
    Exit::ALL.iter().fold(String::from("Exit codes:"), |mut text, exit| {
        write!(text, "\n  {:>3}  {}", exit.code(), exit.meaning()).expect("writing to a string cannot fail");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_documents_every_code_once() {
        let table = table();
        for exit in Exit::ALL {
            let line = format!("\n  {:>3}  {}", exit.code(), exit.meaning());
            assert_eq!(table.matches(&line).count(), 1, "{exit:?}");
        }
        assert_eq!(table.lines().count(), Exit::ALL.len() + 1);
    }

    #[test]
    fn codes_are_distinct_and_rising() {
        assert!(Exit::ALL.windows(2).all(|pair| pair[0].code() < pair[1].code()));
    }

    #[test]
    fn a_failure_says_what_was_being_done() {
        let failure = Failure::of(Exit::Files, "cannot write report.html")("disk full");
        assert_eq!((failure.exit, failure.to_string().as_str()), (Exit::Files, "cannot write report.html: disk full"));
    }
}
