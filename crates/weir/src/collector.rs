//! Takes what comes to the thread that owns the disk, in batches, so that the receive path never waits for a write.
//!
//! Memory between the two is bounded. The scheme hears how much waits ([`Collector::backlog`]), and takes less before that is too much. Where
//! more comes all the same, whole batches are dropped and counted; the fountain makes up for them.
//!
//! Not here: what that thread does (`disk.rs`).

mod batch;
mod disk;
mod effort;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::eventfd::EventFd;
use weir_core::Backlog;
use weir_net::clock::wall_ntp_secs;
use weir_object::store::{Event, Origin, Progress, Store, StoreError};
use weir_units::Time;
use weir_wire::alc::Content;
use weir_wire::extension::Question;

use batch::{BATCH_BYTES, Batch, LARGEST_SYMBOL, Run};
use disk::{Ends, Found, Shared, Work};
use effort::Bottleneck;

/// The receive path's end.
#[derive(Debug)]
pub(crate) struct Collector {
    addresses: Addresses,
    filling: Batch,
    /// When its first symbol came.
    begun: Time,
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
        let bell = disk::bell()?;
        let thread = std::thread::Builder::new().name("disk".into()).spawn({
            let (shared, bell) = (Arc::clone(&shared), Arc::clone(&bell));
            move || {
                let ends = Ends { full: full_end, empty: empty_end, events: events_end, answers: answers_end, bell };
                disk::collect(store, &ends, &shared, wall_ntp_secs)
            }
        })?;
        Ok(Collector {
            addresses: Addresses { known: sender.into_iter().collect(), last: None },
            filling: Batch::with_room(),
            begun: Time::ZERO,
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

    /// Takes a symbol from the receive path, which came from `address` at `now`.
    pub(crate) fn push(&mut self, now: Time, content: &Content, symbol: &[u8], address: Option<SocketAddr>) {
        let origin = address.map_or(Origin::default(), |address| self.addresses.origin(address.ip()));
        if self.filling.runs.is_empty() {
            self.begun = now;
        }
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
        } else if now.since(self.begun) >= LONGEST_FILLING && self.waiting() == 0 {
            self.flush();
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

/// A batch whose first symbol has waited this long goes over with the next one, if the disk's thread has nothing to do: what it does not have, a
/// receiver that is killed has to fetch again.
const LONGEST_FILLING: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::{PollFd, PollFlags, poll};
    use std::collections::BTreeSet;
    use std::net::Ipv4Addr;
    use weir_object::store::StoreOptions;
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
    fn symbols_that_wait_for_others_go_over_after_a_while() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut collector = collector(folder.path());
        let mut push = |millis| {
            collector.push(Time::from_millis(millis), &content(1), b"a", None);
            collector.handed_over
        };
        assert_eq!([1_000, 1_004, 1_006].map(&mut push), [0, 0, 3]);
        assert_eq!(push(1_010), 3, "the next batch begins with this one");
    }

    #[test]
    fn a_host_that_sends_from_many_ports_is_one() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut collector = collector(folder.path());
        for port in 1..=300 {
            collector.push(Time::ZERO, &content(1), b"a", Some(SocketAddr::from(([10, 0, 0, 1], port))));
        }
        collector.push(Time::ZERO, &content(1), b"a", Some(SocketAddr::from(([10, 0, 0, 2], 1))));
        let origins = collector.filling.runs.iter().map(|run| run.origin.0);
        assert_eq!(origins.collect::<BTreeSet<_>>(), [2, 3].into());
    }

    #[test]
    fn the_sender_has_a_number_of_its_own_whoever_comes_before_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut collector = collector(folder.path());
        for host in 0..=255 {
            collector.push(Time::ZERO, &content(1), b"a", Some(SocketAddr::from(([10, 0, 0, host], 1))));
        }
        collector.push(Time::ZERO, &content(1), b"a", Some(SocketAddr::new(SENDER, 5004)));
        let origins: Vec<Origin> = collector.filling.runs.iter().map(|run| run.origin).collect();
        assert_eq!((origins.last(), origins[..256].contains(&Origin(1))), (Some(&Origin(1)), false));
    }

    #[test]
    fn a_batch_of_many_small_symbols_is_bounded_as_one_of_large_ones() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut collector = collector(folder.path());
        for toi in 1..=200_000 {
            collector.push(Time::ZERO, &content(toi), b"a", None);
            assert!(collector.filling.runs.len() * size_of::<Run>() <= BATCH_BYTES);
        }
    }
}
