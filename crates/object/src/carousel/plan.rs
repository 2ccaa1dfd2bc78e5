//! What is decided before the first packet: objects, blocks, windows, and the manifest.

use std::ops::Range;

use weir_wire::fec::Oti;

use super::cycle::CYCLE;
use super::{CarouselError, CarouselOptions, pack};
use crate::manifest::{FileEntry, Manifest, SetTotals};
use crate::partition::Layout;
use crate::pieces::{BlockDigest, ZEROS};
use crate::source::{SourceFile, SourceSet};

/// Everything about a session that does not change while it is sent.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) files: Vec<SourceFile>,
    pub(crate) blocks: Vec<Block>,
    /// Consecutive blocks that are sent together, so that memory is bounded.
    pub(crate) windows: Vec<Range<usize>>,
    pub(crate) symbol_size: usize,
    /// Source symbols of all blocks that are sent.
    pub(crate) symbols: u64,
    /// Symbols in a batch, about.
    pub(crate) batch_symbols: u64,
    /// Whether the encoders of all blocks are kept.
    pub(crate) keep_encoders: bool,
    /// Source symbols of one block that follow each other in a channel: a receiver writes them at one go.
    pub(crate) source_run: u32,
    /// Bytes a second that all channels take.
    pub(crate) bytes_per_sec: u64,
    /// In how many visits a window's cycle is sent at least.
    pub(crate) visits: u64,
    /// How much repair the first cycle ends with, in the units of progress; 0 where encoders are kept, which have it ready.
    pub(crate) expected_loss: u64,
    /// What is sent before the first cycle: blocks, and how many of their first symbols. These symbols hold the indexes of bundles, with
    /// which receivers unpack files while they arrive.
    pub(crate) heads: Vec<(usize, u32)>,
}

/// One source block of one object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    pub(crate) toi: u32,
    pub(crate) number: u8,
    /// Index into [`Plan::files`].
    pub(crate) file: u32,
    /// Where in the file it starts, bytes.
    pub(crate) offset: u64,
    /// Bytes of the file in it.
    pub(crate) length: u64,
    /// Source symbols.
    pub(crate) symbols: u32,
    /// Those of them that are sent: all, or none of a block of zeros that the table tells of.
    pub(crate) sent: u32,
    /// Whether its encoder is kept once it is made.
    pub(crate) is_kept: bool,
}

/// One object: a file or a part of one.
struct Object {
    toi: u32,
    file: usize,
    offset: u64,
    layout: Layout,
}

impl Object {
    /// The bytes of its file that are in a block.
    fn bytes_of(&self, block: u32) -> Range<u64> {
        let end = self.layout.offset(block + 1).min(self.layout.transfer_length());
        self.offset + self.layout.offset(block)..self.offset + end
    }
}

impl Plan {
    /// Cuts `set` into objects and blocks and describes it.
    pub(crate) fn new(set: SourceSet, options: &CarouselOptions) -> Result<(Plan, Vec<Manifest>), CarouselError> {
        let (object_bytes, bytes) = (object_bytes(options)?, set.bytes());
        let set = pack::pack(set, object_bytes, options)?;
        let objects = cut(&set.files, object_bytes, options)?;
        let mut blocks = Vec::new();
        for object in &objects {
            for number in 0..object.layout.blocks() {
                let (bytes, symbols) = (object.bytes_of(number), object.layout.symbols(number));
                let is_skipped = options.skip_zeros && set.files[object.file].is_zero(&bytes);
                blocks.push(Block {
                    toi: object.toi,
                    number: u8::try_from(number).expect("a RaptorQ layout has at most 255 blocks"),
                    file: u32::try_from(object.file).expect("the number of files was checked"),
                    offset: bytes.start,
                    length: bytes.end - bytes.start,
                    symbols,
                    sent: if is_skipped { 0 } else { symbols },
                    is_kept: false,
                });
            }
        }
        let manifests = manifests(&set, bytes, &objects, options)?;
        let symbols = blocks.iter().map(|block| u64::from(block.sent)).sum::<u64>();
        let symbol_size = u64::from(options.symbol_size);
        let kept = keep(&mut blocks, symbol_size, options.memory_limit / 2);
        let keep_encoders = kept >= 1.0;
        let batches = if kept > 0.0 { 2 * BATCHES_IN_MEMORY } else { BATCHES_IN_MEMORY };
        let batch_symbols = (options.memory_limit / batches / symbol_size).max(16);
        let bytes_per_sec = options.channel_rates.iter().map(|rate| rate.bps() / 8).sum::<u64>().max(1);
        let visits = if keep_encoders { 1 } else { visits(bytes_per_sec as f64 * (1.0 - kept)) };
        let window_symbols = if keep_encoders { u64::MAX } else { batch_symbols * visits };
        let windows = windows(&blocks, window_symbols);
        let symbol_size = usize::from(options.symbol_size);
        let files = set.files;
        let heads = heads(&files, &blocks, symbol_size);
        let expected_loss = if keep_encoders { 0 } else { repair_for(&blocks, options.expected_loss) };
        let plan = Plan {
            files,
            blocks,
            windows,
            symbol_size,
            symbols,
            batch_symbols,
            keep_encoders,
            source_run: source_run(bytes_per_sec / symbol_size as u64),
            bytes_per_sec,
            visits,
            expected_loss,
            heads,
        };
        Ok((plan, manifests))
    }

