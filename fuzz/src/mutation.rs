//! Other inputs made of valid ones, by chance: what libFuzzer does without knowing what was reached.

use weir_units::Random;

/// An input made of one of the seeds by a few changes.
pub(crate) fn made_of(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = one_of(seeds, random).map_or(Vec::new(), Vec::clone);
    for _ in 0..=random.below(4) {
        change(&mut input, seeds, random);
    }
    input.truncate(LONGEST);
    input
}

fn change(input: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    let at = below(random, input.len() + 1);
    let end = at + below(random, (input.len() - at).min(64) + 1);
    match random.below(8) {
        0 => flip(input, at, random),
        1 => input
            .splice(at..end, one_of(EXTREMES, random).into_iter().flat_map(|bytes| bytes.iter().copied()))
            .for_each(drop),
        2 => drop(input.drain(at..end)),
        3 => {
            let times = 1 << random.below(12);
            let piece = input[at..end].repeat(times);
            input.splice(end..end, piece).for_each(drop);
        }
        4 => {
            let other = one_of(seeds, random).map_or(&[][..], Vec::as_slice);
            let from = below(random, other.len() + 1);
            let to = from + below(random, other.len() - from + 1);
            input.splice(at..end, other[from..to].iter().copied()).for_each(drop);
        }
        5 => replace_number(input, at, random),
        6 => {
            let bytes: Vec<u8> = (0..random.below(16)).map(|_| random.bits() as u8).collect();
            input.splice(at..end, bytes).for_each(drop);
        }
        _ => input.truncate(at),
    }
}

fn flip(input: &mut [u8], at: usize, random: &mut Random) {
    if let Some(byte) = input.get_mut(at) {
        *byte ^= 1 << random.below(8);
    }
}

/// Puts an extreme number in the place of the first decimal one from `at` on.
fn replace_number(input: &mut Vec<u8>, at: usize, random: &mut Random) {
    let Some(start) = input[at..].iter().position(u8::is_ascii_digit).map(|start| at + start) else { return };
    let length = input[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = one_of(NUMBERS, random).copied().unwrap_or_default();
    input.splice(start..start + length, number.bytes()).for_each(drop);
}

fn one_of<'a, T>(all: &'a [T], random: &mut Random) -> Option<&'a T> {
    all.get(below(random, all.len()))
}

fn below(random: &mut Random, bound: usize) -> usize {
    random.below(bound as u64) as usize
}

/// Bytes of the longest input.
const LONGEST: usize = 64 << 10;
const EXTREMES: &[&[u8]] = &[&[0], &[0xff], &[0; 8], &[0xff; 8], &[0x7f, 0xff], &[0x80, 0], b"\r\n", b"\"", b"<", b" "];
const NUMBERS: &[&str] =
    &["0", "1", "-1", "255", "256", "65535", "65536", "4294967295", "18446744073709551615", "18446744073709551616"];
