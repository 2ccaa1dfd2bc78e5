use super::*;
use std::time::Duration;

use proptest::prelude::*;
use weir_units::{Random, Rate, Time};
use weir_wire::extension::Question;
use weir_wire::lack::Lack;
use weir_wire::receipt::{Kind, To};

const KEY: [u8; 32] = [7; 32];
const EPOCH: u64 = 5;
/// What the sender signs with here: a tag that its own secret makes.
const SENDER: [u8; 32] = [9; 32];

/// A signature for these tests, by a secret that each test chooses.
fn sign(secret: [u8; 32]) -> Sign {
    Box::new(move |bytes| {
        let hash = *blake3::keyed_hash(&secret, bytes).as_bytes();
        let mut signature = [0; SIGNATURE_LEN];
        signature[..32].copy_from_slice(&hash);
        signature
    })
}

/// Public and secret keys are the same here.
fn is_signed(key: &[u8; 32], bytes: &[u8], signature: &[u8; SIGNATURE_LEN]) -> bool {
    &sign(*key)(bytes) == signature
}

fn receiver(number: u8) -> ReceiptSender {
    let key = [number; 32];
    let identity = Identity { key, name: format!("host{number}"), sign: sign(key) };
    let is_sender_s = |bytes: &[u8], signature: &[u8; SIGNATURE_LEN]| is_signed(&SENDER, bytes, signature);
    ReceiptSender::new(identity, 9, KEY, Box::new(is_sender_s), Time::ZERO, Random::new(number.into(), "receipt"))
}

fn finished(number: u8) -> ReceiptSender {
    let mut receiver = receiver(number);
    receiver.finish(Time::ZERO, Duration::ZERO, Standing::default(), [number; 32]);
    receiver
}

fn book() -> ReceiptBook {
    let is_of_content = |receipt: &Receipt| receipt.proof == receipt.receiver || receipt.proof == [0; 32];
    let is_expected = |receipt: &Receipt| receipt.receiver[0] >= 100;
    let verdicts = Verdicts {
        is_signed,
        is_of_content: Box::new(is_of_content),
        is_expected: Box::new(is_expected),
        sign: sign(SENDER),
    };
    ReceiptBook::new(KEY, 9, EPOCH, verdicts)
}

fn next(receiver: &mut ReceiptSender) -> (Time, Vec<u8>) {
    let at = receiver.deadline().expect("it is not over");
    (at, receiver.poll(at, Standing::default).expect("it is time"))
}

#[test]
fn an_unanswered_receipt_is_sent_five_times_ever_more_slowly() {
    let mut receiver = finished(1);
    let mut sent = Vec::new();
    while let Some(deadline) = receiver.deadline() {
        if receiver.poll(deadline, Standing::default).is_some() {
            sent.push(deadline.as_micros() / 1_000);
        }
    }
    assert_eq!(sent, [0, 500, 1_500, 3_500, 7_500]);
    assert!(!receiver.is_acknowledged() && !receiver.is_confirming());
}

#[test]
fn the_first_receipt_waits_for_a_random_part_of_the_spread() {
    let first = |seed| {
        let mut receiver = receiver(seed);
        receiver.finish(Time::ZERO, Duration::from_secs(10), Standing::default(), [0; 32]);
        receiver.deadline().expect("it waits")
    };
    let waits: Vec<Time> = (0..100).map(first).collect();
    assert!(waits.iter().all(|wait| *wait < Time::from_secs(10)));
    let early = waits.iter().filter(|wait| **wait < Time::from_secs(5)).count();
    assert!((30..70).contains(&early), "{early} of 100 in the first half");
}

#[test]
fn a_receipt_is_acknowledged_by_the_sender_alone() {
    let (mut receiver, mut book) = (finished(1), book());
    let (_, first) = next(&mut receiver);
    assert!(!receiver.on_message(Time::ZERO, &first), "its own receipt is no acknowledgement");
    let (at, again) = next(&mut receiver);
    let answer = book.on_message(at, &again, |_| {}).expect("it is good");
    // Whoever has the description can make the tag, and not the signature.
    let (body, forged) = (answer[..weir_wire::receipt::ANSWER_BODY_LEN].to_vec(), [0; SIGNATURE_LEN]);
    assert!(!receiver.on_message(at, &sealed(&body, &forged, &KEY)), "nobody signed it");
    assert!(!finished(2).on_message(at, &answer), "it is for another");
    assert!(receiver.on_message(at, &answer) && receiver.is_acknowledged() && receiver.deadline().is_none());
    assert_eq!((book.receivers(), receiver.tries()), (1, 2));
}

