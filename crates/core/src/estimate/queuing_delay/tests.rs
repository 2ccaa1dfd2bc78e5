//! Averages and minima, and which clocks are believed.

use super::*;
use alloc::vec::Vec;
use proptest::prelude::*;

fn estimator(window: DelayWindow) -> QueuingDelay {
    QueuingDelay::new(0.25, 0.05, window)
}

fn ms(delay: Duration) -> f64 {
    delay.as_secs_f64() * 1e3
}

#[test]
fn the_short_term_average_weighs_each_packet_by_a_quarter() {
    let mut delay = estimator(DelayWindow::Everything);
    for (sent, arrived) in [(0, 100), (10, 110), (20, 160)] {
        delay.on_packet(Time::from_millis(arrived), 0, sent * 1000);
    }
    assert_eq!(ms(delay.short_term()), 10.0);
    delay.on_slot();
    assert_eq!(ms(delay.long_term()), 10.0, "the first slot's average is the first long-term one");
}

#[test]
fn clock_offsets_cancel_also_where_the_wire_s_clock_wraps() {
    for offset in [0u64, 1 << 31, (1 << 32) - 15_000, 3_900_000_000_000_000] {
        let mut delay = estimator(DelayWindow::Everything);
        for (sent, arrived) in [(0u64, 100), (10, 110), (20, 160)] {
            delay.on_packet(Time::from_millis(arrived), 0, sent * 1000 + offset);
        }
        assert_eq!(ms(delay.short_term()), 10.0, "offset {offset}");
    }
}

/// A path of 20 ms that 100 packets a second take in turn over two channels, with queues of 0 to 30 ms.
struct Walked {
    delay: QueuingDelay,
    packet: u64,
    /// How far the sender's clock is ahead, microseconds.
    ahead: i64,
}

impl Walked {
    fn new() -> Walked {
        let mut walked =
            Walked { delay: estimator(DelayWindow::Moving(Duration::from_secs(600))), packet: 0, ahead: 0 };
        walked.walks(500);
        walked
    }

    /// So many packets; how many were not believed, and how often the estimator has started again.
    fn walks(&mut self, packets: u64) -> [u64; 2] {
        let mut counts = [0; 2];
        for _ in 0..packets {
            match self.walk(0) {
                DelaySample::Taken(_) => {}
                DelaySample::Ignored => counts[0] += 1,
                DelaySample::Restarted(_) => counts[1] += 1,
            }
        }
        counts
    }

    /// One packet, whose clock is wrong by so much.
    fn walk(&mut self, wrong: i64) -> DelaySample {
        let (came, clock) = self.next();
        self.packet += 1;
        self.delay.on_packet(came, (self.packet % 2) as u16, clock.wrapping_add_signed(wrong))
    }

    /// When the next packet comes, and the sender's clock on it.
    fn next(&self) -> (Time, u64) {
        let packet = self.packet + 1;
        let sent = packet * 10_000;
        let came = Time::from_micros(sent + 20_000 + packet % 4 * 10_000);
        (came, (sent + (1 << 40)).wrapping_add_signed(self.ahead))
    }

    fn is_as_ever(&self) -> bool {
        (5.0..30.0).contains(&ms(self.delay.short_term()))
    }
}

#[test]
fn a_clock_that_was_set_costs_three_packets_of_a_channel_if_it_went_forwards_and_a_second_if_it_went_back() {
    for seconds in [3, 9, 3600, 2000] {
        for sign in [1, -1] {
            let mut walked = Walked::new();
            walked.ahead = sign * seconds * 1_000_000;
            let [ignored, restarted] = walked.walks(200);
            // An hour forwards is, modulo 71 minutes, eleven minutes back.
            let is_forwards = (walked.ahead as i32) > 0;
            let expected = if is_forwards { 4..=5 } else { 97..=103 };
            assert!(restarted == 1 && expected.contains(&ignored), "{sign} {seconds} s: {ignored}, {restarted}");
            assert!(walked.is_as_ever(), "{sign} {seconds} s: {:?}", walked.delay.short_term());
        }
    }
}

#[test]
fn a_queue_of_a_second_and_a_half_after_a_second_s_silence_is_believed() {
    let mut delay = estimator(DelayWindow::Everything);
    delay.on_packet(Time::from_secs(1), 0, 0);
    let came = delay.on_packet(Time::from_millis(3_400), 0, 900_000);
    assert_eq!(came, DelaySample::Taken(TimestampDifference(1_500_000)));
}

