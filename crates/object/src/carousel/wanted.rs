//! What receivers want again, block by block, and in which symbols they get it.
//!
//! A block of which few source symbols are missing gets these again: nobody has to encode or decode anything for them. Where receivers
//! miss different ones, repair symbols, each of which is of use to all, are fewer.

use std::collections::BTreeMap;

use weir_wire::receipt::KEY_LEN;

use super::plan::Plan;
use crate::Lack;

/// What receivers have said that they lack, by their keys.
#[derive(Debug, Default)]
pub(crate) struct Wanted(BTreeMap<[u8; KEY_LEN], Wants>);

/// What one of them, or several, lack of each block.
type Wants = BTreeMap<usize, Part>;

/// What they lack of one block.
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

/// What it takes to serve what is served now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// Little of the network.
    Little,
    /// The network for so long that each symbol should be of use to all.
    Long,
    /// Work that a host cannot do.
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
    /// How often only those were served that lack the least, one time after another.
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

    /// This receiver lacks this. What no block of the plan can lack is left out.
    pub(crate) fn add(&mut self, plan: &Plan, receiver: &[u8; KEY_LEN], lack: &Lack) {
        let id = (lack.toi, lack.block);
        let Ok(block) = plan.blocks.binary_search_by_key(&id, |block| (block.toi, block.number)) else { return };
        let symbols = plan.blocks[block].symbols;
        let needed = u32::from(lack.needed).min(symbols);
        if needed == 0 {
            return;
        }
        let is_one_more = self.0.len() >= MOST_TOLD_APART && !self.0.contains_key(receiver);
        let last = self.0.last_key_value().map(|(last, _)| *last).filter(|_| is_one_more);
        let wants = self.0.entry(last.unwrap_or(*receiver)).or_default();
        wants.entry(block).or_default().add(symbols, needed, &lack.runs);
    }

    /// What to send for it. Nobody waits long for another that lacks more than twice as much: those that lack the least are served first and asked
    /// again. Where one has just come and has nothing, the others need not wait until it has everything. Neither need those who have not been heard,
    /// if not all have: then the others get a part of it, and all are asked again. Where serving takes long, those that wait get symbols that they
    /// lack, too, unless a host does not keep up: then nothing is encoded for it.
    pub(crate) fn serve(self, plan: &Plan, thrift: Thrift, heard: Heard, served: &mut Served) -> Vec<Serving> {
        let mut receivers: Vec<Wants> = self.0.into_values().collect();
        receivers.sort_by_key(sum);
        let part = (plan.symbols / u64::from(PARTS)).max(1);
        let first = served_first(&receivers, part);
        let prefers = first.is_some() && served.preferred < MOST_PREFERRED;
        served.preferred = if prefers { served.preferred + 1 } else { 0 };
        let waiting = receivers.split_off(first.filter(|_| prefers).unwrap_or(receivers.len()));
        let (now, waiting) = (together(receivers), together(waiting));
        let takes = match thrift {
            Thrift::Work => Takes::Work,
            Thrift::Bytes if sum(&now) > part => Takes::Long,
            Thrift::Bytes => Takes::Little,
        };
        let serve = |(block, wanted): (usize, Part)| {
            let symbols = match waiting.get(&block) {
                Some(waiting) if takes == Takes::Long && waiting.has_most_of(&wanted) => wanted.fresh(),
                _ => wanted.serve(plan.blocks[block].symbols, takes, &mut served.again[block]),
            };
            Serving { block, symbols }
        };
        let mut servings: Vec<Serving> = now.into_iter().map(serve).collect();
        if !prefers && (heard == Heard::Some || first.is_some()) {
            shorten(&mut servings, part as u32, &mut served.again);
        }
        servings
    }
}

/// How many symbols they need.
fn sum(wants: &Wants) -> u64 {
    wants.values().map(|part| u64::from(part.most)).sum()
}

/// What these receivers lack together.
fn together(receivers: Vec<Wants>) -> Wants {
    let mut all = Wants::new();
    for (block, part) in receivers.into_iter().flatten() {
        let sum = all.entry(block).or_default();
        *sum = std::mem::take(sum).and(&part);
    }
    all
}

