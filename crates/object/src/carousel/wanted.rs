//! What receivers want again, block by block, and in which symbols they get it.
//!
//! A block of which few source symbols are missing gets these again: nobody has to encode or decode anything for them. Where receivers
//! miss different ones, repair symbols, each of which is of use to all, are fewer.

use std::collections::BTreeMap;

use super::plan::Plan;
use crate::Lack;

/// What receivers have said that they lack.
#[derive(Debug, Default)]
pub(crate) struct Wanted(BTreeMap<usize, Want>);

/// What they lack of one block.
#[derive(Debug, Default)]
struct Want {
    /// Of those that lack little of the block, and of the others.
    little: Part,
    much: Part,
}

#[derive(Debug, Default)]
struct Part {
    /// The most that one of them needs.
    most: u32,
    /// The source symbols that somebody lacks, a bit each.
    symbols: Vec<u64>,
    /// Somebody needs symbols and does not say which.
    is_any: bool,
}

/// What is sent of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Serving {
    /// Index into the plan's blocks.
    pub(crate) block: usize,
    pub(crate) symbols: Symbols,
}

/// Which symbols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Symbols {
    /// Source symbols, in ascending order.
    Source(Vec<u32>),
    /// This many that were not sent before.
    Fresh(u32),
}

/// What is to be spared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thrift {
    /// The network: a block of which receivers lack different symbols gets repair symbols.
    Bytes,
    /// Encoding and decoding, as a host does not keep up: each symbol that is lacking is sent again.
    Work,
}

/// How many of the receivers that were asked have answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// All of them.
    All,
    /// Some of them: the other answers were lost, or take too long.
    Some,
}

/// What was sent for earlier answers.
#[derive(Debug)]
pub(crate) struct Served {
    /// For each block, source symbols that were sent again.
    again: Vec<u32>,
    /// How often only those were served that lack little, one time after another.
    preferred: u32,
}

impl Symbols {
    pub(crate) fn count(&self) -> u32 {
        match self {
            Symbols::Source(symbols) => symbols.len() as u32,
            Symbols::Fresh(count) => *count,
        }
    }

    /// Keeps the first `most` symbols. Returns how many source symbols it drops.
    fn shorten(&mut self, most: u32) -> u32 {
        match self {
            Symbols::Source(symbols) => {
                let before = symbols.len();
                symbols.truncate(most as usize);
                (before - symbols.len()) as u32
            }
            Symbols::Fresh(count) => {
                *count = most.min(*count);
                0
            }
        }
    }
}

impl Served {
    /// Nothing was served yet, of a plan of `blocks` blocks.
    pub(crate) fn new(blocks: usize) -> Served {
        Served { again: vec![0; blocks], preferred: 0 }
    }
}

impl Wanted {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A receiver lacks this. What no block of the plan can lack is left out.
    pub(crate) fn add(&mut self, plan: &Plan, lack: &Lack) {
        let id = (lack.toi, lack.block);
        let Ok(block) = plan.blocks.binary_search_by_key(&id, |block| (block.toi, block.number)) else { return };
        let symbols = plan.blocks[block].symbols;
        let needed = u32::from(lack.needed).min(symbols);
        if needed > 0 {
            let want = self.0.entry(block).or_default();
            let part = if needed <= symbols / LITTLE { &mut want.little } else { &mut want.much };
            part.add(symbols, needed, &lack.runs);
        }
    }

    /// What to send for it. Those that lack little are served first and asked again before the others are, if that is soon done: where one has
    /// just come and has nothing, the others need not wait until it has everything. Neither need those who lack little and have not been heard,
    /// if not all have: then the others get a part of it, and all are asked again.
    pub(crate) fn serve(self, plan: &Plan, thrift: Thrift, heard: Heard, served: &mut Served) -> Vec<Serving> {
        let sum = |part: fn(&Want) -> u32| self.0.values().map(part).sum::<u32>();
        let (little, much) = (sum(|want| want.little.most), sum(|want| want.much.most));
        let is_soon_done = little > 0 && little <= much / LITTLE;
        let prefers = is_soon_done && served.preferred < MOST_PREFERRED;
        served.preferred = if prefers { served.preferred + 1 } else { 0 };
        let wants = self.0.into_iter();
        let parts = wants.map(|(block, want)| (block, if prefers { want.little } else { want.little.and(&want.much) }));
        let serve = |(block, part): (usize, Part)| {
            let symbols = part.serve(plan.blocks[block].symbols, thrift, &mut served.again[block]);
            Serving { block, symbols }
        };
        let mut servings: Vec<Serving> = parts.filter(|(_, part)| part.most > 0).map(serve).collect();
        if !prefers && (heard == Heard::Some || is_soon_done) {
            shorten(&mut servings, (plan.symbols / u64::from(LITTLE)).max(1) as u32, &mut served.again);
        }
        servings
    }
}

