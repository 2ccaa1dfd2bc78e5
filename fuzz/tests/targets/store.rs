//! Any packet at any time, from any sender: the store never panics, and what it holds stays bounded.

use weir_fuzz::uncounted;
use weir_object::{Origin, Store, StoreOptions};
use weir_wire::alc::{Content, FdtInstance};
use weir_wire::fec::{Oti, PayloadId};

use crate::Draw;

#[test]
fn any_packets_in_any_order_leave_a_store_that_goes_on() {
    weir_fuzz::check!(2_000, seeds(), receive);
}

fn receive(input: &[u8]) {
    let Some((limits, packets)) = input.split_first() else { return };
    let out = uncounted(crate::folder);
    // With as much as receivers have, and with so little that much is given up.
    let mut options = StoreOptions { sync: false, max_files: 6, ..Default::default() };
    if limits % 2 == 1 {
        (options.early_bytes, options.max_fdt_bytes) = (2000, 5000);
    }
    let open = || Store::open(out.path(), options.clone()).expect("the folder can be used");
    let mut store = open();
    for number in 0..TABLES.len() {
        add_table(&mut store, number);
    }
    for (i, packet) in packets.chunks(PACKET).take(MOST_PACKETS).enumerate() {
        feed(&mut store, &mut Draw(packet));
        if i % 16 == 5 {
            store.flush().expect("the disk works");
        }
        if i % 16 == 9 {
            for lack in store.lacking(100).expect("the disk works").into_iter().flatten() {
                let told: u32 = lack.runs.iter().map(|(_, length)| u32::from(*length)).sum();
                assert!(lack.runs.is_empty() || told == u32::from(lack.needed), "{lack:?}");
            }
        }
        if i % 64 == 60 {
            drop(store);
            store = open();
        }
    }
    let progress = store.progress();
    assert!(progress.files_total <= 6 && progress.waiting_bytes <= options.memory_limit / 2, "{progress:?}");
    uncounted(|| drop(out));
}

/// Each kind of packet once, all symbols of the first file, and coded tables of a megabyte each that never end.
fn seeds() -> Vec<Vec<u8>> {
    let packet = |kind: u8, block: u8, symbol: u8| {
        let mut packet = vec![kind, 1, block, 0, 0, 0, symbol];
        packet.resize(PACKET, kind);
        packet
    };
    let kinds = (0..=255).flat_map(|kind| packet(kind, 0, kind % 8)).collect();
    let symbols = (0..4).flat_map(|block| (0..4).flat_map(move |symbol| packet(34, block, symbol))).collect();
    let claim = |id: u8| {
        let mut packet = vec![140, 0, 0, 0, 0, 0, id];
        packet.extend((1u64 << 20).to_be_bytes());
        packet.extend([4, 0, 1, 0, 1, 8]);
        packet.resize(PACKET, id);
        packet
    };
    let claims = (0..=255).flat_map(claim).collect();
    let all: [Vec<u8>; 3] = [kinds, symbols, claims];
    all.iter().flat_map(|packets| [0, 1].map(|limits| [&[limits], &packets[..]].concat())).collect()
}

fn add_table(store: &mut Store, number: usize) {
    let xml = TABLES[number % TABLES.len()];
    let content = Content {
        toi: 0,
        encoding_id: 0,
        payload_id: PayloadId::default(),
        fdt: Some(FdtInstance { version: 2, id: number as u32, content_encoding: 0 }),
        oti: Some(Oti::NoCode { transfer_length: xml.len() as u64, symbol_size: xml.len() as u16, max_block_len: 1 }),
        ask: None,
    };
    store.add(&content, xml.as_bytes(), Origin(1)).expect("the disk works");
}

fn feed(store: &mut Store, draw: &mut Draw<'_>) {
    let (kind, toi, block) = (draw.u8(), draw.u8(), draw.u8());
    if kind < 32 {
        return add_table(store, kind.into());
    }
    let symbol = draw.u32();
    let oti = match kind / 64 {
        0 => None,
        1 => Some(Oti::NoCode { transfer_length: draw.u64(), symbol_size: draw.u16(), max_block_len: symbol }),
        _ => Some(Oti::RaptorQ {
            transfer_length: if kind % 3 == 0 { 40 } else { draw.u64() },
            symbol_size: if kind % 3 == 0 { 16 } else { draw.u16() },
            blocks: draw.u8(),
            sub_blocks: draw.u16(),
            alignment: draw.u8(),
        }),
    };
    let content = Content {
        toi: u128::from(toi % 8),
        encoding_id: if kind % 2 == 0 { 6 } else { 0 },
        payload_id: PayloadId { block: u32::from(block % 4), symbol: if kind % 5 == 0 { symbol } else { symbol % 8 } },
        fdt: (kind % 7 == 0).then_some(FdtInstance { version: 1, id: symbol, content_encoding: kind % 4 }),
        oti,
        ask: None,
    };
    let mut bytes = draw.bytes(PACKET).to_vec();
    if kind % 4 != 0 {
        bytes.resize(16, 0);
    }
    store.add(&content, &bytes, Origin(kind % 3)).expect("the disk works");
}

/// Tables that make the rest of the packets mean something: the two codes, a part, an empty file, a cut in the packets.
const TABLES: [&str; 5] = [
    r#"<FDT-Instance Expires="4000000000"><File TOI="1" Content-Location="a" Content-Length="100"
    FEC-OTI-FEC-Encoding-ID="6" FEC-OTI-Encoding-Symbol-Length="16" FEC-OTI-Scheme-Specific-Info="AgABCA=="
    /><File TOI="2" Content-Location="b" Content-Length="0"/></FDT-Instance>"#,
    r#"<FDT-Instance Expires="4000000000"><File TOI="3" Content-Location="d/c" Content-Length="50"
    FEC-OTI-FEC-Encoding-ID="0" FEC-OTI-Encoding-Symbol-Length="16" FEC-OTI-Maximum-Source-Block-Length="2"
    /></FDT-Instance>"#,
    r#"<FDT-Instance Expires="4000000000"><File TOI="4" Content-Location="e" Content-Length="40"/></FDT-Instance>"#,
    r#"<FDT-Instance Expires="1" xmlns:w="urn:weir:manifest:1"><File TOI="6" Content-Location="g" Content-Length="100"
    FEC-OTI-FEC-Encoding-ID="6" FEC-OTI-Encoding-Symbol-Length="16" FEC-OTI-Scheme-Specific-Info="AgABCA=="
    w:digest="0000000000000000000000000000000000000000000000000000000000000000"
    w:blocks="AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="/></FDT-Instance>"#,
    r#"<FDT-Instance Expires="1" xmlns:w="urn:weir:manifest:1"><File TOI="5" Content-Location="f" Content-Length="64"
    FEC-OTI-FEC-Encoding-ID="6" FEC-OTI-Encoding-Symbol-Length="16" FEC-OTI-Scheme-Specific-Info="AQACCA=="
    w:digest="0000000000000000000000000000000000000000000000000000000000000000"/></FDT-Instance>"#,
];

/// Bytes of an input for each packet.
const PACKET: usize = 40;
const MOST_PACKETS: usize = 500;
