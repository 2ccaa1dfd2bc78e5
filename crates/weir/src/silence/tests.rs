use super::*;
use weir_net::InterfaceChoice;

fn silence(more: &str) -> Silence {
    let text = format!(
        "v=0\no=- 7 1 IN IP4 0.0.0.0\ns=news\nt=0 0\na=flute-tsi:7\na=flute-ch:1\n{more}m=application 5004 FLUTE/UDP 0\n\
         c=IN IP4 239.255.0.1/1\n"
    );
    let description: Description = text.parse().expect("a description");
    let lo = InterfaceChoice::Name("lo".to_owned());
    let lo = Interface::choose(&lo, description.channels[0].ip()).expect("lo is there");
    let mut silence = Silence::new(&description, &lo, 0, Time::ZERO);
    // What comes over the loopback meanwhile is nobody's business here.
    silence.may_watch = false;
    silence
}

fn at(secs: u64) -> Time {
    Time::from_secs(secs)
}

fn packets(count: u64) -> Statistics {
    let mut statistics = Statistics::default();
    statistics.received.packets = count;
    statistics
}

#[test]
fn who_hears_nothing_is_told_what_to_check_ever_more_seldom() {
    let mut silence = silence("");
    let nothing = (Statistics::default(), Progress::default());
    let mut told = Vec::new();
    for second in 0..200 {
        if let Some(waiting) = silence.look(at(second), &nothing.0, &nothing.1) {
            assert!(waiting.seen.is_empty() && waiting.check.len() >= 5, "{waiting:?}");
            for word in ["interface", "239.255.0.1:5004", "TTL", "firewall", "weir doctor"] {
                assert!(waiting.message.contains(word), "{word}: {}", waiting.message);
            }
            told.push(second);
        }
    }
    assert_eq!(told, [4, 8, 16, 32, 64, 124, 184]);
}

#[test]
fn a_slow_session_is_given_the_time_of_its_packets() {
    let patience = |rate: u64| {
        patience(&silence(&format!("a=weir-cc:avmrc\na=weir-packet:1250\na=weir-ladder:{rate}\n")).description)
    };
    assert_eq!([patience(1_000), patience(256_000)], [30, 4].map(Duration::from_secs));
}

#[test]
fn packets_end_a_silence_and_the_next_one_is_told_again() {
    let mut silence = silence("");
    let table = Progress { manifest_complete: true, ..Progress::default() };
    for second in 0..10 {
        assert_eq!(silence.look(at(second), &packets(second + 1), &table), None, "{second}");
    }
    let told = |silence: &mut Silence, second| silence.look(at(second), &packets(10), &table).map(|it| it.waited_s);
    assert_eq!([told(&mut silence, 12), told(&mut silence, 13)], [None, Some(4.0)]);
}

#[test]
fn tables_that_nobody_signed_and_tables_that_do_not_come_are_told_apart() {
    let rejected = Progress { rejected_manifests: 3, ..Progress::default() };
    let mut one = silence("");
    let first = (0..20).find_map(|second| Some((second, one.look(at(second), &packets(second + 1), &rejected)?)));
    let (second, waiting) = first.expect("it is told");
    assert_eq!((second, waiting.seen[0].what, waiting.seen[0].packets), (4, SeenWhat::UnsignedTable, 3));
    let mut other = silence("");
    let late = (0..20).find_map(|second| {
        other.look(at(second), &packets(second + 1), &Progress::default()).map(|waiting| (second, waiting))
    });
    let (second, waiting) = late.expect("it is told");
    assert_eq!((second, waiting.seen.len(), waiting.check.len()), (15, 0, 1));
}
