//! The sending side: a carousel of encoding symbols.
//!
//! Each call of [`Carousel::next`] gives the next fresh symbol for one channel. In the first cycle these are the source
//! symbols, each exactly once over all channels, so a receiver of all channels that loses nothing has nothing to decode. From then on they
//! are repair symbols, never the same twice (until 2^24 of a block are used up), not even in a later run that is told what was sent before.
//! Any set of channels sees all blocks of a window evenly.
//!
//! The source symbols that hold the indexes of bundles are sent before the first cycle. Repair symbols of their blocks take their places
//! in it, so that a receiver that joins later misses as much of these blocks as of others.
//!
//! Before repair symbols it can ask receivers what they lack ([`Carousel::set_asking`]). Then it sends just that, mostly source symbols, and asks
//! again, until nothing is lacking.
//!
//! Not here: time and rates, beyond the shares of the channels. Files that fit are encoded once and kept; larger ones are
//! sent in windows of bounded size, each visited many times a cycle, so that memory does not grow with the file.

mod batch;
mod cycle;
mod encode;
mod fdt;
mod pack;
mod plan;
mod wanted;
mod worker;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use weir_units::Rate;
use weir_wire::alc::Content;
use weir_wire::extension::Question;
use weir_wire::fec::{PayloadId, RAPTORQ};
use weir_wire::receipt::KEY_LEN;

use self::batch::{Batch, Slot};
use self::cycle::Shares;
use self::fdt::FdtCarousel;
use self::plan::Plan;
pub use self::wanted::{Heard, Thrift};
use self::wanted::{Served, Wanted};
use self::worker::{Product, Word, Worker};
use crate::Lack;
use crate::keys::SecretKey;
use crate::manifest::{Edition, Manifest};
use crate::signed;
use crate::source::{SourceError, SourceSet};

/// How a set of files is to be sent.
#[derive(Debug, Clone)]
pub struct CarouselOptions {
    /// Transport session identifier.
    pub tsi: u16,
    /// Bytes of a symbol: a multiple of 8, at least 64.
    pub symbol_size: u16,
    /// Rate of each channel (not cumulative). Each channel gets its share of the symbols. The higher the sum, the longer the runs of symbols of
    /// one block, and the more work goes into encoding.
    pub channel_rates: Vec<Rate>,
    /// Whether every receiver takes channel 0 at all times. If not, every channel carries the file delivery table, in one
    /// packet of 50.
    pub base_channel: bool,
    /// Bytes of memory for symbols and encoders.
    pub memory_limit: u64,
    /// The part of packets that receivers are expected to lose, 0 to 0.5: repair symbols for it are sent in the first cycle already, where
    /// `memory_limit` does not suffice to keep all encoders.
    pub expected_loss: f64,
    /// Source symbols of a block, about. The default is a compromise: with fewer, more blocks wait for their last
    /// symbol; with more, blocks outgrow the processor's cache and decoding slows down.
    pub block_symbols: u32,
    /// Most blocks in an object.
    pub max_blocks: u8,
    /// Whether small files travel in bundles, where there are many. Receivers of other makers do not get what is in bundles.
    pub bundle: bool,
    /// Whether source blocks of zeros are not sent: the table tells of them. Receivers of other makers need them.
    pub skip_zeros: bool,
    /// FLUTE version of the table: 2 (RFC 6726) or 1 (RFC 3926).
    pub flute_version: u8,
    /// From one turn of the file delivery table to the next. Stretched so that at most one packet in ten of channel 0 is
    /// the table's; up to four times as often where that is one in a hundred, and forty times where it is one in a thousand.
    pub fdt_interval: Duration,
    /// Bytes of an FDT instance, about; more files take more instances.
    pub fdt_instance_bytes: usize,
    /// Cycles that an earlier run may have sent of the same set: none of their symbols is sent again, but for indexes of bundles.
    pub skipped_cycles: u64,
    /// Which start of the sender this is: a later one has a higher number, for receivers never go back to a lower one.
    pub epoch: u64,
    /// When the table expires, seconds of the NTP era; see [`Carousel::renew`].
    pub expires: u32,
    /// Signs the table.
    pub key: Option<SecretKey>,
}