    /// Bytes of files in blocks that are not sent.
    pub(crate) fn skipped_bytes(&self) -> u64 {
        self.blocks.iter().filter(|block| block.sent == 0).map(|block| block.length).sum()
    }

    /// Symbols that are sent before the first cycle.
    pub(crate) fn head_symbols(&self) -> u64 {
        self.heads.iter().map(|(_, symbols)| u64::from(*symbols)).sum()
    }
}

/// The symbols of blocks in which indexes of bundles are.
fn heads(files: &[SourceFile], blocks: &[Block], symbol_size: usize) -> Vec<(usize, u32)> {
    let index_bytes = |file: &SourceFile| file.bundle_entry().map_or(0, |bundle| bundle.index_bytes);
    let ends: Vec<u64> = files.iter().map(index_bytes).collect();
    let symbols = |block: &Block| {
        let symbols = ends[block.file as usize].saturating_sub(block.offset).div_ceil(symbol_size as u64);
        symbols.min(u64::from(block.symbols)) as u32
    };
    blocks.iter().map(symbols).enumerate().filter(|(_, symbols)| *symbols > 0).collect()
}

/// How much repair makes most blocks whole of which this part is lost at random, in the units of a cycle: what a block loses on average, and
/// four standard deviations more.
fn repair_for(blocks: &[Block], loss: f64) -> u64 {
    let largest = blocks.iter().map(|block| block.symbols).max().unwrap_or(1);
    let lost = f64::from(largest) * loss.clamp(0.0, MAX_EXPECTED_LOSS);
    if lost == 0.0 { 0 } else { ((lost + 4.0 * lost.sqrt() + UNEVEN) / f64::from(largest) * CYCLE as f64) as u64 }
}

/// Chooses blocks whose encoders are kept, spread evenly, in `room` bytes; the part that they are of all. Few would save little, and have
/// their room taken from what waits to be sent.
fn keep(blocks: &mut [Block], symbol_size: u64, room: u64) -> f64 {
    let encoder_bytes = |block: &Block| u64::from(block.sent) * symbol_size * ENCODER_PER_SOURCE / 10;
    let all: u64 = blocks.iter().map(encoder_bytes).sum();
    let part = if all <= room { 1.0 } else { room as f64 / all as f64 };
    if part < LEAST_KEPT {
        return 0.0;
    }
    let (mut passed, mut kept) = (0, 0);
    for block in blocks {
        let bytes = encoder_bytes(block);
        passed += bytes;
        block.is_kept = part >= 1.0 || (kept + bytes) as f64 <= passed as f64 * part;
        kept += if block.is_kept { bytes } else { 0 };
    }
    if part < 1.0 { kept as f64 / all as f64 } else { 1.0 }
}

/// The length of a run of source symbols, for a ladder whose channels together send this many symbols a second. Long runs save work at high rates.
/// Short runs keep blocks even: a receiver that is away for a moment misses about as many symbols of each.
fn source_run(symbols_per_sec: u64) -> u32 {
    (symbols_per_sec / RUNS_PER_SEC).clamp(1, LONGEST_RUN) as u32
}

/// How often a window's encoders may be made again in one cycle without exceeding [`ENCODE_BUDGET`]. `bytes_per_sec` is the rate of the
/// blocks whose encoders are not kept.
fn visits(bytes_per_sec: f64) -> u64 {
    ((ENCODE_BUDGET as f64 / bytes_per_sec.max(1.0)) as u64).clamp(1, MAX_VISITS)
}

/// Most bytes of an object.
fn object_bytes(options: &CarouselOptions) -> Result<u64, CarouselError> {
    let symbol_size = options.symbol_size;
    if symbol_size < MIN_SYMBOL_SIZE || !symbol_size.is_multiple_of(u16::from(crate::partition::ALIGNMENT)) {
        return Err(CarouselError::SymbolSize { symbol_size });
    }
    let largest_block = u64::from(options.block_symbols.clamp(1, MAX_BLOCK_SYMBOLS)) * GROWTH;
    Ok(largest_block * u64::from(options.max_blocks.max(1)) * u64::from(symbol_size))
}

