use proptest::prelude::*;

use super::*;

fn packet(n: u16) -> Vec<u8> {
    (0..200 + usize::from(n % 7) * 100).map(|at| (at as u16 ^ n.wrapping_mul(31)) as u8).collect()
}

fn block(base: u16, packets: u16) -> Block {
    let mut protector = Protector::default();
    (0..packets).for_each(|n| assert!(protector.push(base.wrapping_add(n), &packet(n))));
    protector.close().expect("not empty")
}

#[test]
fn as_many_repair_payloads_as_losses_bring_all_back() {
    let block = block(65_530, 20);
    let mut recovery = Recovery::default();
    let lost = [0_u16, 7, 12, 19];
    let kept = (0..20_u16).filter(|n| !lost.contains(n));
    kept.for_each(|n| assert!(recovery.source(65_530_u16.wrapping_add(n), &packet(n)).is_empty()));
    (0..3).for_each(|n| assert!(recovery.repair(&block.repair(n)).is_empty()));
    let back = recovery.repair(&block.repair(3));
    let expected = lost.map(|n| Recovered { sequence: 65_530_u16.wrapping_add(n), packet: packet(n) });
    assert_eq!(back, expected);
    assert_eq!(recovery.counts(), RecoveryCounts { recovered: 4, ..RecoveryCounts::default() });
    // Further repair payloads of a block that is whole cost nothing and bring nothing.
    assert!(recovery.repair(&block.repair(4)).is_empty());
}

#[test]
fn repair_before_its_packets_waits_for_them() {
    let block = block(100, 3);
    let mut recovery = Recovery::default();
    assert!(recovery.repair(&block.repair(9)).is_empty());
    assert!(recovery.source(100, &packet(0)).is_empty());
    assert_eq!(recovery.source(102, &packet(2)), [Recovered { sequence: 101, packet: packet(1) }]);
}

#[test]
fn single_packet_is_repeated_by_its_repair() {
    let back = Recovery::default().repair(&block(5, 1).repair(0));
    assert_eq!(back, [Recovered { sequence: 5, packet: packet(0) }]);
}

#[test]
fn blocks_hold_what_follows_and_fits() {
    let mut protector = Protector::default();
    assert!(protector.close().is_none());
    assert!(protector.push(7, &[1]));
    assert!(!protector.push(9, &[1]));
    assert!(!protector.push(8, &[1; MAX_SYMBOL_BYTES - 1]));
    (1..MAX_BLOCK_PACKETS as u16).for_each(|n| assert!(protector.push(7 + n, &[1; 10])));
    assert!(!protector.push(7 + MAX_BLOCK_PACKETS as u16, &[1]));
    assert_eq!(protector.close().expect("full").repair(0).len(), 10 + REPAIR_OVERHEAD);
    assert!(protector.is_empty());
}

#[test]
fn headers_that_lie_are_counted_and_cost_little() {
    let mut recovery = Recovery::default();
    let lies = [
        &[0, 0, 0, 0, 0, 0, 0, 0, 1, 1][..],
        &[0, 0, 255, 255, 0, 0, 255, 255, 1, 1],
        &[0, 0, 0, 9, 0, 0, 0, 1, 1, 1],
        &[1],
    ];
    lies.iter().for_each(|lie| assert!(recovery.repair(lie).is_empty()));
    assert_eq!(recovery.counts().malformed, 4);
}

#[test]
fn forged_symbols_end_in_a_count() {
    let block = block(0, 4);
    let mut recovery = Recovery::default();
    (0..3).for_each(|n| assert!(recovery.source(n, &packet(n)).is_empty()));
    let mut forged = block.repair(0);
    forged[HEADER] ^= 0x40;
    assert!(recovery.repair(&forged).is_empty());
    assert_eq!(recovery.counts(), RecoveryCounts { malformed: 1, ..RecoveryCounts::default() });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_comes_back_is_what_was_lost(
        base: u16,
        fates in prop::collection::vec(any::<bool>(), 1..40),
        repairs in 0_u16..20,
    ) {
        let count = fates.len() as u16;
        let block = block(base, count);
        let mut recovery = Recovery::default();
        let kept = (0..count).filter(|n| fates[usize::from(*n)]);
        let mut back: Vec<_> = kept.flat_map(|n| recovery.source(base.wrapping_add(n), &packet(n))).collect();
        back.extend((0..repairs).flat_map(|n| recovery.repair(&block.repair(n))));
        for Recovered { sequence, packet: bytes } in &back {
            let n = sequence.wrapping_sub(base);
            prop_assert!(!fates[usize::from(n)]);
            prop_assert_eq!(bytes, &packet(n));
        }
        let lost = fates.iter().filter(|arrived| !**arrived).count();
        // RFC 6330 promises recovery from two more symbols than there are packets in all but one of a million cases.
        prop_assert!(back.len() == lost || usize::from(repairs) < lost + 2);
    }

    #[test]
    fn any_bytes_are_survived(payloads in prop::collection::vec((any::<u16>(), prop::collection::vec(any::<u8>(), 0..40)), 0..60)) {
        let mut recovery = Recovery::default();
        for (sequence, bytes) in payloads {
            recovery.source(sequence, &bytes);
            recovery.repair(&bytes);
            // And one whose header is likely to be sound.
            let header = [&sequence.to_be_bytes()[..], &[0, 3, 0, 0, 0, 3 + (sequence % 5) as u8]].concat();
            recovery.repair(&[&header[..], &bytes].concat());
        }
    }
}