#[test]
fn a_receiver_counts_once_and_nobody_speaks_for_another() {
    let mut book = book();
    let mut new = Vec::new();
    let mut hear = |message: &[u8]| {
        let answer = book.on_message(Time::ZERO, message, |it| new.push(it.name().to_owned()));
        answer.and_then(|answer| opened_answer(&answer, &KEY)).is_some_and(|(answer, _)| answer.to == To::Receipt)
    };
    let (one, two) = (next(&mut finished(1)).1, next(&mut finished(2)).1);
    // The same receiver, started again.
    assert!(hear(&one) && hear(&next(&mut finished(1)).1) && hear(&two));
    let (receipt, signature) = opened(&one, &KEY).expect("our own");
    let forge = |receipt: Receipt, signature: &[u8; SIGNATURE_LEN]| sealed(&receipt.encode_body(), signature, &KEY);
    let other = Receipt { receiver: [3; 32], proof: [3; 32], ..receipt };
    assert!(!hear(&forge(other, &signature)), "another's key without its signature");
    let without = Receipt { receiver: [4; 32], ..receipt };
    assert!(!hear(&forge(without, &sign([4; 32])(&without.encode_body()))), "another's proof");
    assert!(!hear(&sealed(&receipt.encode_body(), &signature, &[8; 32])), "another session's tag");
    assert!(!hear(b"WRCP") && !hear(&[]));
    assert_eq!((book.receivers(), book.forged(), new), (2, 5, vec!["host1".to_owned(), "host2".to_owned()]));
}

#[test]
fn a_receiver_that_had_everything_before_it_heard_of_the_sender_s_start_proves_it_again() {
    let (mut receiver, mut book) = (receiver(1), book());
    // What it says is of another start.
    receiver.finish(Time::ZERO, Duration::ZERO, Standing::default(), [99; 32]);
    let (at, receipt) = next(&mut receiver);
    let answer = book.on_message(at, &receipt, |_| panic!("it proves nothing")).expect("it is answered");
    assert!(answer.len() < receipt.len(), "nothing is amplified");
    let (body, forged) = (answer[..weir_wire::receipt::ANSWER_BODY_LEN].to_vec(), [0; SIGNATURE_LEN]);
    receiver.on_message(at, &sealed(&body, &forged, &KEY));
    assert_eq!(receiver.take_other_start(), None, "the sender did not sign that");
    assert!(!receiver.on_message(at, &answer), "it is no acknowledgement");
    assert_eq!((receiver.take_other_start(), receiver.take_other_start()), (Some(EPOCH), None));
    receiver.prove_again(at, Standing::default(), [1; 32]);
    let (again, receipt) = next(&mut receiver);
    let answer = book.on_message(again, &receipt, |_| {}).expect("it is good");
    assert!(again == at && receiver.on_message(again, &answer) && book.receivers() == 1);
}

#[test]
fn a_sender_that_asks_for_proofs_without_end_gets_five() {
    let (mut receiver, mut book, mut sent) = (receiver(1), book(), 0);
    receiver.finish(Time::ZERO, Duration::ZERO, Standing::default(), [99; 32]);
    while let Some(at) = receiver.deadline() {
        let Some(receipt) = receiver.poll(at, Standing::default) else { break };
        sent += 1;
        let answer = book.on_message(at, &receipt, |_| panic!("it proves nothing")).expect("it is answered");
        receiver.on_message(at, &answer);
        receiver.take_other_start().expect("it is to prove it again");
        receiver.prove_again(at, Standing::default(), [98; 32]);
    }
    assert_eq!((sent, receiver.is_confirming()), (MAX_TRIES, false));
}

#[test]
fn reports_tell_how_far_a_receiver_is_until_its_receipt() {
    let (mut receiver, mut book) = (receiver(1), book());
    let at = receiver.deadline().expect("it reports");
    let report = receiver.poll(at, || Standing { share: 4_200, ..Standing::default() }).expect("it is time");
    let answer = book.on_message(at, &report, |_| panic!("no receipt")).expect("it is answered");
    assert!(answer.len() < report.len(), "nothing is amplified");
    let shares =
        |book: &ReceiptBook| book.entries().map(|entry| (entry.last.share, entry.is_finished())).collect::<Vec<_>>();
    assert_eq!((shares(&book), book.receivers()), (vec![(4_200, false)], 0));
    receiver.on_message(at, &answer);
    receiver.finish(at, Duration::ZERO, Standing::default(), [1; 32]);
    let receipt = next(&mut receiver).1;
    book.on_message(at, &receipt, |_| {}).expect("it is good");
    book.on_message(at, &report, |_| {}).expect("it came late");
    assert_eq!((shares(&book), book.receivers()), (vec![(10_000, true)], 1));
}

