//! The background half of the carousel: reads, encodes, and hands over batches of symbols ready to be sent.
//!
//! What a batch contains depends on the plan alone, never on timing, so a session's order of symbols is repeatable.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use super::batch::{Batch, Slot};
use super::cycle::{CYCLE, Cycle, Shares};
use super::encode::{Encoding, Order};
use super::plan::{Block, Plan};
use super::wanted::{Serving, Symbols};
use crate::partition::ESI_LIMIT;
use crate::source::SourceError;

/// What the worker hands over.
#[derive(Debug)]
pub(crate) enum Product {
    /// Symbols to be sent.
    Batch(Batch),
    /// Nothing more before it is told what is lacking.
    Question,
}

/// What the worker is told.
#[derive(Debug)]
pub(crate) enum Word {
    /// A batch was sent, and can be filled again.
    Used(Batch),
    /// Half of the first cycle's last batch was sent.
    FirstCycleEnds,
    /// What is lacking; nothing, if that is not known.
    Lacking(Vec<Serving>),
}

/// Where the worker's products go.
type Products = Sender<Result<Product, SourceError>>;

/// The batches that are made and not yet sent, and those that came back to be filled again.
#[derive(Debug, Default)]
struct Stock {
    out: usize,
    out_bytes: usize,
    spare: Vec<Batch>,
    /// Whether the first cycle is nearly over, as it was told.
    first_cycle_ends: bool,
}

impl Stock {
    fn note_out(&mut self, bytes: usize) {
        self.out += 1;
        self.out_bytes += bytes;
    }

    fn take_back(&mut self, batch: Batch) {
        self.out -= 1;
        self.out_bytes -= batch.data.len();
        if self.spare.len() < SPARE_BATCHES {
            self.spare.push(batch);
        }
    }

    /// Takes back what has been sent, and waits while more than `batches` batches with more than `bytes` bytes wait to be sent. Returns
    /// whether anybody still sends.
    fn wait(&mut self, words: &Receiver<Word>, batches: usize, bytes: usize) -> bool {
        while let Ok(word) = words.try_recv() {
            self.on_word(word);
        }
        while self.out > batches && self.out_bytes > bytes {
            let Ok(word) = words.recv() else { return false };
            self.on_word(word);
        }
        true
    }

    /// Takes back what has been sent, and waits until it is told what is lacking. `None` if nobody sends any more.
    fn wait_for_answer(&mut self, words: &Receiver<Word>) -> Option<Vec<Serving>> {
        loop {
            if let Some(lacking) = self.on_word(words.recv().ok()?) {
                return Some(lacking);
            }
        }
    }

    fn on_word(&mut self, word: Word) -> Option<Vec<Serving>> {
        match word {
            Word::Used(batch) => {
                self.take_back(batch);
                None
            }
            Word::FirstCycleEnds => {
                self.first_cycle_ends = true;
                None
            }
            Word::Lacking(lacking) => Some(lacking),
        }
    }

    /// Waits until the first cycle is nearly over. Whether anybody still sends.
    fn wait_for_end(&mut self, words: &Receiver<Word>) -> bool {
        while !self.first_cycle_ends {
            let Ok(word) = words.recv() else { return false };
            self.on_word(word);
        }
        true
    }

    /// Hands a batch over; whether there is to be another.
    fn hand_over(&mut self, batch: Result<Batch, SourceError>, products: &Products) -> bool {
        self.note_out(batch.as_ref().map_or(0, |batch| batch.data.len()));
        let failed = batch.is_err();
        products.send(batch.map(Product::Batch)).is_ok() && !failed
    }
}

/// The worker's state.
pub(crate) struct Worker {
    plan: Arc<Plan>,
    shares: Shares,
    /// The next fresh symbol of each block, counted on beyond 2^24.
    fresh: Vec<u64>,
    encoding: Encoding,
    /// Whether an earlier run sent the source symbols: this one sends repair symbols only.
    is_continued: bool,
    /// The cycle that was walked last: its window and its runs.
    cycle: Option<(usize, u32, Cycle)>,
    /// Whether receivers are asked what they lack before they get repair symbols.
    asks: Arc<AtomicBool>,
}

