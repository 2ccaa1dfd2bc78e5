//! Decoding on threads of its own, so that symbols go to disk meanwhile; and checking what has to be read back for that.
//!
//! A block that has enough symbols waits its turn. What is decoded at a time is bounded by the number of threads and by memory, as is
//! what waits to be taken back; what waits to be decoded is in the file and takes none. A few of the symbols of the block that come meanwhile
//! are kept, in case it needs one more. Without threads a block is decoded or checked at once.
//!
//! Not here: what becomes of a block (`receive.rs`, `blocks.rs`).

use std::collections::VecDeque;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::data::Reader;
use super::digest::{self, Content, Expected, Values};
use super::forged::Symbol;
use super::incoming::{Job, Part};
use super::missing;
use super::{FileState, Store, StoreError};
use crate::pieces::LEAF;

/// A block to be decoded, or checked: it has as many symbols as it needs. Or one to be filled, which needs none.
#[derive(Debug)]
pub(super) struct Task {
    job: Job,
    file: u32,
    index: u32,
    part: Part,
    /// Which set the file is of.
    set: u64,
    /// Where in the file its slots are.
    start: u64,
    /// The symbols to decode.
    symbols: Option<Symbols>,
    data: Reader,
    /// The bytes of the file in it, what they must be, and what of that is known.
    length: u64,
    expected: Option<Expected>,
    values: Option<Box<Values>>,
}

/// The symbol in each slot, and those beyond.
#[derive(Debug)]
struct Symbols {
    slots: Vec<u32>,
    extra: Vec<Symbol>,
}

/// What came of a task.
#[derive(Debug)]
pub(super) struct Decoded {
    file: u32,
    index: u32,
    part: Part,
    set: u64,
    /// How many symbols beyond those in its slots it was tried with.
    extras: usize,
    values: Option<Box<Values>>,
    /// Bytes of the block.
    bytes: u64,
    outcome: io::Result<Outcome>,
}

#[derive(Debug)]
enum Outcome {
    /// The symbols were not enough.
    TooFew,
    /// The source symbols, and whether they are what the manifest says.
    Decoded(Vec<u8>, bool),
    /// Whether those in the file are.
    Checked(bool),
}

impl Task {
    fn bytes(&self) -> u64 {
        self.symbols.as_ref().map_or(0, |symbols| symbols.slots.len() * self.part.layout.symbol_size()) as u64
    }

    fn run(self) -> Decoded {
        // Whoever waits for it must not wait for ever. A panic has been reported by the panic hook.
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| self.outcome()));
        let outcome =
            outcome.unwrap_or_else(|_| Err(io::Error::other("decoding failed, which is a fault of this program")));
        let extras = self.symbols.as_ref().map_or(0, |symbols| symbols.extra.len());
        let bytes = self.bytes();
        let Task { file, index, part, set, values, .. } = self;
        Decoded { file, index, part, set, extras, values, bytes, outcome }
    }

    fn outcome(&self) -> io::Result<Outcome> {
        match &self.symbols {
            Some(symbols) => self.decode(symbols),
            None if self.job == Job::Fill => {
                self.data.fill(self.start..self.start + self.length).map(|()| Outcome::Checked(true))
            }
            None => self.is_right(&mut Content::File(self.data.file(), &mut Vec::new())).map(Outcome::Checked),
        }
    }

    /// Whether its source symbols, which are there, are what the manifest says.
    fn is_right(&self, content: &mut Content<'_>) -> io::Result<bool> {
        let Some(expected) = &self.expected else { return Ok(true) };
        digest::is_block(expected, self.start..self.start + self.length, self.values.as_deref(), content)
    }

    fn decode(&self, Symbols { slots, extra }: &Symbols) -> io::Result<Outcome> {
        let size = self.part.layout.symbol_size();
        let mut bytes = vec![0; slots.len() * size];
        self.data.read(&mut bytes, self.start)?;
        let in_slots = slots.iter().copied().zip(bytes.chunks_exact(size));
        let extra = extra.iter().map(|(symbol, bytes)| (*symbol, &bytes[..]));
        let Some(codec) = self.part.layout.codec() else { return Ok(Outcome::TooFew) };
        let symbols = in_slots.clone().chain(extra);
        let Some(mut decoded) = missing::decode(&codec, slots.len() as u32, symbols) else {
            return Ok(Outcome::TooFew);
        };
        if self.part.layout.in_order() {
            // What is to be hashed is what lies in the file; that forged symbols contradict each other must show.
            let pairs = decoded.chunks_exact_mut(size).zip(in_slots).enumerate();
            for (_, (symbol, (_, in_slot))) in pairs.filter(|(slot, (_, (number, _)))| *slot == *number as usize) {
                symbol.copy_from_slice(in_slot);
            }
        }
        let is_right = self.is_right(&mut Content::Memory(self.start, &decoded))?;
        Ok(Outcome::Decoded(decoded, is_right))
    }
}

