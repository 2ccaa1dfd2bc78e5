//! When the file delivery table takes a packet's place.

use weir_wire::alc::{Content, FdtInstance};
use weir_wire::fec::{NO_CODE, Oti, PayloadId};

/// The instances of the table, cut into symbols, and where each channel is in them.
#[derive(Debug)]
pub(crate) struct FdtCarousel {
    symbols: Vec<(Content, Vec<u8>)>,
    channels: Vec<Turn>,
    /// The first symbol that the other channels have sent in the first round, which they begin at the end: it is over where they meet
    /// channel 0.
    others: usize,
    repeat: Repeat,
}

/// The whole table once more, for receivers that have just come.
#[derive(Debug, Default)]
struct Repeat {
    /// The channels below this level carry it.
    level: usize,
    /// Symbols left, and the next of them.
    left: usize,
    next: usize,
}

/// One channel's place in the table.
#[derive(Debug, Clone, Copy)]
struct Turn {
    next: usize,
    /// Packets between two of the table; `None` for a channel that carries none.
    spacing: Option<u32>,
    /// Packets until the next one.
    wait: u32,
    /// Symbols left of the first, quick round.
    first_round: usize,
    /// Packets sent, as far as repeats have not used them up: each packet of a repeat takes [`PART`] of them.
    credit: u32,
}

impl Turn {
    const fn new(next: usize, spacing: Option<u32>, first_round: usize) -> Turn {
        Turn { next, spacing, wait: 0, first_round, credit: MOST_CREDIT }
    }
}

impl FdtCarousel {
    /// The table for `channels` channels. `interval` is how many packets of channel 0 pass from one turn of the whole
    /// table to the next; it is stretched so that at most one packet in ten is the table's. `everywhere` has all channels carry
    /// it, not only channel 0.
    ///
    /// `tables` are the instances as they are sent; they take the ids from `first_id` on. Each packet of the table is as long as
    /// a packet of data: the symbols are shorter by what EXT_FDT and EXT_FTI take.
    pub(crate) fn new(
        tables: &[Vec<u8>],
        version: u8,
        first_id: u32,
        symbol_size: u16,
        channels: usize,
        interval: u64,
        everywhere: bool,
    ) -> FdtCarousel {
        let symbols = symbols(tables, version, first_id, symbol_size);
        // A large table on the lowest channel alone would keep everybody waiting.
        let everywhere = everywhere || symbols.len() > QUICK_SYMBOLS;
        let base_spacing = base_spacing(interval / symbols.len() as u64);
        let channels = (0..channels)
            .map(|channel| match channel {
                0 => Turn::new(0, Some(base_spacing), symbols.len()),
                // It starts at other places there, so that a receiver of many channels has it soonest.
                _ if everywhere => Turn::new(symbols.len() * channel / channels, Some(OTHER_SPACING), 0),
                _ => Turn::new(0, None, 0),
            })
            .collect();
        let others = symbols.len();
        FdtCarousel { symbols, channels, others, repeat: Repeat::default() }
    }

    /// A receiver that has just come gets the channels below this level. They send the whole table once, from where the latest repeat stopped. In the long run this takes
    /// at most one packet in ten of each channel.
    pub(crate) fn repeat(&mut self, level: usize) {
        (self.repeat.level, self.repeat.left) = (level, self.symbols.len());
    }

    /// Sends other tables from here on, as many bytes of them as before or nearly so.
    pub(crate) fn replace(&mut self, tables: &[Vec<u8>], version: u8, first_id: u32, symbol_size: u16) {
        self.symbols = symbols(tables, version, first_id, symbol_size);
        self.channels.iter_mut().for_each(|turn| turn.next %= self.symbols.len());
        self.others = self.others.min(self.symbols.len());
        self.repeat = Repeat::default();
    }

