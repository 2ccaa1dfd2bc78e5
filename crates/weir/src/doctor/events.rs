//! What `weir doctor --json` prints.

use serde::{Deserialize, Serialize};

/// An event of `weir doctor`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum DoctorEvent {
    /// Something was checked.
    Check(Check),
    /// The last event.
    End(DoctorEnd),
}

/// Something that was checked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Check {
    /// What.
    pub name: String,
    /// How it is.
    pub outcome: Outcome,
    /// What was found.
    pub found: String,
    /// What to do about it; null if nothing.
    pub advice: Option<String>,
}

/// How something is that was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// As it should be.
    Ok,
    /// It could not be checked, or does not matter by itself.
    Note,
    /// Some sessions will not work, or badly.
    Warning,
    /// Nothing will work.
    #[default]
    Failed,
}

/// All checks are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DoctorEnd {
    /// Checks that are as they should be.
    pub ok: u64,
    /// Checks that could not be made, or do not matter by themselves.
    pub notes: u64,
    /// Checks with a warning.
    pub warnings: u64,
    /// Checks that failed.
    pub failed: u64,
    /// The exit code.
    pub exit_code: u8,
}

impl Check {
    pub(super) fn new(name: &str, outcome: Outcome, found: impl Into<String>) -> Check {
        Check { name: name.to_owned(), outcome, found: found.into(), advice: None }
    }

    pub(super) fn ok(name: &str, found: impl Into<String>) -> Check {
        Check::new(name, Outcome::Ok, found)
    }

    pub(super) fn advise(self, advice: impl Into<String>) -> Check {
        Check { advice: Some(advice.into()), ..self }
    }
}

/// One of each.
#[cfg(test)]
pub(crate) fn samples() -> Vec<DoctorEvent> {
    vec![DoctorEvent::Check(Check::default()), DoctorEvent::End(DoctorEnd::default())]
}