impl Default for CarouselOptions {
    fn default() -> CarouselOptions {
        CarouselOptions {
            tsi: 1,
            symbol_size: 1400,
            channel_rates: vec![Rate::from_mbps(1)],
            base_channel: true,
            memory_limit: 512_000_000,
            expected_loss: 0.0,
            block_symbols: 2048,
            max_blocks: 255,
            bundle: true,
            skip_zeros: true,
            flute_version: 2,
            fdt_interval: Duration::from_secs(1),
            fdt_instance_bytes: 48 << 10,
            skipped_cycles: 0,
            epoch: 0,
            expires: u32::MAX,
            key: None,
        }
    }
}

/// What a carousel has sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CarouselStats {
    /// Symbols of files.
    pub symbols: u64,
    /// Symbols of the file delivery table.
    pub fdt_symbols: u64,
    /// Source symbols of all files that are sent: one cycle.
    pub symbols_per_cycle: u64,
    /// Bytes of files that are not sent, as they are zeros and the table tells of them.
    pub skipped_bytes: u64,
    /// Symbols that are sent before the first cycle: the indexes of bundles.
    pub head_symbols: u64,
    /// Whole cycles.
    pub cycles: u64,
}

/// The sending side of a session.
#[derive(Debug)]
pub struct Carousel {
    plan: Arc<Plan>,
    manifests: Vec<Manifest>,
    fdt: FdtCarousel,
    tables: Tables,
    channels: usize,
    products: Option<Receiver<Result<Product, SourceError>>>,
    words: Sender<Word>,
    /// At most two: a channel that is ahead of its share goes on to the second, not further.
    open: VecDeque<Batch>,
    /// The slot of the first of these that was sent last.
    last: Option<Slot>,
    /// The last symbol of the batch before, for as long as none of the first batch was sent: what it is, and its bytes.
    before: Option<(Slot, Vec<u8>)>,
    /// Whether the worker was told that the first cycle is nearly over.
    first_cycle_ends: bool,
    phase: Phase,
    /// Whether the worker is to ask what is lacking before it encodes.
    asks: Arc<AtomicBool>,
    /// What packets ask while that is so.
    question: Option<Question>,
    wanted: Wanted,
    served: Served,
    stats: CarouselStats,
    failure: Option<SourceError>,
    worker: Option<JoinHandle<()>>,
    /// Tells the worker, in the middle of a batch too, to stop.
    is_over: Arc<AtomicBool>,
}

/// What the next batch waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing but the worker.
    Cycles,
    /// To be told what is lacking.
    Asks,
    /// The worker, which has just been told.
    Resumes,
}

impl Carousel {
    /// Makes the carousel of `set` and starts its background thread.
    ///
    /// # Errors
    /// [`CarouselError`] for options that cannot be.
    pub fn new(set: SourceSet, options: &CarouselOptions) -> Result<Carousel, CarouselError> {
        if options.channel_rates.is_empty() {
            return Err(CarouselError::NoChannels);
        }
        if !matches!(options.flute_version, 1 | 2) {
            return Err(CarouselError::FluteVersion { version: options.flute_version });
        }
        let rates: Vec<u64> = options.channel_rates.iter().map(|rate| rate.bps()).collect();
        let shares = Shares::new(&rates);
        let (plan, manifests) = Plan::new(set, options)?;
        let packet_bits = (u64::from(options.symbol_size) + PACKET_OVERHEAD) * 8;
        let interval_millis = u64::try_from(options.fdt_interval.as_millis()).unwrap_or(u64::MAX);
        let interval = (rates[0] / packet_bits).saturating_mul(interval_millis) / 1000;
        let channels = rates.len();
        let tables = Tables::new(&manifests, options);
        let fdt = FdtCarousel::new(
            &tables.seal(&manifests),
            tables.version,
            tables.next_id,
            options.symbol_size,
            channels,
            interval,
            !options.base_channel,
        );
        let plan = Arc::new(plan);
        // The worker bounds what waits here.
        let (products_end, products) = channel();
        let (words, words_end) = channel();
        let [is_over, asks] = std::array::from_fn(|_| Arc::new(AtomicBool::new(false)));
        let skipped = options.skipped_cycles;
        let worker = Worker::new(Arc::clone(&plan), shares, skipped, Arc::clone(&asks), Arc::clone(&is_over));
        let worker = (!plan.windows.is_empty())
            .then(|| std::thread::Builder::new().name("weir-carousel".to_owned()))
            .map(|builder| builder.spawn(move || worker.run(&products_end, &words_end)))
            .transpose()
            .map_err(CarouselError::Thread)?;
        let stats = CarouselStats {
            symbols_per_cycle: plan.symbols,
            skipped_bytes: plan.skipped_bytes(),
            head_symbols: plan.head_symbols(),
            ..CarouselStats::default()
        };
        Ok(Carousel {
            served: Served::new(plan.blocks.len()),
            plan,
            manifests,
            fdt,
            tables,
            channels,
            products: Some(products),
            words,
            open: VecDeque::with_capacity(2),
            last: None,
            before: None,
            first_cycle_ends: false,
            phase: Phase::Cycles,
            asks,
            question: None,
            wanted: Wanted::default(),
            stats,
            failure: None,
            worker,
            is_over,
        })
    }