#[test]
fn delays_that_jump_and_fall_within_a_second_are_a_queue_s() {
    let mut walked = Walked::new();
    walked.ahead = -3_000_000;
    walked.walks(90);
    walked.ahead = 0;
    assert_eq!(walked.walks(100), [0, 0]);
    assert!(walked.is_as_ever());
}

/// The path of [`Walked`] with an empty queue, on which ten packets a second are forged; by how much they have lowered the minimum
/// after `seconds`.
fn lowered(seconds: u64, mut forged_below_least: impl FnMut(u64) -> i64) -> i64 {
    let mut walked = Walked::new();
    let begin = walked.delay.minimum().expect("packets came").0;
    for tenth in 0..seconds * 10 {
        walked.walks(9);
        let least = walked.delay.minimum().expect("packets came").0;
        let wrong = forged_below_least(tenth) + begin - least;
        walked.walk(wrong + (walked.packet + 1) as i64 % 4 * 10_000);
    }
    walked.walks(8);
    begin - walked.delay.minimum().expect("packets came").0
}

#[test]
fn ten_forged_packets_a_second_lower_the_minimum_by_no_more_than_packets_are_apart() {
    // The next packet comes 10 ms later.
    for below in [1_000, 5_000, 9_000, 9_999, 15_000, 30_000, 49_000] {
        let fell = lowered(20, |_| below);
        assert!(fell <= 10_000, "{below} us below: {fell} us");
    }
    // Each a little lower than all before.
    let crept = lowered(20, |tenth| 500 * tenth as i64);
    assert!(crept <= 10_000, "{crept} us");
}

#[test]
fn forged_packets_in_a_row_do_not_confirm_each_other() {
    for (in_a_row, channel, below) in
        [(2, 0, 5_000), (2, 1, 15_000), (2, 0, 49_000), (3, 1, 49_000), (5, 1, 30_000), (9, 0, 15_000)]
    {
        let mut walked = Walked::new();
        let begin = walked.delay.minimum().expect("packets came").0;
        for _ in 0..100 {
            walked.walks(9);
            let (came, clock) = walked.next();
            let least = walked.delay.minimum().expect("packets came").0;
            // The next packet would have this difference; the forged ones are below the least.
            let difference = walked.delay.difference(came, clock).expect("a queue explains it").0;
            let forged = clock.wrapping_add_signed(difference - least + below);
            (0..in_a_row).for_each(|_| _ = walked.delay.on_packet(came, channel, forged));
        }
        walked.walks(8);
        let fell = begin - walked.delay.minimum().expect("packets came").0;
        assert!(fell <= 10_000, "{in_a_row} of channel {channel}, {below} us below: {fell} us");
    }
}

/// Forged packets may have the numbers of the next ones of their channel, which are then withheld as repeated.
#[test]
fn forged_packets_are_denied_by_those_whose_numbers_they_took() {
    let mut delay = estimator(DelayWindow::Everything);
    delay.on_packet(Time::from_millis(0), 1, 0);
    for tenth in 1..100 {
        let (came, clock) = (Time::from_millis(tenth * 100), tenth * 100_000);
        delay.on_packet(came, 1, clock);
        (0..2).for_each(|_| _ = delay.on_packet(came, 0, clock + 45_000));
        delay.on_packet(came, 1, clock);
        delay.on_repeated(came, 0, clock);
        assert_eq!(delay.minimum(), Some(TimestampDifference(0)), "at {tenth} tenths");
    }
}

#[test]
fn a_path_that_becomes_shorter_lowers_the_minimum() {
    let mut walked = Walked::new();
    let before = walked.delay.minimum().expect("packets came").0;
    walked.ahead = 15_000;
    walked.walks(40);
    assert_eq!(before - walked.delay.minimum().expect("packets came").0, 15_000);
}