#[test]
fn a_thousand_receivers_report_twenty_times_a_second_and_unheard_ones_ever_less() {
    let mut book = book();
    let mut receivers: Vec<ReceiptSender> = Vec::new();
    for number in 0..1_000u64 {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&number.to_be_bytes());
        let identity = Identity { key, name: String::new(), sign: sign(key) };
        receivers.push(ReceiptSender::new(
            identity,
            9,
            KEY,
            Box::new(|_, _| true),
            Time::ZERO,
            Random::new(number, "receipt"),
        ));
    }
    let mut reports = Vec::new();
    for millis in (0..600_000).step_by(50) {
        let now = Time::from_millis(millis);
        let mut sent = 0;
        for receiver in &mut receivers {
            let Some(report) = receiver.poll(now, Standing::default) else { continue };
            sent += 1;
            if let Some(answer) = book.on_message(now, &report, |_| {}) {
                receiver.on_message(now, &answer);
            }
        }
        reports.push(sent);
    }
    let per_sec = |from: usize, to: usize| reports[from * 20..to * 20].iter().sum::<u32>() as f64 / (to - from) as f64;
    assert!(per_sec(200, 600) <= 1.25 * REPORTS_PER_SEC as f64, "{} a second", per_sec(200, 600));
    assert!(per_sec(0, 5) <= 220.0, "{} a second at first", per_sec(0, 5));
    assert_eq!(book.entries().count(), 1_000);
    let mut unheard = receiver(1);
    let times: Vec<u64> = (0..8).map(|_| next(&mut unheard).0.as_micros() / 1_000_000).collect();
    assert!(times[7] > 300, "{times:?}");
}

proptest! {
    /// Whoever has the description can put its tag on anything.
    #[test]
    fn anything_under_the_right_tag_is_answered_or_refused_without_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..260), kind in 0u8..6, is_head in any::<bool>(),
    ) {
        let mut bytes = bytes;
        if is_head && bytes.len() >= 8 {
            bytes[..8].copy_from_slice(&[b'W', b'R', b'C', b'P', 3, kind, 0, 9]);
        }
        let message = [&bytes[..], &tag(&bytes, &KEY)].concat();
        let (mut book, mut receiver) = (book(), finished(1));
        let answer = book.on_message(Time::ZERO, &message, |_| {});
        prop_assert!(answer.is_none(), "nobody signed it");
        prop_assert!(!receiver.on_message(Time::ZERO, &message));
    }
}

/// Whoever records what passes on the wire can give it again, to another session of the same key and number.
#[test]
fn what_was_said_in_another_session_counts_for_nothing() {
    let (mut before, mut book) = (finished(1), book());
    let (at, receipt) = next(&mut before);
    let answer = book.on_message(at, &receipt, |_| {}).expect("it is good");
    // The receiver again, with another content: its receipt is another.
    let mut again = receiver(1);
    let report = next(&mut again).1;
    again.finish(at, Duration::ZERO, Standing { received_bytes: 5, ..Standing::default() }, [1; 32]);
    assert!(!again.on_message(at, &answer), "before it has sent any");
    let (at, receipt) = next(&mut again);
    assert!(!again.on_message(at, &answer) && again.is_confirming(), "an answer to another receipt");
    let answer = book.on_message(at, &receipt, |_| {}).expect("it is good");
    assert!(again.on_message(at, &answer));
    let answer = book.on_message(at, &report, |_| {}).expect("it is good");
    let (mut reporter, now) = (receiver(1), Time::from_secs(1));
    let deadline = reporter.deadline();
    reporter.on_message(now, &answer);
    assert_eq!(reporter.deadline(), deadline, "an answer to a report that it has not made");
}

