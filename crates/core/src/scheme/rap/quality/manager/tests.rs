use alloc::vec;

use proptest::prelude::*;

use super::super::config::LayerRates;
use super::*;

const BYTES: Bytes = Bytes::new(500);
/// S is 4000 bits over 0.2 s squared: 100 kbit/s². The reserve is 1 s of the base, 0.6 s of others.
const ROUND_TRIP: Duration = Duration::from_millis(200);

fn config(rates: &[u64]) -> QualityConfig {
    let rates: Vec<Rate> = rates.iter().map(|kbps| Rate::from_kbps(*kbps)).collect();
    QualityConfig {
        layers: LayerRates::new(&rates).expect("valid rates"),
        start_up_delay: Duration::from_secs(2),
        k_max: 1,
        max_buffer: Duration::from_secs(20),
        live: None,
        average_over: Duration::from_secs(10),
        decrease: 0.5,
        repair: Some(Duration::from_secs(30)),
    }
}

fn at(ms: u64) -> Time {
    Time::from_millis(ms)
}

fn pace(kbps: u64, cause: PaceCause) -> PaceReport {
    let rate = Rate::from_kbps(kbps);
    PaceReport { rate, smoothed_round_trip: ROUND_TRIP, outstanding_packets: 0, cause }
}

/// Sends the next piece, which must be a new one, under this number; gives its layer.
fn send_new(manager: &mut LayerManager, now: Time, number: u64) -> usize {
    let Some(Turn::New { layer, from }) = manager.next(now, |_| true) else { panic!("nothing new is wanted") };
    let span = manager.span(layer, BYTES);
    manager.on_sent(now, &Carried { number, layer, from, span, bytes: BYTES });
    layer
}

/// Layers of 150 kbit/s of which the first `active` are sent, with this many milliseconds of each at the receiver.
fn with_buffers(active: usize, ms: &[u64]) -> LayerManager {
    let mut manager = LayerManager::new(config(&[150; 4]));
    manager.on_pace(at(0), &pace(600, PaceCause::Step), BYTES);
    manager.plays_from = Some(at(0));
    manager.active = active;
    for (layer, ms) in manager.layers.iter_mut().zip(ms) {
        layer.go_on_at(Duration::from_millis(*ms));
    }
    manager
}

/// Two layers play 300 kbit/s. A back-off from 400 leaves 200, and the base needs 100²/200 = 50 kbit or 0.333 s next to its reserve of
/// 1 s: 50 pieces of 26.7 ms, and 49 are less.
#[test]
fn a_layer_is_added_when_the_buffers_would_survive_a_back_off_with_it() {
    for (pieces, active) in [(49, 1), (50, 2)] {
        let mut manager = LayerManager::new(config(&[150, 150]));
        manager.on_pace(at(0), &pace(400, PaceCause::Step), BYTES);
        for number in 0..pieces {
            assert_eq!(send_new(&mut manager, at(100), number), 0);
            manager.on_acknowledged(at(300), number);
        }
        manager.on_pace(at(400), &pace(400, PaceCause::Step), BYTES);
        assert_eq!(manager.active(), active, "after {pieces} pieces");
    }
}

#[test]
fn a_layer_is_not_added_while_less_comes_on_average_than_it_needs() {
    let mut manager = with_buffers(1, &[6_000]);
    manager.on_pace(at(400), &pace(600, PaceCause::Step), BYTES);
    assert_eq!(manager.active(), 1, "nothing has come");
    manager.layers[0].go_on_at(Duration::from_millis(20_400));
    manager.on_pace(at(401), &pace(200, PaceCause::ApplicationLimited), BYTES);
    assert_eq!(manager.active(), 2, "the buffer is full, so that what comes tells nothing");
}