impl Worker {
    /// A worker that begins after `skipped_cycles` cycles, asks while `asks` is set, and stops once `is_over` is.
    pub(crate) fn new(
        plan: Arc<Plan>,
        shares: Shares,
        skipped_cycles: u64,
        asks: Arc<AtomicBool>,
        is_over: Arc<AtomicBool>,
    ) -> Worker {
        let skipped = |block: &Block| skipped_cycles.wrapping_mul(u64::from(block.symbols)) % u64::from(ESI_LIMIT);
        let mut fresh: Vec<u64> = plan.blocks.iter().map(skipped).collect();
        // Every run sends these before its first cycle.
        plan.heads.iter().for_each(|(block, symbols)| fresh[*block] += u64::from(*symbols));
        let encoding = Encoding::new(Arc::clone(&plan), Encoding::usual_threads(), is_over);
        Worker { fresh, encoding, plan, shares, is_continued: skipped_cycles > 0, cycle: None, asks }
    }

    /// Makes batches until nobody wants them or one fails. What it is told comes through `words`, used batches too.
    pub(crate) fn run(mut self, products: &Products, words: &Receiver<Word>) {
        let mut progress = 0;
        let mut stock = Stock::default();
        let most = self.most_waiting();
        for heads in self.lots_of_heads() {
            let batch = self.head_batch(&heads);
            if !stock.hand_over(batch, products) {
                return;
            }
        }
        for round in 0.. {
            let next = progress + self.step(progress, round);
            for window in 0..self.plan.windows.len() {
                // Source symbols are soon read, and what was read long before it is sent is in no cache any more.
                let ahead = if next <= CYCLE { most.min(SOURCE_AHEAD) } else { most };
                // Encoding is dear, and whoever got the whole first cycle needs none of it: it waits until that is nearly over.
                if progress >= CYCLE && !stock.wait_for_end(words) || !stock.wait(words, 2, ahead) {
                    return;
                }
                if (progress >= CYCLE || self.is_continued) && window == 0 && !self.serve(&mut stock, products, words) {
                    return;
                }
                let recycled = stock.spare.pop().unwrap_or_default();
                let batch = self.batch(window, progress, next, recycled);
                if batch.as_ref().is_ok_and(|batch| batch.left == 0) {
                    stock.first_cycle_ends |= batch.is_ok_and(|batch| batch.ends_first_cycle);
                    continue;
                }
                if !stock.hand_over(batch, products) {
                    return;
                }
            }
            progress = next;
        }
    }

    /// Asks what is lacking and makes that, for as long as there is an answer and somebody to ask. Whether there is to be more.
    fn serve(&mut self, stock: &mut Stock, products: &Products, words: &Receiver<Word>) -> bool {
        while self.asks.load(Ordering::Relaxed) {
            if products.send(Ok(Product::Question)).is_err() {
                return false;
            }
            let Some(lacking) = stock.wait_for_answer(words) else { return false };
            if lacking.is_empty() {
                break;
            }
            for lot in lots(&lacking, self.plan.batch_symbols) {
                if !stock.wait(words, 2, self.most_waiting()) {
                    return false;
                }
                let recycled = stock.spare.pop().unwrap_or_default();
                let batch = self.serving(lot, recycled);
                if !stock.hand_over(batch, products) {
                    return false;
                }
            }
        }
        true
    }

    /// A batch of what is lacking of some blocks.
    fn serving(&mut self, lot: &[Serving], mut batch: Batch) -> Result<Batch, SourceError> {
        let symbol_size = self.plan.symbol_size;
        let total: usize = lot.iter().map(|serving| serving.symbols.count() as usize).sum();
        batch.data.resize(total * symbol_size, 0);
        batch.slots.clear();
        let mut data = std::mem::take(&mut batch.data);
        let (mut rest, mut orders) = (&mut data[..], Vec::new());
        for Serving { block, symbols } in lot {
            for (first, count) in self.runs(*block, symbols) {
                let (out, tail) = rest.split_at_mut(count as usize * symbol_size);
                orders.push(Order { block: *block, first, out });
                rest = tail;
                for i in 0..u64::from(count) {
                    let symbol = ((first + i) % u64::from(ESI_LIMIT)) as u32;
                    batch.slots.push(Slot { block: *block as u32, symbol, at: batch.slots.len() as u32 });
                }
            }
        }
        batch.left = batch.slots.len();
        batch.ends_first_cycle = false;
        batch.regions = self.even_regions(total);
        self.encoding.fill(orders)?;
        batch.data = data;
        Ok(batch)
    }

