//! Any packet at any time, and any bytes as a table: the store never panics, and what it holds stays bounded.

mod common;

use bolero::check;
use common::{ORIGIN, open};
use weir_object::manifest::Manifest;
use weir_object::{Origin, Store, StoreOptions};
use weir_wire::alc::{Content, FdtInstance};
use weir_wire::fec::{Oti, PayloadId};

#[test]
fn any_bytes_are_a_table_or_refused() {
    check!().with_iterations(20_000).for_each(|bytes: &[u8]| {
        let _ = Manifest::from_xml(bytes, 10);
    });
}

type Packet = (u8, u8, u16, u32, u64, (u8, u16, u8), Vec<u8>);

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

fn feed(store: &mut Store, packet: &Packet) {
    let (kind, toi, block, symbol, length, (blocks, size, alignment), bytes) = packet;
    if *kind < 32 {
        let xml = TABLES[usize::from(*kind) % TABLES.len()];
        let size = xml.len() as u16;
        let content = Content {
            toi: 0,
            encoding_id: 0,
            payload_id: PayloadId::default(),
            fdt: Some(FdtInstance { version: 2, id: u32::from(*kind) % 5, content_encoding: 0 }),
            oti: Some(Oti::NoCode { transfer_length: xml.len() as u64, symbol_size: size, max_block_len: 1 }),
        };
        store.add(&content, xml.as_bytes(), ORIGIN).expect("the disk works");
        return;
    }
    let encoding_id = if kind % 2 == 0 { 6 } else { 0 };
    let oti = match kind / 64 {
        0 => None,
        1 => Some(Oti::NoCode { transfer_length: *length, symbol_size: *size, max_block_len: *symbol }),
        _ => Some(Oti::RaptorQ {
            transfer_length: if kind % 3 == 0 { 40 } else { *length },
            symbol_size: if kind % 3 == 0 { 16 } else { *size },
            blocks: *blocks,
            sub_blocks: *block,
            alignment: *alignment,
        }),
    };
    let content = Content {
        toi: u128::from(toi % 8),
        encoding_id,
        payload_id: PayloadId { block: u32::from(block % 4), symbol: if kind % 5 == 0 { *symbol } else { symbol % 8 } },
        fdt: (kind % 7 == 0).then_some(FdtInstance { version: 1, id: *symbol, content_encoding: kind % 4 }),
        oti,
    };
    let mut bytes = bytes.clone();
    if kind % 4 != 0 {
        bytes.resize(16, 0);
    }
    store.add(&content, &bytes, Origin(kind % 3)).expect("the disk works");
}

#[test]
fn any_packets_in_any_order_never_panic() {
    check!().with_type::<Vec<Packet>>().with_iterations(2_000).for_each(|packets| {
        let out = tempfile::tempdir().expect("temporary folder");
        let options =
            StoreOptions { sync: false, max_files: 6, early_bytes: 2000, max_fdt_bytes: 5000, ..Default::default() };
        let mut store = open(out.path(), &options);
        for kind in 0..5 {
            feed(&mut store, &(kind, 0, 0, 0, 0, (0, 0, 0), Vec::new()));
        }
        for (i, packet) in packets.iter().enumerate() {
            feed(&mut store, packet);
            if i % 16 == 5 {
                store.flush().expect("the disk works");
            }
            if i % 64 == 60 {
                drop(store);
                store = open(out.path(), &options);
            }
        }
        let progress = store.progress();
        assert!(progress.files_total <= 6 && progress.waiting_bytes <= options.memory_limit / 2, "{progress:?}");
    });
}
