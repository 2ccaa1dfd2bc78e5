//! Which symbols of a block are wrong, if a few more came than the block needs.
//!
//! A RaptorQ block is a linear code over GF(256). Decoding symbols and encoding the result again gives back symbols that fit each
//! other; what they differ by from those that came, the residual, is the same linear map `C` of what is wrong with them, whatever is
//! in the block. A residual has a column for each byte of a symbol, so as long as the wrong symbols are wrong in different ways, its
//! columns span what the columns of `C` for these symbols span. A symbol is wrong if its column of `C` lies in that span. This finds `t` wrong
//! symbols with `t + 2` more than the block has source symbols, by chance fails for one block in hundreds, and then finds them with one
//! symbol more (interleaved codes decoded by the rank of their syndromes; Metzner and Kapturowski, IEEE Trans. Inf. Theory 36(4), 1990).
//!
//! The map is read off the library's own decoder and encoder, which are linear: they are given unit vectors in the place of symbols.
//!
//! Not here: whether what remains is right, which its digest says (`blocks.rs`).

use std::collections::HashMap;

use raptorq::{EncodingPacket, ObjectTransmissionInformation, PayloadId, SourceBlockDecoder, SourceBlockEncoder};

use super::octets::{add_multiple, inverse, scale};

/// A symbol's number and bytes.
pub(super) type Symbol = (u32, Vec<u8>);

/// Why it is not known which symbols are wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    /// There are too few. More may tell.
    TooFew,
    /// Several are wrong in the same way: no number of them tells.
    Alike,
}

/// The places of the symbols that are wrong of those that came for a block of `count` source symbols.
pub(super) fn find(
    count: u32,
    codec: &ObjectTransmissionInformation,
    symbols: &[Symbol],
) -> Result<Vec<usize>, Unknown> {
    let more = symbols.len().saturating_sub(count as usize);
    let most = more.checked_sub(SPARE).ok_or(Unknown::TooFew)?;
    let residual = residual(count, codec, symbols).ok_or(Unknown::TooFew)?;
    // Most often there are too few, and this alone shows it.
    Span::of(columns(&residual, &not_zero(&residual)), most).ok_or(Unknown::TooFew)?;
    let map = map(count, symbols).ok_or(Unknown::TooFew)?;
    let rows = not_zero(&map);
    let span = Span::of(columns(&residual, &rows), most).ok_or(Unknown::TooFew)?;
    let mut checks: Vec<Vec<u8>> = columns(&map, &rows).collect();
    checks.iter_mut().for_each(|check| span.reduce(check));
    let mut wrong: Vec<usize> = (0..checks.len()).filter(|at| is_zero(&checks[*at])).collect();
    if wrong.len() < span.rank() {
        if span.rank() + 2 * SPARE > more {
            return Err(Unknown::TooFew);
        }
        // Two that are wrong in the same way are not in the span, but differ by something that is.
        wrong.extend(parallel(&mut checks));
    }
    if wrong.is_empty() || wrong.len() > more { Err(Unknown::Alike) } else { Ok(wrong) }
}

/// Whether a block of this many symbols is small enough to search.
pub(super) fn can_search(symbols: u32) -> bool {
    symbols <= MOST_SYMBOLS
}

/// About how many symbols [`find`] decodes and encodes.
pub(super) fn cost(symbols: usize) -> u64 {
    (symbols * (1 + symbols.div_ceil(WIDTH))) as u64
}

/// What each symbol differs by from what the others make of it; `None` if these cannot be decoded.
fn residual(count: u32, codec: &ObjectTransmissionInformation, symbols: &[Symbol]) -> Option<Vec<Vec<u8>>> {
    let size = usize::from(codec.symbol_size());
    let packets = symbols.iter().map(|(number, bytes)| EncodingPacket::new(PayloadId::new(0, *number), bytes.clone()));
    let decoded = SourceBlockDecoder::new(0, codec, u64::from(count) * size as u64).decode(packets)?;
    let encoder = SourceBlockEncoder::new(0, codec, &decoded);
    let sources = encoder.source_packets();
    let differs_by = |(number, bytes): &Symbol| {
        let mut rest = bytes.clone();
        match sources.get(*number as usize) {
            Some(source) => add_multiple(&mut rest, source.data(), 1),
            None => add_multiple(&mut rest, encoder.repair_packets(number - count, 1)[0].data(), 1),
        }
        rest
    };
    Some(symbols.iter().map(differs_by).collect())
}

/// The map from what is wrong with each symbol to the residual, as a matrix: its columns are the residuals of blocks of zeros but
/// for a one in one symbol.
fn map(count: u32, symbols: &[Symbol]) -> Option<Vec<Vec<u8>>> {
    let mut map = vec![Vec::with_capacity(symbols.len()); symbols.len()];
    for first in (0..symbols.len()).step_by(WIDTH) {
        let width = WIDTH.min(symbols.len() - first);
        let unit = |at: usize| (first..first + width).map(|column| u8::from(at == column)).collect();
        let units: Vec<Symbol> = symbols.iter().enumerate().map(|(at, (number, _))| (*number, unit(at))).collect();
        let codec = ObjectTransmissionInformation::new(u64::from(count) * width as u64, width as u16, 1, 1, 1);
        map.iter_mut().zip(residual(count, &codec, &units)?).for_each(|(row, more)| row.extend(more));
    }
    Some(map)
}

/// The rows that are not zero.
fn not_zero(rows: &[Vec<u8>]) -> Vec<usize> {
    (0..rows.len()).filter(|row| !is_zero(&rows[*row])).collect()
}