    /// First symbol and length of each run of these symbols.
    fn runs(&mut self, block: usize, symbols: &Symbols) -> Vec<(u64, u32)> {
        match symbols {
            Symbols::Source(symbols) => {
                let runs = symbols.chunk_by(|one, next| one + 1 == *next);
                runs.map(|run| (u64::from(run[0]), run.len() as u32)).collect()
            }
            Symbols::Fresh(count) => {
                let first = self.fresh[block].max(self.plan.blocks[block].symbols.into());
                self.fresh[block] = first + u64::from(*count);
                vec![(first, *count)]
            }
        }
    }

    /// Divides `slots` slots among the channels: each has its share of them in one stretch.
    fn even_regions(&self, slots: usize) -> Vec<Range<u32>> {
        let at = |channel, progress| self.shares.position(channel, progress, slots as u64) as u32;
        (0..self.shares.channels()).map(|channel| at(channel, 0)..at(channel, CYCLE)).collect()
    }

    /// Bytes of symbols that may wait to be sent: where encoders are made again, what was encoded ahead lets nobody wait for them. A
    /// second's is enough, and more would be made for nobody at a session's end.
    fn most_waiting(&self) -> usize {
        let batch = self.plan.batch_symbols.saturating_mul(self.plan.symbol_size as u64);
        let most = batch.saturating_mul(BATCHES_AHEAD).min(self.plan.bytes_per_sec);
        if self.plan.keep_encoders { 0 } else { usize::try_from(most).unwrap_or(usize::MAX) }
    }

    /// How much of a cycle every window gets in the round that starts at `progress`.
    ///
    /// The first cycle is split evenly, unless losses are expected. After it, or where an earlier run sent it, with encoders kept, each round is a batch. Without, the first rounds
    /// are short, for receivers that miss just a few symbols, and then about as short as the cost of encoding allows: a
    /// round ends where the receivers of some level have all they need, if that is in its second half, so that they need not wait for the next.
    fn step(&self, progress: u64, round: u64) -> u64 {
        let longest = self.plan.windows.iter().map(|window| self.window_symbols(window)).max().unwrap_or(1);
        let even = if self.plan.keep_encoders {
            1
        } else {
            first_cycle_visits(self.plan.symbols * self.plan.symbol_size as u64)
        };
        // Each visit with repair symbols makes the encoders again.
        let is_repair = self.is_continued && !self.plan.keep_encoders;
        let visits = if is_repair { 0 } else { longest.div_ceil(self.plan.batch_symbols).max(even) };
        if round < visits {
            return self.visit(round, visits, longest) - progress;
        }
        if self.plan.keep_encoders {
            let symbols = self.plan.batch_symbols.min(SMALL_BATCH.max(longest));
            return (CYCLE * symbols / longest).clamp(1, CYCLE * 4096);
        }
        let growing = FIRST_REPAIR_ROUND << (2 * (round - visits)).min(32);
        let usual = growing.min(CYCLE / self.plan.visits).max(1);
        let finish = self.shares.last_finish(progress + usual / 2, progress + usual);
        finish.map_or(usual, |finish| (finish - progress).max(1))
    }

    /// How far the first cycle is after this one of its visits.
    ///
    /// Where losses are expected, the last visit is long and ends with repair symbols: each window's, right after its last source symbols.
    /// So they are encoded, and what misses them decoded, while the source symbols of other windows are sent.
    fn visit(&self, visit: u64, visits: u64, longest: u64) -> u64 {
        let last = (LAST_VISIT_BATCHES * CYCLE * self.plan.batch_symbols / longest).min(LAST_VISIT);
        match self.plan.expected_loss {
            0 => CYCLE * (visit + 1) / visits,
            loss if visit + 1 == visits => CYCLE + loss,
            _ => (CYCLE - last) * (visit + 1) / (visits - 1),
        }
    }

