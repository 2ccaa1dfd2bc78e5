//! A stranger on the network, with neither key nor description: what he sends costs a session little, and never its files.
//!
//! One function is one attack, or two. Needs root; see `weir_testkit::netns::require_root`.

use std::net::SocketAddrV4;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;
use weir_testkit::netns::{Air, Finished, Network, Process, Scratch, Stranger, Transfer, require_root, same_content};
use weir_units::{Bytes, Rate};
use weir_wire::alc::{Alc, Content, FdtInstance};
use weir_wire::fec::{NO_CODE, Oti, PayloadId, RAPTORQ};

use super::{MINUTE, WEIR};

/// The sessions of a round run side by side, each with a receiver of its own, so that the undisturbed one has the same machine. As machines are
/// busy now and then, what took too long for its time is tried again, and has to take too long each time.
#[test]
fn forged_symbols_and_tables_cost_no_file_and_few_packets_and_little_time() {
    if !require_root() {
        return;
    }
    let network = Network::new().links([LINK; 7]).receivers(1).build();
    let mut attacks: Vec<(&str, Attack)> = vec![
        ("three forged symbols", three_forged_symbols),
        ("ten forged symbols a second", ten_forged_symbols_a_second),
        ("ten symbols a second under his own address", ten_symbols_a_second_of_a_stranger),
        ("ten symbols a second, with no address to check", ten_symbols_a_second_of_a_stranger),
        ("ten forged tables a second", ten_forged_tables_a_second),
        ("tables that take memory", tables_that_take_memory),
    ];
    for _ in 0..ROUNDS {
        let slow = round(&network, &attacks);
        attacks.retain(|(name, _)| slow.contains(name));
        if attacks.is_empty() {
            return;
        }
    }
    let names: Vec<&str> = attacks.iter().map(|(name, _)| *name).collect();
    panic!("more than {MOST_TIMES} times the undisturbed time in each of {ROUNDS} rounds: {names:?}");
}

/// Runs a session for each attack and one without. Gives the attacks under which it took too long.
fn round<'a>(network: &Network, attacks: &[(&'a str, Attack)]) -> Vec<&'a str> {
    let scratch = Scratch::new();
    let undisturbed = Running::start(network, &scratch, 0, &RECEIPTS);
    let under_attack = (1..).zip(attacks).map(|(index, (name, attack))| {
        let stranger = Stranger::start(network.receiver(7), Transfer::group(index), *attack);
        // Without receipts and probes the description does not have the sender's address.
        let words = if name.contains("no address") { &["--cc", "avmrc"][..] } else { &RECEIPTS };
        (*name, stranger, Running::start(network, &scratch, index, words))
    });
    let under_attack: Vec<(&str, Stranger, Running)> = under_attack.collect();
    let plain = undisturbed.verified();
    let (plain_packets, plain_memory) = (plain.count("received_packets"), plain.usage.peak_memory_bytes);
    eprintln!("undisturbed: {plain_packets} packets, {:.2} s, {} of memory", plain.seconds(), Bytes::new(plain_memory));
    assert_eq!(["bad_blocks", "bad_tables", "old_tables"].map(|field| plain.count(field)), [0; 3]);
    let mut slow = Vec::new();
    for (name, stranger, transfer) in under_attack {
        let done = transfer.verified();
        let sent = stranger.stop();
        let packets = done.count("received_packets");
        let times = packets as f64 / plain_packets as f64;
        let time = done.seconds() / plain.seconds();
        let memory = done.usage.peak_memory_bytes;
        let [blocks, tables, ignored] = ["bad_blocks", "bad_tables", "ignored_packets"].map(|field| done.count(field));
        eprintln!(
            "{name}: {times:.2} times the undisturbed packets in {time:.2} times the time, {sent} of them forged, {blocks} bad blocks, \
             {tables} bad tables, {} of memory",
            Bytes::new(memory)
        );
        let is_struck = match name {
            _ if name.contains("own address") => ignored > 0 && blocks == 0,
            _ if name.contains("symbol") => blocks > 0,
            _ => tables > 0,
        };
        assert!(is_struck && sent > 0, "{name} never struck: {}", done.told());
        assert!(times <= MOST_TIMES, "{name}: {packets} packets, and {plain_packets} undisturbed");
        assert!(memory <= plain_memory + MEMORY, "{name}: {} of memory", Bytes::new(memory));
        if time > MOST_TIMES {
            slow.push(name);
        }
    }
    slow
}