    /// What the next packet of `channel` carries: its header fields and its symbol.
    ///
    /// `None` means that there is nothing to send: the channel does not exist, the set has no content (the table's turn
    /// may come later), or sending failed, which [`Carousel::failure`] tells. Waits for the disk where it must.
    pub fn next(&mut self, channel: u16) -> Option<(Content, &[u8])> {
        let channel = usize::from(channel);
        if channel >= self.channels || self.failure.is_some() {
            return None;
        }
        if let Some(symbol) = self.fdt.due(channel) {
            return Some(self.table(symbol));
        }
        let Some((batch, slot)) = self.pick(channel) else {
            if self.phase == Phase::Cycles || self.failure.is_some() {
                return None;
            }
            let filler = self.fdt.filler();
            return Some(self.table(filler));
        };
        self.stats.symbols += 1;
        if !self.first_cycle_ends && self.open[batch].ends_first_cycle() && self.open[batch].is_half_sent() {
            self.first_cycle_ends = true;
            // If the worker has stopped, that shows where its next batch would come.
            let _ = self.words.send(Word::FirstCycleEnds);
        }
        if batch == 0 {
            self.last = Some(slot);
        }
        Some(self.symbol(batch, slot))
    }

    /// What the next packet of `channel` carries if nobody may hear it: a symbol that was sent before. A new one, as [`Carousel::next`], where
    /// nothing was sent yet.
    pub fn again(&mut self, channel: u16) -> Option<(Content, &[u8])> {
        let is_possible = usize::from(channel) < self.channels && self.failure.is_none();
        if !is_possible || self.last.is_none() && self.before.is_none() {
            return self.next(channel);
        }
        match self.last {
            Some(slot) => Some(self.symbol(0, slot)),
            None => self.before.as_ref().map(|(slot, bytes)| (self.content(*slot), &bytes[..])),
        }
    }

    /// A receiver that has just come gets the channels below this level and can use little without the table, so these channels send it once more. This takes at most
    /// one packet in ten of each channel in the long run.
    pub fn repeat_table(&mut self, level: usize) {
        self.fdt.repeat(level);
    }

    /// A packet of the table. It asks what is lacking while that is to be known.
    fn table(&mut self, symbol: usize) -> (Content, &[u8]) {
        self.stats.fdt_symbols += 1;
        let (content, bytes) = self.fdt.symbol(symbol);
        (Content { ask: self.question, ..content }, bytes)
    }

    /// Whether to ask receivers what they lack before they get repair symbols, as long as there are few of them. Each time the carousel then
    /// waits: see [`Carousel::is_waiting`].
    pub fn set_asking(&mut self, asks: bool) {
        self.asks.store(asks, Ordering::Relaxed);
    }

    /// Whether all that there is to send has been sent until [`Carousel::go_on`]. Meanwhile [`Carousel::next`] gives packets of the table,
    /// which ask what [`Carousel::ask`] was told.
    pub fn is_waiting(&self) -> bool {
        self.phase == Phase::Asks && self.open.iter().all(|batch| batch.left() == 0)
    }

