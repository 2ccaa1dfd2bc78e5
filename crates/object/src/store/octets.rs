//! Arithmetic of GF(256) as RaptorQ has it (RFC 6330 §5.7): addition is exclusive or, and multiplication is modulo
//! x⁸ + x⁴ + x³ + x² + 1.

use std::sync::LazyLock;

/// Adds a multiple of one vector to another of the same length.
pub(super) fn add_multiple(to: &mut [u8], of: &[u8], factor: u8) {
    match factor {
        0 => {}
        1 => to.iter_mut().zip(of).for_each(|(to, of)| *to ^= of),
        _ => {
            let (to, to_rest) = to.as_chunks_mut();
            let (of, of_rest) = of.as_chunks();
            to.iter_mut().zip(of).for_each(|(to, of)| add_multiple_of_lane(to, of, factor));
            let multiples = &PRODUCTS[usize::from(factor)];
            to_rest.iter_mut().zip(of_rest).for_each(|(to, of)| *to ^= multiples[usize::from(*of)]);
        }
    }
}

/// The same for as many octets as the processor takes at a time: bit by bit of the factor, without the table, which takes one by one.
fn add_multiple_of_lane(to: &mut [u8; LANE], of: &[u8; LANE], factor: u8) {
    let mut power = *of;
    for bit in 0..u8::BITS {
        let is_in = 0u8.wrapping_sub(factor >> bit & 1);
        to.iter_mut().zip(&power).for_each(|(to, power)| *to ^= power & is_in);
        power.iter_mut().for_each(|octet| *octet = (*octet << 1) ^ (POLYNOMIAL & 0u8.wrapping_sub(*octet >> 7)));
    }
}

/// Multiplies a vector.
pub(super) fn scale(vector: &mut [u8], factor: u8) {
    let multiples = &PRODUCTS[usize::from(factor)];
    vector.iter_mut().for_each(|octet| *octet = multiples[usize::from(*octet)]);
}

/// The inverse of an octet that is not zero.
pub(super) fn inverse(octet: u8) -> u8 {
    let is_inverse = |other: &u8| PRODUCTS[usize::from(octet)][usize::from(*other)] == 1;
    (1..=u8::MAX).find(is_inverse).expect("only zero has none")
}

fn product(a: u8, b: u8) -> u8 {
    let doubled = |octet: u8| (octet << 1) ^ if octet & 0x80 == 0 { 0 } else { POLYNOMIAL };
    let powers = std::iter::successors(Some(a), |octet| Some(doubled(*octet)));
    powers.take(8).enumerate().filter(|(bit, _)| b >> bit & 1 == 1).fold(0, |sum, (_, octet)| sum ^ octet)
}

/// What a row's number and a column's number multiply to.
static PRODUCTS: LazyLock<Vec<[u8; 256]>> =
    LazyLock::new(|| (0..=u8::MAX).map(|a| std::array::from_fn(|b| product(a, b as u8))).collect());
/// Octets that are multiplied together.
const LANE: usize = 32;
/// Without its highest bit.
const POLYNOMIAL: u8 = 0x1d;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_generates_all_octets_but_zero_as_in_rfc_6330() {
        // The first entries of OCT_EXP, and where it begins again (RFC 6330 §5.7.3).
        let powers: Vec<u8> = std::iter::successors(Some(1), |octet| Some(product(*octet, 2))).take(256).collect();
        assert_eq!(powers[..12], [1, 2, 4, 8, 16, 32, 64, 128, 29, 58, 116, 232]);
        assert_eq!((powers[254], powers[255]), (142, 1));
    }

    #[test]
    fn a_vector_of_any_length_is_multiplied_octet_by_octet() {
        for factor in 0..=u8::MAX {
            let of: Vec<u8> = (0..77).map(|i: u8| i.wrapping_mul(factor).wrapping_add(i)).collect();
            let mut to = vec![9; of.len()];
            add_multiple(&mut to, &of, factor);
            let expected: Vec<u8> = of.iter().map(|octet| 9 ^ product(*octet, factor)).collect();
            assert_eq!(to, expected, "times {factor}");
        }
    }

    #[test]
    fn an_octet_times_its_inverse_is_one() {
        for octet in 1..=u8::MAX {
            let mut vector = [octet, 0];
            scale(&mut vector, inverse(octet));
            assert_eq!(vector, [1, 0]);
            add_multiple(&mut vector, &[octet, 7], inverse(octet));
            assert_eq!(vector[0], 0);
        }
    }
}