    fn window_symbols(&self, window: &Range<usize>) -> u64 {
        self.plan.blocks[window.clone()].iter().map(|block| u64::from(block.sent)).sum()
    }

    /// What is sent before the first cycle, in parts that are batches.
    fn lots_of_heads(&self) -> Vec<Vec<(usize, u32)>> {
        let (mut lots, mut size) = (Vec::<Vec<_>>::new(), u64::MAX);
        for &(block, symbols) in &self.plan.heads {
            size = size.saturating_add(u64::from(symbols));
            if size > self.plan.batch_symbols {
                lots.push(Vec::new());
                size = u64::from(symbols);
            }
            lots.last_mut().expect("there is one now").push((block, symbols));
        }
        lots
    }

    /// The first symbols of these blocks, each channel its share of them.
    fn head_batch(&mut self, heads: &[(usize, u32)]) -> Result<Batch, SourceError> {
        let mut batch = Batch::default();
        for &(block, symbols) in heads {
            let slot = Slot { block: block as u32, symbol: 0, at: 0 };
            batch.slots.extend(std::iter::repeat_n(slot, symbols as usize));
        }
        batch.regions = self.even_regions(batch.slots.len());
        let blocks = heads.first().map_or(0, |head| head.0)..heads.last().map_or(0, |head| head.0 + 1);
        // The same ones in each run: whoever begins with this one has none of them.
        let fresh: Vec<u64> = heads.iter().map(|(block, _)| std::mem::take(&mut self.fresh[*block])).collect();
        let filled = self.fill_batch(&blocks, batch);
        heads.iter().zip(fresh).for_each(|((block, _), fresh)| self.fresh[*block] = fresh);
        filled
    }

    /// The symbols of `window` from `progress` to `next`.
    fn batch(&mut self, window: usize, progress: u64, next: u64, mut batch: Batch) -> Result<Batch, SourceError> {
        let blocks = self.plan.windows[window].clone();
        self.choose_slots(window, &blocks, progress, next, &mut batch);
        batch.ends_first_cycle = progress < CYCLE && next >= CYCLE && window + 1 == self.plan.windows.len();
        self.fill_batch(&blocks, batch)
    }

    /// Gives the slots of a batch, which are of these blocks, their symbols.
    fn fill_batch(&mut self, blocks: &Range<usize>, mut batch: Batch) -> Result<Batch, SourceError> {
        let symbol_size = self.plan.symbol_size;
        // Where each block's symbols lie in the batch: one stretch a block, in the order of the blocks.
        let mut counts = vec![0u32; blocks.len()];
        for slot in &batch.slots {
            counts[slot.block as usize - blocks.start] += 1;
        }
        let mut starts = Vec::with_capacity(counts.len());
        let mut total = 0u32;
        for count in &counts {
            starts.push(total);
            total += count;
        }
        let mut given = vec![0u32; blocks.len()];
        for slot in &mut batch.slots {
            let i = slot.block as usize - blocks.start;
            slot.symbol = ((self.fresh[slot.block as usize] + u64::from(given[i])) % u64::from(ESI_LIMIT)) as u32;
            slot.at = starts[i] + given[i];
            given[i] += 1;
        }
        batch.left = batch.slots.len();
        // Filled below to the last byte, so only growth is zeroed.
        batch.data.resize(total as usize * symbol_size, 0);
        let mut data = std::mem::take(&mut batch.data);
        let (mut rest, mut orders) = (&mut data[..], Vec::with_capacity(counts.len()));
        for (block, count) in blocks.clone().zip(&counts) {
            let (out, tail) = rest.split_at_mut(*count as usize * symbol_size);
            orders.push(Order { block, first: self.fresh[block], out });
            self.fresh[block] += u64::from(*count);
            rest = tail;
        }
        // To encode the rest of a batch that nobody takes any more would cost seconds: then it ends early.
        self.encoding.fill(orders)?;
        batch.data = data;
        Ok(batch)
    }