    /// Asks this from here on while it waits, and forgets the answers to what was asked before.
    pub fn ask(&mut self, question: Question) {
        self.question = Some(question);
        self.wanted = Wanted::default();
    }

    /// The receiver with this key lacks this.
    pub fn note(&mut self, receiver: &[u8; KEY_LEN], lack: &Lack) {
        self.wanted.add(&self.plan, receiver, lack);
    }

    /// Whether a receiver lacks something, by what was noted.
    pub fn lacks(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// Sends what was noted, or repair symbols of everything if nothing was. Does nothing unless it waits.
    pub fn go_on(&mut self, thrift: Thrift, heard: Heard) {
        if self.is_waiting() {
            let lacking = std::mem::take(&mut self.wanted).serve(&self.plan, thrift, heard, &mut self.served);
            (self.phase, self.question) = (Phase::Resumes, None);
            // If the worker has stopped, that shows where its next batch would come.
            let _ = self.words.send(Word::Lacking(lacking));
        }
    }

    fn symbol(&self, batch: usize, slot: Slot) -> (Content, &[u8]) {
        (self.content(slot), self.open[batch].data(slot, self.plan.symbol_size))
    }

    fn content(&self, slot: Slot) -> Content {
        let block = &self.plan.blocks[slot.block as usize];
        Content {
            toi: u128::from(block.toi),
            encoding_id: RAPTORQ,
            payload_id: PayloadId { block: u32::from(block.number), symbol: slot.symbol },
            fdt: None,
            oti: None,
            ask: None,
        }
    }

    /// Chooses the slot: the channel's own in the oldest batch, else its own in the next, else whoever's is left. The rest of a
    /// batch is anybody's: a channel that is behind its share must not keep the worker from making the next.
    fn pick(&mut self, channel: usize) -> Option<(usize, Slot)> {
        loop {
            while self.open.front().is_some_and(|batch| batch.left() == 0) {
                let batch = self.open.pop_front().expect("there is a first batch");
                let last = self.last.take().map(|slot| (slot, batch.data(slot, self.plan.symbol_size).to_vec()));
                self.before = last.or(self.before.take());
                // Nobody takes it back when the worker has stopped.
                let _ = self.words.send(Word::Used(batch));
            }
            for i in 0..2 {
                if i == 1 && self.open[0].ends_first_cycle() {
                    break;
                }
                if self.open.len() == i && !self.receive() {
                    if i == 0 {
                        return None;
                    }
                    break;
                }
                let slot = self.open[i].take(channel).or_else(|| self.open[i].steal_rest());
                if let Some(slot) = slot {
                    return Some((i, slot));
                }
            }
            if let Some(slot) = self.open[0].steal() {
                return Some((0, slot));
            }
        }
    }

    /// Takes the worker's next batch; whether there is one now.
    fn receive(&mut self) -> bool {
        let (Some(products), Some(_)) = (&self.products, &self.worker) else { return false };
        let product = match self.phase {
            Phase::Cycles => products.recv().map_err(|_| TryRecvError::Disconnected),
            Phase::Asks => Err(TryRecvError::Empty),
            Phase::Resumes => products.try_recv(),
        };
        match product {
            Ok(Ok(Product::Batch(batch))) => {
                self.phase = Phase::Cycles;
                self.open.push_back(batch);
                true
            }
            Ok(Ok(Product::Question)) => {
                self.phase = Phase::Asks;
                false
            }
            Ok(Err(failure)) => {
                self.failure = Some(failure);
                false
            }
            Err(TryRecvError::Empty) => false,
            Err(TryRecvError::Disconnected) => panic!("the carousel's worker ended without saying why"),
        }
    }

    /// Has the table expire at another time: it is signed again, and goes out under other ids from here on.
    pub fn renew(&mut self, expires: u32) {
        self.manifests.iter_mut().for_each(|manifest| manifest.expires = expires);
        self.tables.next_id = self.tables.next_id.wrapping_add(self.manifests.len() as u32);
        let sealed = self.tables.seal(&self.manifests);
        let Tables { version, next_id, symbol_size, .. } = self.tables;
        self.fdt.replace(&sealed, version, next_id, symbol_size);
    }

    /// Which set is sent, and which start of the sender this is.
    pub fn edition(&self) -> Edition {
        self.manifests[0].edition().expect("our manifests have a set and an epoch")
    }

    /// When the table expires, seconds of the NTP era.
    pub fn expires(&self) -> u32 {
        self.manifests[0].expires
    }

    /// Why nothing more is sent: a file could not be read or changed.
    pub fn failure(&self) -> Option<&SourceError> {
        self.failure.as_ref()
    }

    /// What was sent so far.
    pub fn stats(&self) -> CarouselStats {
        let in_cycles = self.stats.symbols.saturating_sub(self.stats.head_symbols);
        let cycles = in_cycles / self.stats.symbols_per_cycle.max(1);
        CarouselStats { cycles, ..self.stats }
    }

    /// The manifest, in the instances in which it is sent.
    pub fn manifests(&self) -> &[Manifest] {
        &self.manifests
    }

    /// Symbols of the file delivery table: the number of packets of channel 0 that carry all of it.
    pub fn fdt_symbols(&self) -> usize {
        self.fdt.len()
    }
}

impl Drop for Carousel {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // The worker ends when nobody takes its batches, and none of them comes back.
        self.products = None;
        self.words = channel().0;
        if let Some(worker) = self.worker.take() {
            // Its panic, if that was it, has been reported by the panic hook.
            let _ = worker.join();
        }
    }
}

