//! When a sender asks its receivers what they lack, in place of repair symbols for everything.
//!
//! It does while few receivers are there, of about the same rate. Many get repair symbols, each of which is of use to all; and so do unlike ones,
//! as what the slow ones lack is mostly what the fast ones have. A host that does not keep up asks unlike ones, too, so that it need not encode.

use std::time::Duration;

use weir_core::observation::Audience;
use weir_net::receipts::{Answers, Asking};
use weir_object::Carousel;
use weir_object::carousel::{Heard, Thrift};
use weir_units::Time;

/// The sender's questions.
#[derive(Debug)]
pub(crate) struct Asks {
    asking: Asking,
    /// How many receivers are to be asked; `None` if they are too many, or not known.
    receivers: Option<u16>,
    /// Whether their rates are about the same.
    are_alike: bool,
    /// When the question was asked that is to be answered now.
    asked: Option<Time>,
    /// Since when nothing is lacking, by what is answered.
    idle: Option<Time>,
    /// How many questions nobody has answered, one after another, and until when none is asked for that.
    unheard: u32,
    rests_until: Time,
    /// When this host did not keep up last.
    busy: Option<Time>,
}

impl Asks {
    /// Of session `tsi`, whose tags `key` makes, and which sends `bytes` bytes.
    pub(crate) fn new(tsi: u16, key: [u8; 32], bytes: u64) -> Asks {
        // A question that nobody answers has everything encoded.
        let patience = Duration::from_secs_f64(bytes as f64 / ENCODED_PER_SEC).min(LONGEST_PATIENCE);
        let asking = Asking::new(tsi, key, patience);
        Asks {
            asking,
            receivers: None,
            are_alike: false,
            asked: None,
            idle: None,
            unheard: 0,
            rests_until: Time::ZERO,
            busy: None,
        }
    }

    /// These receivers are there at `now`, if that is known.
    pub(crate) fn on_audience(&mut self, now: Time, audience: Option<Audience>) {
        let receivers = audience.and_then(|audience| u16::try_from(audience.receivers).ok());
        match (self.receivers, receivers) {
            // The last one has left, most likely as it has everything. Whatever is encoded now is for nobody.
            (Some(1..), Some(0)) => _ = self.idle.get_or_insert(now),
            (Some(0), Some(1..)) => self.idle = None,
            _ => {}
        }
        self.receivers = receivers.filter(|receivers| *receivers <= MOST_RECEIVERS);
        let alike = |audience: Audience| audience.highest <= audience.lowest.scale(MOST_UNLIKE);
        self.are_alike = audience.is_some_and(alike);
    }

    /// This host does not send in time, at `now`.
    pub(crate) fn on_busy(&mut self, now: Time) {
        self.busy = Some(now);
    }

    /// A message came at `now`. What is no answer to the last question is ignored.
    pub(crate) fn on_message(&mut self, now: Time, message: &[u8], carousel: &mut Carousel) {
        let Some(answer) = self.asking.on_message(now, message) else { return };
        (self.unheard, self.rests_until) = (0, now);
        for lack in answer.lacks().map_while(Result::ok) {
            carousel.note(&answer.receiver, &lack.map(Iterator::collect));
        }
    }

    /// Time passes: asks what is to be asked, and has the carousel go on once that is answered.
    pub(crate) fn look(&mut self, now: Time, carousel: &mut Carousel) {
        let receivers = self.receivers.filter(|receivers| *receivers > 0 || self.idle.is_some());
        let receivers = receivers.filter(|_| now >= self.rests_until && (self.are_alike || self.is_busy(now)));
        carousel.set_asking(receivers.is_some());
        if !carousel.is_waiting() {
            self.asked = None;
            return;
        }
        let Some(receivers) = receivers else { return self.go_on(now, carousel) };
        let Some(asked) = self.asked else { return self.ask(now, receivers, carousel) };
        let answers = self.asking.answers(now);
        if answers == Answers::Awaited {
            return;
        }
        if carousel.lacks() {
            return self.go_on(now, carousel);
        }
        // One that was killed is still counted for a while, and does not answer.
        if matches!(answers, Answers::All | Answers::Some) {
            self.idle.get_or_insert(now);
        }
        match self.idle {
            // They decode, or write what they have, and leave.
            Some(since) if now.since(since) < LONGEST_IDLE => {
                if now.since(asked) >= IDLE_PAUSE {
                    self.ask(now, receivers, carousel);
                }
            }
            _ => {
                self.rests_until = now + (FIRST_REST * 2_u32.saturating_pow(self.unheard)).min(LONGEST_REST);
                self.unheard += 1;
                self.go_on(now, carousel);
            }
        }
    }

