//! Checks as a table.

use super::events::{Check, DoctorEnd, Outcome};
use crate::progress::clean;

pub(super) fn check(check: &Check) -> String {
    let outcome = match check.outcome {
        Outcome::Ok => "ok",
        Outcome::Note => "note",
        Outcome::Warning => "warning",
        Outcome::Failed => "FAILED",
    };
    let mut text = format!("{outcome:<8} {:<12} {}\n", check.name, clean(&check.found));
    if let Some(advice) = &check.advice {
        text += &format!("{:<8} {:<12} → {}\n", "", "", clean(advice));
    }
    text
}

pub(super) fn end(end: &DoctorEnd) -> String {
    let verdict = match (end.failed, end.warnings) {
        (0, 0) => "nothing stands in the way that can be seen from here".to_owned(),
        (0, warnings) => format!("{warnings} to look at"),
        (failed, _) => format!("{failed} failed: sessions will not work as it is"),
    };
    format!("{verdict}\n")
}