/// What a stranger does.
type Attack = fn(&mut Air);

/// Review §4.1: data packets that are not the sender's. Each strikes only if it arrives before the sender's next packet, which has the same
/// sequence number; one alone is sometimes too late.
fn three_forged_symbols(air: &mut Air) {
    for number in 0..3 {
        forge_symbol(air, number, true);
        air.pause(SECOND);
    }
}

/// The same again and again.
fn ten_forged_symbols_a_second(air: &mut Air) {
    forge_symbols(air, true);
}

/// The same under his own address.
fn ten_symbols_a_second_of_a_stranger(air: &mut Air) {
    forge_symbols(air, false);
}

fn forge_symbols(air: &mut Air, as_sender: bool) {
    for number in 0.. {
        if !forge_symbol(air, number, as_sender) {
            return;
        }
        air.pause(TENTH);
    }
}

/// Follows a packet of the first block that is seen with a symbol of the same block that is not the sender's.
fn forge_symbol(air: &mut Air, number: u32, as_sender: bool) -> bool {
    let Some(heard) = air.hear_last_symbol(|content| content.toi != 0) else { return false };
    let content = heard.content().expect("it has a symbol");
    let payload_id = PayloadId { symbol: (1 << 23) + number, ..content.payload_id };
    let length = symbol_of(heard.bytes()).map_or(0, |(_, symbol)| symbol.len());
    let packet = heard.followed_by(&Content { payload_id, ..content }, &vec![0x5a; length]);
    if as_sender {
        air.say_as(heard.from(), &packet);
    } else {
        air.say(&packet);
    }
    true
}

/// Tables of other files, under the sender's own instance ids and under others.
fn ten_forged_tables_a_second(air: &mut Air) {
    let xml = r#"<FDT-Instance Expires="4294967295"><File TOI="1" Content-Location="evil" Content-Length="9"/></FDT-Instance>"#;
    let (mut senders, mut number) = (0, 0);
    while let Some(heard) = air.hear_last_symbol(|content| {
        senders = content.fdt.map_or(senders, |fdt| fdt.id);
        content.toi != 0
    }) {
        number += 1;
        let id = if number % 2 == 0 { senders } else { number };
        let oti = Oti::NoCode { transfer_length: xml.len() as u64, symbol_size: xml.len() as u16, max_block_len: 1 };
        air.say_as(heard.from(), &heard.followed_by(&table(id, NO_CODE, oti), xml.as_bytes()));
        air.pause(TENTH);
    }
}

/// What the first packet of a table says.
fn table(id: u32, encoding_id: u8, oti: Oti) -> Content {
    let fdt = Some(FdtInstance { version: 2, id, content_encoding: 0 });
    Content { toi: 0, encoding_id, payload_id: PayloadId { block: 0, symbol: 0 }, fdt, oti: Some(oti), ask: None }
}

/// Review §4.4: packets of 50 bytes that each ask for a decoder of a million symbols, or for megabytes of a table; and a forged
/// table now and then that shows that they were heard.
fn tables_that_take_memory(air: &mut Air) {
    let Some(heard) = air.hear_last_symbol(|content| content.toi != 0) else { return };
    for number in 0..250 {
        let length = 1_000_000;
        let coded = Oti::RaptorQ { transfer_length: length, symbol_size: 1, blocks: 20, sub_blocks: 1, alignment: 1 };
        let plain = Oti::NoCode { transfer_length: 8 * length, symbol_size: 1400, max_block_len: 6000 };
        let (encoding_id, oti, size) = if number % 2 == 0 { (RAPTORQ, coded, 1) } else { (NO_CODE, plain, 1400) };
        let content = table(number, encoding_id, oti);
        air.say_as(heard.from(), &heard.followed_by(&content, &vec![1; size]));
    }
    ten_forged_tables_a_second(air);
}

