//! What this receiver answers when the sender asks what it lacks.

use weir_net::receipts::Answering;
use weir_units::{Rate, Time};
use weir_wire::extension::Question;

use crate::collector::Collector;

/// Takes questions, has the disk's thread look for what is lacking, and makes messages of what it finds.
#[derive(Debug)]
pub(super) struct Answers {
    answering: Answering,
    /// What was asked, and the disk's thread does not look for yet.
    asked: Option<Question>,
    /// Whether it looks now.
    is_looking: bool,
    /// It does not look again before.
    rests_until: Time,
}

impl Answers {
    pub(super) fn new(answering: Answering) -> Answers {
        Answers { answering, asked: None, is_looking: false, rests_until: Time::ZERO }
    }

    /// A packet carries this question. Whether it was not asked before.
    pub(super) fn on_question(&mut self, question: Question) -> bool {
        let is_new = self.answering.is_new(question);
        if is_new {
            self.asked = Some(question);
        }
        is_new
    }

    /// Has the disk's thread look, if it is time to; and answers with what it has found, while the session comes at `rate`. Questions need not be
    /// the sender's where packets are not sealed: looking takes a bounded part of that thread's time.
    pub(super) fn look(&mut self, now: Time, collector: &mut Collector, rate: Rate) {
        while let Some(found) = collector.next_answer() {
            self.is_looking = false;
            self.rests_until = now + found.took * (LOOKING_PART - 1);
            // Without the whole table nobody can say.
            let Some(lacking) = found.lacking else { continue };
            self.answering.answer(now, found.question, rate, &lacking);
        }
        if !self.is_looking && now >= self.rests_until {
            self.is_looking = self.asked.take_if(|question| collector.ask(*question)).is_some();
        }
    }

    /// The message to send at `now`, if it is time for one.
    pub(super) fn poll(&mut self, now: Time) -> Option<Vec<u8>> {
        self.answering.poll(now)
    }

    /// When [`Answers::poll`] wants to be called.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.answering.deadline()
    }
}

/// Looking for what is lacking takes at most one part in this number of the time of the disk's thread, however often somebody asks.
const LOOKING_PART: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use weir_object::store::{Store, StoreOptions};
    use weir_object::{Carousel, CarouselOptions, SourceSet};

    const KEY: [u8; 32] = [7; 32];

    /// A receiver of one file of 100 symbols, which has its table and nothing else.
    struct Receiver {
        collector: Collector,
        answers: Answers,
        _folder: tempfile::TempDir,
    }

    impl Receiver {
        fn new() -> Receiver {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let file = folder.path().join("file");
            std::fs::write(&file, vec![7; 140_000]).expect("a folder of its own takes files");
            let set = SourceSet::collect(&[file], false).expect("readable");
            let mut carousel = Carousel::new(set, &CarouselOptions::default()).expect("valid");
            let store = Store::open(&folder.path().join("out"), StoreOptions::default()).expect("a folder");
            let mut collector = Collector::start(store, 4 << 20, None).expect("a thread");
            let mut tables = 0;
            while tables < carousel.fdt_symbols() {
                let (content, symbol) = carousel.next(0).expect("a packet");
                if content.toi == 0 {
                    collector.push(Time::ZERO, &content, symbol, None);
                    tables += 1;
                }
            }
            let answers = Answers::new(Answering::new(9, KEY, [1; 32]));
            Receiver { collector, answers, _folder: folder }
        }

        /// What it says at `now`, once the disk's thread has looked, if it does.
        fn look(&mut self, now: Time) -> Option<Vec<u8>> {
            self.answers.look(now, &mut self.collector, Rate::from_mbps(1));
            while self.answers.is_looking {
                std::thread::yield_now();
                self.answers.look(now, &mut self.collector, Rate::from_mbps(1));
            }
            self.answers.poll(now)
        }
    }

    #[test]
    fn a_new_question_is_answered_once() {
        let mut receiver = Receiver::new();
        let question = Question { number: 1, receivers: 1 };
        receiver.answers.on_question(question);
        let message = receiver.look(Time::from_secs(1)).expect("an answer");
        let lacks = weir_wire::lack::Message::decode(&message).expect("well-formed").lacks().count();
        assert_eq!(lacks, 1);
        receiver.answers.on_question(question);
        assert_eq!(receiver.look(Time::from_secs(9)), None);
    }

    #[test]
    fn questions_without_end_take_a_part_of_the_disk_s_thread() {
        let mut receiver = Receiver::new();
        receiver.answers.on_question(Question { number: 1, receivers: 1 });
        let first = Time::from_secs(1);
        assert!(receiver.look(first).is_some());
        let rests_until = receiver.answers.rests_until;
        assert!(rests_until > first);
        for number in 2..200 {
            receiver.answers.on_question(Question { number, receivers: 1 });
            assert_eq!(receiver.look(rests_until - Duration::from_nanos(1)), None);
        }
        let message = receiver.look(rests_until).expect("the last one is answered after a while");
        assert_eq!(weir_wire::lack::Message::decode(&message).expect("well-formed").question, 199);
    }
}
