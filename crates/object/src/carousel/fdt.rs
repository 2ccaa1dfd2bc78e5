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
                0 => Turn { next: 0, spacing: Some(base_spacing), wait: 0, first_round: symbols.len() },
                // It starts at other places there, so that a receiver of many channels has it soonest.
                _ if everywhere => Turn {
                    next: symbols.len() * channel / channels,
                    spacing: Some(OTHER_SPACING),
                    wait: 0,
                    first_round: 0,
                },
                _ => Turn { next: 0, spacing: None, wait: 0, first_round: 0 },
            })
            .collect();
        let others = symbols.len();
        FdtCarousel { symbols, channels, others }
    }

    /// Sends other tables from here on, as many bytes of them as before or nearly so.
    pub(crate) fn replace(&mut self, tables: &[Vec<u8>], version: u8, first_id: u32, symbol_size: u16) {
        self.symbols = symbols(tables, version, first_id, symbol_size);
        self.channels.iter_mut().for_each(|turn| turn.next %= self.symbols.len());
        self.others = self.others.min(self.symbols.len());
    }

    /// The table's packet for `channel`, if it is the table's turn.
    pub(crate) fn due(&mut self, channel: usize) -> Option<usize> {
        let count = self.symbols.len();
        let of_base = count - self.channels.first().map_or(0, |base| base.first_round).min(count);
        let turn = self.channels.get_mut(channel)?;
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

    #[test]
    fn the_table_comes_up_to_four_times_as_often_where_that_takes_a_packet_in_a_hundred_and_forty_times_for_one_in_a_thousand()
     {
        assert_eq!([1, 10, 99, 100].map(base_spacing), [10, 10, 99, 100], "as asked for, but a tenth at most");
        assert_eq!([101, 399, 400, 4_000].map(base_spacing), [100, 100, 100, 1_000]);
        assert_eq!([4_001, 39_999, 80_000].map(base_spacing), [1_000, 1_000, 2_000]);
    }
}