/// Keeps the first `left` symbols. Those that it drops no longer count in `again`, the source symbols that were sent again of each block.
fn shorten(servings: &mut Vec<Serving>, mut left: u32, again: &mut [u32]) {
    servings.retain_mut(|Serving { block, symbols }| {
        again[*block] -= symbols.shorten(left);
        left -= symbols.count();
        symbols.count() > 0
    });
}

impl Part {
    /// A receiver needs `needed` symbols of a block of `symbols`; these runs list them.
    fn add(&mut self, symbols: u32, needed: u32, runs: &[(u16, u16)]) {
        self.most = self.most.max(needed);
        self.is_any |= runs.is_empty();
        self.symbols.resize(symbols.div_ceil(u64::BITS) as usize, 0);
        for (first, length) in runs {
            let end = (u32::from(*first) + u32::from(*length)).min(symbols);
            (u32::from(*first)..end)
                .for_each(|symbol| self.symbols[(symbol / u64::BITS) as usize] |= 1 << (symbol % u64::BITS));
        }
    }

    /// What those of both lack.
    fn and(mut self, other: &Part) -> Part {
        self.symbols.resize(self.symbols.len().max(other.symbols.len()), 0);
        self.symbols.iter_mut().zip(&other.symbols).for_each(|(word, more)| *word |= more);
        Part { most: self.most.max(other.most), is_any: self.is_any || other.is_any, ..self }
    }

    /// What to send of a block of `symbols` of which `again` were sent again.
    fn serve(&self, symbols: u32, thrift: Thrift, again: &mut u32) -> Symbols {
        let lacking = self.symbols.iter().map(|word| word.count_ones()).sum::<u32>();
        let is_worn = *again + lacking > symbols.saturating_mul(MOST_TIMES);
        let most = match thrift {
            Thrift::Bytes => self.most.saturating_mul(MOST_SPREAD),
            Thrift::Work => symbols,
        };
        if self.is_any || is_worn || lacking > most {
            return Symbols::Fresh(self.most + self.most / SPARE_PART + SPARE);
        }
        *again += lacking;
        let is_lacking = |symbol: &u32| self.symbols[(symbol / u64::BITS) as usize] >> (symbol % u64::BITS) & 1 == 1;
        Symbols::Source((0..symbols).filter(is_lacking).collect())
    }
}