/// The blocks that wait to be decoded or checked, and who does that.
#[derive(Debug)]
pub(super) struct Decoders {
    /// Threads to start when there is something to do.
    wanted: usize,
    threads: Vec<JoinHandle<()>>,
    tasks: Option<Sender<Task>>,
    results: Receiver<Decoded>,
    results_end: Sender<Decoded>,
    waiting: VecDeque<(u32, u32, Part)>,
    /// Tasks that threads have, and the bytes of their blocks.
    out: usize,
    out_bytes: u64,
    /// Most of these, though a single one may have more.
    most_bytes: u64,
    room: Arc<Room>,
    /// Counts the sets: what comes of an earlier one is of no use.
    set: u64,
}

impl Decoders {
    /// So many threads, none of which is started yet, where `memory_limit` bytes are for all of the store.
    pub(super) fn new(threads: usize, memory_limit: u64) -> Decoders {
        let (results_end, results) = channel();
        Decoders {
            wanted: threads,
            threads: Vec::new(),
            tasks: None,
            results,
            results_end,
            waiting: VecDeque::new(),
            out: 0,
            out_bytes: 0,
            most_bytes: memory_limit / RESULTS_SHARE,
            room: Arc::new(Room { limit: memory_limit / RUNNING_SHARE, used: Mutex::new(0), is_less: Condvar::new() }),
            set: 0,
        }
    }

    /// Nothing of what waits or is being decoded counts any more.
    pub(super) fn begin_set(&mut self) {
        self.set += 1;
        self.waiting.clear();
    }

    /// The next result that is there.
    fn poll(&mut self) -> Option<Decoded> {
        if self.out == 0 {
            return None;
        }
        let result = self.results.try_recv().ok()?;
        self.note_back(&result);
        Some(result)
    }

    /// The next result, waited for, while there is to be one.
    fn wait(&mut self) -> Option<Decoded> {
        if self.out == 0 {
            return None;
        }
        let result = self.results.recv().ok()?;
        self.note_back(&result);
        Some(result)
    }

    fn note_back(&mut self, result: &Decoded) {
        self.out -= 1;
        self.out_bytes -= result.bytes;
    }

    /// The next block to begin with, if threads are to have one more: they have more than they work at, as nobody tells them at once that
    /// they have done something.
    fn next(&mut self) -> Option<(u32, u32, Part)> {
        let bytes = self
            .waiting
            .front()
            .map_or(0, |(_, _, part)| u64::from(part.layout.largest_block()) * part.layout.symbol_size() as u64);
        let is_full = self.out >= self.wanted * TASKS_PER_THREAD || self.out_bytes + bytes > self.most_bytes;
        if self.out > 0 && is_full { None } else { self.waiting.pop_front() }
    }

    /// Has a thread do a task, or does it, where the system gives no thread.
    fn begin(&mut self, task: Task) -> Option<Decoded> {
        self.start_threads();
        let Some(tasks) = &self.tasks else { return Some(task.run()) };
        self.out += 1;
        self.out_bytes += task.bytes();
        tasks.send(task).expect("the threads take tasks as long as this lives");
        None
    }

    fn start_threads(&mut self) {
        if self.tasks.is_some() || self.wanted == 0 {
            return;
        }
        let (tasks, tasks_end) = channel();
        let tasks_end = Arc::new(Mutex::new(tasks_end));
        for _ in 0..self.wanted {
            let (tasks, results, room) = (Arc::clone(&tasks_end), self.results_end.clone(), Arc::clone(&self.room));
            let thread = std::thread::Builder::new().name("decoder".into());
            let thread = thread.spawn(move || work(&tasks, &results, &room));
            self.threads.extend(thread);
        }
        self.wanted = self.threads.len();
        self.tasks = (self.wanted > 0).then_some(tasks);
    }
}

