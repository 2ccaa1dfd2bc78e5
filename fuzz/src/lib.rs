//! Runs fuzz targets: any bytes go in, nothing panics, and no input costs more than [`MEMORY_LIMIT`] and [`TIME_LIMIT`].
//!
//! A target is a function of bytes and a few valid inputs, its seeds. Under `cargo test` it gets the seeds and a fixed number
//! of inputs that are made of them, always the same ones. With cargo-bolero it gets what libFuzzer finds by coverage, from
//! the same seeds on (`fuzz/README.md`). Not here: the targets, which are `fuzz/tests/targets`.

mod mutation;

use std::alloc::System;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cap::Cap;
use nix::time::{ClockId, clock_gettime};
use weir_units::Random;

#[doc(hidden)]
pub use bolero;

/// Counts the bytes of all allocations. An input that takes much more than it may ends the process instead of the machine.
#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, 8 * MEMORY_LIMIT);

/// Most bytes of memory that an input may take at a time.
pub const MEMORY_LIMIT: usize = 300_000_000;

/// Most time of a core that an input may take: 50 ms in a release build. In the others the same code takes longer.
pub const TIME_LIMIT: Duration = Duration::from_millis(50 * SLOWER);

/// Whether libFuzzer finds the inputs.
pub const IS_GUIDED: bool = cfg!(fuzzing);

/// How many times 50 ms an input may take in this build. With libFuzzer's counters and debug assertions the slowest inputs take two
/// to five times as long as in a release build, by how busy the machine is. In the profile of tests, little of this workspace and nothing of what it depends on being
/// optimised, it is about three times; the rest is for machines that are busy with other tests.
const SLOWER: u64 = match (IS_GUIDED, cfg!(debug_assertions)) {
    (true, _) => 5,
    (false, true) => 10,
    (false, false) => 1,
};

/// Runs a target within the limits: a number of inputs for `cargo test`, the seeds, and the target.
#[macro_export]
macro_rules! check {
    ($inputs:expr, $seeds:expr, $target:expr) => {
        if $crate::IS_GUIDED {
            // Asked by cargo-bolero which targets there are, it ends the function here.
            let check = $crate::bolero::check!();
            $crate::plant(&$seeds);
            check.for_each(|input: &[u8]| $crate::within_limits(input, $target));
        } else {
            $crate::replay(module_path!(), $inputs, &$seeds, $target);
        }
    };
}

/// Writes the seeds to the folder that [`CORPUS`] names, from which libFuzzer begins.
#[doc(hidden)]
pub fn plant(seeds: &[Vec<u8>]) {
    let Some(folder) = std::env::var_os(CORPUS) else { return };
    for (number, seed) in seeds.iter().enumerate() {
        let path = Path::new(&folder).join(format!("seed-{number}"));
        std::fs::write(&path, seed).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    }
}

/// Runs a target with its seeds, with what libFuzzer found to fail and is still there, and with inputs that are made of the seeds.
#[doc(hidden)]
pub fn replay(name: &str, inputs: u32, seeds: &[Vec<u8>], target: fn(&[u8])) {
    // What others allocate at the same time would count for this one.
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    LONGEST.store(0, Ordering::Relaxed);
    let mut random = Random::new(1, name);
    let made = (0..inputs).map(|_| mutation::made_of(seeds, &mut random));
    for input in seeds.iter().cloned().chain(crashes(name)).chain(made) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| within_limits(&input, target))) {
            eprintln!("{name} fails with b\"{}\"", input.escape_ascii());
            resume_unwind(panic);
        }
    }
    let longest = Duration::from_micros(LONGEST.load(Ordering::Relaxed));
    let most = MEMORY.max_allocated();
    eprintln!(
        "{name}: {inputs} inputs and {} seeds; the slowest {longest:?} of a core, memory {most} bytes",
        seeds.len()
    );
}