    /// Which block each channel's slots are for.
    fn choose_slots(&mut self, window: usize, blocks: &Range<usize>, progress: u64, next: u64, batch: &mut Batch) {
        let run = if progress < CYCLE { self.plan.source_run } else { REPAIR_RUN };
        if self.cycle.as_ref().is_none_or(|(of, length, _)| (*of, *length) != (window, run)) {
            let symbols: Vec<u32> = self.plan.blocks[blocks.clone()].iter().map(|block| block.sent).collect();
            self.cycle = Some((window, run, Cycle::new(&symbols, run)));
        }
        let (_, _, cycle) = self.cycle.as_ref().expect("was just made");
        batch.slots.clear();
        batch.regions.clear();
        for channel in 0..self.shares.channels() {
            let start = batch.slots.len() as u32;
            let from = self.shares.position(channel, progress, cycle.slots());
            let to = self.shares.position(channel, next, cycle.slots());
            cycle.walk(from, to, |block, count| {
                let slot = Slot { block: blocks.start as u32 + block, symbol: 0, at: 0 };
                batch.slots.extend(std::iter::repeat_n(slot, count as usize));
            });
            batch.regions.push(start..batch.slots.len() as u32);
        }
    }
}

/// Stretches of these that are about a batch each.
fn lots(servings: &[Serving], batch_symbols: u64) -> impl Iterator<Item = &[Serving]> {
    let mut size = 0;
    servings.chunk_by(move |_, next| {
        size += u64::from(next.symbols.count());
        let fits = size < batch_symbols;
        size = if fits { size } else { 0 };
        fits
    })
}

/// The least number of visits in which each window's first cycle is sent, for a set of `bytes` bytes that takes several windows.
///
/// With more visits, a receiver that joins late misses about as much of each block, and needs little more than that again. They cost the
/// sender nothing, as source symbols are only read. But all blocks become whole in the last visit. A receiver then reads back what it could
/// not hash from memory, up to one piece for each visit to a block, and a disk cannot do that in a sixteenth of the time.
fn first_cycle_visits(bytes: u64) -> u64 {
    (MOST_VISITS * IN_MEMORY / bytes.max(1)).clamp(FEWEST_VISITS, MOST_VISITS)
}

