//! Unsigned tables: file delivery tables of senders without a key, which anybody can send. Any bytes, packed and cut in any
//! way, are a table or refused; a small input can stand for a large table.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use weir_fuzz::uncounted;
use weir_object::manifest::Manifest;
use weir_object::{Origin, Progress, Store, StoreOptions};
use weir_wire::alc::{Content, FdtInstance};
use weir_wire::fec::{Oti, PayloadId};

use crate::Draw;

#[test]
fn any_bytes_are_an_unsigned_table_or_refused() {
    weir_fuzz::check!(500, seeds(), receive);
}

#[test]
fn the_seeds_are_tables_in_each_encoding() {
    let named = |seed: &Vec<u8>| received(seed).files_total;
    let found: Vec<u64> = seeds()[..ENCODINGS].iter().map(named).collect();
    // With repair symbols that nobody made, nothing is decoded.
    assert_eq!(found, [2, 2, 0].repeat(4));
}

fn receive(input: &[u8]) {
    if input.first().is_some_and(|kind| kind & 8 != 0) {
        let xml = uncounted(|| Table::read(&mut Draw(input)).xml);
        // All that it names is read; in the store a few files of it are begun.
        let _ = Manifest::from_xml(&xml, 100_000);
    } else {
        received(input);
    }
}

fn received(input: &[u8]) -> Progress {
    let (out, table) = uncounted(|| (crate::folder(), Table::read(&mut Draw(input))));
    let options = StoreOptions { sync: false, max_files: 20, ..Default::default() };
    let mut store = Store::open(out.path(), options.clone()).expect("the folder can be used");
    for (content, symbol) in &table.packets {
        // A table may name files for which there is no room.
        if store.add(content, symbol, Origin(1)).is_err() {
            break;
        }
    }
    std::iter::from_fn(|| store.poll_event()).for_each(drop);
    let progress = store.progress();
    assert!(progress.files_total <= 20 && progress.waiting_bytes <= options.memory_limit / 2, "{progress:?}");
    uncounted(|| drop(out));
    progress
}

/// A table and its packets.
struct Table {
    xml: Vec<u8>,
    packets: Vec<(Content, Vec<u8>)>,
}

impl Table {
    /// Eight bytes say how the rest becomes a table: whether it is coded (bit 0 of the first) and packed already (bit 1), and
    /// whether repair symbols come in the place of some source symbols (bit 2), or whether it is read alone (bit 3); the content encoding; the size of symbols;
    /// which piece of it is repeated, and how often.
    fn read(draw: &mut Draw<'_>) -> Table {
        let (kind, encoding, size) = (draw.u8(), draw.u8() % 5, SIZES[usize::from(draw.u8()) % SIZES.len()]);
        let (times, at, length) = (draw.u16(), draw.u16(), draw.u8());
        let xml = expanded(draw.0, times.into(), at.into(), length.into());
        let bytes = if kind & 2 == 0 { packed(&xml, encoding) } else { xml.clone() };
        let transfer_length = bytes.len() as u64;
        let oti = match kind & 1 {
            0 => Oti::NoCode { transfer_length, symbol_size: size, max_block_len: 1 << 16 },
            _ => Oti::RaptorQ { transfer_length, symbol_size: size, blocks: 1, sub_blocks: 1, alignment: 8 },
        };
        let content = |symbol| Content {
            toi: 0,
            encoding_id: oti.encoding_id(),
            payload_id: PayloadId { block: 0, symbol },
            fdt: Some(FdtInstance { version: 2, id: 1, content_encoding: encoding }),
            oti: Some(oti),
            ask: None,
        };
        let count = bytes.len().div_ceil(size.into()) as u32;
        let replaced = if kind & 4 == 0 { 0 } else { count.div_ceil(4) };
        let mut packets: Vec<(Content, Vec<u8>)> = Vec::new();
        for (number, symbol) in (0..).zip(bytes.chunks(size.into())) {
            let mut symbol = symbol.to_vec();
            if kind & 1 == 1 {
                symbol.resize(size.into(), 0);
            }
            // What stands in a repair symbol need not be true.
            let number = if number < replaced { count + number } else { number };
            packets.push((content(number), symbol));
        }
        let extra =
            (0..replaced.min(8)).map(|extra| (content(count + replaced + extra), vec![extra as u8; size.into()]));
        packets.extend(extra);
        Table { xml, packets }
    }
}