impl Drop for Decoders {
    fn drop(&mut self) {
        self.tasks = None;
        // A panic has been reported by the panic hook.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn work(tasks: &Mutex<Receiver<Task>>, results: &Sender<Decoded>, room: &Room) {
    loop {
        let task = tasks.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(task) = task else { return };
        let memory = task.bytes() * DECODING_MEMORY;
        room.take(memory);
        let decoded = task.run();
        room.give(memory);
        if results.send(decoded).is_err() {
            return;
        }
    }
}

/// Memory for what is being decoded.
#[derive(Debug)]
struct Room {
    limit: u64,
    used: Mutex<u64>,
    is_less: Condvar,
}

impl Room {
    /// Takes so much of it, waiting for others to be done. Whoever is alone may take more than there is.
    fn take(&self, bytes: u64) {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let is_too_much = |used: &mut u64| *used > 0 && *used + bytes > self.limit;
        *self.is_less.wait_while(used, is_too_much).unwrap_or_else(PoisonError::into_inner) += bytes;
    }

    fn give(&self, bytes: u64) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) -= bytes;
        self.is_less.notify_all();
    }
}

impl Store {
    /// Has a block decoded that has enough symbols, and, if it is what the manifest says, its source symbols written over those that it
    /// was decoded from: at once, or when a thread has time.
    pub(super) fn decode_block(&mut self, file: u32, index: u32, part: &Part) -> Result<(), StoreError> {
        self.have_done(Job::Decode, file, index, part)
    }

    /// Has a block checked that has its source symbols, and takes it if it is what the manifest says: at once if little has to be read back.
    pub(super) fn check_whole_block(&mut self, file: u32, index: u32, part: &Part) -> Result<(), StoreError> {
        let incoming = self.incoming(file);
        let block = &incoming.blocks[index as usize];
        let is_large = block.length > LEAF && incoming.spec.expected(index).is_some();
        let range = block.range();
        self.put_in_file(file, &range)?;
        let values = &self.incoming(file).blocks[index as usize].values;
        if is_large && !values.as_ref().is_some_and(|values| values.is_whole()) {
            return self.have_done(Job::Check, file, index, part);
        }
        let is_right = self.is_right_on_disk(file, index)?;
        self.settle_checked(file, index, part, is_right)
    }

    /// Has the blocks filled that are to become zeros.
    pub(super) fn have_filled(&mut self, file: u32) -> Result<(), StoreError> {
        let FileState::Incoming(incoming) = &self.files[file as usize] else { return Ok(()) };
        let is_waiting = |block: u32| incoming.blocks[block as usize].job == Some(Job::Fill);
        for part in &incoming.spec.parts {
            let blocks = part.first_block..part.first_block + part.layout.blocks();
            self.decoders.waiting.extend(blocks.filter(|block| is_waiting(*block)).map(|block| (file, block, *part)));
        }
        self.begin_decoding()
    }

    fn have_done(&mut self, job: Job, file: u32, index: u32, part: &Part) -> Result<(), StoreError> {
        let block = &mut self.incoming(file).blocks[index as usize];
        if block.job.replace(job).is_none() {
            self.decoders.waiting.push_back((file, index, *part));
        }
        self.begin_decoding()
    }

    /// Whether threads decode blocks, so that [`Store::take_decoded`] has something to do before long.
    pub fn is_decoding(&self) -> bool {
        self.decoders.out > 0
    }

    /// Takes what threads have decoded, and gives them more. [`Store::add`] does so too; this is for when nothing comes.
    ///
    /// # Errors
    /// As [`Store::add`].
    pub fn take_decoded(&mut self) -> Result<(), StoreError> {
        while let Some(decoded) = self.decoders.poll() {
            self.settle_decoded(decoded)?;
            self.begin_decoding()?;
        }
        Ok(())
    }

    /// Waits for what is being decoded. What has not been begun is left to the next run.
    pub(super) fn finish_decoding(&mut self) -> Result<(), StoreError> {
        self.decoders.waiting.clear();
        while let Some(decoded) = self.decoders.wait() {
            self.settle_decoded(decoded)?;
        }
        Ok(())
    }