/// How manifests become tables.
#[derive(Debug)]
struct Tables {
    key: Option<SecretKey>,
    tsi: u64,
    version: u8,
    symbol_size: u16,
    /// The id of the first instance.
    next_id: u32,
}

impl Tables {
    /// With ids that differ from set to set and from start to start, so that a receiver notices a sender that was restarted.
    fn new(manifests: &[Manifest], options: &CarouselOptions) -> Tables {
        let set = manifests[0].set.expect("our manifests have a set").id;
        let mut hasher = blake3::Hasher::new();
        let hash = hasher.update(&set).update(&options.epoch.to_be_bytes()).finalize();
        let next_id = u32::from_be_bytes(hash.as_bytes()[..4].try_into().expect("4 of 32 bytes"));
        let (tsi, version) = (u64::from(options.tsi), options.flute_version);
        Tables { key: options.key.clone(), tsi, version, symbol_size: options.symbol_size, next_id }
    }

    fn seal(&self, manifests: &[Manifest]) -> Vec<Vec<u8>> {
        let seal = |manifest: &Manifest| {
            let xml = manifest.to_xml(self.version);
            match &self.key {
                Some(key) => signed::seal(xml, key, self.tsi),
                None => xml.into_bytes(),
            }
        };
        manifests.iter().map(seal).collect()
    }
}

/// Options with which nothing can be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CarouselError {
    /// There is no channel.
    #[error("a session needs at least one channel")]
    NoChannels,
    /// The symbol size cannot be used.
    #[error("a symbol size of {symbol_size} bytes cannot be used: take a multiple of 8, from 64 on")]
    SymbolSize {
        /// Bytes of a symbol.
        symbol_size: u16,
    },
    /// The FLUTE version is unknown.
    #[error("there is no FLUTE version {version}: take 2 (RFC 6726) or 1 (RFC 3926)")]
    FluteVersion {
        /// The version.
        version: u8,
    },
    /// More files than object identifiers.
    #[error("too many files for one session; send them in several")]
    TooManyFiles,
    /// More files and the like than receivers take from a table.
    #[error(
        "there are {count} files, folders and links to be named one by one, and receivers take {limit}: send them in several sessions"
    )]
    TooManyEntries {
        /// How many.
        count: usize,
        /// What receivers take.
        limit: usize,
    },
    /// More small files than receivers take.
    #[error(
        "there are {count} small files, folders and links, and receivers take {limit}: send them in several sessions, or as an archive"
    )]
    TooManySmall {
        /// How many.
        count: u64,
        /// What receivers take.
        limit: u64,
    },
    /// A file could not be read again.
    #[error(transparent)]
    Source(SourceError),
    /// The system gives no thread.
    #[error("cannot start the reading thread: {0}")]
    Thread(std::io::Error),
}

/// LCT, FEC payload ID, UDP and IP headers around a symbol, about; only the table's interval depends on it.
const PACKET_OVERHEAD: u64 = 56;
