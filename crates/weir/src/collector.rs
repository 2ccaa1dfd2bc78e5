//! The thread that owns the disk: symbols cross to it in batches, so that the receive path never waits for a write.
//!
//! Memory between the two is bounded. The scheme hears how much waits ([`Collector::backlog`]), and takes less before that is too much. Where
//! more comes all the same, whole batches are dropped and counted; the fountain makes up for them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError, TrySendError, channel, sync_channel,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::time::{ClockId, clock_gettime};
use weir_core::Backlog;
use weir_net::clock::{Clock, wall_ntp_secs};
use weir_object::Lack;
use weir_object::store::{Event, Origin, Progress, Store, StoreError};
use weir_units::Time;
use weir_wire::alc::Content;
use weir_wire::extension::Question;

/// The receive path's end.
#[derive(Debug)]
pub(crate) struct Collector {
    addresses: Addresses,
    filling: Batch,
    full: SyncSender<Work>,
    empty: Receiver<Batch>,
    events: Receiver<Result<Event, StoreError>>,
    answers: Receiver<Found>,
    bell: Arc<EventFd>,
    shared: Arc<Shared>,
    /// Batches that can wait for the disk's thread, and symbols that have been handed over to it.
    batches: usize,
    handed_over: u64,
    overrun_symbols: u64,
    /// The size of the latest symbol.
    symbol_size: usize,
    /// Whether a batch has gone over since the last [`Collector::tick`].
    is_busy: bool,
    thread: JoinHandle<Store>,
}

/// What the disk's thread has to do.
#[derive(Debug)]
enum Work {
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
struct Shared {
    progress: Mutex<Progress>,
    is_complete: AtomicBool,
    /// Symbols of batches that the disk's thread is done with.
    worked_off: AtomicU64,
    effort: Effort,
}

/// What the time of the disk's thread went to while it had something to do.
#[derive(Debug, Default)]
struct Effort {
    busy_nanos: AtomicU64,
    /// Of these, with the processor: hashing, decoding, copying.
    computing_nanos: AtomicU64,
}

impl Effort {
    fn note(&self, busy: Duration, computing: Duration) {
        let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        self.busy_nanos.fetch_add(nanos(busy), Ordering::Relaxed);
        self.computing_nanos.fetch_add(nanos(computing), Ordering::Relaxed);
    }

    fn bottleneck(&self) -> Bottleneck {
        let (busy, computing) = (self.busy_nanos.load(Ordering::Relaxed), self.computing_nanos.load(Ordering::Relaxed));
        if computing >= busy / 2 { Bottleneck::Processor } else { Bottleneck::Disk }
    }
}

/// Why symbols were thrown away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bottleneck {
    /// The thread that keeps them mostly waited: for the disk, or for a turn on a busy machine.
    Disk,
    /// It mostly computed.
    Processor,
}

impl Bottleneck {
    /// What to tell of so many symbols, of so many packets.
    pub(crate) fn words(self, overrun: u64, packets: u64) -> String {
        let cause = match self {
            Bottleneck::Disk => "the disk was too slow",
            Bottleneck::Processor => "this host's processor was too slow to decode and hash what came, not the disk,",
        };
        format!("{cause} for {overrun} of {packets} packets; they had to come again")
    }
}

/// Processor time of this thread.
fn thread_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// Symbols on their way to the disk, in one allocation.
#[derive(Debug, Default)]
struct Batch {
    bytes: Vec<u8>,
    runs: Vec<Run>,
}

/// Symbols of one block whose numbers follow each other.
#[derive(Debug)]
struct Run {
    /// What is said of the first.
    content: Content,
    /// Where they came from.
    origin: Origin,
    /// Bytes of each.
    size: usize,
    count: usize,
}

impl Run {
    /// Whether a symbol of `size` bytes is the next of this run.
    fn is_continued_by(&self, content: &Content, size: usize, origin: Origin) -> bool {
        let number = self.content.payload_id.symbol as usize + self.count;
        let mut next = self.content;
        next.payload_id.symbol = content.payload_id.symbol;
        size == self.size && origin == self.origin && number == content.payload_id.symbol as usize && next == *content
    }
}

