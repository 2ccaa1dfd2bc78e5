//! RAP next to SACK comes out as in ns-2.35, once it has the quirks of ns-2's `Agent/RAP`. `examples/rap_agreement.rs` runs ns-2
//! itself, on more rows and with more seeds.

mod beside_sack;

use beside_sack::Setup;

/// What ns-2 gives, mean of five seeds.
const NS2: [(Setup, f64); 5] = [
    (Setup { flows: 4, delay_ms: 20, fine_grain: false, max_p: None }, 1.67),
    (Setup { flows: 16, delay_ms: 20, fine_grain: false, max_p: None }, 1.47),
    (Setup { flows: 16, delay_ms: 20, fine_grain: true, max_p: None }, 1.04),
    (Setup { flows: 16, delay_ms: 20, fine_grain: true, max_p: Some(0.02) }, 1.13),
    (Setup { flows: 16, delay_ms: 20, fine_grain: true, max_p: Some(0.32) }, 1.46),
];

#[test]
fn the_share_beside_sack_is_within_15_per_cent_of_ns_2_s() {
    for (setup, theirs) in NS2 {
        let ratios = (1..=3).map(|seed| {
            let outcome = setup.run(&[("quirks", "ns2")], seed);
            assert!(outcome.rap_loss > 0.002 && outcome.sack_loss > 0.002, "the link must be full: {outcome:?}");
            outcome.ratio
        });
        let ours = ratios.sum::<f64>() / 3.0;
        assert!((ours / theirs - 1.0).abs() <= 0.15, "{setup:?}: {ours:.3}, ns-2 {theirs}");
    }
}
