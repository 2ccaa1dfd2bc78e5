//! Senders that ask what is lacking before they send repair symbols.

use crate::common::*;
use weir_object::carousel::{Heard, Thrift};
use weir_object::{CarouselOptions, Lack, Store, StoreOptions};
use weir_units::Random;
use weir_wire::extension::Question;
use weir_wire::receipt::KEY_LEN;

/// A receiver that loses packets at random.
struct Receiver {
    out: tempfile::TempDir,
    store: Store,
    random: Random,
    loss: f64,
    lost: u64,
}

impl Receiver {
    fn new(seed: u64, loss: f64) -> Receiver {
        let out = tempfile::tempdir().expect("temporary folder");
        let store = open(out.path(), &StoreOptions { sync: false, ..Default::default() });
        Receiver { out, store, random: Random::new(seed, "loss"), loss, lost: 0 }
    }
}

/// What went from a sender that asks to receivers that answer, until all have everything.
#[derive(Debug, Default)]
struct Account {
    questions: u8,
    /// Symbols of files: source symbols after the first cycle, and repair symbols.
    again: u64,
    repair: u64,
    /// Lost packets of all receivers.
    lost: u64,
    decoded_blocks: u64,
}

/// Sends until all receivers have everything. `absent` of them come after the first cycle, and `liar` answers as well.
fn send(sender: &mut Sender, receivers: &mut [Receiver], absent: usize, liar: impl Fn() -> Vec<Lack>) -> Account {
    let mut account = Account::default();
    let cycle = sender.carousel.stats().symbols_per_cycle;
    let present = receivers.len() - absent;
    sender.carousel.set_asking(true);
    while receivers.iter().any(|receiver| !receiver.store.is_complete()) {
        if sender.carousel.is_waiting() {
            account.questions += 1;
            sender.carousel.ask(Question { number: account.questions, receivers: receivers.len() as u16 });
            let (_, content, _) = sender.next();
            assert_eq!(content.ask.map(|question| question.number), Some(account.questions), "packets ask");
            for (i, receiver) in receivers.iter_mut().enumerate() {
                let lacking = receiver.store.lacking(usize::MAX).expect("the disk works");
                lacking.iter().flatten().for_each(|lack| sender.carousel.note(&[i as u8; KEY_LEN], lack));
            }
            liar().iter().for_each(|lack| sender.carousel.note(&[u8::MAX; KEY_LEN], lack));
            sender.carousel.go_on(Thrift::Bytes, Heard::All);
        }
        let (_, content, symbol) = sender.next();
        assert!(content.ask.is_none(), "what is to be sent asks nothing");
        let sent = sender.carousel.stats().symbols;
        if content.toi != 0 && sent > cycle {
            let is_source = content.payload_id.symbol < 1_000;
            *if is_source { &mut account.again } else { &mut account.repair } += 1;
        }
        assert!(sent < 100 * cycle, "{account:?}");
        for (i, receiver) in receivers.iter_mut().enumerate() {
            if i >= present && sent <= cycle && content.toi != 0 {
                continue;
            }
            if receiver.random.chance(receiver.loss) {
                account.lost += u64::from(content.toi != 0);
                receiver.lost += 1;
            } else {
                receiver.store.add(&content, &symbol, ORIGIN).expect("the disk works");
            }
        }
    }
    for receiver in receivers {
        assert_same(sender.folder.path(), receiver.out.path());
        account.decoded_blocks += receiver.store.progress().decoded_blocks;
    }
    account
}

/// A sender of a file of 20 blocks of 1000 symbols on one channel.
fn sender() -> Sender {
    let bytes = content(20 * 1_000 * 64, 1);
    let options = CarouselOptions { symbol_size: 64, block_symbols: 1_000, ..Default::default() };
    Sender::new(&[("a", &bytes)], &options)
}

