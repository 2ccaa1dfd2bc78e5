//! A sender, a lossy path, and receivers, all in memory.

use std::path::{Path, PathBuf};

use weir_object::{Carousel, CarouselOptions, Event, Origin, SourceSet, Store, StoreOptions};
use weir_units::{Random, Rate};
use weir_wire::alc::Content;

/// The sender's address.
pub(crate) const ORIGIN: Origin = Origin(1);

/// `length` bytes that do not repeat.
pub(crate) fn content(length: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed, "content");
    let mut bytes: Vec<u8> = (0..length.div_ceil(8)).flat_map(|_| random.bits().to_le_bytes()).collect();
    bytes.truncate(length);
    bytes
}

/// The rate of each channel of a ladder of `levels` levels from 1 Mbit/s on, each `ratio` times the one below.
pub(crate) fn ladder(levels: usize, ratio: f64) -> Vec<Rate> {
    let mut cumulative = 1e6;
    let mut rates = vec![Rate::from_mbps(1)];
    for _ in 1..levels {
        rates.push(Rate::from_bps((cumulative * (ratio - 1.0)) as u64));
        cumulative *= ratio;
    }
    rates
}

/// Which channel sends next, when each sends at its own rate.
pub(crate) struct Schedule {
    spacing: Vec<f64>,
    next: Vec<f64>,
}

impl Schedule {
    pub(crate) fn new(rates: &[Rate]) -> Schedule {
        let spacing: Vec<f64> = rates.iter().map(|rate| 1e9 / rate.bps() as f64).collect();
        Schedule { next: spacing.iter().map(|spacing| spacing / 2.0).collect(), spacing }
    }

    pub(crate) fn next(&mut self) -> u16 {
        let channel = (0..self.next.len()).min_by(|a, b| self.next[*a].total_cmp(&self.next[*b])).expect("a channel");
        self.next[channel] += self.spacing[channel];
        channel as u16
    }
}

/// A sender of files that it made.
pub(crate) struct Sender {
    pub(crate) carousel: Carousel,
    pub(crate) schedule: Schedule,
    pub(crate) folder: tempfile::TempDir,
}

impl Sender {
    /// Sends files of these names and contents.
    pub(crate) fn new(files: &[(&str, &[u8])], options: &CarouselOptions) -> Sender {
        Sender::of(files, options, |_| {})
    }

    /// The same, after `finish` of each file.
    pub(crate) fn of(files: &[(&str, &[u8])], options: &CarouselOptions, finish: impl Fn(&Path)) -> Sender {
        let folder = tempfile::tempdir().expect("temporary folder");
        for (name, bytes) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("has a parent")).expect("folder");
            if !name.ends_with('/') {
                std::fs::write(&path, bytes).expect("file");
                finish(&path);
            } else {
                std::fs::create_dir_all(path).expect("folder");
            }
        }
        let mut roots: Vec<PathBuf> =
            std::fs::read_dir(folder.path()).expect("folder").map(|entry| entry.expect("entry").path()).collect();
        roots.sort();
        let set = SourceSet::collect(&roots, false).expect("readable");
        let carousel = Carousel::new(set, options).expect("valid options");
        Sender { carousel, schedule: Schedule::new(&options.channel_rates), folder }
    }

    /// The next packet that is sent, and its channel.
    pub(crate) fn next(&mut self) -> (u16, Content, Vec<u8>) {
        for _ in 0..1_000_000 {
            let channel = self.schedule.next();
            if let Some((content, symbol)) = self.carousel.next(channel) {
                return (channel, content, symbol.to_vec());
            }
            assert!(self.carousel.failure().is_none(), "{:?}", self.carousel.failure());
        }
        panic!("a sender of a million turns without a packet");
    }
}

pub(crate) fn open(folder: &Path, options: &StoreOptions) -> Store {
    Store::open(folder, options.clone()).expect("the folder can be used")
}

pub(crate) fn events(store: &mut Store) -> Vec<Event> {
    std::iter::from_fn(|| store.poll_event()).collect()
}

/// Receives the channels below `level` with random loss until everything is there; gives the number of symbols of files
/// that arrived.
pub(crate) fn receive(sender: &mut Sender, store: &mut Store, level: u16, loss: f64, seed: u64) -> u64 {
    let mut random = Random::new(seed, "loss");
    let mut arrived = 0;
    let limit = 400 * (sender.carousel.stats().symbols_per_cycle + 10_000);
    for _ in 0..limit {
        if store.is_complete() {
            return arrived;
        }
        let (channel, content, symbol) = sender.next();
        if channel < level && !random.chance(loss) {
            arrived += u64::from(content.toi != 0);
            store.add(&content, &symbol, ORIGIN).expect("the disk works");
        }
    }
    panic!("not complete after {limit} packets: {:?}", store.progress());
}

/// Checks that what `store` wrote is what `sender` has.
pub(crate) fn assert_same(sent: &Path, received: &Path) {
    let mut names: Vec<_> = std::fs::read_dir(sent).expect("folder").map(|entry| entry.expect("entry")).collect();
    names.sort_by_key(std::fs::DirEntry::file_name);
    for entry in names {
        let other = received.join(entry.file_name());
        if entry.path().is_dir() {
            assert!(other.is_dir(), "{} is missing", other.display());
            assert_same(&entry.path(), &other);
        } else {
            let same = std::fs::read(entry.path()).expect("sent") == std::fs::read(&other).expect("received");
            assert!(same, "{} differs", other.display());
        }
    }
    for entry in std::fs::read_dir(received).expect("folder") {
        let name = entry.expect("entry").file_name().to_string_lossy().into_owned();
        assert!(name == ".weir-epochs" || !name.contains(".weir-"), "{name} is left over");
    }
}

/// Two channels, and blocks of 100 symbols of 512 bytes.
pub(crate) fn two_channels() -> CarouselOptions {
    CarouselOptions {
        channel_rates: vec![Rate::from_mbps(1); 2],
        symbol_size: 512,
        block_symbols: 100,
        ..Default::default()
    }
}