fn cut(files: &[SourceFile], object_bytes: u64, options: &CarouselOptions) -> Result<Vec<Object>, CarouselError> {
    let symbol_size = options.symbol_size;
    let mut objects = Vec::new();
    for (file, source) in files.iter().enumerate() {
        let parts = source.length.div_ceil(object_bytes).max(1);
        let symbols = source.length.div_ceil(u64::from(symbol_size));
        for part in 0..parts {
            let start = symbols * part / parts * u64::from(symbol_size);
            let end = (symbols * (part + 1) / parts * u64::from(symbol_size)).min(source.length);
            let toi = u32::try_from(objects.len() + 1).map_err(|_| CarouselError::TooManyFiles)?;
            let block_symbols = options.block_symbols.clamp(1, MAX_BLOCK_SYMBOLS);
            let layout = Layout::choose(end - start, symbol_size, block_symbols, options.max_blocks)
                .expect("an object of at most 255 blocks of at most 2 · 24 000 symbols is within RaptorQ's limits");
            objects.push(Object { toi, file, offset: start, layout });
        }
    }
    Ok(objects)
}

/// Cuts the blocks into windows of about `window_symbols` symbols that are sent. No window is empty.
fn windows(blocks: &[Block], window_symbols: u64) -> Vec<Range<usize>> {
    let mut windows = Vec::new();
    let mut start = 0;
    let mut symbols = 0;
    for (i, block) in blocks.iter().enumerate() {
        if symbols > 0 && symbols + u64::from(block.sent) > window_symbols {
            windows.push(start..i);
            start = i;
            symbols = 0;
        }
        symbols += u64::from(block.sent);
    }
    if symbols > 0 {
        windows.push(start..blocks.len());
    }
    windows
}

/// Describes the set in instances of bounded size, all parts of a file in the same one, each signed by itself.
fn manifests(
    set: &SourceSet,
    bytes: u64,
    objects: &[Object],
    options: &CarouselOptions,
) -> Result<Vec<Manifest>, CarouselError> {
    let entry = |object: &Object| -> Result<FileEntry, CarouselError> {
        let file = &set.files[object.file];
        Ok(FileEntry {
            toi: u128::from(object.toi),
            name: file.name.clone(),
            offset: object.offset,
            file_length: file.length,
            transfer_length: object.layout.transfer_length(),
            oti: Some(object.layout.oti()),
            digest: Some(file.digest),
            blocks: block_digests(file, object, options.skip_zeros)?,
            md5: file.md5.filter(|_| object.layout.transfer_length() == file.length),
            attributes: file.attributes,
            bundle: file.bundle_entry(),
        })
    };
    let totals = SetTotals {
        id: [0; 16],
        objects: objects.len() as u64,
        folders: set.folders.len() as u64,
        links: set.links.len() as u64,
        bytes,
    };
    let empty = Manifest {
        tsi: Some(u64::from(options.tsi)),
        epoch: Some(options.epoch),
        expires: options.expires,
        complete: false,
        set: Some(totals),
        files: Vec::new(),
        folders: Vec::new(),
        links: Vec::new(),
        refused: Vec::new(),
    };
    let mut instances = Instances { manifests: vec![empty.clone()], empty, size: 0, limit: options.fdt_instance_bytes };
    let mut identity = blake3::Hasher::new();
    // Folders go first, so that what is in them is never more open than they were.
    for folder in &set.folders {
        hash_texts(&mut identity, "folder", [folder.name.as_bytes(), folder.attributes.to_xml().as_bytes()]);
        instances.with_room(ENTRY_BYTES / 4 + folder.name.to_location().len()).folders.push(folder.clone());
    }
    for link in &set.links {
        hash_texts(&mut identity, "link", [link.name.as_bytes(), &link.target]);
        let bytes = ENTRY_BYTES / 4 + link.name.to_location().len() + link.target.len();
        instances.with_room(bytes).links.push(link.clone());
    }
    for object in objects {
        let entry = entry(object)?;
        hash_entry(&mut identity, &entry);
        let bytes = ENTRY_BYTES + entry.name.to_location().len() + entry.blocks.len() * DIGEST_BYTES;
        // The objects of a file stay together.
        let instance = if entry.offset == 0 { instances.with_room(bytes) } else { instances.last(bytes) };
        instance.files.push(entry);
    }
    let mut manifests = instances.manifests;
    let id: [u8; 16] = identity.finalize().as_bytes()[..16].try_into().expect("16 of 32 bytes");
    for manifest in &mut manifests {
        manifest.set = Some(SetTotals { id, ..totals });
    }
    Ok(manifests)
}

