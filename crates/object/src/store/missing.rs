//! Decoding a block of which few source symbols are missing.
//!
//! A repair symbol is a linear function of the source symbols over GF(256). Encoding the block with zeros for what is missing gives what the
//! others contribute to each repair symbol that came; the difference is what the missing ones do. Encoding a block of unit vectors gives the
//! factors. As many equations as unknowns are left, which is a far smaller system than that of the whole block, and encoding needs no
//! elimination, as its plan depends on the number of source symbols alone.
//!
//! What can be decoded so is what RaptorQ's own decoder can decode: both solve the same equations. Where more is missing, that decoder is
//! the faster one, and has the block.

use raptorq::{EncodingPacket, ObjectTransmissionInformation, PayloadId, SourceBlockDecoder, SourceBlockEncoder};

use super::octets::{add_multiple, inverse, scale};

/// The source symbols of a block of `count` of them, if these symbols are enough. Each is given at most once.
pub(super) fn decode<'s>(
    codec: &ObjectTransmissionInformation,
    count: u32,
    symbols: impl Iterator<Item = (u32, &'s [u8])> + Clone,
) -> Option<Vec<u8>> {
    let (count, size) = (count as usize, usize::from(codec.symbol_size()));
    let mut is_missing = vec![true; count];
    let sources = symbols.clone().filter(|(number, _)| (*number as usize) < count);
    sources.for_each(|(number, _)| is_missing[number as usize] = false);
    let missing: Vec<usize> = (0..count).filter(|number| is_missing[*number]).collect();
    // With sub-blocks, symbols do not lie in the block in one piece.
    if missing.len() > count / FEW || codec.sub_blocks() > 1 {
        let packets = symbols.map(|(number, bytes)| EncodingPacket::new(PayloadId::new(0, number), bytes.to_vec()));
        return SourceBlockDecoder::new(0, codec, (count * size) as u64).decode(packets);
    }
    let mut block = vec![0; count * size];
    let mut repairs = Vec::new();
    for (number, bytes) in symbols {
        match block.chunks_exact_mut(size).nth(number as usize) {
            Some(place) => place.copy_from_slice(bytes),
            None => repairs.push((number, bytes)),
        }
    }
    let solved = solve(codec, &block, &missing, &repairs)?;
    for (number, symbol) in missing.iter().zip(solved) {
        block[number * size..][..size].copy_from_slice(&symbol);
    }
    Some(block)
}

/// The missing symbols of a block that has zeros in their places, if these repair symbols are enough.
fn solve(
    codec: &ObjectTransmissionInformation,
    block: &[u8],
    missing: &[usize],
    repairs: &[(u32, &[u8])],
) -> Option<Vec<Vec<u8>>> {
    if repairs.len() < missing.len() {
        return None;
    }
    if missing.is_empty() {
        return Some(Vec::new());
    }
    let count = block.len() / usize::from(codec.symbol_size());
    let others = SourceBlockEncoder::new(0, codec, block);
    let factors = unit_vectors(count, missing);
    let repair = |of: &SourceBlockEncoder, number: u32| of.repair_packets(number - count as u32, 1).remove(0).split().1;
    let equation = |(number, bytes): &(u32, &[u8])| {
        let mut difference = repair(&others, *number);
        add_multiple(&mut difference, bytes, 1);
        Equation { factors: repair(&factors, *number), sum: difference }
    };
    eliminate(repairs.iter().map(equation).collect(), missing.len())
}

/// A block in which missing symbol `i` is a vector that is one in place `i`, and the others are zero.
fn unit_vectors(count: usize, missing: &[usize]) -> SourceBlockEncoder {
    let width = missing.len();
    let mut units = vec![0; count * width];
    missing.iter().enumerate().for_each(|(i, number)| units[number * width + i] = 1);
    let size = u16::try_from(width).expect("fewer are missing than a block has symbols");
    let codec = ObjectTransmissionInformation::new(units.len() as u64, size, 1, 1, 1);
    SourceBlockEncoder::new(0, &codec, &units)
}

/// What the missing symbols, each times its factor, add up to.
struct Equation {
    factors: Vec<u8>,
    sum: Vec<u8>,
}