#[test]
fn when_there_is_no_room_who_is_expected_stays_and_who_proves_comes_in() {
    let mut book = book().with_room(3);
    let mut hear = |number: u8, secs: u64, finishes: bool| {
        let mut receiver = if finishes { finished(number) } else { receiver(number) };
        let message = next(&mut receiver).1;
        let is_heard = book.on_message(Time::from_secs(secs), &message, |_| {}).is_some();
        let known: Vec<u8> = book.entries().map(|entry| entry.last.receiver[0]).collect();
        (is_heard, known)
    };
    assert_eq!(hear(100, 1, false).1, [100]);
    assert_eq!(hear(1, 2, false).1, [1, 100]);
    assert_eq!(hear(2, 3, false).1, [1, 2, 100]);
    // The first is heard again, so that the second is the one that was heard longest ago.
    assert_eq!(hear(1, 4, false), (true, vec![1, 2, 100]));
    assert_eq!(hear(3, 5, false), (true, vec![1, 3, 100]));
    assert_eq!(hear(101, 6, false), (true, vec![3, 100, 101]));
    assert_eq!(hear(102, 7, false), (true, vec![100, 101, 102]));
    assert_eq!(hear(4, 8, false), (false, vec![100, 101, 102]), "nobody expects it");
    assert_eq!(hear(5, 9, true), (true, vec![5, 101, 102]), "it has everything");
    assert_eq!(hear(5, 10, false), (true, vec![5, 101, 102]), "what comes late changes nothing");
    assert_eq!((book.receivers(), book.overflowed(), book.forged()), (1, 1, 0));
}

#[test]
fn what_floods_is_not_all_looked_at() {
    let mut book = book();
    let receipts: Vec<Vec<u8>> = (0..=255).map(|number| next(&mut finished(number)).1).collect();
    let forge = |receipt: &Vec<u8>| {
        let (receipt, _) = opened(receipt, &KEY).expect("our own");
        sealed(&receipt.encode_body(), &[0; SIGNATURE_LEN], &KEY)
    };
    for _ in 0..20 {
        receipts.iter().for_each(|receipt| drop(book.on_message(Time::ZERO, &forge(receipt), |_| {})));
    }
    assert!(book.forged() <= 500 && book.overflowed() > 4_000, "{} and {}", book.forged(), book.overflowed());
    assert!(book.on_message(Time::from_secs(1), &receipts[1], |_| {}).is_some(), "a second later there is time");
    assert!(matches!(book.entries().next(), Some(Entry { last: Receipt { kind: Kind::Receipt, .. }, .. })));
}

/// What a receiver lacks of as many blocks.
fn lacking(blocks: u8) -> Vec<Lack<[(u16, u16); 60]>> {
    (0..blocks).map(|block| Lack { toi: 1, block, needed: 60, runs: [(1, 1); 60] }).collect()
}

fn answering(number: u8) -> Answering {
    Answering::new(9, KEY, [number; 32])
}

/// All that a receiver says to a question at `now`, and when.
fn answer(receiver: &mut Answering, now: Time, question: Question, rate: Rate, blocks: u8) -> Vec<(Time, Vec<u8>)> {
    assert!(receiver.is_new(question));
    receiver.answer(now, question, rate, &lacking(blocks));
    std::iter::from_fn(|| receiver.deadline().map(|at| (at, receiver.poll(at).expect("it is time")))).collect()
}

#[test]
fn a_question_is_over_once_all_have_said_all_that_they_lack() {
    let mut asking = Asking::new(9, KEY, Duration::ZERO);
    let question = asking.ask(Time::ZERO, 2);
    let mut blocks = 0;
    for number in 1..=2 {
        assert_eq!(asking.answers(Time::from_millis(20)), Answers::Awaited);
        for (at, message) in answer(&mut answering(number), Time::from_millis(10), question, Rate::from_mbps(100), 30) {
            blocks += asking.on_message(at, &message).expect("an answer").lacks().count();
        }
    }
    assert_eq!((blocks, asking.answers(Time::from_millis(20))), (60, Answers::All));
}

#[test]
fn answers_of_all_receivers_take_a_twentieth_of_the_rate() {
    let question = Question { number: 1, receivers: 4 };
    let said = answer(&mut answering(1), Time::ZERO, question, Rate::from_mbps(8), 200);
    let bytes = said.iter().map(|(_, message)| message.len()).sum::<usize>();
    let (last, _) = said.last().expect("some messages");
    let rate = bytes as f64 * 8.0 / last.since(Time::ZERO).as_secs_f64();
    assert!(said.len() > 40 && said.iter().all(|(_, message)| message.len() <= 1_200));
    assert!((90e3..110e3).contains(&rate), "{rate} bit/s");
}