/// The digests of an object's blocks, with `skips_zeros` [`ZEROS`] for those that are not sent; none where one block is the whole file, whose
/// own digest is known.
fn block_digests(file: &SourceFile, object: &Object, skips_zeros: bool) -> Result<Vec<BlockDigest>, CarouselError> {
    let is_skipped = |bytes: &Range<u64>| skips_zeros && file.is_zero(bytes);
    let blocks: Vec<Range<u64>> = (0..object.layout.blocks()).map(|block| object.bytes_of(block)).collect();
    if let [only] = &blocks[..]
        && object.layout.transfer_length() == file.length
        && !is_skipped(only)
    {
        return Ok(Vec::new());
    }
    let rest = blocks.iter().filter(|bytes| !is_skipped(bytes)).cloned();
    let mut digests = file.block_digests(rest).map_err(CarouselError::Source)?.into_iter();
    let digest = |bytes| if is_skipped(bytes) { Some(ZEROS) } else { digests.next() };
    Ok(blocks.iter().map_while(digest).collect())
}

/// The instances of a table while they are filled.
struct Instances {
    manifests: Vec<Manifest>,
    empty: Manifest,
    /// About what the last one takes, in bytes, and what one may take.
    size: usize,
    limit: usize,
}

impl Instances {
    /// The one for an entry of `bytes` bytes: a new one if the last has no room for it.
    fn with_room(&mut self, bytes: usize) -> &mut Manifest {
        if self.size + bytes > self.limit && self.size > 0 {
            self.manifests.push(self.empty.clone());
            self.size = 0;
        }
        self.last(bytes)
    }

    /// The last one, into which an entry of `bytes` bytes goes.
    fn last(&mut self, bytes: usize) -> &mut Manifest {
        self.size += bytes;
        self.manifests.last_mut().expect("starts with one")
    }
}

/// What makes one set of files another: names, cuts and contents.
fn hash_entry(hasher: &mut blake3::Hasher, entry: &FileEntry) {
    hash_texts(hasher, "file", [entry.name.as_bytes(), entry.attributes.to_xml().as_bytes()]);
    hasher.update(&entry.toi.to_be_bytes()).update(&entry.offset.to_be_bytes());
    hasher.update(&entry.file_length.to_be_bytes());
    hasher.update(entry.digest.as_ref().expect("our entries have digests"));
    hasher.update(&entry.oti.as_ref().map(Oti::encode).expect("our entries have an OTI"));
}

/// Two texts of something of this kind, so that no others of any kind hash alike.
fn hash_texts(hasher: &mut blake3::Hasher, kind: &str, texts: [&[u8]; 2]) {
    for text in [kind.as_bytes(), texts[0], texts[1]] {
        hasher.update(&(text.len() as u64).to_be_bytes()).update(text);
    }
}

