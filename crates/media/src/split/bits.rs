//! Bits of headers, most significant first, and the variable-length codes of HEVC and H.264.

/// Reads bits; `None` where there are none left.
#[derive(Debug, Clone)]
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    /// In bits.
    at: usize,
}

impl<'a> Bits<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Bits<'a> {
        Bits { bytes, at: 0 }
    }

    pub(super) fn flag(&mut self) -> Option<bool> {
        let byte = self.bytes.get(self.at / 8)?;
        let bit = byte >> (7 - self.at % 8) & 1;
        self.at += 1;
        Some(bit == 1)
    }

    /// `u(n)` for n up to 32.
    pub(super) fn take(&mut self, bits: u32) -> Option<u32> {
        (0..bits).try_fold(0, |value: u32, _| Some(value << 1 | u32::from(self.flag()?)))
    }

    pub(super) fn skip(&mut self, bits: usize) -> Option<()> {
        self.at = self.at.checked_add(bits)?;
        (self.at <= self.bytes.len() * 8).then_some(())
    }

    /// `ue(v)` (H.264 §9.1, HEVC §9.2). Example: the bits 00101 are 4.
    pub(super) fn ue(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while !self.flag()? {
            zeros += 1;
        }
        // Codes of 32 zeros and more are of no syntax element.
        (zeros < 32).then_some(())?;
        Some(((1_u64 << zeros) - 1) as u32 + self.take(zeros)?)
    }

    /// `ue(v)` that may not be above `limit`.
    pub(super) fn ue_up_to(&mut self, limit: u32) -> Option<u32> {
        self.ue().filter(|value| *value <= limit)
    }

    /// `se(v)` (H.264 §9.1.1): 0, 1, -1, 2, -2, …
    pub(super) fn se(&mut self) -> Option<i32> {
        let code = i64::from(self.ue()?);
        let size = (code + 1) / 2;
        i32::try_from(if code % 2 == 1 { size } else { -size }).ok()
    }
}

/// What a NAL unit says once its emulation prevention bytes are taken out: the third of each 0, 0, 3 (H.264 §7.3.1).
pub(super) fn unescape(nal: &[u8]) -> Vec<u8> {
    let mut zeros = 0;
    let mut out = Vec::with_capacity(nal.len());
    for &byte in nal {
        if zeros >= 2 && byte == 3 {
            zeros = 0;
            continue;
        }
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        out.push(byte);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_golomb_codes_count_up() {
        let mut bits = Bits::new(&[0b1010_0110, 0b0100_0010, 0b1000_0000]);
        assert_eq!([0, 1, 2, 3, 4].map(Some), [(); 5].map(|()| bits.ue()));
    }

    #[test]
    fn signed_codes_alternate() {
        let mut bits = Bits::new(&[0b1010_0110, 0b0100_0010, 0b1000_0000]);
        assert_eq!([0, 1, -1, 2, -2].map(Some), [(); 5].map(|()| bits.se()));
    }

    #[test]
    fn reading_past_the_end_is_none() {
        assert_eq!(Bits::new(&[0, 0]).ue(), None);
        assert_eq!(Bits::new(&[1]).take(9), None);
        assert_eq!(Bits::new(&[1]).skip(9), None);
    }

    #[test]
    fn emulation_prevention_is_taken_out() {
        assert_eq!(unescape(&[0, 0, 3, 1, 0, 0, 3, 0, 0, 3]), [0, 0, 1, 0, 0, 0, 0]);
    }
}