impl Batch {
    fn with_room() -> Batch {
        Batch { bytes: Vec::with_capacity(BATCH_BYTES + LARGEST_SYMBOL), runs: Vec::with_capacity(64) }
    }

    /// Whether it is to go over. Runs count as what they take: a run may be of one symbol of one byte.
    fn is_full(&self) -> bool {
        self.bytes.len() + self.runs.len() * size_of::<Run>() >= BATCH_BYTES
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.runs.clear();
    }

    fn symbols(&self) -> usize {
        self.runs.iter().map(|run| run.count).sum()
    }
}

impl Collector {
    /// Starts the thread on `store`. Up to `room` bytes of symbols wait for it: a disk may stand still for a moment, and
    /// making room for a large file takes one. `sender` is the sender's address, if it is known before a packet comes.
    ///
    /// # Errors
    /// Those of the system, if it gives no thread or no file descriptor.
    pub(crate) fn start(store: Store, room: u64, sender: Option<IpAddr>) -> io::Result<Collector> {
        let batches = usize::try_from(room).unwrap_or(usize::MAX) / BATCH_BYTES + 1;
        let (full, full_end) = sync_channel(batches);
        let (empty_end, empty) = sync_channel(batches + 2);
        let (events_end, events) = channel();
        let (answers_end, answers) = channel();
        let shared = Arc::new(Shared::default());
        let bell = bell()?;
        let thread = std::thread::Builder::new().name("disk".into()).spawn({
            let (shared, bell) = (Arc::clone(&shared), Arc::clone(&bell));
            move || {
                let ends = Ends { full: full_end, empty: empty_end, events: events_end, answers: answers_end, bell };
                collect(store, &ends, &shared, wall_ntp_secs)
            }
        })?;
        Ok(Collector {
            addresses: Addresses { known: sender.into_iter().collect(), last: None },
            filling: Batch::with_room(),
            full,
            empty,
            events,
            answers,
            bell,
            shared,
            batches,
            handed_over: 0,
            overrun_symbols: 0,
            symbol_size: LARGEST_SYMBOL,
            is_busy: false,
            thread,
        })
    }