/// A batch is this part of the memory: two are being sent, one waits, one is being made, a few come back to be filled
/// again. Where encoders are kept, they have the other half.
const BATCHES_IN_MEMORY: u64 = 8;
/// Ten times what an encoder takes for each byte of its block: the block, its intermediate symbols, and their tables.
const ENCODER_PER_SOURCE: u64 = 23;
/// The least part of the encoders that is worth keeping.
const LEAST_KEPT: f64 = 0.2;
/// Bytes a second that may go through making encoders: about half a core.
const ENCODE_BUDGET: u64 = 200_000_000;
const MAX_VISITS: u64 = 32;
/// At 100 Mbit/s and symbols of 1400 bytes, runs are of one symbol.
const RUNS_PER_SEC: u64 = 10_000;
/// Longer runs save little more.
const LONGEST_RUN: u64 = 16;
const MAX_EXPECTED_LOSS: f64 = 0.5;
/// Blocks get that many more or fewer symbols in a stretch of a cycle.
const UNEVEN: f64 = 3.0;
const MIN_SYMBOL_SIZE: u16 = 64;
/// Twice this is below K'_max.
const MAX_BLOCK_SYMBOLS: u32 = 24_000;
/// How much larger than asked for blocks may get before a file is split into several objects.
const GROWTH: u64 = 2;
/// Bytes of a File element without its name, about.
const ENTRY_BYTES: usize = 440;
/// Bytes of a block's digest in base64, about.
const DIGEST_BYTES: usize = 22;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::LinkEntry;
    use weir_units::Rate;

    fn plan(sizes: &[usize], options: &CarouselOptions) -> (Plan, Vec<Manifest>) {
        let folder = tempfile::tempdir().expect("temporary folder");
        for (i, size) in sizes.iter().enumerate() {
            std::fs::write(folder.path().join(format!("f{i:03}")), vec![i as u8 + 1; *size]).expect("file");
        }
        let set = SourceSet::collect(&[folder.path().to_owned()], false).expect("readable");
        Plan::new(set, options).expect("valid")
    }

    #[test]
    fn a_file_too_long_for_one_object_becomes_several_that_tile_it() {
        let options = CarouselOptions { block_symbols: 4, max_blocks: 2, symbol_size: 64, ..Default::default() };
        let (plan, manifests) = plan(&[5000, 10], &options);
        let parts: Vec<_> = manifests[0].files.iter().filter(|file| file.file_length == 5000).collect();
        assert_eq!(parts.len(), 5, "5000 bytes in objects of at most 2 · 8 · 64");
        let mut end = 0;
        for part in parts {
            assert_eq!(part.offset, end);
            end += part.transfer_length;
        }
        assert_eq!(end, 5000);
        assert_eq!(plan.blocks.iter().map(|block| block.length).sum::<u64>(), 5010);
    }

    #[test]
    fn sets_that_differ_in_where_a_name_ends_are_not_one() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let set = |name: &str, target: &str| {
            let mut set = SourceSet::collect(&[folder.path().to_owned()], false).expect("readable");
            let name = crate::name::Name::new(name).expect("a name");
            set.links.push(LinkEntry { name, target: target.as_bytes().into() });
            let (_, manifests) = Plan::new(set, &CarouselOptions::default()).expect("valid");
            manifests[0].set.expect("ours have a set").id
        };
        assert_ne!(set("ab", "c"), set("a", "bc"));
        assert_eq!(set("ab", "c"), set("ab", "c"));
    }

    #[test]
    fn many_files_are_described_in_instances_of_bounded_size() {
        let options = CarouselOptions { fdt_instance_bytes: 4000, tsi: 3, bundle: false, ..Default::default() };
        let (_, manifests) = plan(&[10; 100], &options);
        assert!(manifests.len() > 5);
        assert_eq!(manifests.iter().map(|manifest| manifest.files.len()).sum::<usize>(), 100);
        for manifest in &manifests {
            assert!(manifest.to_xml(2).len() < 6000);
            assert_eq!(manifest.set, manifests[0].set);
        }
    }

    #[test]
    fn memory_limits_cut_the_blocks_into_windows() {
        let rates = vec![Rate::from_mbps(1)];
        let options =
            CarouselOptions { memory_limit: 1 << 18, block_symbols: 40, channel_rates: rates, ..Default::default() };
        let (plan, _) = plan(&[4_000_000], &options);
        assert!(!plan.keep_encoders && plan.windows.len() > 2 && plan.visits == MAX_VISITS);
        assert_eq!(plan.windows.iter().map(ExactSizeIterator::len).sum::<usize>(), plan.blocks.len());
    }

    #[test]
    fn encoders_are_kept_of_as_many_blocks_as_there_is_memory_for() {
        let bytes = |memory_limit| {
            let options = CarouselOptions { memory_limit, block_symbols: 40, symbol_size: 1000, ..Default::default() };
            let (plan, _) = plan(&[4_000_000], &options);
            let kept = plan.blocks.iter().filter(|block| block.is_kept);
            (kept.map(|block| u64::from(block.symbols) * 1000).sum::<u64>(), plan.keep_encoders)
        };
        assert_eq!(bytes(18_400_000), (4_000_000, true), "2.3 times the file, and as much for batches");
        let (half, all) = bytes(9_200_000);
        assert!((1_900_000..=2_000_000).contains(&half) && !all, "{half}");
        assert_eq!(bytes(3_000_000), (0, false), "a sixth is not worth it");
    }

    #[test]
    fn repair_for_an_expected_loss_is_more_than_the_loss_and_none_for_none() {
        let options =
            CarouselOptions { memory_limit: 1 << 18, block_symbols: 40, expected_loss: 0.01, ..Default::default() };
        let (plan, _) = plan(&[4_000_000], &options);
        assert!(plan.expected_loss > CYCLE / 100 && repair_for(&plan.blocks, 0.0) == 0);
        let large = Block { symbols: 20_000, ..plan.blocks[0] };
        assert!(repair_for(&[large], 0.01) < CYCLE / 60, "blocks of many symbols lose more evenly");
    }
}