/// Review §4.3: what a sender sent before, with the same key and TSI, comes again while it sends something else, and after.
#[test]
fn a_session_of_yesterday_played_again_displaces_nothing_and_is_not_received() {
    if !require_root() {
        return;
    }
    let network = Network::new().links([LINK; 3]).receivers(1).build();
    let scratch = Scratch::new();
    let old = transfer(&scratch, 0, Bytes::new(60_000), &["--for", "60s"]);
    let (heard, recording) = channel();
    let recorder = Stranger::start(network.receiver(3), Transfer::group(0), move |air| {
        while let Some(packet) = air.hear() {
            heard.send(packet.bytes().to_vec()).expect("somebody takes it");
        }
    });
    old.session.describe(network.sender());
    let old_sender = old.session.send(network.sender()).start();
    let old_session: Vec<Vec<u8>> = record(&recording);
    old_sender.kill();
    recorder.stop();
    let old_description = scratch.join("old.sdp");
    std::fs::copy(old.session.description(), &old_description).expect("a description");

    // The new session, with old tables all the time.
    let new = transfer(&scratch, 0, FILE, &["--receipts", "1"]);
    let is_table = |packet: &&Vec<u8>| symbol_of(packet).is_some_and(|(content, _)| content.toi == 0);
    let old_table = old_session.iter().find(is_table).cloned().expect("a table is sent at once");
    let sender_s = SocketAddrV4::new(network.sender().ipv4(), Transfer::group(0).port());
    let stranger = Stranger::start(network.receiver(3), Transfer::group(0), move |air| {
        air.say_as(sender_s, &old_table);
        while let Some(heard) = air.hear_last_symbol(|content| content.toi != 0) {
            let (content, symbol) = symbol_of(&old_table).expect("it is a table's");
            air.say_as(heard.from(), &heard.followed_by(&content, symbol));
            air.pause(TENTH);
        }
    });
    new.session.describe(network.sender());
    let receiver = new.session.recv(network.receiver(0), &new.out).start();
    let sender = new.session.send(network.sender()).start();
    let done = new.verified_by(&receiver, MINUTE);
    assert!(sender.wait(MINUTE).is_success() && stranger.stop() > 0);
    eprintln!("{} old tables came to nothing in {:.2} s", done.count("old_tables"), done.seconds());
    assert!(done.count("old_tables") > 0, "no old table came: {}", done.told());

    // All of the old session: to a receiver that knows its description and nothing else; to one that has heard of the new one since; and to one that
    // has the new one's description.
    let gap = Duration::from_micros(500);
    let stranger =
        Stranger::start(network.receiver(3), Transfer::group(0), move |air| play(air, sender_s, &old_session, gap));
    let recv = |index: usize, description: &Path, out: &Path, limit: &str| {
        let host = network.receiver(index);
        let command = host.command(WEIR).arg("recv").arg(description).arg("--out").arg(out);
        command.args(["--iface", host.interface(), "--json", "--for", limit]).start()
    };
    let folders = ["innocent", "warned", "described"].map(|name| scratch.folder(name));
    std::fs::copy(new.out.join(".weir-epochs"), folders[1].join(".weir-epochs")).expect("what was heard last");
    // A receiver that takes it ends when it has it all; the others hear nothing but old tables until their time is up.
    let innocent = recv(0, &old_description, &folders[0], "50s");
    let warned = recv(1, &old_description, &folders[1], "8s");
    let described = recv(2, &new.session.description(), &folders[2], "8s");
    let [innocent, warned, described] = [innocent, warned, described].map(|process| process.wait(MINUTE));
    stranger.stop();
    assert!(innocent.is_success() && same_content(&old.file, &folders[0].join("input0")), "{}", innocent.told());
    for (done, folder) in [(warned, &folders[1]), (described, &folders[2])] {
        let end = done.last_event("end");
        assert!(!done.is_success() && end["verified"] == false && end["files"] == 0, "{}", done.told());
        assert!(done.count("old_tables") > 0 && !folder.join("input0").exists(), "{}", done.told());
        assert!(done.events("error").iter().any(|error| text(error).contains("an earlier start")), "{}", done.told());
    }
}