/// What is in the folder to which `fuzz/run` has libFuzzer write what fails.
fn crashes(name: &str) -> impl Iterator<Item = Vec<u8>> {
    let target = name.rsplit("::").next().unwrap_or(name);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crashes").join(target);
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| std::fs::read(file.path()).ok())
}

/// Runs a target with one input.
///
/// # Panics
/// If the target does, or the input takes more memory or time than it may. The time is that of this thread on a core; as others
/// can slow that down, too, only what takes too long three times is too slow.
pub fn within_limits(input: &[u8], target: fn(&[u8])) {
    let mut took = Duration::MAX;
    for _ in 0..TRIES {
        let (before, highest, start) = (MEMORY.allocated(), MEMORY.max_allocated(), cpu_time());
        UNCOUNTED.set(Duration::ZERO);
        target(input);
        took = took.min(cpu_time() - start - UNCOUNTED.get());
        // Where the highest mark has not moved, an earlier input took as much.
        let peak = MEMORY.max_allocated();
        let peak = if peak > highest { peak.saturating_sub(before) } else { 0 };
        assert!(peak <= MEMORY_LIMIT, "an input of {} bytes takes {peak} bytes of memory", input.len());
        if took <= TIME_LIMIT {
            return note(took);
        }
    }
    panic!("an input of {} bytes takes {took:?} of a core's time; the limit is {TIME_LIMIT:?}", input.len());
}

/// Does what belongs to a test and not to what is tested: its time does not count.
pub fn uncounted<T>(work: impl FnOnce() -> T) -> T {
    let start = cpu_time();
    let done = work();
    UNCOUNTED.set(UNCOUNTED.get() + (cpu_time() - start));
    done
}

/// Notes how long an input took. Where libFuzzer finds the inputs, one that took a quarter longer than any before it is told of.
fn note(took: Duration) {
    let micros = took.as_micros() as u64;
    let before = LONGEST.fetch_max(micros, Ordering::Relaxed);
    if IS_GUIDED && micros > before + before / 4 {
        eprintln!("an input takes {took:?} of a core's time; {} bytes of memory is the most", MEMORY.max_allocated());
    }
}

/// The time that this thread has had a core.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("Linux has a clock for each thread").into()
}

/// The environment variable with the folder for seeds.
const CORPUS: &str = "WEIR_FUZZ_CORPUS";
const TRIES: u32 = 3;
thread_local! {
    static UNCOUNTED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}
static ALONE: Mutex<()> = Mutex::new(());
/// Microseconds of the slowest input.
static LONGEST: AtomicU64 = AtomicU64::new(0);

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether an input ends in a panic that says so.
    fn refused(target: fn(&[u8]), why: &str) -> bool {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let panic = catch_unwind(|| within_limits(b"input", target)).expect_err("it is too much");
        panic.downcast_ref::<String>().is_some_and(|message| message.contains(why))
    }

    #[test]
    fn an_input_that_takes_too_much_memory_is_a_fault() {
        // A little more than the limit, as other tests may give memory back at this moment.
        let takes = |_: &[u8]| drop(std::hint::black_box(Vec::<u8>::with_capacity(MEMORY_LIMIT + MEMORY_LIMIT / 10)));
        assert!(refused(takes, "bytes of memory"));
    }

    #[test]
    fn an_input_that_takes_too_long_is_a_fault() {
        let spins = |_: &[u8]| {
            let start = cpu_time();
            while cpu_time() - start <= TIME_LIMIT {}
        };
        assert!(refused(spins, "of a core's time"));
    }

    #[test]
    fn inputs_are_the_same_each_time() {
        let seeds = [b"a=1 2 3".to_vec(), vec![0; 40]];
        let made = |name| {
            let mut random = Random::new(1, name);
            (0..200).map(|_| mutation::made_of(&seeds, &mut random)).collect::<Vec<_>>()
        };
        assert!(made("x") == made("x") && made("x") != made("y"));
    }
}