#[test]
fn a_channel_with_a_shorter_queue_is_believed_at_its_fourth_packet() {
    let mut delay = estimator(DelayWindow::Everything);
    // Channel 1 waits for 30 ms, and channel 0 from the fiftieth packet on for 10, so that its packets overtake those of channel 1.
    let queue = |packet: u64| if packet >= 50 && packet.is_multiple_of(2) { 10 } else { 30 };
    let mut packets: Vec<(u64, u64)> = (0..100).map(|packet| (packet * 10 + queue(packet), packet)).collect();
    packets.sort_unstable();
    for (came, packet) in packets {
        delay.on_packet(Time::from_millis(came), (packet % 2) as u16, packet * 10_000);
        let is_lower = packet >= 56 || came > 570;
        // Packet 50 and the two after it are taken back when the next one of channel 1 comes.
        if packet % 2 == 1 || is_lower {
            let expected = if is_lower { -20_000 } else { 0 };
            assert_eq!(delay.minimum(), Some(TimestampDifference(expected)), "after packet {packet}");
        }
    }
}

#[test]
fn a_sender_that_starts_again_has_another_clock_however_little_it_was_set() {
    for set_back in [1_000, 50_000, 700_000, 1_400_000] {
        let mut walked = Walked::new();
        walked.packet += 200;
        walked.ahead = -set_back;
        let next = Time::from_micros((walked.packet + 1) * 10_000);
        assert!(walked.delay.was_silent(next));
        walked.delay.on_new_sender();
        assert_eq!(walked.walks(50), [0, 1]);
        assert!(walked.is_as_ever(), "{set_back} us: {:?}", walked.delay.short_term());
    }
}

#[test]
fn clocks_that_drift_apart_falsify_no_delay_once_it_is_known_how_fast() {
    let mut delay = estimator(DelayWindow::Moving(Duration::from_secs(600)));
    for tenth in 0..4_000u64 {
        // 100 millionths, and a queue of 4 ms now and then.
        let queue = tenth % 7 / 6 * 4_000;
        delay.on_packet(Time::from_micros(tenth * 100_010 + queue), 0, tenth * 100_000);
        let least = delay.difference(Time::from_micros(tenth * 100_010), tenth * 100_000).expect("it is believed");
        let off = least.0 - delay.minimum().expect("packets came").0;
        assert!(tenth < 910 || off.abs() <= 200, "{off} us after {} s", tenth / 10);
    }
}

proptest! {
    #[test]
    fn one_forged_clock_in_ten_never_counts(
        forged in proptest::collection::vec((any::<i32>(), 0u64..5), 1..200),
    ) {
        let mut walked = Walked::new();
        for (wrong, extra) in forged {
            walked.walk(i64::from(wrong));
            prop_assert_eq!(walked.walks(8 + extra)[1], 0);
            let delay = ms(walked.delay.short_term());
            // A packet that comes up to half a second late may be a queue's, and is forgotten with the average: 0.75^8 of a quarter.
            prop_assert!((5.0..60.0).contains(&delay), "wrong by {} us: {} ms", wrong, delay);
        }
    }

    #[test]
    fn clocks_of_any_origin_are_the_same(origin in any::<u64>()) {
        let mut walked = Walked::new();
        let mut other = Walked { delay: estimator(DelayWindow::Moving(Duration::from_secs(600))), packet: 0, ahead: origin as i64 >> 8 };
        other.walks(500);
        prop_assert_eq!(walked.walks(500), other.walks(500));
        prop_assert_eq!(walked.delay.short_term(), other.delay.short_term());
    }
}

#[test]
fn a_drifting_clock_is_forgotten_with_the_window() {
    // The receiver's clock gains 1 ms a second (ten times worse than bad crystals).
    let mut delay = estimator(DelayWindow::Moving(Duration::from_secs(10)));
    for second in 0..1000u64 {
        delay.on_packet(Time::from_micros(second * 1_001_000), 0, second * 1_000_000);
    }
    assert!(ms(delay.short_term()) <= 12.0, "{:?}", delay.short_term());
    assert!(ms(delay.short_term()) >= 4.0, "the drift must show: {:?}", delay.short_term());
}

#[test]
fn the_moving_minimum_rises_when_the_path_grows() {
    let mut delay = estimator(DelayWindow::Moving(Duration::from_secs(10)));
    delay.on_packet(Time::from_millis(50), 0, 0);
    for second in 1..12u64 {
        delay.on_packet(Time::from_millis(second * 1000 + 80), 0, second * 1_000_000);
    }
    assert_eq!(delay.minimum(), Some(TimestampDifference(30_000)));
}
