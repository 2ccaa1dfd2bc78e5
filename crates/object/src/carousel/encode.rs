//! Gives symbols their content: source symbols are read from their files, repair symbols encoded, blocks next to one another on threads.
//!
//! What a symbol holds depends on its number alone, so that the number of threads changes nothing but the time that it takes.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use raptorq::{ObjectTransmissionInformation, SourceBlockEncoder, SourceBlockEncodingPlan};

use super::plan::{Block, Plan};
use crate::partition::{ALIGNMENT, ESI_LIMIT};
use crate::source::{Open, SourceError};

/// Consecutive symbols of a block that want their content.
pub(super) struct Order<'o> {
    /// Index into the plan's blocks.
    pub(super) block: usize,
    /// The number of the first symbol, counted on beyond 2^24.
    pub(super) first: u64,
    /// Their place, a whole number of symbols.
    pub(super) out: &'o mut [u8],
}

/// Encodes on as many threads as it is allowed.
pub(super) struct Encoding {
    plan: Arc<Plan>,
    /// The encoders that stay.
    kept: HashMap<usize, SourceBlockEncoder>,
    encoding_plans: EncodingPlans,
    /// One for each thread.
    benches: Vec<Bench>,
    /// Nobody wants any more symbols.
    is_over: Arc<AtomicBool>,
}

/// What a thread works with.
#[derive(Default)]
struct Bench {
    open_file: Option<(u32, Open)>,
    scratch: Vec<u8>,
}

/// Encoding plans by the number of source symbols, for the block sizes seen last.
#[derive(Default)]
struct EncodingPlans(Mutex<HashMap<u32, Arc<SourceBlockEncodingPlan>>>);

impl Encoding {
    /// Encodes blocks of `plan` on up to `threads` threads, and stops early once `is_over` is set.
    pub(super) fn new(plan: Arc<Plan>, threads: usize, is_over: Arc<AtomicBool>) -> Encoding {
        let benches = (0..threads.max(1)).map(|_| Bench::default()).collect();
        Encoding { plan, kept: HashMap::new(), encoding_plans: EncodingPlans::default(), benches, is_over }
    }

    /// As many threads as the machine runs at a time, up to a limit.
    pub(super) fn usual_threads() -> usize {
        std::thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS)
    }

    /// Fills these orders. Only orders of source symbols may be several of one block. Once nobody wants any more symbols, the rest stays as it is.
    pub(super) fn fill(&mut self, orders: Vec<Order<'_>>) -> Result<(), SourceError> {
        let symbol_size = self.plan.symbol_size;
        let needs_encoder = |order: &&Order<'_>| {
            let end = order.first % u64::from(ESI_LIMIT) + (order.out.len() / symbol_size) as u64;
            end > u64::from(self.plan.blocks[order.block].symbols) && !self.kept.contains_key(&order.block)
        };
        let encoders = orders.iter().filter(needs_encoder).count();
        let tasks: Vec<_> = orders.into_iter().map(|order| (self.kept.remove(&order.block), order)).collect();
        let tasks = Mutex::new(tasks.into_iter());
        let Encoding { plan, kept, encoding_plans, benches, is_over } = self;
        let work = |bench: &mut Bench| {
            let mut kept = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let task = tasks.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((encoder, order)) = task else { break };
                let block = order.block;
                let encoder = bench.fill(plan, encoding_plans, encoder, order)?;
                kept.extend(encoder.filter(|_| plan.blocks[block].is_kept).map(|encoder| (block, encoder)));
            }
            Ok(kept)
        };
        let more = encoders.clamp(1, benches.len()) - 1;
        let (own, others) = benches.split_first_mut().expect("there is one at least");
        let helped = |bench| {
            // For others that want the processor: a receiver on the same machine, and the thread that sends.
            _ = rustix::process::setpriority_process(None, HELPERS_NICENESS);
            work(bench)
        };
        let done = std::thread::scope(|scope| {
            let start = |bench| {
                let thread = std::thread::Builder::new().name("weir-encoder".to_owned());
                thread.spawn_scoped(scope, || helped(bench))
            };
            // Where the system gives no thread, the others do its part.
            let others: Vec<_> = others[..more].iter_mut().flat_map(start).collect();
            let own = work(own);
            let others = others.into_iter().map(|thread| thread.join().expect("its panic has been reported"));
            std::iter::once(own).chain(others).collect::<Result<Vec<_>, SourceError>>()
        });
        kept.extend(done?.into_iter().flatten());
        Ok(())
    }
}