/// Repair symbols gain nothing by runs ([`Plan::source_run`]), and single ones spread more evenly over a short round.
const REPAIR_RUN: u32 = 1;
const MOST_VISITS: u64 = 16;
/// What is read back in the last of four is at most some quarter of what comes then.
const FEWEST_VISITS: u64 = 4;
/// Bytes of files that receivers' operating systems keep in memory, about.
const IN_MEMORY: u64 = 8_000_000_000;
/// The last of these visits, where it ends with repair symbols. One worker encodes four times as fast then as it would have to on average, and
/// late receivers miss that much more of some blocks.
const LAST_VISIT: u64 = CYCLE / 4;
/// As many batches of usual size it may take at most, so that memory stays bounded where windows are many batches long.
const LAST_VISIT_BATCHES: u64 = 2;
/// The first round after the first cycle, where encoders are not kept; each next one is four times as long. Each round
/// encodes all blocks once.
const FIRST_REPAIR_ROUND: u64 = CYCLE / 32;
/// Bytes of source symbols that wait to be sent: 20 ms of the fastest sender, and longer than a read takes that the system has made ahead.
const SOURCE_AHEAD: usize = 16 << 20;
/// How many batches of the largest kind wait to be sent at most, in bytes, where encoders are not kept.
const BATCHES_AHEAD: u64 = 2;
/// More are not kept to be filled again.
const SPARE_BATCHES: usize = 4;
/// Smallest batch of a small set after its first cycle, symbols: hand-overs between threads are not for single packets.
const SMALL_BATCH: u64 = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carousel::CarouselOptions;
    use crate::source::SourceSet;

    #[test]
    fn sets_that_receivers_cannot_keep_in_memory_come_in_fewer_visits() {
        let visits = [0, 1, 8, 16, 20, 100].map(|gigabytes| first_cycle_visits(gigabytes * 1_000_000_000));
        assert_eq!(visits, [16, 16, 16, 8, 6, 4]);
    }

    #[test]
    fn no_visit_of_the_first_cycle_is_much_longer_than_two_batches_also_where_losses_are_expected() {
        let folder = tempfile::tempdir().expect("temporary folder");
        std::fs::write(folder.path().join("file"), vec![7; 4_000_000]).expect("file");
        let set = SourceSet::collect(&[folder.path().to_owned()], false).expect("readable");
        let options = CarouselOptions {
            memory_limit: 1 << 18,
            block_symbols: 40,
            channel_rates: vec![weir_units::Rate::from_mbps(1)],
            expected_loss: 0.01,
            ..CarouselOptions::default()
        };
        let (plan, _) = Plan::new(set, &options).expect("valid");
        let repair = plan.expected_loss;
        let worker = Worker::new(Arc::new(plan), Shares::new(&[1_000_000]), 0, Arc::default(), Arc::default());
        let longest = worker.plan.windows.iter().map(|window| worker.window_symbols(window)).max().expect("windows");
        let (mut progress, mut steps) = (0, Vec::new());
        while progress < CYCLE {
            steps.push(worker.step(progress, steps.len() as u64));
            progress += steps[steps.len() - 1];
        }
        assert!(steps.len() > 16 && progress == CYCLE + repair);
        let most = (2 * worker.plan.batch_symbols * CYCLE).div_ceil(longest) + repair;
        assert!(steps.iter().all(|step| *step <= most), "{steps:?}, {most} at most");
    }

    /// How many symbols of each of 70 blocks are in the second third of the first cycle at this rate: the fewest and the most.
    fn spread(mbps: u64) -> (usize, usize) {
        let folder = tempfile::tempdir().expect("temporary folder");
        std::fs::write(folder.path().join("file"), vec![7; 70 * 20 * 1400]).expect("file");
        let set = SourceSet::collect(&[folder.path().to_owned()], false).expect("readable");
        let rates = vec![weir_units::Rate::from_mbps(mbps)];
        let options = CarouselOptions { block_symbols: 20, channel_rates: rates, ..CarouselOptions::default() };
        let (plan, _) = Plan::new(set, &options).expect("valid");
        let mut worker = Worker::new(Arc::new(plan), Shares::new(&[1]), 0, Arc::default(), Arc::default());
        let mut batch = Batch::default();
        worker.choose_slots(0, &(0..70), CYCLE / 3, CYCLE / 3 * 2, &mut batch);
        let count = |block| batch.slots.iter().filter(|slot| slot.block == block).count();
        let counts: Vec<usize> = (0..70).map(count).collect();
        (*counts.iter().min().expect("70 blocks"), *counts.iter().max().expect("70 blocks"))
    }

    #[test]
    fn a_receiver_that_is_away_at_a_low_rate_misses_as_much_of_each_block() {
        let (fewest, most) = spread(100);
        assert!(most - fewest <= 1, "{fewest} to {most}");
        let (fewest, most) = spread(2_000);
        assert!(most - fewest > 4, "runs are long where they save work: {fewest} to {most}");
    }

    #[test]
    fn what_waits_to_be_sent_is_bounded_by_bytes_and_batches() {
        let (sent, used) = std::sync::mpsc::channel();
        let batch = || Batch { data: vec![0; 10], ..Batch::default() };
        let mut stock = Stock::default();
        (0..3).for_each(|_| stock.note_out(10));
        assert!(stock.wait(&used, 1, 30) && stock.wait(&used, 3, 0), "so many bytes, or batches, may wait");
        (0..2).for_each(|_| sent.send(Word::Used(batch())).expect("somebody takes them"));
        assert!(stock.wait(&used, 1, 19));
        assert_eq!((stock.out, stock.out_bytes, stock.spare.len()), (1, 10, 2));
        drop(sent);
        assert!(!stock.wait(&used, 0, 0), "nobody sends any more");
    }
}