/// How many of these receivers, of which the first needs the least, are served before the others: those that together take at most twice what the
/// first takes, or `short` symbols. `None` if all do.
fn served_first(receivers: &[Wants], short: u64) -> Option<usize> {
    let mut most: BTreeMap<usize, u32> = BTreeMap::new();
    let mut sum = 0;
    let costs: Vec<u64> = receivers
        .iter()
        .map(|wants| {
            for (block, part) in wants {
                let before = most.entry(*block).or_default();
                sum += u64::from(part.most.saturating_sub(*before));
                *before = part.most.max(*before);
            }
            sum
        })
        .collect();
    let limit = short.max(costs.first()? * 2);
    Some(costs.partition_point(|cost| *cost <= limit)).filter(|first| *first < costs.len())
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

    /// As many repair symbols as the receiver that lacks the most needs, and a few to spare.
    const fn fresh(&self) -> Symbols {
        Symbols::Fresh(self.most + self.most / SPARE_PART + SPARE)
    }

    /// Whether those that lack this part have most of what those that lack the `other` part lack.
    fn has_most_of(&self, other: &Part) -> bool {
        let both: u32 = self.symbols.iter().zip(&other.symbols).map(|(word, other)| (word & other).count_ones()).sum();
        !self.is_any && both * 2 < other.symbols.iter().map(|word| word.count_ones()).sum::<u32>()
    }

    /// What to send of a block of `symbols` of which `again` were sent again.
    fn serve(&self, symbols: u32, takes: Takes, again: &mut u32) -> Symbols {
        let lacking = self.symbols.iter().map(|word| word.count_ones()).sum::<u32>();
        let is_worn = *again + lacking > symbols.saturating_mul(MOST_TIMES);
        let most = match takes {
            Takes::Little => self.most * MOST_SPREAD,
            Takes::Long => self.most + self.most / PARTS,
            Takes::Work => symbols,
        };
        if self.is_any || is_worn || lacking > most {
            return self.fresh();
        }
        *again += lacking;
        let is_lacking = |symbol: &u32| self.symbols[(symbol / u64::BITS) as usize] >> (symbol % u64::BITS) & 1 == 1;
        Symbols::Source((0..symbols).filter(is_lacking).collect())
    }
}