/// What is heard until the whole of a small file must have come over the base layer, twice.
fn record(recording: &Receiver<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut packets: Vec<Vec<u8>> = Vec::new();
    while packets.len() < 200 {
        packets.push(recording.recv_timeout(MINUTE).expect("the sender sends"));
    }
    packets
}

fn symbol_of(packet: &[u8]) -> Option<(Content, &[u8])> {
    let alc = Alc::decode(packet).ok()?;
    Some((alc.content?, alc.symbol))
}

/// Sends these packets over and over under the address of another.
fn play(air: &mut Air, from: SocketAddrV4, packets: &[Vec<u8>], gap: Duration) {
    for packet in packets.iter().cycle() {
        if air.is_over() {
            return;
        }
        air.say_as(from, packet);
        weir_testkit::netns::pause(gap);
    }
}

/// Review §4.7: a description that asks for more memory than there is, and one that speaks to the terminal.
#[test]
fn absurd_descriptions_are_refused_in_words() {
    let scratch = Scratch::new();
    let path = scratch.join("absurd.sdp");
    let absurd = [
        ("s=x\na=weir-ladder:1 18446744073709551615\n", "from 1 kbit/s to 1 Tbit/s"),
        ("s=\u{1b}]0;owned\u{7}\n", "without control characters"),
    ];
    for (lines, expected) in absurd {
        let rest = "a=flute-tsi:1\na=weir-cc:avmrc\na=weir-packet:1456\nm=application 5004 FLUTE/UDP 0\nc=IN IP4 239.255.0.1/1\n";
        std::fs::write(&path, format!("v=0\n{lines}{rest}")).expect("written");
        let done = weir_testkit::netns::Command::here(WEIR).arg("recv").arg(&path).start().wait(MINUTE);
        let told = done.told();
        assert!(!done.is_success() && told.contains(expected) && !told.contains('\u{1b}'), "{told:?}");
        assert!(done.usage.peak_memory_bytes < 100_000_000, "{}", Bytes::new(done.usage.peak_memory_bytes));
    }
}

/// A transfer that has been started.
struct Running {
    transfer: Transfer,
    receiver: Process,
    sender: Process,
    has_receipts: bool,
}

/// Number `index` of the sessions of a test, of a file of so many bytes.
fn transfer(scratch: &Scratch, index: usize, bytes: Bytes, words: &[&str]) -> Transfer {
    let all = ["--rates", "2M..16M"].iter().chain(words);
    Transfer::new(Path::new(WEIR), scratch, index, bytes, all.copied())
}

impl Running {
    /// Starts number `index` to the receiver of that number.
    fn start(network: &Network, scratch: &Scratch, index: usize, words: &[&str]) -> Running {
        let transfer = transfer(scratch, index, FILE, words);
        transfer.session.describe(network.sender());
        let receiver = transfer.session.recv(network.receiver(index), &transfer.out).start();
        let sender = transfer.session.send(network.sender()).start();
        Running { transfer, receiver, sender, has_receipts: words.contains(&"--receipts") }
    }

    fn verified(&self) -> Finished {
        let done = self.transfer.verified_by(&self.receiver, MINUTE);
        // Without receipts it does not know.
        let ended = if self.has_receipts { self.sender.wait(MINUTE) } else { self.sender.terminate() };
        assert!(ended.is_success());
        done
    }
}

fn text(event: &Value) -> &str {
    event["message"].as_str().unwrap_or_default()
}

const RECEIPTS: [&str; 2] = ["--receipts", "1"];
const FILE: Bytes = Bytes::new(8_000_000);
const LINK: Rate = Rate::from_mbps(16);
const TENTH: Duration = Duration::from_millis(100);
const SECOND: Duration = Duration::from_secs(1);
/// Of the undisturbed packets, and of the undisturbed time in one of the rounds.
const MOST_TIMES: f64 = 1.5;
const ROUNDS: usize = 4;
/// What forged tables may take: less than the 256 MB that a receiver may have for everything.
const MEMORY: u64 = 200_000_000;
