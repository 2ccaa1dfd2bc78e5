//! How fast the carousel gives symbols, the store takes them, and blocks are decoded.
//!
//! `cargo run --release -p weir-object --example throughput [MiB [FOLDER]]`; FOLDER should be in memory (/dev/shm).

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::path::{Path, PathBuf};
use std::time::Instant;

use weir_object::{Carousel, CarouselOptions, Origin, SourceSet, Store, StoreOptions};
use weir_units::{Random, Rate};
use weir_wire::alc::Content;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mebibytes: usize = arguments.next().map_or(256, |text| text.parse().expect("a number of MiB"));
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| "/dev/shm".to_owned()));
    let folder = folder.join(format!("weir-throughput-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    let path = folder.join("file");
    let mut random = Random::new(1, "file");
    let bytes: Vec<u8> = (0..mebibytes << 17).flat_map(|_| random.bits().to_le_bytes()).collect();
    std::fs::write(&path, &bytes).expect("room for the file");
    drop(bytes);

    let start = Instant::now();
    let set = SourceSet::collect(&[path], false).expect("readable");
    println!("hash {mebibytes} MiB: {:.3} s", start.elapsed().as_secs_f64());

    first_pass(&set, &folder);
    repair(&set);
    for block_symbols in [256, 512, 1024, 2048, 3072, 4096, 8192] {
        lossy(&set, &folder, block_symbols);
    }
    std::fs::remove_dir_all(&folder).expect("our own folder");
}

fn rates() -> Vec<Rate> {
    let mut cumulative = 10e6;
    let mut rates = vec![Rate::from_mbps(10)];
    for _ in 1..13 {
        rates.push(Rate::from_bps((cumulative * 0.5) as u64));
        cumulative *= 1.5;
    }
    rates
}

/// Channels in the order in which a sender serves them: a slot of 5 ms of each.
fn turns(rates: &[Rate]) -> impl Iterator<Item = u16> + use<> {
    let per_slot: Vec<f64> = rates.iter().map(|rate| rate.bps() as f64 * 0.005 / 8.0 / 1400.0).collect();
    let mut credit = vec![0.0; rates.len()];
    let mut slot = Vec::new();
    std::iter::from_fn(move || {
        while slot.is_empty() {
            for channel in (0..credit.len()).rev() {
                credit[channel] += per_slot[channel];
                let whole = credit[channel] as usize;
                credit[channel] -= whole as f64;
                slot.extend(std::iter::repeat_n(channel as u16, whole));
            }
        }
        slot.pop()
    })
}

fn first_pass(set: &SourceSet, folder: &Path) {
    let options = CarouselOptions { channel_rates: rates(), ..Default::default() };
    let mut turns = turns(&options.channel_rates);
    let mut carousel = Carousel::new(set.clone(), &options).expect("valid");
    let symbols = carousel.stats().symbols_per_cycle;
    let start = Instant::now();
    let mut sum = 0u64;
    while carousel.stats().symbols < symbols {
        let (_, symbol) = carousel.next(turns.next().expect("endless")).expect("a packet");
        sum += u64::from(symbol[0]);
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("next, first cycle: {:.0} symbols/s (check {sum})", symbols as f64 / seconds);

    let mut carousel = Carousel::new(set.clone(), &options).expect("valid");
    let packets: Vec<(Content, Vec<u8>)> = (0..symbols + 20)
        .map(|_| {
            let (content, symbol) = carousel.next(turns.next().expect("endless")).expect("a packet");
            (content, symbol.to_vec())
        })
        .collect();
    drop(carousel);
    for sync in [false, true] {
        let out = folder.join("out");
        let mut store = Store::open(&out, StoreOptions { sync, ..Default::default() }).expect("folder");
        let (start, cpu) = (Instant::now(), cpu_seconds());
        for (content, symbol) in &packets {
            store.add(content, symbol, Origin(1)).expect("room");
        }
        assert!(store.is_complete(), "{:?}", store.progress());
        let gigabytes = set.bytes() as f64 / 1e9;
        let (wall, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu);
        println!(
            "store, all source symbols, sync {sync}: {:.2} CPU s/GB, {:.2} s/GB",
            cpu / gigabytes,
            wall / gigabytes
        );
        std::fs::remove_dir_all(&out).expect("our own folder");
    }
}

fn repair(set: &SourceSet) {
    let options = CarouselOptions { channel_rates: rates(), ..Default::default() };
    let mut turns = turns(&options.channel_rates);
    let mut carousel = Carousel::new(set.clone(), &options).expect("valid");
    let symbols = carousel.stats().symbols_per_cycle;
    let mut cycle = |carousel: &mut Carousel, until: u64| {
        let (start, cpu) = (Instant::now(), cpu_seconds());
        let before = carousel.stats().symbols;
        while carousel.stats().symbols < until {
            carousel.next(turns.next().expect("endless")).expect("a packet");
        }
        let count = (carousel.stats().symbols - before) as f64;
        (count / start.elapsed().as_secs_f64(), (cpu_seconds() - cpu) / (count * 1400.0 / 1e9))
    };
    cycle(&mut carousel, symbols);
    for part in ["1/16", "2/16", "3/16", "4/16"] {
        let until = carousel.stats().symbols + symbols / 16;
        let (rate, cpu) = cycle(&mut carousel, until);
        println!("next, second cycle, {part}: {rate:.0} symbols/s, {cpu:.2} CPU s/GB");
    }
}

/// A receiver that loses 2 % of all packets: every block has to be decoded.
fn lossy(set: &SourceSet, folder: &Path, block_symbols: u32) {
    let options = CarouselOptions { channel_rates: rates(), block_symbols, ..Default::default() };
    let mut turns = turns(&options.channel_rates);
    let mut carousel = Carousel::new(set.clone(), &options).expect("valid");
    let mut random = Random::new(1, "loss");
    let out = folder.join("out");
    let mut store = Store::open(&out, StoreOptions { sync: false, ..Default::default() }).expect("folder");
    let (mut arrived, mut busy) = (0u64, 0.0);
    while !store.is_complete() {
        let (content, symbol) = carousel.next(turns.next().expect("endless")).expect("a packet");
        if !random.chance(0.02) {
            arrived += u64::from(content.toi != 0);
            let start = Instant::now();
            store.add(&content, symbol, Origin(1)).expect("room");
            busy += start.elapsed().as_secs_f64();
        }
    }
    let overhead = arrived as f64 / carousel.stats().symbols_per_cycle as f64 - 1.0;
    println!(
        "blocks of {block_symbols}: lossy receiver {:.0} MB/s in add, overhead {:.2} %, {} blocks decoded",
        set.bytes() as f64 / 1e6 / busy,
        overhead * 100.0,
        store.progress().decoded_blocks
    );
    drop(store);
    std::fs::remove_dir_all(&out).expect("our own folder");
}

/// CPU time of this process, all threads, seconds.
fn cpu_seconds() -> f64 {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("Linux has this clock");
    time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9
}