/// What further receivers lack counts as that of one of these. Fewer are asked.
const MOST_TOLD_APART: usize = 64;
/// One part in this number of all symbols takes long: nobody is served first where all together take no more, and where others may lack less, those that
/// lack much get so much at a time. Of a block that is served for so long, source symbols are sent again while they are more than one receiver needs by at
/// most one in this number.
const PARTS: u32 = 8;
/// Those that lack the least go before the others this many times, one after another.
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

    const ONE: &[u8; KEY_LEN] = &[1; KEY_LEN];
    const OTHER: &[u8; KEY_LEN] = &[2; KEY_LEN];

    /// What is served for what these receivers lack, by the first byte of their keys.
    fn serve(plan: &Plan, lacks: &[(u8, Lack)]) -> Vec<(usize, Symbols)> {
        let mut wanted = Wanted::default();
        lacks.iter().for_each(|(receiver, lack)| wanted.add(plan, &[*receiver; KEY_LEN], lack));
        let served = wanted.serve(plan, Thrift::Bytes, Heard::All, &mut Served::new(plan.blocks.len()));
        served.into_iter().map(|serving| (serving.block, serving.symbols)).collect()
    }

    #[test]
    fn what_one_receiver_lacks_is_sent_again_and_nothing_else() {
        let served = serve(&plan(), &[(1, lack(3, 4, &[(10, 3), (99, 1)])), (1, lack(0, 1, &[(0, 1)]))]);
        assert_eq!(served, [(0, Symbols::Source(vec![0])), (3, Symbols::Source(vec![10, 11, 12, 99]))]);
    }

    #[test]
    fn receivers_that_lack_different_symbols_get_repair_symbols() {
        let plan = plan();
        let alike = serve(&plan, &[(1, lack(1, 2, &[(5, 2)])), (2, lack(1, 2, &[(6, 2)]))]);
        assert_eq!(alike, [(1, Symbols::Source(vec![5, 6, 7]))]);
        let unlike: Vec<(u8, Lack)> = (0..5).map(|i| (i, lack(1, 2, &[(10 * u16::from(i), 2)]))).collect();
        assert_eq!(serve(&plan, &unlike), [(1, Symbols::Fresh(4))]);
        assert_eq!(
            serve(&plan, &[(1, lack(1, 90, &[]))]),
            [(1, Symbols::Fresh(97))],
            "or where one does not say which"
        );
    }

    #[test]
    fn a_receiver_that_always_lacks_everything_gets_repair_symbols_in_the_end() {
        let plan = plan();
        let mut before = Served::new(plan.blocks.len());
        let mut source = 0;
        for _ in 0..100 {
            let mut wanted = Wanted::default();
            wanted.add(&plan, ONE, &lack(2, u16::MAX, &[(0, u16::MAX)]));
            let served = wanted.serve(&plan, Thrift::Bytes, Heard::All, &mut before);
            source += u32::from(matches!(served[0].symbols, Symbols::Source(_)));
        }
        assert_eq!(source, MOST_TIMES);
    }

    /// How many symbols are sent each time, six times, for one receiver that has nothing and one that lacks this much of a block.
    fn counts_next_to_one_that_has_nothing(lacking: u16) -> [u32; 6] {
        let plan = plan();
        let mut before = Served::new(plan.blocks.len());
        std::array::from_fn(|_| {
            let mut wanted = Wanted::default();
            (0..10).for_each(|block| wanted.add(&plan, ONE, &lack(block, 100, &[(0, 100)])));
            (0..10).for_each(|block| wanted.add(&plan, OTHER, &lack(block, lacking, &[(7, lacking)])));
            let servings = wanted.serve(&plan, Thrift::Bytes, Heard::All, &mut before);
            servings.iter().map(|serving| serving.symbols.count()).sum()
        })
    }

    #[test]
    fn who_lacks_less_than_half_of_what_another_lacks_does_not_wait_for_it() {
        assert_eq!(
            counts_next_to_one_that_has_nothing(2),
            [20, 20, 20, 20, 125, 20],
            "nor does that one wait for ever"
        );
        assert_eq!(counts_next_to_one_that_has_nothing(45)[..5], [450, 450, 450, 450, 125]);
        assert_eq!(counts_next_to_one_that_has_nothing(60)[0], 1000);
    }

    #[test]
    fn who_lacks_much_gets_a_part_of_it_while_others_may_lack_little() {
        let plan = plan();
        let count = |heard| {
            let mut wanted = Wanted::default();
            (0..10).for_each(|block| wanted.add(&plan, ONE, &lack(block, 100, &[(0, 100)])));
            let servings = wanted.serve(&plan, Thrift::Bytes, heard, &mut Served::new(plan.blocks.len()));
            servings.iter().map(|serving| serving.symbols.count()).collect::<Vec<_>>()
        };
        assert_eq!(count(Heard::All), [100; 10]);
        assert_eq!(count(Heard::Some), [100, 25]);
        // As often as it takes: what was left out does not count as sent again.
        let mut before = Served::new(plan.blocks.len());
        for _ in 0..100 {
            let mut wanted = Wanted::default();
            wanted.add(&plan, ONE, &lack(0, 100, &[(0, 100)]));
            wanted.add(&plan, ONE, &lack(9, 100, &[(0, 100)]));
            wanted.serve(&plan, Thrift::Bytes, Heard::Some, &mut before);
        }
        assert!(before.again[0] >= 700 && before.again[9] < 800, "{:?}", before.again);
    }

    #[test]
    fn of_three_the_first_waits_for_neither_of_the_others() {
        let lacks: Vec<(u8, Lack)> = [(1, 20), (2, 50), (3, 100)]
            .into_iter()
            .flat_map(|(receiver, lacking)| (0..10).map(move |block| (receiver, lack(block, lacking, &[(0, lacking)]))))
            .collect();
        let served = serve(&plan(), &lacks);
        assert_eq!(served.iter().map(|(_, symbols)| symbols.count()).sum::<u32>(), 200);
    }

    #[test]
    fn who_waits_for_those_that_lack_what_it_has_gets_repair_symbols() {
        let is_fresh = |first: u16, count: u16| {
            let of_block = |block| [(1, lack(block, count, &[(first, count)])), (2, lack(block, 60, &[(40, 60)]))];
            let lacks: Vec<(u8, Lack)> = (0..10).flat_map(of_block).collect();
            serve(&plan(), &lacks).iter().all(|(_, symbols)| matches!(symbols, Symbols::Fresh(_)))
        };
        assert!(is_fresh(25, 20));
        assert!(!is_fresh(35, 20), "it lacks most of it, too");
        assert!(!is_fresh(5, 10), "nobody waits long");
    }

    #[test]
    fn nobody_is_asked_twice_where_everything_is_soon_sent() {
        let served = serve(&plan(), &[(1, lack(0, 100, &[(0, 100)])), (2, lack(1, 1, &[(3, 1)]))]);
        assert_eq!(served.len(), 2);
    }

    #[test]
    fn who_lacks_much_of_one_block_and_little_of_another_is_served_at_once() {
        let mut lacks: Vec<(u8, Lack)> = (0..9).map(|block| (1, lack(block, 100, &[(0, 100)]))).collect();
        lacks.push((1, lack(9, 1, &[(3, 1)])));
        assert_eq!(serve(&plan(), &lacks).len(), 10);
    }

    #[test]
    fn made_up_receivers_are_not_told_apart_without_end() {
        let plan = plan();
        let mut wanted = Wanted::default();
        for receiver in 0..1_000_u16 {
            let mut key = [0; KEY_LEN];
            key[..2].copy_from_slice(&receiver.to_be_bytes());
            wanted.add(&plan, &key, &lack(4, 1, &[(receiver % 100, 1)]));
        }
        assert_eq!(wanted.0.len(), MOST_TOLD_APART);
        let served = wanted.serve(&plan, Thrift::Work, Heard::All, &mut Served::new(plan.blocks.len()));
        assert_eq!(served.iter().map(|serving| serving.symbols.count()).collect::<Vec<_>>(), [100]);
    }

    #[test]
    fn what_no_block_can_lack_is_ignored() {
        let nonsense = [lack(10, 1, &[(0, 1)]), Lack { toi: 2, ..lack(0, 1, &[(0, 1)]) }, lack(1, 0, &[(200, 9)])];
        assert_eq!(serve(&plan(), &nonsense.map(|lack| (1, lack))), []);
    }
}