/// Who needs at most one symbol in this number of a block lacks little of it; and those that do are served first as long as that takes at most
/// one part in this number of what the others take.
const LITTLE: u32 = 8;
/// Those that lack little go before the others this many times, one after another.
const MOST_PREFERRED: u32 = 4;
/// Source symbols are sent again while they are at most this many times what one receiver needs. Beyond that, repair symbols save enough of the
/// rate to be worth encoding and decoding.
const MOST_SPREAD: u32 = 2;
/// The source symbols of a block are sent again this many times, whatever is said to be lacking: then it gets repair symbols, which help
/// everybody.
const MOST_TIMES: u32 = 8;
/// Repair symbols beyond those that are needed: what decoding takes more now and then, and one in this number for losses.
const SPARE: u32 = 2;
const SPARE_PART: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carousel::CarouselOptions;
    use crate::source::SourceSet;

    /// The plan of a file of 10 blocks of 100 symbols.
    fn plan() -> Plan {
        let folder = tempfile::tempdir().expect("temporary folder");
        std::fs::write(folder.path().join("file"), vec![7; 64_000]).expect("a folder of its own takes files");
        let set = SourceSet::collect(&[folder.path().join("file")], false).expect("readable");
        let options = CarouselOptions { symbol_size: 64, block_symbols: 100, ..CarouselOptions::default() };
        Plan::new(set, &options).expect("valid").0
    }

    fn lack(block: u8, needed: u16, runs: &[(u16, u16)]) -> Lack {
        Lack { toi: 1, block, needed, runs: runs.to_vec() }
    }

    fn serve(plan: &Plan, lacks: &[Lack]) -> Vec<(usize, Symbols)> {
        let mut wanted = Wanted::default();
        lacks.iter().for_each(|lack| wanted.add(plan, lack));
        let served = wanted.serve(plan, Thrift::Bytes, Heard::All, &mut Served::new(plan.blocks.len()));
        served.into_iter().map(|serving| (serving.block, serving.symbols)).collect()
    }

    #[test]
    fn what_one_receiver_lacks_is_sent_again_and_nothing_else() {
        let served = serve(&plan(), &[lack(3, 4, &[(10, 3), (99, 1)]), lack(0, 1, &[(0, 1)])]);
        assert_eq!(served, [(0, Symbols::Source(vec![0])), (3, Symbols::Source(vec![10, 11, 12, 99]))]);
    }

    #[test]
    fn receivers_that_lack_different_symbols_get_repair_symbols() {
        let plan = plan();
        let alike = serve(&plan, &[lack(1, 2, &[(5, 2)]), lack(1, 2, &[(6, 2)])]);
        assert_eq!(alike, [(1, Symbols::Source(vec![5, 6, 7]))]);
        let unlike: Vec<Lack> = (0..5).map(|i| lack(1, 2, &[(10 * i, 2)])).collect();
        assert_eq!(serve(&plan, &unlike), [(1, Symbols::Fresh(4))]);
        assert_eq!(serve(&plan, &[lack(1, 90, &[])]), [(1, Symbols::Fresh(97))], "or where one does not say which");
    }

    #[test]
    fn a_receiver_that_always_lacks_everything_gets_repair_symbols_in_the_end() {
        let plan = plan();
        let mut before = Served::new(plan.blocks.len());
        let mut source = 0;
        for _ in 0..100 {
            let mut wanted = Wanted::default();
            wanted.add(&plan, &lack(2, u16::MAX, &[(0, u16::MAX)]));
            let served = wanted.serve(&plan, Thrift::Bytes, Heard::All, &mut before);
            source += u32::from(matches!(served[0].symbols, Symbols::Source(_)));
        }
        assert_eq!(source, MOST_TIMES);
    }

    #[test]
    fn who_lacks_little_does_not_wait_for_one_that_has_nothing() {
        let plan = plan();
        let mut before = Served::new(plan.blocks.len());
        let mut counts = Vec::new();
        for _ in 0..6 {
            let mut wanted = Wanted::default();
            (0..10).for_each(|block| wanted.add(&plan, &lack(block, 100, &[(0, 100)])));
            wanted.add(&plan, &lack(3, 2, &[(7, 2)]));
            counts.push(
                wanted
                    .serve(&plan, Thrift::Bytes, Heard::All, &mut before)
                    .iter()
                    .map(|serving| serving.symbols.count())
                    .sum::<u32>(),
            );
        }
        assert_eq!(counts, [2, 2, 2, 2, 125, 2], "nor does that one wait for ever");
    }

    #[test]
    fn who_lacks_much_gets_a_part_of_it_while_others_may_lack_little() {
        let plan = plan();
        let count = |heard| {
            let mut wanted = Wanted::default();
            (0..10).for_each(|block| wanted.add(&plan, &lack(block, 100, &[(0, 100)])));
            let servings = wanted.serve(&plan, Thrift::Bytes, heard, &mut Served::new(plan.blocks.len()));
            servings.iter().map(|serving| serving.symbols.count()).collect::<Vec<_>>()
        };
        assert_eq!(count(Heard::All), [100; 10]);
        assert_eq!(count(Heard::Some), [100, 25]);
        // As often as it takes: what was left out does not count as sent again.
        let mut before = Served::new(plan.blocks.len());
        for _ in 0..100 {
            let mut wanted = Wanted::default();
            wanted.add(&plan, &lack(0, 100, &[(0, 100)]));
            wanted.add(&plan, &lack(9, 100, &[(0, 100)]));
            wanted.serve(&plan, Thrift::Bytes, Heard::Some, &mut before);
        }
        assert!(before.again[0] >= 700 && before.again[9] < 800, "{:?}", before.again);
    }

    #[test]
    fn what_no_block_can_lack_is_ignored() {
        let nonsense = [lack(10, 1, &[(0, 1)]), Lack { toi: 2, ..lack(0, 1, &[(0, 1)]) }, lack(1, 0, &[(200, 9)])];
        assert_eq!(serve(&plan(), &nonsense), []);
    }
}
