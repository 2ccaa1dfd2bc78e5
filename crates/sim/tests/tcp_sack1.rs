//! Where Sack1, which recovers as ns-2 does, differs from Sack, which recovers by RFC 6675: segment by segment.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_sim::tcp::{Config, Flavour, Segment, Sender, Sink};
use weir_units::{Random, Time};

/// A sender with a window of ten that has sent 0 to 9, and its sink. What arrives in what order is the test's to say.
struct Pair {
    now: Time,
    sender: Sender,
    sink: Sink,
    /// The latest copy of each segment.
    sent: BTreeMap<u64, Segment>,
}

impl Pair {
    fn new(flavour: Flavour) -> Pair {
        let config = Config { initial_window: 10, ..Config::ns2(flavour) };
        let (sender, sink) = (Sender::new(config, Random::new(1, "sender")), Sink::new(&config));
        let mut pair = Pair { now: Time::ZERO, sender, sink, sent: BTreeMap::new() };
        let first = pair.during(|sender, now, out| sender.start(now, &mut |segment| out.push(segment)));
        assert_eq!(first, (0..10).collect::<Vec<_>>());
        pair
    }

    /// What the sender sends.
    fn during(&mut self, act: impl FnOnce(&mut Sender, Time, &mut Vec<Segment>)) -> Vec<u64> {
        let mut sent = Vec::new();
        act(&mut self.sender, self.now, &mut sent);
        self.sent.extend(sent.iter().map(|segment| (segment.seq, *segment)));
        sent.iter().map(|segment| segment.seq).collect()
    }

    /// The segment arrives, and its acknowledgement; what is sent at that.
    fn arrive(&mut self, seq: u64) -> Vec<u64> {
        self.now += Duration::from_millis(1);
        let mut acks = Vec::new();
        self.sink.receive(self.now, &self.sent[&seq], false, &mut |ack| acks.push(ack));
        let [ack] = acks[..] else { panic!("{acks:?}") };
        self.during(|sender, now, out| sender.receive(now, &ack, &mut |segment| out.push(segment)))
    }

    /// Of several in turn.
    fn all_arrive(&mut self, seqs: &[u64]) -> Vec<Vec<u64>> {
        seqs.iter().map(|seq| self.arrive(*seq)).collect()
    }

    fn time_out(&mut self) -> Vec<u64> {
        self.now = self.sender.deadline().expect("a timer runs");
        self.during(|sender, now, out| sender.expire(now, &mut |segment| out.push(segment)))
    }
}

/// What each of the two sends as these arrive.
fn both(arrivals: &[u64]) -> [Vec<Vec<u64>>; 2] {
    [Flavour::Sack, Flavour::Sack1].map(|flavour| Pair::new(flavour).all_arrive(arrivals))
}

#[test]
fn the_pipe_is_counted_down_by_acknowledgements_and_not_by_what_is_lost() {
    // 0 and 2 are lost. 10 and 11 follow the first duplicates, 0 the third; the window is five then.
    let [sack, sack1] = both(&[1, 3, 4, 5, 6, 7, 8, 9]);
    let begin = [vec![10], vec![11], vec![0]];
    assert_eq!((&sack[..3], &sack1[..3]), (&begin[..], &begin[..]));
    // Of twelve, six are sacked when 7 is there, two are lost and one is repaired: five. At 8 there is room for hole 2.
    assert_eq!(sack[3..], [vec![], vec![], vec![], vec![2], vec![12]]);
    // Twelve less three duplicates is nine, and the fifth after that makes room.
    assert_eq!(sack1[3..], [vec![], vec![], vec![], vec![], vec![2]]);
}

#[test]
fn a_hole_is_filled_that_is_not_known_to_be_lost() {
    // 0 is lost, and 11 overtakes 10: only one segment above it is there.
    let [sack, sack1] = both(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 11]);
    assert_eq!(sack[7..], [vec![12], vec![13], vec![14]]);
    assert_eq!(sack1[7..], [vec![12], vec![13], vec![10]]);
}

#[test]
fn a_partial_acknowledgement_makes_room_for_two() {
    // 0 and 2 are lost, and the repair of 0 arrives.
    let [sack, sack1] = both(&[1, 3, 4, 5, 6, 7, 8, 9, 10, 0]);
    assert_eq!((&sack[9], &sack1[9]), (&vec![14], &vec![13, 14]));
}

#[test]
fn outside_of_recovery_a_new_acknowledgement_forgets_what_was_sacked() {
    // 1 is lost, and 0 comes late: between two duplicates and the next.
    let [sack, sack1] = both(&[2, 4, 0, 6, 7, 8]);
    // Two are known to be there, so two of eleven may follow; 6 is the third above 1.
    assert_eq!(sack[2..4], [vec![12, 13], vec![1]]);
    // Eleven are outstanding, and the three duplicates are counted from the beginning.
    assert_eq!(sack1[2..], [vec![], vec![12], vec![13], vec![1]]);
}

#[test]
fn after_a_time_out_it_goes_back_and_sends_what_has_arrived_since() {
    let sent = |flavour| {
        let mut pair = Pair::new(flavour);
        assert_eq!(pair.time_out(), [0], "{}", flavour.name());
        // The network held 2 to 5 up, and 1 is lost.
        let duplicates = pair.all_arrive(&[2, 3, 4, 5]);
        assert!(duplicates.iter().all(Vec::is_empty), "{}: {duplicates:?}", flavour.name());
        pair.arrive(0)
    };
    assert_eq!((sent(Flavour::Sack), sent(Flavour::Sack1)), (vec![1, 6], vec![1, 2]));
}
