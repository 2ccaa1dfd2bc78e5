//! The thread that owns the disk: keeps what comes, writes now and then, and says what is lacking.
//!
//! Not here: what crosses to it ([`super::batch`]), and who waits for it ([`super::Collector`]).

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::eventfd::{EfdFlags, EventFd};
use weir_net::clock::Clock;
use weir_object::Lack;
use weir_object::store::{Event, Progress, Store, StoreError};
use weir_units::Time;
use weir_wire::extension::Question;

use super::batch::Batch;
use super::effort::{Effort, thread_time};

/// What the disk's thread has to do.
#[derive(Debug)]
pub(super) enum Work {
    /// To keep these symbols.
    Keep(Batch),
    /// To say what is lacking, which the sender asks.
    Tell(Question),
}

/// What a question has found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) question: Question,
    /// What is lacking; `None` as long as the table is not there.
    pub(crate) lacking: Option<Vec<Lack>>,
    /// How long it took to find.
    pub(crate) took: Duration,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) progress: Mutex<Progress>,
    pub(super) is_complete: AtomicBool,
    /// Symbols of batches that the disk's thread is done with.
    pub(super) worked_off: AtomicU64,
    pub(super) effort: Effort,
}

/// What the disk's thread rings, so that the receive path need not look all the time.
pub(super) fn bell() -> io::Result<Arc<EventFd>> {
    Ok(Arc::new(EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?))
}

/// The disk's thread's ends of its channels.
pub(super) struct Ends {
    pub(super) full: Receiver<Work>,
    pub(super) empty: SyncSender<Batch>,
    pub(super) events: Sender<Result<Event, StoreError>>,
    pub(super) answers: Sender<Found>,
    pub(super) bell: Arc<EventFd>,
}

impl Ends {
    /// The receive path is to look at what is new.
    fn ring(&self) {
        // It fails if the path has not looked since 2^64 - 2 times.
        let _ = self.bell.write(1);
    }
}

/// What the receive path acts on at once.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Stage {
    only_decodes: bool,
    has_everything: bool,
    is_complete: bool,
}

/// Runs until the receive path lets go of its end, or of the events. `date` is asked each time: the clock may have been wrong when the
/// receiver started, and be set since.
pub(super) fn collect(mut store: Store, ends: &Ends, shared: &Shared, mut date: impl FnMut() -> u64) -> Store {
    let clock = Clock::new();
    let mut schedule = Schedule::default();
    let [mut told, mut stage] = [Stage::default(); 2];
    loop {
        let next = next_work(&ends.full, &mut store);
        let (begun, computed) = (clock.now(), thread_time());
        let outcome = match next {
            Ok(Ok(Work::Tell(question))) => tell(&mut store, question, &clock, ends),
            Ok(Ok(Work::Keep(batch))) => {
                store.set_time(date());
                let symbols = batch.symbols() as u64;
                let added = add_all(&mut store, batch, &ends.empty);
                shared.worked_off.fetch_add(symbols, Ordering::Relaxed);
                added
            }
            Ok(Err(RecvTimeoutError::Timeout)) => store.take_decoded(),
            Ok(Err(RecvTimeoutError::Disconnected)) => break,
            Err(error) => Err(error),
        };
        let has_written = outcome.and_then(|()| schedule.write(&clock, &mut store));
        shared.effort.note(clock.now().since(begun), thread_time().saturating_sub(computed));
        // The receiving side decides whether to go on without the disk; if it has gone, so do we.
        let has_written = match has_written {
            Ok(has_written) => has_written,
            Err(error) => {
                if ends.events.send(Err(error)).is_err() {
                    break;
                }
                false
            }
        };
        while let Some(event) = store.poll_event() {
            if ends.events.send(Ok(event)).is_err() {
                return store;
            }
        }
        let is_complete = store.is_complete();
        if has_written || is_complete {
            let progress = store.progress();
            *shared.progress.lock().unwrap_or_else(PoisonError::into_inner) = progress;
            let Progress { only_decodes, has_everything, .. } = progress;
            stage = Stage { only_decodes, has_everything, ..stage };
        }
        stage.is_complete = is_complete;
        shared.is_complete.store(is_complete, Ordering::Release);
        if std::mem::replace(&mut told, stage) != stage {
            ends.ring();
        }
    }
    store
}

/// When what has come goes to the disk.
#[derive(Debug, Default)]
struct Schedule {
    written: Time,
    interval: Duration,
    named: Time,
}

impl Schedule {
    /// Writes what has come, if it is time to. Whether it was.
    fn write(&mut self, clock: &Clock, store: &mut Store) -> Result<bool, StoreError> {
        let now = clock.now();
        if now.since(self.written) < self.interval {
            return Ok(false);
        }
        self.written = now;
        store.flush()?;
        self.interval = (clock.now().since(now) * WRITING_PART).clamp(SHORTEST_WRITE_INTERVAL, WRITE_INTERVAL);
        if now.since(self.named) >= NAME_INTERVAL {
            self.named = now;
            store.commit()?;
        }
        Ok(true)
    }
}