impl Bench {
    /// Fills an order, with the block's encoder if there is one; gives the encoder that it was left with.
    fn fill(
        &mut self,
        plan: &Plan,
        encoding_plans: &EncodingPlans,
        mut encoder: Option<SourceBlockEncoder>,
        order: Order<'_>,
    ) -> Result<Option<SourceBlockEncoder>, SourceError> {
        let Order { block, mut first, mut out } = order;
        let block = &plan.blocks[block];
        let source_symbols = u64::from(block.symbols);
        while !out.is_empty() {
            let symbol = first % u64::from(ESI_LIMIT);
            let wanted = (out.len() / plan.symbol_size) as u64;
            let until = if symbol < source_symbols { source_symbols } else { u64::from(ESI_LIMIT) };
            let count = wanted.min(until - symbol);
            let (now, later) = out.split_at_mut(count as usize * plan.symbol_size);
            if symbol < source_symbols {
                self.read(plan, block, symbol * plan.symbol_size as u64, now)?;
            } else {
                let ready = match encoder.take() {
                    Some(encoder) => encoder,
                    None => self.encoder(plan, encoding_plans, block)?,
                };
                encode(encoder.insert(ready), (symbol - source_symbols) as u32, plan.symbol_size, now);
            }
            first += count;
            out = later;
        }
        Ok(encoder)
    }

    /// Reads bytes of a block from its file; beyond the block's end they are zero.
    fn read(&mut self, plan: &Plan, block: &Block, start: u64, out: &mut [u8]) -> Result<(), SourceError> {
        let Block { file, offset, length, .. } = *block;
        let source = &plan.files[file as usize];
        if self.open_file.as_ref().is_none_or(|(open, _)| *open != file) {
            self.open_file = Some((file, source.open()?));
        }
        let (_, handle) = self.open_file.as_mut().expect("was just opened");
        let present = length.saturating_sub(start).min(out.len() as u64) as usize;
        let (data, padding) = out.split_at_mut(present);
        source.read(handle, data, offset + start)?;
        padding.fill(0);
        Ok(())
    }

    fn encoder(
        &mut self,
        plan: &Plan,
        encoding_plans: &EncodingPlans,
        block: &Block,
    ) -> Result<SourceBlockEncoder, SourceError> {
        let mut data = std::mem::take(&mut self.scratch);
        data.resize(block.symbols as usize * plan.symbol_size, 0);
        self.read(plan, block, 0, &mut data)?;
        let symbol_size = u16::try_from(plan.symbol_size).expect("came from a u16");
        let config = ObjectTransmissionInformation::new(data.len() as u64, symbol_size, 1, 1, ALIGNMENT);
        let encoding_plan = encoding_plans.of(block.symbols);
        let encoder = SourceBlockEncoder::with_encoding_plan(block.number, &config, &data, &encoding_plan);
        self.scratch = data;
        Ok(encoder)
    }
}

/// Repair symbols from this one on.
fn encode(encoder: &SourceBlockEncoder, first: u32, symbol_size: usize, out: &mut [u8]) {
    let count = (out.len() / symbol_size) as u32;
    let mut out = out.chunks_exact_mut(symbol_size);
    let mut done = 0;
    // In small lots: the codec allocates each symbol, and a lot of them stays in the cache until it is copied.
    while done < count {
        let lot = (count - done).min(REPAIR_LOT);
        for packet in encoder.repair_packets(first + done, lot) {
            out.next().expect("as many symbols as were asked for").copy_from_slice(packet.data());
        }
        done += lot;
    }
}