/// At 200 kbit/s 600 kbit carry 200 + 346 kbit/s: three layers of 150, and not four. Three have 450 kbit, which carry 500.
#[test]
fn the_top_layer_is_dropped_when_the_buffers_do_not_cover_the_deficit() {
    let mut manager = with_buffers(4, &[2_000, 1_600, 1_600, 1_600]);
    manager.on_pace(at(0), &pace(200, PaceCause::Loss), BYTES);
    assert_eq!(manager.active(), 3);
    let mut manager = with_buffers(4, &[2_000, 1_600, 1_600, 1_600]);
    manager.on_pace(at(0), &pace(200, PaceCause::Step), BYTES);
    assert_eq!(manager.active(), 4, "only a back-off begins a deficit");
}

#[test]
fn a_layer_that_has_run_out_takes_the_top_one_along() {
    let mut manager = with_buffers(3, &[3_000, 150, 3_000]);
    assert!(manager.next(at(49), |_| true).is_some());
    assert_eq!(manager.active(), 3);
    assert!(manager.next(at(51), |_| true).is_some());
    assert_eq!(manager.active(), 1, "of layer 1 nothing could come in time, whatever layer 2 has");
}

#[test]
fn the_base_goes_first_whenever_it_is_short() {
    let mut manager = with_buffers(3, &[990, 300, 300]);
    assert_eq!(send_new(&mut manager, at(0), 0), 0);
    assert_eq!(send_new(&mut manager, at(0), 1), 1, "the base has its reserve of a second");
}

#[test]
fn lower_layers_are_repaired_first_and_only_in_time() {
    let mut manager = with_buffers(2, &[600, 599]);
    manager.layers[0] = manager.layers[1].clone();
    for layer in 0..2 {
        let (number, from) = (layer as u64, Duration::from_millis(599));
        manager.on_sent(at(0), &Carried { number, layer, from, span: Duration::from_secs(1), bytes: BYTES });
    }
    manager.on_lost(at(100), 1);
    manager.on_lost(at(100), 0);
    assert!(manager.has_lost());
    assert_eq!(manager.next(at(100), |_| true), Some(Turn::Again { layer: 0, number: 0 }));
    manager.on_lost(at(200), 0);
    // Both play at 599 ms, and a packet takes 100.
    assert_eq!(manager.next(at(499), |_| false), Some(Turn::Again { layer: 0, number: 0 }));
    assert_eq!(manager.next(at(500), |_| false), None);
    assert!(!manager.has_lost());
}

#[test]
fn what_was_not_acknowledged_in_time_is_missing() {
    let mut manager = LayerManager::new(config(&[150]));
    (0..3).for_each(|number| assert_eq!(send_new(&mut manager, at(0), number), 0));
    manager.on_acknowledged(at(200), 0);
    manager.on_acknowledged(at(200), 2);
    manager.on_pace(at(2_100), &pace(150, PaceCause::Step), BYTES);
    let report = core::iter::from_fn(|| manager.poll_report()).last().expect("it has looked");
    // Piece 1 of 26.7 ms, and what should have played from 80 to 100 ms, of which nothing was sent.
    assert_eq!((report.underflows, report.missing.as_millis()), (2, 46));
    let account = manager.accounts().next().expect("there is a base");
    assert_eq!((account.sent, account.played, account.missed, account.ahead()), (1_500, 1_000, 500, 0));
}

/// A stream whose every packet takes 100 ms there and 100 ms back.
struct Stream {
    manager: LayerManager,
    now: Time,
    sent: u64,
    under_way: VecDeque<(Time, u64, bool)>,
    loses_repairs: bool,
}

impl Stream {
    fn new(rates: &[u64]) -> Stream {
        let manager = LayerManager::new(config(rates));
        Stream { manager, now: at(0), sent: 0, under_way: VecDeque::new(), loses_repairs: true }
    }