    /// The table's packet for `channel`, if it is the table's turn.
    pub(crate) fn due(&mut self, channel: usize) -> Option<usize> {
        let count = self.symbols.len();
        let of_base = count - self.channels.first().map_or(0, |base| base.first_round).min(count);
        let turn = self.channels.get_mut(channel)?;
        turn.credit = (turn.credit + 1).min(MOST_CREDIT);
        if channel < self.repeat.level && self.repeat.left > 0 && turn.credit >= PART {
            turn.credit -= PART;
            self.repeat.left -= 1;
            let symbol = self.repeat.next;
            self.repeat.next = (symbol + 1) % count;
            return Some(symbol);
        }
        let spacing = turn.spacing?;
        if turn.wait > 0 {
            turn.wait -= 1;
            return None;
        }
        turn.wait = spacing - 1;
        if channel > 0 && self.others > of_base {
            // The table is of use once it is whole: until then it has every second packet of every channel.
            turn.wait = 1;
            self.others -= 1;
            return Some(self.others);
        }
        if turn.first_round > 0 {
            turn.first_round -= 1;
            if turn.first_round > 0 {
                turn.wait = u32::from(count > QUICK_SYMBOLS);
            }
        }
        let symbol = turn.next;
        turn.next = (turn.next + 1) % count;
        Some(symbol)
    }

    /// The table's next packet, due or not, for a sender that has nothing else to send.
    pub(crate) fn filler(&mut self) -> usize {
        let turn = &mut self.channels[0];
        let symbol = turn.next;
        turn.next = (turn.next + 1) % self.symbols.len();
        symbol
    }

    pub(crate) fn symbol(&self, index: usize) -> (Content, &[u8]) {
        let (content, bytes) = &self.symbols[index];
        (*content, bytes)
    }

    pub(crate) fn len(&self) -> usize {
        self.symbols.len()
    }
}

/// From one packet of the table to the next on channel 0, where the interval that was asked for has this many between them. Where that is
/// cheap, the table comes more often: a receiver that joins is the sooner able to use what it gets.
fn base_spacing(asked_for: u64) -> u32 {
    let often = OFTEN.map(|(spacing, turns)| spacing.max(asked_for / turns));
    often.into_iter().fold(asked_for, u64::min).clamp(MIN_SPACING, 1 << 30) as u32
}

/// The packets of the tables.
fn symbols(tables: &[Vec<u8>], version: u8, first_id: u32, symbol_size: u16) -> Vec<(Content, Vec<u8>)> {
    let symbol_size = symbol_size - HEADER_DIFFERENCE;
    let mut symbols = Vec::new();
    for (number, table) in tables.iter().enumerate() {
        let id = first_id.wrapping_add(number as u32);
        let max_block_len = table.len().div_ceil(usize::from(symbol_size)) as u32;
        let oti = Oti::NoCode { transfer_length: table.len() as u64, symbol_size, max_block_len };
        for (symbol, bytes) in table.chunks(usize::from(symbol_size)).enumerate() {
            let content = Content {
                toi: 0,
                encoding_id: NO_CODE,
                payload_id: PayloadId { block: 0, symbol: symbol as u32 },
                fdt: Some(FdtInstance { version, id: id & ID_MASK, content_encoding: 0 }),
                oti: Some(oti),
                ask: None,
            };
            symbols.push((content, bytes.to_vec()));
        }
    }
    symbols
}