impl EncodingPlans {
    /// The encoding plan for blocks with this many source symbols. Two threads may both compute it.
    fn of(&self, symbols: u32) -> Arc<SourceBlockEncodingPlan> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = known().get(&symbols) {
            return Arc::clone(plan);
        }
        let count = u16::try_from(symbols).expect("blocks of ours are below K'_max");
        let plan = Arc::new(SourceBlockEncodingPlan::generate(count));
        let mut known = known();
        if known.len() >= MAX_PLANS {
            known.clear();
        }
        known.insert(symbols, Arc::clone(&plan));
        plan
    }
}

/// More would only wait for memory: each works on a block, which is larger than its core's cache.
const MOST_THREADS: usize = 8;
/// All threads but one give way. Without that, 5 GB at 800 Mbit/s with 1 % lost took 5 % longer where the receiver decodes on the same two
/// cores.
const HELPERS_NICENESS: i32 = 10;
const REPAIR_LOT: u32 = 32;
const MAX_PLANS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carousel::CarouselOptions;
    use crate::source::SourceSet;

    /// Files whose blocks have many sizes, and the plan of how they are sent.
    fn plan(folder: &std::path::Path) -> Arc<Plan> {
        for number in 0..24_u8 {
            let content: Vec<u8> =
                (0..20_000 + 3_000 * usize::from(number)).map(|at| (at * 7 + at / 251) as u8 ^ number).collect();
            std::fs::write(folder.join(number.to_string()), content).expect("a folder of its own takes files");
        }
        let set = SourceSet::collect(&[folder.to_owned()], false).expect("readable");
        let options =
            CarouselOptions { block_symbols: 40, bundle: false, memory_limit: 3 << 20, ..CarouselOptions::default() };
        Arc::new(Plan::new(set, &options).expect("valid").0)
    }

    /// 30 symbols of every block from `first` on, encoded by `threads` threads in two calls.
    fn symbols(plan: &Arc<Plan>, threads: usize, first: u64) -> Vec<u8> {
        let mut encoding = Encoding::new(Arc::clone(plan), threads, Arc::default());
        let mut out = vec![0; plan.blocks.len() * 30 * plan.symbol_size];
        for (from, count) in [(0, 20), (20, 10)] {
            let places = out.chunks_exact_mut(30 * plan.symbol_size).enumerate();
            let orders = places.map(|(block, place)| {
                let out = &mut place[from * plan.symbol_size..][..count * plan.symbol_size];
                Order { block, first: first + from as u64, out }
            });
            encoding.fill(orders.collect()).expect("the files are there");
        }
        out
    }

    #[test]
    fn the_number_of_threads_does_not_change_a_symbol() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let plan = plan(folder.path());
        assert!(plan.blocks.iter().any(|block| block.is_kept) && plan.blocks.iter().any(|block| !block.is_kept));
        for first in [0, 10, 1_000, u64::from(ESI_LIMIT) - 5] {
            let alone = symbols(&plan, 1, first);
            assert!(alone.iter().any(|byte| *byte != 0));
            assert_eq!(symbols(&plan, 5, first), alone, "from {first} on");
        }
    }

    #[test]
    fn a_file_that_is_gone_is_told_whichever_thread_finds_it() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let plan = plan(folder.path());
        std::fs::remove_file(folder.path().join("13")).expect("it was there");
        let mut out = vec![0; plan.blocks.len() * plan.symbol_size];
        let places = out.chunks_exact_mut(plan.symbol_size).enumerate();
        let orders = places.map(|(block, out)| Order { block, first: 500, out }).collect();
        let mut encoding = Encoding::new(plan, 3, Arc::default());
        assert!(matches!(encoding.fill(orders), Err(SourceError::Io { path, .. }) if path.ends_with("13")));
    }
}
