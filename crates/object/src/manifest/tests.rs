use super::*;
use proptest::prelude::*;

fn manifest() -> Manifest {
    let entry = |toi, name: &str, offset, transfer_length, file_length| FileEntry {
        toi,
        name: Name::new(name).expect("valid"),
        offset,
        file_length,
        transfer_length,
        oti: Some(Oti::RaptorQ { transfer_length, symbol_size: 1400, blocks: 3, sub_blocks: 1, alignment: 8 }),
        digest: Some([toi as u8; 32]),
        blocks: vec![[toi as u8; 16]; 3],
        md5: (toi == 1).then_some([9; 16]),
        attributes: Attributes { sparse: toi == 2, ..Attributes::read(Some("755"), Some("1700000000.000000005")) },
        bundle: (toi == 3).then_some(BundleEntry { files: 40, index_bytes: 900, index_digest: [3; 32] }),
    };
    Manifest {
        tsi: Some(77),
        epoch: Some(u64::MAX),
        expires: 4_000_000_000,
        complete: true,
        set: Some(SetTotals { id: [5; 16], objects: 3, folders: 1, links: 1, bytes: 30_000 }),
        files: vec![
            entry(1, "a & b<\".txt", 0, 10_000, 10_000),
            entry(2, "x/é", 0, 14_000, 20_000),
            entry(3, "b", 0, 10_000, 10_000),
        ],
        folders: vec![FolderEntry {
            name: Name::new("x/empty").expect("valid"),
            attributes: Attributes { mode: Some(0o700), ..Attributes::default() },
        }],
        links: vec![LinkEntry::new(Name::new("x/link").expect("valid"), "a & \"b").expect("stays in x")],
        refused: Vec::new(),
    }
}

#[test]
fn a_manifest_survives_its_xml() {
    let original = manifest();
    for version in [1, 2] {
        let read = Manifest::from_xml(original.to_xml(version).as_bytes(), 100).expect("our own");
        assert_eq!(read, original);
    }
}

#[test]
fn a_signed_manifest_has_to_say_everything() {
    let original = manifest();
    assert!(original.is_whole(77) && !original.is_whole(78));
    let changes: [fn(&mut Manifest); 5] = [
        |m| m.tsi = None,
        |m| m.epoch = None,
        |m| m.set = None,
        |m| m.files[1].digest = None,
        |m| m.files[0].oti = None,
    ];
    for (i, change) in changes.iter().enumerate() {
        let mut changed = original.clone();
        change(&mut changed);
        assert!(!changed.is_whole(77), "change {i}");
    }
}

#[test]
fn another_sender_s_table_is_read_with_attributes_on_the_root() {
    let xml = br#"<FDT-Instance xmlns="urn:IETF:metadata:2005:FLUTE:FDT" Expires="4000000000"
        FEC-OTI-FEC-Encoding-ID="0" FEC-OTI-Maximum-Source-Block-Length="64" FEC-OTI-Encoding-Symbol-Length="1400">
        <File TOI="1" Content-Location="file:///a.txt" Content-Length="5"/>
        <File TOI="2" Content-Location="file:///b.gz" Content-Length="5" Content-Encoding="gzip"/>
        <File TOI="3" Content-Location="../b" Content-Length="5"/></FDT-Instance>"#;
    let manifest = Manifest::from_xml(xml, 100).expect("readable");
    assert_eq!((manifest.files.len(), manifest.refused.len()), (1, 2));
    let oti = Oti::NoCode { transfer_length: 5, symbol_size: 1400, max_block_len: 64 };
    assert_eq!(manifest.files[0].oti, Some(oti));
    assert!(matches!(manifest.refused[0].error, ManifestError::ContentEncoding { .. }));
}

#[test]
fn an_entry_that_cannot_be_used_does_not_take_the_others_with_it() {
    let wrong = ["../up", "x/ok", "../out"];
    let xml = format!(
        r#"<FDT-Instance xmlns:weir="{NAMESPACE}" Expires="1"><weir:Folder Content-Location="{}" weir:mode="700"/>
        <weir:Link Content-Location="{}" weir:target="/etc/passwd"/><weir:Link Content-Location="{}" weir:target="a"/>
        <weir:Folder Content-Location="x/y" weir:mode="700"/></FDT-Instance>"#,
        wrong[0], wrong[1], wrong[2]
    );
    let manifest = Manifest::from_xml(xml.as_bytes(), 100).expect("readable");
    let refused: Vec<_> = manifest.refused.iter().map(|it| (it.kind, it.location.as_str())).collect();
    let [up, link, out] = wrong;
    assert_eq!(refused, [(EntryKind::Folder, up), (EntryKind::Link, link), (EntryKind::Link, out)]);
    assert_eq!((manifest.folders.len(), manifest.links.len()), (1, 0));
}

#[test]
fn entity_bombs_and_too_many_files_are_refused() {
    let bomb = br#"<!DOCTYPE x [<!ENTITY a "aaaa">]><FDT-Instance Expires="1">&a;</FDT-Instance>"#;
    assert_eq!(Manifest::from_xml(bomb, 100), Err(ManifestError::Excessive { what: "a document type" }));
    let file = r#"<File TOI="1" Content-Location="a" Content-Length="1"/>"#;
    let many = format!(r#"<FDT-Instance Expires="1">{}</FDT-Instance>"#, file.repeat(11));
    assert_eq!(Manifest::from_xml(many.as_bytes(), 10), Err(ManifestError::TooManyFiles { limit: 10 }));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Manifest::from_xml(&bytes, 10);
    }
}