/// Solves for so many unknowns (Gauss and Jordan), if the equations are enough.
fn eliminate(mut equations: Vec<Equation>, unknowns: usize) -> Option<Vec<Vec<u8>>> {
    for unknown in 0..unknowns {
        let with = (unknown..equations.len()).find(|row| equations[*row].factors[unknown] != 0)?;
        equations.swap(unknown, with);
        let (before, rest) = equations.split_at_mut(unknown);
        let (pivot, after) = rest.split_first_mut().expect("one was found from here on");
        let factor = inverse(pivot.factors[unknown]);
        scale(&mut pivot.factors, factor);
        scale(&mut pivot.sum, factor);
        for other in before.iter_mut().chain(after) {
            let factor = other.factors[unknown];
            add_multiple(&mut other.factors, &pivot.factors, factor);
            add_multiple(&mut other.sum, &pivot.sum, factor);
        }
    }
    equations.truncate(unknowns);
    Some(equations.into_iter().map(|equation| equation.sum).collect())
}

/// One source symbol in this number may be missing.
///
/// CPU time for a block of 3500 symbols of 1400 bytes, as MB/s, here and by RaptorQ's decoder alone: 0.5 % missing 611 and 422, 1 % 611 and 405, 2 % 529
/// and 418, 3.1 % 371 and 431. Of 1024 symbols, 1 % missing: 784 and 494. The work grows with the square of what is missing.
const FEW: usize = 48;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_units::Random;

    const SIZE: usize = 24;

    type Symbols = Vec<(u32, Vec<u8>)>;

    /// A block, its codec, and its symbols but for those that are lost, with so many repair symbols from `first` on.
    fn block(count: u32, lost: &[u32], repairs: u32, seed: u64) -> (ObjectTransmissionInformation, Vec<u8>, Symbols) {
        let mut random = Random::new(seed, "block");
        let content: Vec<u8> = (0..count as usize * SIZE).map(|_| random.below(256) as u8).collect();
        let codec = ObjectTransmissionInformation::new(content.len() as u64, SIZE as u16, 1, 1, 8);
        let encoder = SourceBlockEncoder::new(0, &codec, &content);
        let first = random.below(1 << 20) as u32;
        let packets = encoder.source_packets().into_iter().chain(encoder.repair_packets(first, repairs));
        let symbols = packets.map(|packet| (packet.payload_id().encoding_symbol_id(), packet.data().to_vec()));
        (codec, content, symbols.filter(|(number, _)| !lost.contains(number)).collect())
    }

    fn given(symbols: &[(u32, Vec<u8>)]) -> impl Iterator<Item = (u32, &[u8])> + Clone {
        symbols.iter().map(|(number, bytes)| (*number, &bytes[..]))
    }

    proptest! {
        #[test]
        fn what_is_decoded_is_the_block_and_what_the_codec_cannot_decode_is_not(
            count in 1u32..600, missing in 0u32..20, more in 0u32..3, seed in any::<u64>(),
        ) {
            let missing = missing.min(count);
            let lost: Vec<u32> = (0..missing).map(|i| i * count / missing).collect();
            let (codec, content, symbols) = block(count, &lost, missing + more, seed);
            let packets = given(&symbols).map(|(number, bytes)| EncodingPacket::new(PayloadId::new(0, number), bytes.to_vec()));
            let by_the_codec = SourceBlockDecoder::new(0, &codec, content.len() as u64).decode(packets);
            let decoded = decode(&codec, count, given(&symbols));
            prop_assert_eq!(&decoded, &by_the_codec);
            prop_assert!(decoded.is_none_or(|decoded| decoded == content));
        }
    }

    #[test]
    fn a_block_with_one_repair_symbol_too_few_is_not_decoded() {
        let lost = [3, 70, 71];
        let (codec, content, mut symbols) = block(320, &lost, 3, 1);
        assert_eq!(decode(&codec, 320, given(&symbols)), Some(content));
        symbols.pop();
        assert_eq!(decode(&codec, 320, given(&symbols)), None);
    }
}