#[test]
fn all_packets_of_a_sender_that_waits_for_answers_ask() {
    let mut sender = sender();
    sender.carousel.set_asking(true);
    while !sender.carousel.is_waiting() {
        sender.next();
    }
    let question = Question { number: 1, receivers: 1 };
    sender.carousel.ask(question);
    // Packets of the table are due several times among these, and they must ask, too.
    for _ in 0..10_000 {
        assert_eq!(sender.next().1.ask, Some(question));
    }
}

#[test]
fn what_one_receiver_lost_is_sent_again_and_nothing_else() {
    let (mut sender, mut receivers) = (sender(), [Receiver::new(1, 0.02)]);
    let account = send(&mut sender, &mut receivers, 0, Vec::new);
    eprintln!("{account:?}");
    assert!(account.lost > 300 && receivers[0].lost > 0, "the path lost packets");
    assert_eq!((account.again, account.repair, account.decoded_blocks), (account.lost, 0, 0));
    assert!((2..8).contains(&account.questions));
}

#[test]
fn a_receiver_that_lost_nothing_has_nothing_encoded() {
    let account = send(&mut sender(), &mut [Receiver::new(1, 0.0)], 0, Vec::new);
    assert_eq!((account.questions, account.again, account.repair), (0, 0, 0));
}

#[test]
fn receivers_that_lost_different_symbols_share_repair_symbols() {
    let mut receivers: Vec<Receiver> = (0..12).map(|seed| Receiver::new(seed, 0.02)).collect();
    let account = send(&mut sender(), &mut receivers, 0, Vec::new);
    eprintln!("{account:?}");
    let each = account.lost / 12;
    assert!(account.repair > account.again && account.decoded_blocks > 0);
    assert!(account.again + account.repair < 3 * each, "{each} were lost by one, {} by all", account.lost);
}

#[test]
fn one_that_comes_late_gets_everything_once_and_the_others_do_not_wait_for_it() {
    let (mut sender, mut receivers) = (sender(), [Receiver::new(1, 0.01), Receiver::new(2, 0.0)]);
    let cycle = sender.carousel.stats().symbols_per_cycle;
    let account = send(&mut sender, &mut receivers, 1, Vec::new);
    eprintln!("{account:?}");
    assert_eq!((account.repair, account.decoded_blocks), (0, 0));
    assert!(account.again <= cycle + account.lost, "{} of {cycle}", account.again);
}

#[test]
fn a_liar_that_always_lacks_everything_keeps_nobody_from_the_rest() {
    let everything = || (0..20).map(|block| Lack { toi: 1, block, needed: 1_000, runs: vec![(0, 1_000)] }).collect();
    let (mut sender, mut receivers) = (sender(), [Receiver::new(1, 0.05)]);
    let account = send(&mut sender, &mut receivers, 0, everything);
    eprintln!("{account:?}");
    let cycle = sender.carousel.stats().symbols_per_cycle;
    assert!(account.again + account.repair < 4 * cycle, "{account:?}");
}

#[test]
fn a_sender_that_was_started_again_asks_first() {
    let bytes = content(20 * 1_000 * 64, 1);
    let options = CarouselOptions {
        symbol_size: 64,
        block_symbols: 1_000,
        skipped_cycles: 1,
        memory_limit: 1 << 20,
        ..Default::default()
    };
    let mut sender = Sender::new(&[("a", &bytes)], &options);
    sender.carousel.set_asking(true);
    let mut receivers = [Receiver::new(1, 0.0)];
    let asked = (0..200_000).find(|_| {
        let (_, content, symbol) = sender.next();
        receivers[0].store.add(&content, &symbol, ORIGIN).expect("the disk works");
        sender.carousel.is_waiting()
    });
    assert!(asked.is_some(), "it asks");
    let account = send(&mut sender, &mut receivers, 0, Vec::new);
    assert_eq!(receivers[0].store.progress().files_done, 1, "{account:?}");
}

#[test]
fn nobody_can_say_what_is_lacking_before_the_table_is_there() {
    let mut receiver = Receiver::new(1, 0.0);
    assert_eq!(receiver.store.lacking(9).expect("the disk works"), None);
}
