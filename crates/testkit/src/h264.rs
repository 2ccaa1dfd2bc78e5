//! Pictures of H.264 that hold no more than what says where they belong.

/// A picture in Annex B: of baseline H.264 with 4 bits of frame numbers, presented in the order of decoding. `I0` is an IDR picture with its
/// parameter sets, `P1` one that others refer to, `p1` one that none does, each with its frame number.
///
/// # Panics
///
/// If a word is no such picture.
pub fn coded(word: &str) -> Vec<u8> {
    let number = format!("{:04b}", word[1..].parse::<u8>().expect("a frame number"));
    match &word[..1] {
        "I" => {
            let sps = nal(0x67, "01000010 00000000 00011110 1 1 011 010 0 00101 00101 1 1 0 0");
            [sps, nal(0x68, "1 1"), nal(0x65, &format!("1 011 1 {number} 1"))].concat()
        }
        "P" => nal(0x41, &format!("1 1 1 {number}")),
        "p" => nal(0x01, &format!("1 1 1 {number}")),
        other => panic!("no kind of picture is called {other}"),
    }
}

/// A NAL unit: a byte for its header, and bits as text with spaces between syntax elements, filled up behind the bit that ends them.
fn nal(header: u8, text: &str) -> Vec<u8> {
    let mut bits: Vec<u8> = text.bytes().filter(|byte| *byte != b' ').map(|byte| byte - b'0').collect();
    bits.push(1);
    let byte = |byte: &[u8]| byte.iter().enumerate().fold(0, |sum, (place, bit)| sum | bit << (7 - place));
    [&[0, 0, 0, 1, header][..], &bits.chunks(8).map(byte).collect::<Vec<_>>()].concat()
}
