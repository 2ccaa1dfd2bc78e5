//! The `flute` crate, written by others, receives what Weir sends, and Weir what it sends.
//!
//! Packets cross as bytes, through Weir's own encoder and decoder of ALC.

use std::rc::Rc;
use std::time::{Duration, SystemTime};

use crate::common::*;
use flute::core::{Oti, UDPEndpoint, lct::Cenc};
use flute::receiver::{MultiReceiver, writer::ObjectWriterBufferBuilder};
use flute::sender::{Config, FDTPublishMode, ObjectDesc, Sender as FluteSender};
use weir_object::{CarouselOptions, StoreOptions};
use weir_units::Random;
use weir_wire::alc::{Alc, MAX_OVERHEAD, Profile};
use weir_wire::{CciForm, Layered};

const TSI: u16 = 7;

/// A time at which nothing has expired. Only differences matter to either side.
fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

fn endpoint() -> UDPEndpoint {
    UDPEndpoint::new(None, "224.0.0.1".to_owned(), 3400)
}

fn flute_receives(form: CciForm, flute_version: u8, loss: f64, length: usize) {
    let bytes = content(length, 1);
    let options = CarouselOptions { tsi: TSI, channel_rates: ladder(6, 1.5), flute_version, ..Default::default() };
    let mut sender = Sender::new(&[("folder/a b é.bin", &bytes), ("z", b"small")], &options);
    let writer = Rc::new(ObjectWriterBufferBuilder::new(true));
    let config = flute::receiver::Config { object_max_cache_size: Some(64 << 20), ..Default::default() };
    let mut receiver = MultiReceiver::new(writer.clone(), Some(config), false);
    let mut random = Random::new(1, "loss");
    let profile = Profile { tsi: TSI, form };
    let mut dropped = 0;
    for sequence in 0..200_000 {
        let (channel, content, symbol) = sender.next();
        let layered = Layered { channel, sequence, clock_micros: 4_000_000_000_000_000, ..Default::default() };
        let mut packet = vec![0; MAX_OVERHEAD];
        let header = profile.encode(&layered, &content, &mut packet);
        packet.truncate(header);
        packet.extend(symbol);
        if random.chance(loss) {
            dropped += 1;
            continue;
        }
        receiver.push(&endpoint(), &packet, now()).expect("flute takes every packet");
        if writer.objects.borrow().iter().filter(|object| object.borrow().complete).count() == 2 {
            break;
        }
    }
    assert!(dropped > 0 || loss == 0.0);
    let objects = writer.objects.borrow();
    let found = |path: &str| {
        let object = objects.iter().find(|object| object.borrow().meta.content_location.to_string().contains(path));
        object.unwrap_or_else(|| panic!("no {path}")).borrow().data.clone()
    };
    assert_eq!(objects.len(), 2);
    assert!(found("folder/a%20b%20%C3%A9.bin") == bytes, "content differs");
    assert_eq!(found("z"), b"small");
}

#[test]
fn flute_receives_weir_s_files_without_loss() {
    flute_receives(CciForm::Short, 2, 0.0, 1_000_000);
}

#[test]
fn flute_receives_weir_s_files_with_a_tenth_of_the_packets_lost() {
    flute_receives(CciForm::Short, 2, 0.1, 3_500_000);
}

#[test]
fn flute_receives_the_long_form_and_the_old_version() {
    flute_receives(CciForm::Long, 1, 0.1, 300_000);
}

/// Sends one file with `flute` into a store; gives the store's folder.
fn weir_receives(oti: &Oti, config: &Config, loss: f64, bytes: &[u8], md5: bool) {
    let mut sender = FluteSender::new(endpoint(), u64::from(TSI), oti, config);
    let location = url::Url::parse("file:///folder/hello%20world.bin").expect("a location");
    let object =
        ObjectDesc::create_from_buffer(bytes.to_vec(), "application/octet-stream", &location, md5, Default::default());
    sender.add_object(0, object.expect("an object")).expect("room in the queue");
    if matches!(config.fdt_publish_mode, FDTPublishMode::FullFDT) {
        sender.publish(now()).expect("published");
    }
    let out = tempfile::tempdir().expect("temporary folder");
    let mut store = open(out.path(), &StoreOptions { tsi: u64::from(TSI), ..Default::default() });
    let mut random = Random::new(2, "loss");
    while let Some(packet) = sender.read(now()) {
        let alc = Alc::decode(&packet).expect("flute's packets are ALC");
        assert_eq!(alc.tsi, u64::from(TSI));
        if let Some(content) = alc.content
            && !(content.toi != 0 && random.chance(loss))
        {
            store.add(&content, alc.symbol, ORIGIN).expect("the disk works");
        }
    }
    assert!(store.is_complete(), "{:?} {:?}", store.progress(), events(&mut store));
    let received = std::fs::read(out.path().join("folder/hello world.bin")).expect("received");
    assert!(received == bytes, "content differs");
}

#[test]
fn weir_receives_flute_s_compact_no_code() {
    let bytes = content(500_001, 3);
    weir_receives(&Oti::new_no_code(1400, 64), &Config::default(), 0.0, &bytes, true);
}

#[test]
fn weir_receives_flute_s_raptorq_with_a_tenth_of_the_packets_lost() {
    let bytes = content(500_001, 4);
    let oti = Oti::new_raptorq(1400, 60, 20, 1, 8).expect("valid");
    weir_receives(&oti, &Config::default(), 0.1, &bytes, true);
}

#[test]
fn weir_receives_flute_s_raptorq_in_sub_blocks() {
    let bytes = content(300_000, 5);
    let oti = Oti::new_raptorq(1400, 60, 20, 5, 8).expect("valid");
    weir_receives(&oti, &Config::default(), 0.1, &bytes, true);
}

#[test]
fn weir_receives_without_a_digest_and_with_a_compressed_table() {
    let bytes = content(100_000, 6);
    let config = Config { fdt_cenc: Cenc::Gzip, profile: flute::sender::Profile::RFC3926, ..Config::default() };
    weir_receives(&Oti::new_no_code(1400, 64), &config, 0.0, &bytes, false);
}

#[test]
fn a_table_in_raptorq_is_read_too() {
    let bytes = content(50_000, 7);
    let oti = Oti::new_raptorq(512, 60, 20, 1, 8).expect("valid");
    let config = Config { fdt_publish_mode: FDTPublishMode::FullFDT, ..Config::default() };
    weir_receives(&oti, &config, 0.05, &bytes, true);
}