#[test]
fn a_question_is_answered_once_and_another_takes_its_place() {
    let mut receiver = answering(1);
    let [first, second] = [1, 2].map(|number| Question { number, receivers: 1 });
    assert!(receiver.is_new(first) && !receiver.is_new(first));
    receiver.answer(Time::ZERO, first, Rate::from_mbps(1), &lacking(9));
    assert!(receiver.poll(Time::ZERO).is_some() && receiver.deadline().is_some());
    assert!(receiver.is_new(second) && receiver.deadline().is_none(), "the rest is of no use any more");
    receiver.answer(Time::ZERO, first, Rate::from_mbps(1), &lacking(9));
    assert!(receiver.deadline().is_none(), "what was found out too late, either");
}

#[test]
fn an_answer_that_does_not_come_is_waited_for_three_times_as_long_as_the_last_one_took() {
    let mut asking = Asking::new(9, KEY, Duration::ZERO);
    let mut receiver = answering(1);
    asking.ask(Time::ZERO, 1);
    assert_eq!(asking.answers(Time::from_millis(159)), Answers::Awaited);
    assert_eq!(asking.answers(Time::from_millis(160)), Answers::Nobody, "none has shown what it takes");
    // One that came too late shows it.
    let question = asking.ask(Time::from_secs(1), 1);
    let said = answer(&mut receiver, Time::from_millis(1_600), question, Rate::from_mbps(1), 1);
    assert_eq!(asking.answers(Time::from_millis(1_500)), Answers::Nobody);
    said.iter().for_each(|(at, message)| assert!(asking.on_message(*at, message).is_some()));
    asking.ask(Time::from_secs(10), 1);
    assert_eq!(asking.answers(Time::from_millis(11_809)), Answers::Awaited);
    assert_eq!(asking.answers(Time::from_millis(11_810)), Answers::Nobody);
}

#[test]
fn an_answer_is_waited_for_as_long_as_it_is_worth() {
    let mut asking = Asking::new(9, KEY, Duration::from_secs(2));
    let question = asking.ask(Time::ZERO, 2);
    assert_eq!(asking.answers(Time::from_millis(1_999)), Answers::Awaited);
    assert_eq!(asking.answers(Time::from_millis(2_000)), Answers::Nobody);
    let said = answer(&mut answering(1), Time::from_millis(20), question, Rate::from_mbps(1), 1);
    said.iter().for_each(|(at, message)| assert!(asking.on_message(*at, message).is_some()));
    assert_eq!(asking.answers(Time::from_millis(50)), Answers::Some, "but not for others, where one has answered");
}

#[test]
fn whoever_is_silent_keeps_nobody_waiting_for_long() {
    let mut asking = Asking::new(9, KEY, Duration::ZERO);
    let question = asking.ask(Time::ZERO, 2);
    let said = answer(&mut answering(1), Time::from_millis(100), question, Rate::from_mbps(1), 1);
    said.iter().for_each(|(at, message)| assert!(asking.on_message(*at, message).is_some()));
    assert_eq!(asking.answers(Time::from_millis(209)), Answers::Awaited);
    assert_eq!(asking.answers(Time::from_millis(210)), Answers::Some, "twice as long as the first, and a little");
}

#[test]
fn only_answers_to_the_last_question_count_that_bear_the_session_s_tag() {
    let mut asking = Asking::new(9, KEY, Duration::ZERO);
    let old = asking.ask(Time::ZERO, 1);
    let question = asking.ask(Time::ZERO, 1);
    let say = |mut receiver: Answering, question| answer(&mut receiver, Time::ZERO, question, Rate::from_mbps(1), 1);
    let wrong = [
        say(answering(1), old),
        say(Answering::new(8, KEY, [1; 32]), question),
        say(Answering::new(9, [8; 32], [1; 32]), question),
    ];
    for (_, message) in wrong.iter().flatten() {
        assert!(asking.on_message(Time::ZERO, message).is_none());
    }
    for (_, message) in say(answering(1), question) {
        for at in 0..message.len() {
            let mut changed = message.clone();
            changed[at] ^= 1;
            assert!(asking.on_message(Time::ZERO, &changed).is_none(), "byte {at}");
        }
        assert!(asking.on_message(Time::ZERO, &message).is_some());
    }
}