/// The bytes with a piece of them repeated, up to a little more than is looked at.
fn expanded(bytes: &[u8], times: usize, at: usize, length: usize) -> Vec<u8> {
    let start = at.min(bytes.len());
    let end = (start + length).min(bytes.len());
    let (before, piece, after) = (&bytes[..start], &bytes[start..end], &bytes[end..]);
    let times = times.min(LONGEST / piece.len().max(1));
    [before, &piece.repeat(times), after].concat()
}

fn packed(bytes: &[u8], encoding: u8) -> Vec<u8> {
    let level = Compression::fast();
    let written = match encoding {
        1 => write(ZlibEncoder::new(Vec::new(), level), bytes).and_then(ZlibEncoder::finish),
        2 => write(DeflateEncoder::new(Vec::new(), level), bytes).and_then(DeflateEncoder::finish),
        3 => write(GzEncoder::new(Vec::new(), level), bytes).and_then(GzEncoder::finish),
        _ => return bytes.to_vec(),
    };
    written.expect("memory takes it")
}

fn write<W: Write>(mut encoder: W, bytes: &[u8]) -> std::io::Result<W> {
    encoder.write_all(bytes)?;
    Ok(encoder)
}

/// Tables as they are, in each encoding, coded and not, and small ones that stand for what keeps a parser busy.
fn seeds() -> Vec<Vec<u8>> {
    let of = |kind: u8, encoding: u8, size: u8, (before, piece, after): (&str, &str, &str), times: u16| {
        let at = (before.len() as u16).to_be_bytes();
        let head = [&[kind, encoding, size][..], &times.to_be_bytes(), &at, &[piece.len() as u8]].concat();
        [&head, before.as_bytes(), piece.as_bytes(), after.as_bytes()].concat()
    };
    let encodings = (0..=3).flat_map(|encoding| [0, 1, 5].map(|kind| of(kind, encoding, 1, FILES, 3)));
    let large = LARGE
        .iter()
        .flat_map(|table| [(0, 0), (1, 3), (5, 0), (8, 0)].map(|(kind, encoding)| (kind, encoding, *table)));
    let large = large.map(|(kind, encoding, table)| of(kind, encoding, 3, table, u16::MAX));
    encodings.chain(large).collect()
}

const FILES: (&str, &str, &str) = (
    r#"<?xml version="1.0" encoding="UTF-8"?><FDT-Instance xmlns="urn:ietf:params:xml:ns:fdt" Expires="4000000000"
    xmlns:w="urn:weir:manifest:1" FEC-OTI-Encoding-Symbol-Length="16">"#,
    r#"<File TOI="1" Content-Location="a" Content-Length="100" FEC-OTI-FEC-Encoding-ID="6"
    FEC-OTI-Scheme-Specific-Info="AgABCA==" Content-MD5="1B2M2Y8AsgTpgAmY7PhCfg=="/>"#,
    r#"<File TOI="2" Content-Location="file:///d/b%20c" Content-Length="0" w:mode="644" w:modified="1.5"/><w:Folder
    Content-Location="e" w:mode="700"/><w:Link Content-Location="e/l" w:target="../a"/></FDT-Instance>"#,
);

/// What is before a piece, the piece, and what is after it.
const LARGE: [(&str, &str, &str); 8] = [
    (r#"<FDT-Instance Expires="9">"#, r#"<File TOI="1" Content-Location="a" Content-Length="1"/>"#, "</FDT-Instance>"),
    (r#"<FDT-Instance Expires="9">"#, r#"<File TOI="1" Content-Location="a" Content-Length="1099511627776"/>"#, ""),
    (r#"<FDT-Instance Expires="9"><File "#, r#"a="" "#, "/></FDT-Instance>"),
    (r#"<FDT-Instance Expires="9">"#, "<a>", "</FDT-Instance>"),
    (r#"<FDT-Instance Expires="9">"#, "&lt;", "</FDT-Instance>"),
    (
        r#"<FDT-Instance Expires="9">"#,
        r#"<a xmlns:a="b" xmlns:c="d" xmlns:e="f" xmlns:g="h" xmlns:i="j" xmlns:k="l" a:m="" c:m="" e:m="" g:m=""/>"#,
        "</FDT-Instance>",
    ),
    (r#"<FDT-Instance Expires="9"><File TOI="1" Content-Length="9" Content-Location=""#, "a/", r#""/></FDT-Instance>"#),
    (r#"<FDT-Instance Expires="9"><!--"#, "-", r#"--></FDT-Instance>"#),
];

/// A little more than the largest unsigned table that is looked at.
const LONGEST: usize = 1_100_000;
/// Seeds that are one table in each encoding, three of each.
const ENCODINGS: usize = 12;
const SIZES: [u16; 5] = [512, 32, 64, 1400, 1024];