/// EXT_FDT, EXT_FTI and EXT_ASK, which only the table's packets have.
const HEADER_DIFFERENCE: u16 = 4 + 16 + 4;
/// At most one packet in ten of channel 0 is the table's.
const MIN_SPACING: u64 = 10;
/// Repeats of the table take at most one packet in ten of each channel in the long run, and at most eight in a row.
const PART: u32 = 10;
const MOST_CREDIT: u32 = 8 * PART;
/// How often the table comes where that is cheap: a spacing that it keeps, and the most turns in the interval. One packet in a hundred costs little. One in a thousand costs
/// next to nothing, and without the table a receiver of gigabits a second soon holds more than it has memory for.
const OFTEN: [(u64, u64); 2] = [(100, 4), (1_000, 40)];
/// On the other channels, where they carry it at all, one in 50.
const OTHER_SPACING: u32 = 50;
/// A table of at most this number of symbols is sent at once at the start; a larger one in every second packet.
const QUICK_SYMBOLS: usize = 64;
/// Instance ids have 20 bits.
const ID_MASK: u32 = (1 << 20) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    const CHANNELS: usize = 20;

    /// A table of this many symbols.
    fn carousel(symbols: usize) -> FdtCarousel {
        let table = vec![7; symbols * usize::from(1_400 - HEADER_DIFFERENCE)];
        FdtCarousel::new(&[table], 1, 0, 1_400, CHANNELS, 80_000, false)
    }

    /// How many packets of each of these channels pass until they have sent each symbol of the table. Others send a hundred times as many.
    fn packets_until_whole(carousel: &mut FdtCarousel, level: usize, most: usize) -> Option<usize> {
        let mut missing: std::collections::BTreeSet<usize> = (0..carousel.len()).collect();
        (1..=most).find(|_| {
            (0..100).for_each(|_| (level..CHANNELS).for_each(|channel| _ = carousel.due(channel)));
            (0..level).for_each(|channel| _ = carousel.due(channel).map(|symbol| missing.remove(&symbol)));
            missing.is_empty()
        })
    }

    #[test]
    fn who_comes_late_has_the_table_after_a_few_packets_of_each_channel_that_he_has() {
        for (symbols, level, packets) in [(3, 1, 3), (16, 4, 4), (600, 20, 221)] {
            let mut carousel = carousel(symbols);
            (0..2_000).for_each(|_| (0..CHANNELS).for_each(|channel| _ = carousel.due(channel)));
            assert_eq!(packets_until_whole(&mut carousel, level, packets), None, "{symbols}: it is rare");
            carousel.repeat(level);
            assert_eq!(
                packets_until_whole(&mut carousel, level, packets),
                Some(packets),
                "{symbols}: somebody has come"
            );
        }
    }

    #[test]
    fn who_comes_while_the_table_is_repeated_gets_all_of_it_and_so_does_who_was_there() {
        let mut carousel = carousel(16);
        (0..2_000).for_each(|_| (0..CHANNELS).for_each(|channel| _ = carousel.due(channel)));
        carousel.repeat(8);
        let round = |carousel: &mut FdtCarousel, level: usize| -> Vec<usize> {
            (0..level).filter_map(|channel| carousel.due(channel)).collect()
        };
        assert_eq!(round(&mut carousel, 8), (0..8).collect::<Vec<_>>());
        carousel.repeat(4);
        let after: Vec<usize> = (0..4).flat_map(|_| round(&mut carousel, 8)).collect();
        assert_eq!(after, (8..16).chain(0..8).collect::<Vec<_>>());
        assert!(round(&mut carousel, 8).is_empty(), "it is over");
    }

    #[test]
    fn however_many_come_repeats_take_one_packet_in_ten_of_a_channel() {
        let mut carousel = carousel(3);
        let of_table = (0..10_000).filter(|_| {
            carousel.repeat(1);
            carousel.due(0).is_some()
        });
        // A thousand, eight that were not sent before, and what it sends anyway.
        assert!((1_000..=1_000 + 8 + 3 + 10).contains(&of_table.count()));
    }

    #[test]
    fn the_table_comes_up_to_four_times_as_often_where_that_takes_a_packet_in_a_hundred_and_forty_times_for_one_in_a_thousand()
     {
        assert_eq!([1, 10, 99, 100].map(base_spacing), [10, 10, 99, 100], "as asked for, but a tenth at most");
        assert_eq!([101, 399, 400, 4_000].map(base_spacing), [100, 100, 100, 1_000]);
        assert_eq!([4_001, 39_999, 80_000].map(base_spacing), [1_000, 1_000, 2_000]);
    }
}