    fn ask(&mut self, now: Time, receivers: u16, carousel: &mut Carousel) {
        carousel.ask(self.asking.ask(now, receivers));
        self.asked = Some(now);
    }

    fn go_on(&mut self, now: Time, carousel: &mut Carousel) {
        (self.asked, self.idle) = (None, None);
        let thrift = if self.is_busy(now) { Thrift::Work } else { Thrift::Bytes };
        let heard = if self.asking.answers(now) == Answers::All { Heard::All } else { Heard::Some };
        carousel.go_on(thrift, heard);
    }

    fn is_busy(&self, now: Time) -> bool {
        self.busy.is_some_and(|busy| now.since(busy) < BUSY_FOR)
    }
}

/// Bytes of source symbols, about, for which a core makes repair symbols in a second.
const ENCODED_PER_SEC: f64 = 400e6;
/// A question that nobody answers is not waited for longer, whatever it would save.
const LONGEST_PATIENCE: Duration = Duration::from_secs(10);
/// More receivers are not asked.
const MOST_RECEIVERS: u16 = 32;
/// Receivers are not asked if one has more than this many times the rate of another: a receiver that has half of the rate gets half of what it lacks each time it
/// is asked, and the others get that in vain.
const MOST_UNLIKE: f64 = 1.5;
/// How long a host counts as busy that did not keep up.
const BUSY_FOR: Duration = Duration::from_secs(10);
/// From one question to the next while nothing is lacking, and how long that may go on until repair symbols are sent.
const IDLE_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_IDLE: Duration = Duration::from_secs(5);
/// After a question that nobody answers there is none for this long, twice as long each time.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;
    use weir_net::receipts::Answering;
    use weir_object::{CarouselOptions, SourceSet};
    use weir_units::Rate;
    use weir_wire::extension::Question;
    use weir_wire::lack::Lack;

    const KEY: [u8; 32] = [7; 32];

    fn audience(receivers: u64) -> Option<Audience> {
        Some(Audience { receivers, lowest: Rate::from_mbps(67), highest: Rate::from_mbps(100) })
    }

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// A sender of one file of 100 symbols.
    struct Sender {
        carousel: Carousel,
        asks: Asks,
        _folder: tempfile::TempDir,
    }

    impl Sender {
        fn new(receivers: u64) -> Sender {
            let folder = tempfile::tempdir().expect("temporary folder");
            let file = folder.path().join("file");
            std::fs::write(&file, vec![7; 140_000]).expect("a folder of its own takes files");
            let set = SourceSet::collect(&[file], false).expect("readable");
            let mut carousel = Carousel::new(set, &CarouselOptions::default()).expect("valid");
            let mut asks = Asks::new(9, KEY, 140_000);
            asks.on_audience(at(0), audience(receivers));
            asks.look(at(0), &mut carousel);
            while carousel.stats().symbols < 100 {
                carousel.next(0).expect("a packet");
            }
            Sender { carousel, asks, _folder: folder }
        }

        /// What the next packet asks at `now`.
        fn next(&mut self, now: Time) -> Option<Question> {
            self.asks.look(now, &mut self.carousel);
            loop {
                let (content, _) = self.carousel.next(0).expect("a packet");
                // The worker encodes in its own time.
                if content.toi != 0 || self.carousel.is_waiting() {
                    return content.ask;
                }
                std::thread::yield_now();
            }
        }

        /// The question that packets ask from `now` on.
        fn question(&mut self, now: Time) -> Question {
            (0..100).find_map(|_| self.next(now)).expect("it asks")
        }

        /// Whether repair symbols come from `now` on.
        fn repairs(&mut self, now: Time) -> bool {
            self.asks.look(now, &mut self.carousel);
            !self.carousel.is_waiting()
        }

        fn answer(&mut self, now: Time, receiver: u8, question: Question, lacking: &[Lack<&[(u16, u16)]>]) {
            let mut answering = Answering::new(9, KEY, [receiver; 32]);
            answering.is_new(question);
            answering.answer(now, question, Rate::from_mbps(1), lacking);
            let message = answering.poll(now).expect("an answer");
            self.asks.on_message(now, &message, &mut self.carousel);
        }
    }

    #[test]
    fn what_all_have_answered_is_sent_and_then_asked_again() {
        let mut sender = Sender::new(2);
        let question = sender.question(at(100));
        assert_eq!(question.receivers, 2);
        let lack = Lack { toi: 1, block: 0, needed: 2, runs: &[(3, 2)][..] };
        sender.answer(at(110), 1, question, &[lack]);
        assert_eq!(sender.next(at(111)), Some(question), "the other has not answered");
        sender.answer(at(112), 2, question, &[]);
        let before = sender.carousel.stats().symbols;
        let again = (0..100_000).find_map(|_| sender.next(at(113)).filter(|asked| *asked != question));
        assert_ne!(again.expect("it asks again").number, question.number);
        assert_eq!(sender.carousel.stats().symbols - before, 2);
    }

    #[test]
    fn receivers_that_lack_nothing_are_asked_until_they_have_left_and_nothing_is_encoded() {
        let mut sender = Sender::new(2);
        let question = sender.question(at(100));
        sender.answer(at(110), 1, question, &[]);
        assert!(!sender.repairs(at(140)), "the other, which was killed, does not answer");
        sender.asks.on_audience(at(140), audience(0));
        let mut questions = 0;
        for millis in (150..5_000).step_by(10) {
            questions += u64::from(!sender.repairs(at(millis)));
        }
        assert_eq!(questions, 485, "it waits all the time");
        assert!(sender.repairs(at(5_200)), "but not for ever");
    }

    #[test]
    fn nothing_is_encoded_for_a_receiver_that_has_just_left() {
        let mut sender = Sender::new(1);
        sender.asks.on_audience(at(90), audience(0));
        assert_eq!(sender.question(at(100)).receivers, 0);
        assert!((100..3_000).step_by(10).all(|millis| !sender.repairs(at(millis))));
        sender.asks.on_audience(at(3_000), audience(1));
        assert_eq!(sender.question(at(3_000)).receivers, 1);
        sender.asks.on_audience(at(3_010), audience(0));
        assert!((3_010..8_000).step_by(10).all(|millis| !sender.repairs(at(millis))));
        assert!(sender.repairs(at(8_100)), "a receiver that comes later and cannot tell gets what is encoded");
    }

    #[test]
    fn many_or_unknown_receivers_get_repair_symbols_at_once() {
        for receivers in [33, 0] {
            let mut sender = Sender::new(receivers);
            assert!((0..300).all(|_| sender.next(at(100)).is_none()), "{receivers}");
            assert!(sender.carousel.stats().symbols > 300);
        }
        assert!(Sender::new(32).question(at(100)).receivers == 32);
    }

    #[test]
    fn unlike_receivers_are_asked_by_a_host_that_does_not_keep_up_alone() {
        let unlike = Audience { receivers: 2, lowest: Rate::from_mbps(66), highest: Rate::from_mbps(100) };
        for is_busy in [false, true] {
            let mut sender = Sender::new(0);
            sender.asks.on_audience(at(0), Some(unlike));
            if is_busy {
                sender.asks.on_busy(at(50));
            }
            let asked = (0..1_000).any(|_| sender.next(at(100)).is_some());
            assert_eq!(asked, is_busy);
        }
    }

    #[test]
    fn where_nobody_answers_questions_become_rare() {
        let mut sender = Sender::new(1);
        let (mut asked, mut last) = (Vec::new(), None);
        for millis in (100..60_000).step_by(5) {
            let question = sender.next(at(millis));
            if question.is_some() && question != last {
                asked.push(millis / 1_000);
                last = question;
            }
        }
        assert!((3..8).contains(&asked.len()), "{asked:?}");
        assert!(asked.windows(3).all(|three| three[2] - three[1] >= three[1] - three[0]), "{asked:?}");
        assert!(sender.carousel.stats().symbols > 5_000, "and repair symbols come meanwhile");
    }
}
