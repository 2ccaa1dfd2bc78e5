use alloc::string::ToString;
use alloc::vec;
use core::fmt::Debug;

use weir_units::{Rate, show_span};

use super::*;

/// Panics unless each setting of `table` is a field of its own: when its value changes, no other's does. Those called
/// `presets` change others.
pub(crate) fn assert_own_fields<C: Copy + PartialEq + Debug>(table: Table<C>, defaults: C, presets: &[&str]) {
    for changed in entries(table).filter(|entry| !presets.contains(&entry.key)) {
        let (mut before, mut after) = (defaults, defaults);
        let value = accepted_values(changed.value.accepted());
        let value =
            value.into_iter().find(|value| *value != changed.value.show(&mut before)).expect("there are two values");
        assert!(changed.value.set(&mut after, &value), "{}={value}", changed.key);
        for entry in entries(table) {
            let is_changed = entry.value.show(&mut before) != entry.value.show(&mut after);
            assert_eq!(is_changed, entry.key == changed.key, "{} after {}={value}", entry.key, changed.key);
        }
    }
}

/// The words, and the ends of the range.
fn accepted_values(accepted: Accepted) -> Vec<String> {
    let words = accepted.words.iter().map(|word| word.word.to_string());
    let ends = match accepted.range {
        None => Vec::new(),
        Some(Range::Span(span)) => vec![show_span(*span.start()).to_string(), show_span(*span.end()).to_string()],
        Some(Range::Rate(rate)) => vec![rate.start().exact().to_string(), rate.end().exact().to_string()],
        Some(Range::Rates { each, .. }) => vec![each.start().exact().to_string(), each.end().exact().to_string()],
        Some(Range::Whole(whole)) => vec![whole.start().to_string(), whole.end().to_string()],
        Some(Range::Number(number)) => vec![number.start().to_string(), number.end().to_string()],
    };
    words.chain(ends).collect()
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Config {
    wait: Duration,
    window: Option<Duration>,
    ceiling: Rate,
    count: u64,
    share: f64,
    colour: char,
}

const LAB: Config =
    Config { wait: ms(100), window: None, ceiling: Rate::from_mbps(10), count: 3, share: 0.5, colour: 'r' };

const TABLE: Table<Config> = &[
    &[
        Entry {
            key: "wait",
            help: "how long",
            value: &Within { range: ms(10)..=secs(10), field: |c: &mut Config| &mut c.wait },
        },
        Entry {
            key: "window",
            help: "of what",
            value: &WithinOr {
                word: "all",
                means: "everything",
                range: Duration::ZERO..=secs(1),
                field: |c: &mut Config| &mut c.window,
            },
        },
    ],
    &[
        Entry {
            key: "ceiling",
            help: "at most",
            value: &Within { range: Rate::from_bps(1)..=Rate::from_mbps(2500), field: |c: &mut Config| &mut c.ceiling },
        },
        Entry { key: "count", help: "how many", value: &Within { range: 0..=8, field: |c: &mut Config| &mut c.count } },
        Entry {
            key: "share",
            help: "of all",
            value: &Within { range: 0.0..=1.0, field: |c: &mut Config| &mut c.share },
        },
        Entry {
            key: "colour",
            help: "which",
            value: &OneOf {
                words: &[("red", "like blood", 'r'), ("green", "like grass", 'g'), ("blue", "like ink", 'b')],
                field: |c: &mut Config| &mut c.colour,
            },
        },
    ],
];

fn parse(settings: &[(&str, &str)]) -> Result<Config, String> {
    let settings: Vec<Setting> =
        settings.iter().map(|(key, value)| Setting { key: key.to_string(), value: value.to_string() }).collect();
    read("test", TABLE, LAB, &settings).map_err(|error| error.to_string())
}

#[test]
fn settings_change_their_fields_and_the_later_of_two_counts() {
    let settings = [("wait", "20ms"), ("window", "1s"), ("share", "0.25"), ("colour", "blue"), ("wait", "30ms")];
    let wanted = Config { wait: ms(30), window: Some(secs(1)), share: 0.25, colour: 'b', ..LAB };
    assert_eq!(parse(&settings), Ok(wanted));
    assert_eq!(parse(&[("window", "1s"), ("window", "all")]), Ok(LAB));
}

#[test]
fn a_refusal_says_what_is_accepted() {
    for (key, value, expected) in [
        ("wait", "9ms", "a span from 10ms to 10s"),
        ("window", "some", "a span up to 1s, or all"),
        ("ceiling", "2501M", "a rate such as 500k or 20M, from 1bit/s to 2.5G"),
        ("count", "9", "a whole number up to 8"),
        ("share", "NaN", "a number from 0 to 1"),
        ("colour", "pink", "red, green or blue"),
    ] {
        assert_eq!(parse(&[(key, value)]), Err(format!("setting {key}={value}: expected {expected}")));
    }
    assert_eq!(parse(&[("size", "9")]), Err("test has no setting \"size\"".to_string()));
}

#[test]
fn help_says_what_is_accepted_what_words_mean_and_the_defaults_of_both_habitats() {
    let sockets = Config { wait: ms(5), window: Some(ms(2500)), ..LAB };
    let lines: Vec<String> = help(TABLE, LAB, sockets).iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "how long: a span from 10ms to 10s (lab 100ms, sockets 5ms)",
            "of what: a span up to 1s, or all, everything (lab all, sockets 2.5s)",
            "at most: a rate such as 500k or 20M, from 1bit/s to 2.5G (10M)",
            "how many: a whole number up to 8 (3)",
            "of all: a number from 0 to 1 (0.5)",
            "which: red, like blood; green, like grass; blue, like ink (red)",
        ]
    );
}

#[test]
fn each_setting_is_a_field_of_its_own() {
    assert_own_fields(TABLE, LAB, &[]);
}