    /// The next packet goes out, and is lost or not, a gap of this rate after the one before; gives the last report.
    fn step(&mut self, kbps: u64, cause: PaceCause, is_lost: bool) -> LayersReport {
        self.now += BYTES / Rate::from_kbps(kbps);
        while let Some((_, number, lost)) = self.under_way.pop_front_if_due(self.now) {
            match lost {
                true => self.manager.on_lost(self.now, number),
                false => self.manager.on_acknowledged(self.now, number),
            }
        }
        self.manager.on_pace(self.now, &pace(kbps, cause), BYTES);
        let number = match self.manager.next(self.now, |_| true) {
            Some(Turn::Again { number, .. }) => Some(number),
            Some(Turn::New { layer, from }) => {
                let (number, span) = (self.sent, self.manager.span(layer, BYTES));
                self.sent += 1;
                self.manager.on_sent(self.now, &Carried { number, layer, from, span, bytes: BYTES });
                Some(number)
            }
            None => None,
        };
        let is_lost = is_lost && (self.loses_repairs || number == self.sent.checked_sub(1));
        self.under_way.extend(number.map(|number| (self.now + ROUND_TRIP, number, is_lost)));
        core::iter::from_fn(|| self.manager.poll_report()).last().expect("each look is reported")
    }
}

trait Due {
    fn pop_front_if_due(&mut self, now: Time) -> Option<(Time, u64, bool)>;
}

impl Due for VecDeque<(Time, u64, bool)> {
    fn pop_front_if_due(&mut self, now: Time) -> Option<(Time, u64, bool)> {
        let is_due = self.front().is_some_and(|(at, ..)| *at <= now);
        if is_due { self.pop_front() } else { None }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// With losses that the rate leaves room to repair, and repairs that come.
    #[test]
    fn the_base_never_starves_while_the_rate_is_above_its_own(
        rates in proptest::collection::vec((250u64..2_000, any::<bool>()), 1..40), loses in any::<bool>(),
    ) {
        let mut stream = Stream::new(&[150, 100, 300, 50]);
        stream.loses_repairs = false;
        let mut report = None;
        for (turn, (kbps, backs_off)) in rates.iter().cycle().take(4_000).enumerate() {
            let cause = if *backs_off { PaceCause::Loss } else { PaceCause::Step };
            report = Some(stream.step(*kbps, cause, loses && turn % 20 == 7));
        }
        let report = report.expect("it has run");
        prop_assert_eq!((report.underflows, report.missing), (0, Duration::ZERO));
        prop_assert!(stream.now > at(7_000), "the receiver has played");
    }

    #[test]
    fn whatever_happens_every_byte_is_accounted_for(
        turns in proptest::collection::vec((1u64..3_000, 0u8..4, any::<bool>(), any::<u64>()), 1..2_000),
    ) {
        let mut stream = Stream::new(&[150, 100, 300, 50]);
        for (kbps, cause, lost, stranger) in turns {
            let cause = [PaceCause::Step, PaceCause::Loss, PaceCause::Timeout, PaceCause::Silence][usize::from(cause)];
            let report = stream.step(kbps, cause, lost);
            stream.manager.on_acknowledged(stream.now, stranger);
            stream.manager.on_lost(stream.now, stranger % 1_000);
            prop_assert!((1..=4).contains(&report.layers));
            for account in stream.manager.accounts() {
                prop_assert_eq!(account.sent, account.ahead() + account.played + account.missed);
            }
        }
        let sent: u64 = stream.manager.accounts().map(|account| account.sent).sum();
        prop_assert_eq!(sent, stream.sent * BYTES.count());
    }
}

#[test]
fn the_receiver_begins_with_what_comes_first() {
    let mut manager = LayerManager::new(config(&[150]));
    assert_eq!(send_new(&mut manager, at(0), 0), 0);
    manager.on_lost(at(3_000), 0);
    assert_eq!(manager.next(at(3_000), |_| true), Some(Turn::Again { layer: 0, number: 0 }), "nobody plays yet");
    manager.on_acknowledged(at(3_200), 0);
    assert_eq!(manager.plays_from, Some(at(5_000)));
}

#[test]
fn layers_come_and_go_with_the_rate() {
    let mut stream = Stream::new(&[150; 4]);
    let mut layers = vec![];
    for kbps in [900, 170, 900] {
        let report = (0..6_000).map(|turn| stream.step(kbps, PaceCause::Step, turn % 500 == 0)).last();
        layers.push(report.expect("it has run").layers);
    }
    assert_eq!(layers, [4, 1, 4]);
}