    fn begin_decoding(&mut self) -> Result<(), StoreError> {
        while let Some((file, index, part)) = self.decoders.next() {
            let task = self.task(file, index, part)?;
            if let Some(decoded) = task.and_then(|task| self.decoders.begin(task)) {
                self.settle_decoded(decoded)?;
            }
        }
        Ok(())
    }

    /// Makes the task of a block, unless something else has become of it.
    fn task(&mut self, file: u32, index: u32, part: Part) -> Result<Option<Task>, StoreError> {
        let Some(FileState::Incoming(incoming)) = self.files.get(file as usize) else { return Ok(None) };
        let Some(job) = incoming.blocks[index as usize].job else { return Ok(None) };
        if job == Job::Decode {
            self.keep_slots(file, index, &part)?;
            self.write_out()?;
        }
        self.open_handles(file)?;
        let set = self.decoders.set;
        let incoming = self.incoming(file);
        let data = incoming.handles.as_ref().expect("was just opened").data.reader();
        let expected = incoming.spec.expected(index);
        let block = &mut incoming.blocks[index as usize];
        let slots = || block.slots.as_ref().expect("was just loaded").symbols().to_vec();
        let symbols = (job == Job::Decode).then(|| Symbols { slots: slots(), extra: block.extra.clone() });
        let (start, length, values) = (block.start, block.length, block.values.take());
        let data = data.map_err(|source| self.file_error(file, source))?;
        Ok(Some(Task { job, file, index, part, set, start, symbols, data, length, expected, values }))
    }

    /// A block has been decoded or checked, or could not be decoded.
    fn settle_decoded(&mut self, decoded: Decoded) -> Result<(), StoreError> {
        let Decoded { file, index, part, set, extras, values, outcome, .. } = decoded;
        let Some(FileState::Incoming(incoming)) = self.files.get_mut(file as usize) else { return Ok(()) };
        if set != self.decoders.set {
            return Ok(());
        }
        let Some(job) = incoming.blocks[index as usize].job.take() else { return Ok(()) };
        let outcome = outcome.map_err(|source| self.file_error(file, source))?;
        if job == Job::Fill {
            let block = &mut self.incoming(file).blocks[index as usize];
            block.have = block.symbols;
            return self.take_block(file, index);
        }
        self.keep_slots(file, index, &part)?;
        self.incoming(file).blocks[index as usize].values = values;
        match outcome {
            Outcome::TooFew => {
                let more = self.incoming(file).blocks[index as usize].extra.len();
                match () {
                    () if extras >= MAX_EXTRA => self.reject_block(file, index, &part),
                    () if more > extras => self.decode_block(file, index, &part),
                    () => Ok(()),
                }
            }
            Outcome::Decoded(decoded, is_right) => {
                self.counts.decoded_blocks += 1;
                if is_right {
                    self.write_back(file, index, &part, &decoded, false)?;
                }
                self.settle_checked(file, index, &part, is_right)
            }
            Outcome::Checked(is_right) => self.settle_checked(file, index, &part, is_right),
        }
    }

    /// The source symbols of a block are there, and right or not. Its state is written down with the maps, after the data.
    fn settle_checked(&mut self, file: u32, index: u32, part: &Part, is_right: bool) -> Result<(), StoreError> {
        if is_right { self.take_block(file, index) } else { self.reject_block(file, index, part) }
    }
}

/// A block holds forged symbols if it cannot be decoded from this many more than it has source symbols: with honest ones the
/// chance is below 10^-60.
pub(super) const MAX_EXTRA: usize = 24;
/// Bytes of memory for each byte of a block that is decoded: the block, its packets, the codec's copies, the result.
pub(super) const DECODING_MEMORY: u64 = 6;
/// One in this number is the share of the memory for blocks that are being decoded. One block may take more.
const RUNNING_SHARE: u64 = 4;
/// The same for what they decode to, until it is taken.
const RESULTS_SHARE: u64 = 10;
/// Tasks that a thread may have before it. (At 800 Mbit/s what was decoded is taken 100 times a second; with one task, a thread waited
/// half of the time.)
const TASKS_PER_THREAD: usize = 4;

#[cfg(test)]
mod tests;