/// The columns of some rows of a matrix.
fn columns<'r>(matrix: &'r [Vec<u8>], rows: &'r [usize]) -> impl Iterator<Item = Vec<u8>> + 'r {
    let width = matrix.first().map_or(0, Vec::len);
    (0..width).map(|column| rows.iter().map(|row| matrix[*row][column]).collect())
}

/// A space of vectors, as a basis in echelon form: each vector is one in a place of its own, where those after it are zero.
struct Span(Vec<(usize, Vec<u8>)>);

impl Span {
    /// What these vectors span, unless that has more than `most` dimensions.
    fn of(vectors: impl Iterator<Item = Vec<u8>>, most: usize) -> Option<Span> {
        let mut span = Span(Vec::new());
        for mut vector in vectors {
            span.reduce(&mut vector);
            if let Some(lead) = normalise(&mut vector) {
                if span.rank() == most {
                    return None;
                }
                span.0.push((lead, vector));
            }
        }
        Some(span)
    }

    fn rank(&self) -> usize {
        self.0.len()
    }

    /// Makes a vector zero in the places of the basis, by adding multiples of it.
    fn reduce(&self, vector: &mut [u8]) {
        self.0.iter().for_each(|(lead, basis)| {
            let factor = vector[*lead];
            add_multiple(vector, basis, factor);
        });
    }
}

/// Makes the first octet one that is not zero, and says where it is.
fn normalise(vector: &mut [u8]) -> Option<usize> {
    let lead = vector.iter().position(|octet| *octet != 0)?;
    scale(vector, inverse(vector[lead]));
    Some(lead)
}

fn is_zero(vector: &[u8]) -> bool {
    vector.iter().all(|octet| *octet == 0)
}

/// The vectors that are multiples of others among them and not zero.
fn parallel(vectors: &mut [Vec<u8>]) -> Vec<usize> {
    let mut alike: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for (at, vector) in vectors.iter_mut().enumerate() {
        if normalise(vector).is_some() {
            alike.entry(vector).or_default().push(at);
        }
    }
    alike.into_values().filter(|places| places.len() > 1).flatten().collect()
}

/// Symbols beyond one for each that is wrong. A right one is taken for wrong with a chance of 256 to the power of minus this; another
/// symbol then helps.
const SPARE: usize = 2;
/// More take too much memory: the map has a byte for each pair of symbols.
const MOST_SYMBOLS: u32 = 6144;
/// Unit vectors that go through the decoder together.
const WIDTH: usize = 2048;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_units::Random;

    const SIZE: usize = 48;

    /// `count + more` symbols of a block: source symbols with gaps, and repair symbols.
    fn block(count: u32, more: u32, seed: u64) -> (ObjectTransmissionInformation, Vec<Symbol>) {
        let mut random = Random::new(seed, "block");
        let content: Vec<u8> = (0..count as usize * SIZE).map(|_| random.below(256) as u8).collect();
        let codec = ObjectTransmissionInformation::new(content.len() as u64, SIZE as u16, 1, 1, 1);
        let encoder = SourceBlockEncoder::new(0, &codec, &content);
        let first = random.below(1 << 20) as u32;
        let packets = encoder.source_packets().into_iter().chain(encoder.repair_packets(first, count + more));
        let mut symbols: Vec<Symbol> =
            packets.map(|packet| (packet.payload_id().encoding_symbol_id(), packet.data().to_vec())).collect();
        while symbols.len() > (count + more) as usize {
            symbols.swap_remove(random.below(symbols.len() as u64) as usize);
        }
        (codec, symbols)
    }

    fn sorted(mut places: Vec<usize>) -> Vec<usize> {
        places.sort_unstable();
        places
    }

    proptest! {
        #[test]
        fn symbols_that_are_wrong_in_ways_of_their_own_are_found_with_three_more(
            count in 1u32..300, wrong in 1u32..20, seed in any::<u64>(),
        ) {
            let (codec, mut symbols) = block(count, wrong + 3, seed);
            let mut random = Random::new(seed, "wrong");
            let at: Vec<usize> = (0..wrong as usize).map(|i| i * symbols.len() / wrong as usize).collect();
            at.iter().for_each(|at| symbols[*at].1.iter_mut().for_each(|octet| *octet = random.below(256) as u8));
            let found = sorted(find(count, &codec, &symbols).unwrap_or_default());
            // A right one may be among them, by a chance of two in a million for each.
            prop_assert!(at.iter().all(|at| found.contains(at)) && found.len() <= at.len() + 1, "{found:?}, not {at:?}");
        }

        #[test]
        fn with_as_many_wrong_as_there_are_more_nothing_is_said(count in 4u32..100, more in 2u32..8, seed in any::<u64>()) {
            let (codec, mut symbols) = block(count, more, seed);
            let mut random = Random::new(seed, "wrong");
            symbols[..more as usize].iter_mut().for_each(|symbol| symbol.1.iter_mut().for_each(|octet| *octet = random.below(256) as u8));
            prop_assert_eq!(find(count, &codec, &symbols), Err(Unknown::TooFew));
        }
    }

    #[test]
    fn two_symbols_with_the_same_bit_flipped_are_found() {
        let (codec, mut symbols) = block(100, 6, 1);
        [7, 70].iter().for_each(|at: &usize| symbols[*at].1[3] ^= 0x10);
        assert_eq!(sorted(find(100, &codec, &symbols).expect("found")), [7, 70]);
    }

    #[test]
    fn where_many_have_the_same_bit_flipped_or_none_is_wrong_nothing_is_found() {
        let (codec, mut symbols) = block(100, 20, 1);
        assert_eq!(find(100, &codec, &symbols), Err(Unknown::Alike));
        symbols.iter_mut().step_by(20).for_each(|symbol| symbol.1[3] ^= 0x10);
        assert_eq!(find(100, &codec, &symbols), Err(Unknown::Alike));
    }
}
