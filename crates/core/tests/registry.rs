//! What holds for every scheme of the registry.

use weir_core::layers::Ladder;
use weir_core::registry::{self, Habitat, Parties, Range, Scheme, Session, Setting, SettingHelp, Stream, Tree};
use weir_units::{Bytes, Random, Rate};
use weir_wire::CciForm;

/// The parties of a scheme with one setting, if any, as text; or why they cannot be built.
fn build(scheme: &Scheme, habitat: Habitat, setting: Option<(&str, &str)>) -> Result<String, String> {
    let packet_size = Bytes::new(1000);
    let ladder = Ladder::geometric(Rate::from_kbps(256), Rate::from_mbps(8), 2.0).expect("valid");
    let session = Session { ladder, packet_size, form: CciForm::Short, habitat };
    let stream = Stream { packet_size, feedback_size: Bytes::new(40), habitat };
    let settings: Vec<Setting> =
        setting.into_iter().map(|(key, value)| Setting { key: key.into(), value: value.into() }).collect();
    let random = || Random::new(1, "party");
    let parties = match scheme.parties {
        Parties::Layered(_) => {
            vec![scheme.sender(&session, &settings, random()), scheme.receiver(&session, &settings, random())]
        }
        Parties::Paced(_) => {
            vec![scheme.source(&stream, &settings, random()), scheme.sink(&stream, &settings, random())]
        }
        Parties::Tree(Tree { sender, agent, receiver }) => {
            [sender, agent, receiver].map(|build| build(&stream, &settings, random())).into()
        }
    };
    let shown = parties.into_iter().map(|party| party.map(|party| format!("{party:?}")));
    let shown: Vec<Result<String, String>> = shown.map(|party| party.map_err(|error| error.to_string())).collect();
    let errors = || shown.iter().map(|party| party.as_ref().err());
    assert!(errors().all(|error| Some(error) == errors().next()), "all parties take the same settings: {shown:?}");
    shown.into_iter().collect()
}

/// Whether the value itself is refused, not only what it would make of the session.
fn is_refused(scheme: &Scheme, setting: &SettingHelp, value: &str) -> bool {
    let error = build(scheme, Habitat::Lab, Some((setting.key, value))).err();
    let text = format!("setting {}={value}: expected {}", setting.key, setting.accepted);
    error.is_some_and(|error| error == text)
}

fn each_setting(check: impl Fn(&Scheme, &SettingHelp)) {
    for scheme in registry::SCHEMES {
        scheme.settings().iter().for_each(|setting| check(scheme, setting));
    }
}

#[test]
fn every_setting_that_the_help_lists_exists_and_says_what_it_accepts() {
    each_setting(|scheme, setting| assert!(is_refused(scheme, setting, "?"), "{} {}", scheme.name, setting.key));
}

#[test]
fn a_default_as_the_help_has_it_changes_nothing() {
    each_setting(|scheme, setting| {
        for (habitat, value) in [(Habitat::Lab, &setting.lab), (Habitat::Sockets, &setting.sockets)] {
            let given = build(scheme, habitat, Some((setting.key, value)));
            assert_eq!(given, build(scheme, habitat, None), "{} {}={value}", scheme.name, setting.key);
            assert!(given.is_ok());
        }
    });
}

#[test]
fn values_at_the_ends_of_a_range_are_accepted_and_those_just_outside_are_refused() {
    each_setting(|scheme, setting| {
        let Some(range) = &setting.accepted.range else { return };
        for value in ends(range) {
            assert!(!is_refused(scheme, setting, &value), "{} {}={value}", scheme.name, setting.key);
        }
        for value in outside(range) {
            assert!(is_refused(scheme, setting, &value), "{} {}={value}", scheme.name, setting.key);
        }
    });
}

#[test]
fn every_word_that_the_help_lists_is_accepted() {
    each_setting(|scheme, setting| {
        for word in &setting.accepted.words {
            assert!(!is_refused(scheme, setting, word.word), "{} {}={}", scheme.name, setting.key, word.word);
        }
    });
}

fn ends(range: &Range) -> [String; 2] {
    match range {
        Range::Span(span) => [span.start(), span.end()].map(|end| format!("{}ns", end.as_nanos())),
        Range::Rate(rate) => [rate.start(), rate.end()].map(|end| format!("{}bit/s", end.bps())),
        Range::Rates { most, each } => {
            [each.start(), each.end()].map(|end| vec![format!("{}bit/s", end.bps()); *most].join(","))
        }
        Range::Whole(whole) => [whole.start(), whole.end()].map(ToString::to_string),
        Range::Number(number) => [number.start(), number.end()].map(ToString::to_string),
    }
}

fn outside(range: &Range) -> [String; 2] {
    let around = |low: u128, high: u128| [low.checked_sub(1), Some(high + 1)];
    let text = |value: Option<u128>, unit: &str| value.map_or("-1".to_owned(), |value| format!("{value}{unit}"));
    match range {
        Range::Span(span) => around(span.start().as_nanos(), span.end().as_nanos()).map(|nanos| text(nanos, "ns")),
        Range::Rate(rate) => around(rate.start().bps().into(), rate.end().bps().into()).map(|bps| text(bps, "bit/s")),
        Range::Rates { most, each } => [
            around(each.start().bps().into(), each.end().bps().into()).map(|bps| text(bps, "bit/s"))[1].clone(),
            vec![format!("{}bit/s", each.start().bps()); most + 1].join(","),
        ],
        Range::Whole(whole) => around((*whole.start()).into(), (*whole.end()).into()).map(|number| text(number, "")),
        Range::Number(number) => [number.start().next_down(), number.end().next_up()].map(|number| number.to_string()),
    }
}

#[test]
fn an_unknown_scheme_is_refused_with_the_names_that_there_are() {
    let error = registry::find("avrmc").map(|scheme| scheme.name).expect_err("it is misspelt").to_string();
    let names: Vec<&str> = registry::SCHEMES.iter().map(|scheme| scheme.name).collect();
    assert_eq!(error, format!("there is no scheme \"avrmc\"; there are {}", names.join(", ")));
}