/// Says what is lacking.
fn tell(store: &mut Store, question: Question, clock: &Clock, ends: &Ends) -> Result<(), StoreError> {
    store.take_decoded()?;
    let begun = clock.now();
    let lacking = store.lacking(MOST_LACKING)?;
    // Where nobody listens any more, the events say so.
    let _ = ends.answers.send(Found { question, lacking, took: clock.now().since(begun) });
    ends.ring();
    Ok(())
}

/// What is to be done next. While there is nothing, files of bundles are written that are there already.
fn next_work(full: &Receiver<Work>, store: &mut Store) -> Result<Result<Work, RecvTimeoutError>, StoreError> {
    match full.try_recv() {
        Ok(work) => Ok(Ok(work)),
        Err(TryRecvError::Disconnected) => Ok(Err(RecvTimeoutError::Disconnected)),
        Err(TryRecvError::Empty) if store.unpack_some()? => Ok(Err(RecvTimeoutError::Timeout)),
        Err(TryRecvError::Empty) => {
            let is_soon = store.is_decoding() || store.is_syncing();
            let patience = if is_soon { DECODED_INTERVAL } else { WRITE_INTERVAL };
            Ok(full.recv_timeout(patience))
        }
    }
}

fn add_all(store: &mut Store, mut batch: Batch, empty: &SyncSender<Batch>) -> Result<(), StoreError> {
    let mut at = 0;
    let mut outcome = Ok(());
    for run in &batch.runs {
        let length = run.size * run.count;
        // A symbol without bytes says nothing.
        if outcome.is_ok() && length > 0 {
            outcome = store.add_run(&run.content, &batch.bytes[at..at + length], run.size, run.origin);
        }
        at += length;
    }
    batch.clear();
    // A full return channel only means that there are spare batches enough.
    let _ = empty.try_send(batch);
    outcome
}

/// Blocks that are told of at a time: with some runs each, these are as many messages as a sender's buffer takes in a second or two. The rest
/// is asked for again.
const MOST_LACKING: usize = 4096;
/// What was received this long ago is on disk, and in the account of progress: a receiver that is killed has to fetch the rest again.
const WRITE_INTERVAL: Duration = Duration::from_millis(100);
/// The interval when writing is quick. It grows so that writing takes at most one part in [`WRITING_PART`] of the time.
const SHORTEST_WRITE_INTERVAL: Duration = Duration::from_millis(5);
const WRITING_PART: u32 = 10;
/// Files of bundles take their names so often.
const NAME_INTERVAL: Duration = Duration::from_secs(1);
/// While little comes, it is looked this often for what threads have done: to decode a few blocks, or to write through to the disk, takes longer.
const DECODED_INTERVAL: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::super::batch::Run;
    use super::*;
    use std::sync::mpsc::{channel, sync_channel};
    use weir_object::keys::SecretKey;
    use weir_object::source::SourceSet;
    use weir_object::store::{Origin, StoreOptions};
    use weir_object::{Carousel, CarouselOptions};

    #[test]
    fn a_clock_that_is_set_while_a_receiver_runs_is_followed() {
        let (key, now) = (SecretKey::from_seed([1; 32]), 4_000_000_000);
        let [sent, out] = [(); 2].map(|()| tempfile::tempdir().expect("a temporary folder"));
        let file = sent.path().join("a");
        std::fs::write(&file, [7; 1_000]).expect("written");
        let set = SourceSet::collect(&[file], false).expect("readable");
        let options = CarouselOptions { key: Some(key.clone()), expires: now + 3_600, ..Default::default() };
        let mut carousel = Carousel::new(set, &options).expect("valid options");
        let store = StoreOptions { key: Some(key.public()), ..Default::default() };
        let store = Store::open(out.path(), store).expect("a folder");

        let ((full, full_end), (empty_end, _empty)) = (sync_channel(200), sync_channel(200));
        let (events_end, events) = channel();
        for _ in 0..200 {
            let (content, symbol) = carousel.next(0).expect("a packet");
            let run = Run { content, origin: Origin(1), size: symbol.len(), count: 1 };
            full.send(Work::Keep(Batch { bytes: symbol.to_vec(), runs: vec![run] })).expect("there is room");
        }
        drop(full);
        // Ten years ahead at first.
        let mut ahead = [315_360_000; 3].into_iter();
        let date = || u64::from(now) + ahead.next().unwrap_or(0);
        let shared = Shared::default();
        let ends = Ends {
            full: full_end,
            empty: empty_end,
            events: events_end,
            answers: channel().0,
            bell: bell().expect("an event counter"),
        };
        let store = collect(store, &ends, &shared, date);
        drop(ends);
        let effort = [&shared.effort.busy_nanos, &shared.effort.computing_nanos];
        assert!(effort.iter().all(|nanos| nanos.load(Ordering::Relaxed) > 0), "{effort:?}");
        assert!(store.is_complete() && store.progress().old_manifests > 0, "{:?}", store.progress());
        let told: Vec<Event> = events.iter().map(|event| event.expect("the disk works")).collect();
        assert!(matches!(told[..], [Event::ExpiredTable { .. }, Event::Done { .. }]), "{told:?}");
        assert_eq!(std::fs::read(out.path().join("a")).expect("received"), [7; 1_000]);
    }
}
