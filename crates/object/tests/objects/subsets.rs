//! Receivers whose channels change all the time, as those of STAIR and FGLM do: any symbol of any channel is of use.

use crate::common::*;
use std::collections::BTreeSet;
use weir_object::{CarouselOptions, StoreOptions};
use weir_units::{Random, Rate};

/// Cumulative layers, non-cumulative ones, and four stairs, of a session from 1 to 100 Mbit/s.
fn channels() -> Vec<Rate> {
    let megabits = [1, 1, 1, 2, 2, 4, 6, 8, 13, 19, 29, 14, 1, 2, 4, 7, 12, 20, 1, 1, 1, 1];
    megabits.map(Rate::from_mbps).to_vec()
}

/// Receives with random loss, on channels that `choose` gives again after every `packets` packets that are sent; how many
/// symbols of files came, over how many there are in the file, less 1.
fn overhead(
    sender: &mut Sender,
    packets: usize,
    seed: u64,
    mut choose: impl FnMut(&mut Random) -> BTreeSet<u16>,
) -> f64 {
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions { sync: false, ..Default::default() });
    let mut random = Random::new(seed, "subsets");
    let mut arrived = 0;
    let limit = 400 * (sender.carousel.stats().symbols_per_cycle + 10_000) as usize;
    for turn in 0..limit / packets {
        let members = choose(&mut random);
        for _ in 0..packets {
            let (channel, content, symbol) = sender.next();
            if members.contains(&channel) && !random.chance(0.01) {
                arrived += u64::from(content.toi != 0);
                store.add(&content, &symbol, ORIGIN).expect("the disk works");
            }
            if store.is_complete() {
                assert!(turn > 2, "the channels did not change");
                assert_same(sender.folder.path(), out.path());
                return arrived as f64 / sender.carousel.stats().symbols_per_cycle as f64 - 1.0;
            }
        }
    }
    panic!("not complete: {:?}", store.progress());
}

/// Channel 0 and any others, each with this probability.
fn any_with_the_base(share: f64) -> impl FnMut(&mut Random) -> BTreeSet<u16> {
    move |random| (0..22).filter(|channel| *channel == 0 || random.chance(share)).collect()
}

#[test]
fn channels_that_change_every_tenth_of_a_second_cost_a_few_per_cent() {
    let bytes = content(24_000_000, 1);
    for share in [0.1, 0.3, 0.6] {
        let options = CarouselOptions { channel_rates: channels(), ..Default::default() };
        let mut sender = Sender::new(&[("a", &bytes)], &options);
        // 150 Mbit/s are 1300 packets in a tenth of a second.
        let overhead = overhead(&mut sender, 1_300, 1, any_with_the_base(share));
        eprintln!("share {share}: overhead {:.2} %", overhead * 100.0);
        assert!((-1e-9..=0.04).contains(&overhead), "share {share}: {overhead}");
    }
}

#[test]
fn windows_of_a_large_file_are_as_even_for_channels_that_change() {
    let bytes = content(24_000_000, 1);
    let options = CarouselOptions { channel_rates: channels(), memory_limit: 4 << 20, ..Default::default() };
    let mut sender = Sender::new(&[("a", &bytes)], &options);
    let overhead = overhead(&mut sender, 1_300, 2, any_with_the_base(0.3));
    eprintln!("windows: overhead {:.2} %", overhead * 100.0);
    assert!((-1e-9..=0.05).contains(&overhead), "{overhead}");
}

#[test]
fn a_receiver_that_is_never_on_the_base_channel_has_the_table_too() {
    let bytes = content(2_000_000, 1);
    let options = CarouselOptions { channel_rates: channels(), base_channel: false, ..Default::default() };
    let mut sender = Sender::new(&[("a", &bytes)], &options);
    for channel in [1, 12, 17, 21] {
        let overhead = overhead(&mut sender, 1_300, 3, |_| BTreeSet::from([channel]));
        assert!((-1e-9..=0.04).contains(&overhead), "channel {channel}: {overhead}");
    }
}