    /// Can be read once the disk's thread has found an answer, or is further than it was: it has everything, or only decodes, or everything is
    /// in its place.
    pub(crate) fn news(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// The news are looked at now.
    pub(crate) fn take_news(&self) {
        // It fails if there are none.
        let _ = self.bell.read();
    }

    /// Takes a symbol from the receive path, which came from `address`.
    pub(crate) fn push(&mut self, content: &Content, symbol: &[u8], address: Option<SocketAddr>) {
        let origin = address.map_or(Origin::default(), |address| self.addresses.origin(address.ip()));
        let Batch { bytes, runs } = &mut self.filling;
        bytes.extend_from_slice(symbol);
        self.symbol_size = symbol.len().max(1);
        match runs.last_mut() {
            Some(run) if run.is_continued_by(content, symbol.len(), origin) => run.count += 1,
            _ => runs.push(Run { content: *content, origin, size: symbol.len(), count: 1 }),
        }
        if self.filling.is_full() {
            self.flush();
            self.is_busy = true;
        }
    }

    /// Called now and then: hands over what has been pushed, unless so much comes that a batch is full every time anyway, or others wait that
    /// are full.
    pub(crate) fn tick(&mut self) {
        if !std::mem::take(&mut self.is_busy) && self.waiting() == 0 {
            self.flush();
        }
    }

    /// Symbols that wait for the disk's thread, and how many can.
    pub(crate) fn backlog(&self) -> Backlog {
        Backlog { waiting: self.waiting(), most: (self.batches * (BATCH_BYTES / self.symbol_size)) as u64 }
    }

    fn waiting(&self) -> u64 {
        self.handed_over - self.shared.worked_off.load(Ordering::Relaxed)
    }

    /// Hands over what has been pushed so far. Each handing over wakes the disk's thread.
    fn flush(&mut self) {
        if self.filling.runs.is_empty() {
            return;
        }
        let next = self.empty.try_recv().unwrap_or_else(|_| Batch::with_room());
        let symbols = self.filling.symbols() as u64;
        match self.full.try_send(Work::Keep(std::mem::replace(&mut self.filling, next))) {
            Ok(()) => self.handed_over += symbols,
            Err(TrySendError::Full(work) | TrySendError::Disconnected(work)) => {
                self.overrun_symbols += symbols;
                if let Work::Keep(mut batch) = work {
                    batch.clear();
                    self.filling = batch;
                }
            }
        }
    }

    /// Asks what is lacking once all that was pushed has been kept; [`Collector::next_answer`] tells. Whether there was room for the question:
    /// if not, it is to be asked again.
    pub(crate) fn ask(&mut self, question: Question) -> bool {
        let Backlog { waiting, most } = self.backlog();
        if waiting > most / 2 {
            return false;
        }
        self.flush();
        self.full.try_send(Work::Tell(question)).is_ok()
    }

    /// What has come of a question, if one was asked and the disk's thread has looked.
    pub(crate) fn next_answer(&self) -> Option<Found> {
        self.answers.try_recv().ok()
    }

    /// What has happened in the store since the last call, if anything.
    pub(crate) fn next_event(&self) -> Option<Result<Event, StoreError>> {
        self.events.try_recv().ok()
    }

    /// How far the store is.
    pub(crate) fn progress(&self) -> Progress {
        *self.shared.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether every file of the session is in its place, verified.
    pub(crate) fn is_complete(&self) -> bool {
        self.shared.is_complete.load(Ordering::Acquire)
    }

    /// What symbols were thrown away for.
    pub(crate) fn bottleneck(&self) -> Bottleneck {
        self.shared.effort.bottleneck()
    }

    /// Symbols that were thrown away because they could not be kept as fast as they came.
    pub(crate) fn overrun_symbols(&self) -> u64 {
        self.overrun_symbols
    }

    /// Hands over the rest and waits until everything is on the disk, to be continued by the next run if incomplete.
    pub(crate) fn finish(mut self) -> Result<(), StoreError> {
        self.flush();
        drop(self.full);
        self.thread.join().expect("the disk thread does not panic").close()
    }
}

/// The numbers of the hosts that packets came from, whatever their ports: a host has more of those than there are numbers.
#[derive(Debug, Default)]
struct Addresses {
    /// Number 1 first. The last number is that of all for which there is none left.
    known: Vec<IpAddr>,
    /// That of the last packet, which is mostly that of the next.
    last: Option<(IpAddr, Origin)>,
}

impl Addresses {
    fn origin(&mut self, address: IpAddr) -> Origin {
        if let Some((_, origin)) = self.last.filter(|(last, _)| *last == address) {
            return origin;
        }
        let found = self.known.iter().position(|known| *known == address);
        let number = found.unwrap_or_else(|| {
            if self.known.len() < usize::from(u8::MAX) - 1 {
                self.known.push(address);
                self.known.len() - 1
            } else {
                usize::from(u8::MAX) - 1
            }
        });
        let origin = Origin(u8::try_from(number + 1).expect("at most 255 numbers"));
        self.last = Some((address, origin));
        origin
    }
}

/// What the disk's thread rings, so that the receive path need not look all the time.
fn bell() -> io::Result<Arc<EventFd>> {
    Ok(Arc::new(EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?))
}

/// The disk's thread's ends of its channels.
struct Ends {
    full: Receiver<Work>,
    empty: SyncSender<Batch>,
    events: Sender<Result<Event, StoreError>>,
    answers: Sender<Found>,
    bell: Arc<EventFd>,
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
fn collect(mut store: Store, ends: &Ends, shared: &Shared, mut date: impl FnMut() -> u64) -> Store {
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
/// A batch goes over when it holds this much, or when the receive path looks up from its work.
const BATCH_BYTES: usize = 1 << 20;
const LARGEST_SYMBOL: usize = 64 << 10;
/// What was received this long ago is on disk, and in the account of progress: a receiver that is killed has to fetch the rest again.
const WRITE_INTERVAL: Duration = Duration::from_millis(100);
/// The interval when writing is quick. It grows so that writing takes at most one part in [`WRITING_PART`] of the time.
const SHORTEST_WRITE_INTERVAL: Duration = Duration::from_millis(20);
const WRITING_PART: u32 = 50;
/// Files of bundles take their names so often.
const NAME_INTERVAL: Duration = Duration::from_secs(1);
/// While little comes, it is looked this often for what threads have done: to decode a few blocks, or to write through to the disk, takes longer.
const DECODED_INTERVAL: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::{PollFd, PollFlags, poll};
    use std::collections::BTreeSet;
    use std::net::Ipv4Addr;
    use weir_object::keys::SecretKey;
    use weir_object::source::SourceSet;
    use weir_object::store::StoreOptions;
    use weir_object::{Carousel, CarouselOptions};
    use weir_wire::fec::PayloadId;

    #[test]
    fn each_address_has_a_number_as_long_as_there_are_any() {
        let mut addresses = Addresses::default();
        let address = |number: u16| IpAddr::from([10, 0, (number >> 8) as u8, number as u8]);
        let numbers: Vec<u8> = (1..=300).map(|number| addresses.origin(address(number)).0).collect();
        assert_eq!(numbers[..254], (1..=254).collect::<Vec<u8>>());
        assert!(numbers[254..].iter().all(|number| *number == 255));
        assert_eq!([3, 3, 299, 1].map(|number| addresses.origin(address(number)).0), [3, 3, 255, 1]);
    }

    #[test]
    fn a_thread_that_computed_does_not_blame_the_disk() {
        let effort = Effort::default();
        let millis = Duration::from_millis;
        effort.note(millis(100), millis(80));
        assert_eq!(effort.bottleneck(), Bottleneck::Processor);
        let words = effort.bottleneck().words(7, 100);
        assert!(words.starts_with("this host's processor") && words.contains("7 of 100 packets"), "{words}");
        effort.note(millis(300), millis(20));
        assert_eq!(effort.bottleneck(), Bottleneck::Disk);
        assert!(effort.bottleneck().words(7, 100).starts_with("the disk was too slow"));
    }

    const SENDER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    fn content(toi: u128) -> Content {
        Content { toi, encoding_id: 0, payload_id: PayloadId::default(), fdt: None, oti: None, ask: None }
    }

    fn collector(folder: &std::path::Path) -> Collector {
        Collector::start(Store::open(folder, StoreOptions::default()).expect("a folder"), 4 << 20, Some(SENDER))
            .expect("a thread")
    }

    #[test]
    fn the_receive_path_can_wait_for_an_answer_and_has_it_at_once() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut collector = collector(folder.path());
        let is_rung = |collector: &Collector, patience: u16| {
            let mut news = [PollFd::new(collector.news(), PollFlags::POLLIN)];
            poll(&mut news, patience).expect("it can be waited for") == 1
        };
        assert!(!is_rung(&collector, 0));
        assert!(collector.ask(Question { number: 1, receivers: 1 }), "there is room");
        assert!(is_rung(&collector, 10_000) && collector.next_answer().is_some());
        collector.take_news();
        assert!(!is_rung(&collector, 0));
    }

    #[test]
    fn a_host_that_sends_from_many_ports_is_one() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut collector = collector(folder.path());
        for port in 1..=300 {
            collector.push(&content(1), b"a", Some(SocketAddr::from(([10, 0, 0, 1], port))));
        }
        collector.push(&content(1), b"a", Some(SocketAddr::from(([10, 0, 0, 2], 1))));
        let origins = collector.filling.runs.iter().map(|run| run.origin.0);
        assert_eq!(origins.collect::<BTreeSet<_>>(), [2, 3].into());
    }

    #[test]
    fn the_sender_has_a_number_of_its_own_whoever_comes_before_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut collector = collector(folder.path());
        for host in 0..=255 {
            collector.push(&content(1), b"a", Some(SocketAddr::from(([10, 0, 0, host], 1))));
        }
        collector.push(&content(1), b"a", Some(SocketAddr::new(SENDER, 5004)));
        let origins: Vec<Origin> = collector.filling.runs.iter().map(|run| run.origin).collect();
        assert_eq!((origins.last(), origins[..256].contains(&Origin(1))), (Some(&Origin(1)), false));
    }

    #[test]
    fn a_batch_of_many_small_symbols_is_bounded_as_one_of_large_ones() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut collector = collector(folder.path());
        for toi in 1..=200_000 {
            collector.push(&content(toi), b"a", None);
            assert!(collector.filling.runs.len() * size_of::<Run>() <= BATCH_BYTES);
        }
    }

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
