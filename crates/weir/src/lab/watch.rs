//! How far the runs of a scenario are: a bar on a terminal, now and then a line elsewhere.

use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use weir_lab::sweep::Progress;

use crate::progress::clock;

/// Shows progress, from any thread, on standard error.
pub(super) struct Watch {
    label: String,
    /// Hidden where there is no terminal; it still counts the time.
    bar: ProgressBar,
    /// When the next plain line is due; `None` if none ever is.
    line_due: Option<Mutex<Duration>>,
}

impl Watch {
    /// Starts to watch what people know as `label`.
    pub(super) fn new(label: String, quiet: bool) -> Watch {
        let terminal = io::stderr().is_terminal();
        let bar = if terminal && !quiet { ProgressBar::new(0) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{wide_bar:.cyan/dim} {percent:>3} %\n{msg}");
        bar.set_style(style.expect("the template is valid").progress_chars("━╸─"));
        let line_due = (!terminal && !quiet).then(|| Mutex::new(LINE_INTERVAL));
        Watch { label, bar, line_due }
    }

    /// A run is done.
    pub(super) fn show(&self, progress: Progress) {
        self.bar.set_length(progress.total as u64);
        self.bar.set_position(progress.done as u64);
        let elapsed = self.bar.elapsed();
        let text = in_words(&self.label, progress, elapsed);
        if let Some(due) = &self.line_due {
            let mut due = due.lock().expect("nothing panics while a line is due");
            if elapsed >= *due {
                *due = elapsed + LINE_INTERVAL;
                eprintln!("{text}");
            }
        }
        self.bar.set_message(text);
    }

    /// The scenario is done or stopped.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn in_words(label: &str, progress: Progress, elapsed: Duration) -> String {
    let Progress { done, from_cache, total } = progress;
    let mut text = format!("{label}: {done} of {total} runs");
    if from_cache > 0 {
        text += &format!(", {from_cache} known from before");
    }
    match progress.time_to_go(elapsed) {
        Some(left) if done < total => text + &format!(", {} to go", clock(left.as_secs_f64())),
        _ => text,
    }
}

const LINE_INTERVAL: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_to_go_is_told_once_it_can_be_known() {
        let words = |done, from_cache, total| {
            in_words("avmrc/fig02", Progress { done, from_cache, total }, Duration::from_secs(60))
        };
        assert_eq!(words(10, 0, 20), "avmrc/fig02: 10 of 20 runs, 1:00 to go");
        assert_eq!(words(10, 10, 20), "avmrc/fig02: 10 of 20 runs, 10 known from before");
        assert_eq!(words(20, 5, 20), "avmrc/fig02: 20 of 20 runs, 5 known from before");
    }
}
