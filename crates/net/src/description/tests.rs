use proptest::prelude::*;
use std::net::Ipv4Addr;
use weir_units::{Random, Rate};

use super::*;

fn example() -> Description {
    Description {
        name: "Site images".to_owned(),
        tsi: 7,
        flute_version: 2,
        source: Some(Ipv4Addr::new(192, 0, 2, 10).into()),
        channels: Description::channels_from("239.255.0.1:5004".parse().expect("an address"), 3).expect("three groups"),
        ttl: 4,
        control: Some(Control {
            scheme: "avmrc".to_owned(),
            settings: vec![Setting { key: "tau".to_owned(), value: "100ms".to_owned() }],
            ladder: Ladder::geometric(Rate::from_kbps(256), Rate::from_kbps(576), 1.5).expect("three rates"),
            form: CciForm::Short,
            packet_size: Bytes::new(1_456),
        }),
        symbol_size: Some(1_400),
        public_key: Some([0xab; 32]),
        epoch: Some(1_795_000_000_000),
        expires: None,
        control_address: Some("192.0.2.10:5005".parse().expect("an address")),
        receipt_key: Some([1; 32]),
        priority: Some(3),
        sessions: Some(4),
        sealing: Sealing::default(),
        media: None,
    }
}

const EXAMPLE: &str = "v=0\r
o=- 7 1 IN IP4 192.0.2.10\r
s=Site images\r
t=0 0\r
a=source-filter: incl IN IP4 * 192.0.2.10\r
a=flute-tsi:7\r
a=flute-ch:3\r
a=weir-flute:2\r
a=weir-cc:avmrc tau=100ms\r
a=weir-cci:short\r
a=weir-packet:1456\r
a=weir-ladder:256000 384000 576000\r
a=weir-symbol:1400\r
a=weir-key:ed25519 abababababababababababababababababababababababababababababababab\r
a=weir-epoch:1795000000000\r
a=weir-control:192.0.2.10:5005\r
a=weir-receipt:0101010101010101010101010101010101010101010101010101010101010101\r
a=weir-priority:3\r
a=weir-sessions:4\r
m=application 5004 FLUTE/UDP 0\r
c=IN IP4 239.255.0.1/4\r
b=AS:256\r
m=application 5004 FLUTE/UDP 0\r
c=IN IP4 239.255.0.2/4\r
b=AS:128\r
m=application 5004 FLUTE/UDP 0\r
c=IN IP4 239.255.0.3/4\r
b=AS:192\r
";

#[test]
fn a_description_stands_line_by_line_as_documented() {
    assert_eq!(example().to_string(), EXAMPLE);
    assert_eq!(EXAMPLE.parse(), Ok(example()));
    assert_eq!(EXAMPLE.replace("\r\n", "\n").parse(), Ok(example()), "line ends of an editor");
}

const MEDIA_EXAMPLE: &str = "v=0\r
o=- 7 1 IN IP4 192.0.2.10\r
s=Site images\r
t=0 0\r
a=source-filter: incl IN IP4 * 192.0.2.10\r
a=weir-tsi:7\r
a=weir-media:VP9 98 0 1\r
a=weir-latency:2000\r
a=group:DDP c0 c1\r
a=weir-cc:sluice\r
a=weir-cci:clocked\r
a=weir-packet:1200\r
a=weir-ladder:600000 1000000\r
a=weir-control:192.0.2.10:5005\r
m=video 5004 RTP/AVP 98 99\r
c=IN IP4 239.255.0.1/4\r
b=AS:600\r
a=rtpmap:98 VP9/90000\r
a=rtpmap:99 weir-repair/90000\r
a=mid:c0\r
a=extmap:3 urn:weir:rtp:control:1\r
a=extmap:4 urn:weir:rtp:place:1\r
a=recvonly\r
m=video 5004 RTP/AVP 98 99\r
c=IN IP4 239.255.0.2/4\r
b=AS:400\r
a=rtpmap:98 VP9/90000\r
a=rtpmap:99 weir-repair/90000\r
a=mid:c1\r
a=depend:98 lay c0:98\r
a=extmap:3 urn:weir:rtp:control:1\r
a=extmap:4 urn:weir:rtp:place:1\r
a=recvonly\r
";

fn media_example() -> Description {
    let control = Control {
        scheme: "sluice".to_owned(),
        settings: Vec::new(),
        ladder: Ladder::from_rates(vec![Rate::from_kbps(600), Rate::from_kbps(1000)]).expect("rising"),
        form: CciForm::Clocked,
        packet_size: Bytes::new(1200),
    };
    Description {
        channels: Description::channels_from("239.255.0.1:5004".parse().expect("an address"), 2).expect("two groups"),
        control: Some(control),
        symbol_size: None,
        public_key: None,
        epoch: None,
        receipt_key: None,
        priority: None,
        sessions: None,
        media: Some(MediaFormat {
            encoding: "VP9".to_owned(),
            payload_type: 98,
            layers: vec![0..=0, 1..=1],
            latency_ms: 2000,
        }),
        ..example()
    }
}

#[test]
fn layered_media_stand_as_rtp_that_players_know_line_by_line_as_documented() {
    assert_eq!(media_example().to_string(), MEDIA_EXAMPLE);
    assert_eq!(MEDIA_EXAMPLE.parse(), Ok(media_example()));
    let session = sdp_types::Session::parse(MEDIA_EXAMPLE.as_bytes()).expect("SDP");
    assert_eq!((session.medias.len(), session.medias[0].proto.as_str()), (2, "RTP/AVP"));
}

#[test]
fn media_whose_channels_carry_all_layers_are_descriptions_of_one_programme() {
    let text = MEDIA_EXAMPLE.replace("VP9 98 0 1", "VP9 98 0-1 0-1").replace("a=depend:98 lay", "a=depend:98 mdc");
    let mut description = media_example();
    description.media.iter_mut().for_each(|media| media.layers = vec![0..=1, 0..=1]);
    assert_eq!(text.parse(), Ok(description.clone()));
    assert_eq!(description.to_string(), text);
}

#[test]
fn media_whose_layers_are_not_those_of_the_channels_are_refused() {
    for (wrong, why) in [
        ("VP9 98 0 1 2", "another number of channels"),
        ("VP9 98 1 1", "a layer from 0 to 7"),
        ("VP9 98 0 8", "a layer from 0 to 7"),
        ("VP9 98 0-8 1", "a layer from 0 to 7"),
        ("VP9 98 0 1-1", "a layer from 0 to 7"),
        ("VP9 98 0 2-1", "a layer from 0 to 7"),
        ("VP9 33 0 1", "a layer from 0 to 7"),
        ("VP9 98 0 1\r\na=weir-flute:1", "a=weir-flute is of files"),
    ] {
        let error = MEDIA_EXAMPLE.replace("VP9 98 0 1", wrong).parse::<Description>().expect_err("it is wrong");
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[test]
fn an_independent_reader_takes_it_for_sdp() {
    let session = sdp_types::Session::parse(EXAMPLE.as_bytes()).expect("SDP");
    assert_eq!((session.session_name.as_str(), session.medias.len()), ("Site images", 3));
    assert_eq!(session.get_first_attribute_value("flute-tsi"), Some(Some("7")));
    assert_eq!((session.medias[2].port, session.medias[2].proto.as_str()), (5004, "FLUTE/UDP"));
    assert_eq!(session.medias[2].connections[0].connection_address, "239.255.0.3/4");
}

#[test]
fn a_plain_flute_session_has_no_congestion_control() {
    let text = "v=0\no=user123 2890844526 2890842807 IN IP6 2001:db8::1\ns=File delivery\nt=2873397496 2873404696\n\
        a=mbms-mode:broadcast 1234 1\na=FEC-declaration:0 encoding-id=1\na=source-filter: incl IN IP6 * 2001:db8::1\n\
        a=flute-tsi:3\nm=application 12345 FLUTE/UDP 0\nc=IN IP6 ff1e:3ad::7f2e\nb=64\na=lang:EN\na=FEC:0\n";
    let plain: Description = text.parse().expect("a plain FLUTE session");
    assert_eq!(plain.channels, ["[ff1e:3ad::7f2e]:12345".parse().expect("an address")]);
    assert_eq!((plain.tsi, plain.flute_version, plain.control.is_none(), plain.form()), (3, 2, true, None));
    assert_eq!(plain.source, Some("2001:db8::1".parse().expect("an address")));
    assert!(plain.receiver_endpoint(random()).expect("nothing to configure").is_none());
}

#[test]
fn one_connection_line_can_count_several_groups_and_serve_all_media() {
    let text = "v=0\ns=x\nc=IN IP4 224.2.1.1/127/3\na=flute-tsi:1\na=flute-ch:3\nm=audio 9 RTP/AVP 0\nc=nonsense\n\
        m=application 49170 FLUTE/UDP 0\n";
    let counted: Description = text.parse().expect("three channels");
    let groups: Vec<String> = counted.channels.iter().map(SocketAddr::to_string).collect();
    assert_eq!(groups, ["224.2.1.1:49170", "224.2.1.2:49170", "224.2.1.3:49170"]);
    assert_eq!(counted.ttl, 127);
}

#[test]
fn groups_count_over_byte_borders_and_not_out_of_multicast() {
    let from = |base: &str, count| Description::channels_from(base.parse().expect("an address"), count);
    let groups = from("239.255.0.255:5004", 2).expect("in range");
    assert_eq!(groups[1], "239.255.1.0:5004".parse().expect("an address"));
    assert_eq!(from("239.255.255.255:5004", 2), None);
    assert_eq!(from("192.0.2.1:5004", 1), None);
}

#[test]
fn an_error_names_the_line_and_what_was_expected() {
    let explain = |from: &str, to: &str| {
        let text = EXAMPLE.replace(from, to);
        text.parse::<Description>().expect_err("broken").to_string()
    };
    assert_eq!(
        explain("a=flute-tsi:7", "a=flute-tsi:seven"),
        r#"line 6 of the description, "a=flute-tsi:seven": expected a=flute-tsi:N with N from 0 to 65535"#
    );
    assert!(explain("c=IN IP4 239.255.0.2/4", "c=IN IP4 192.0.2.1/4").starts_with("line 24 of"));
    assert!(explain("256000 384000 576000", "256000 384000 384000").contains("rising rates"));
    assert!(explain("a=weir-ladder:256000 384000 576000\r\n", "").contains("no a=weir-ladder"));
    assert!(explain("v=0", "<html>").contains("this is not SDP"));
    assert!(explain("a=flute-ch:3", "a=flute-ch:2").contains("another number of channels"));
    assert!(explain("a=weir-packet:1456\r\n", "").contains("no a=weir-packet"));
    assert!(explain("239.255.0.2/4", "239.255.0.1/4").contains("the same group and port"));
    assert!(explain("a=flute-tsi:7\r\n", "").contains("a=flute-tsi:N"));
    assert!(explain("a=weir-priority:3", "a=weir-priority:0").contains("1 to 1000"));
    assert!(explain("a=weir-sessions:4", "a=weir-sessions:many").contains("1 to 1000"));
    assert!(explain("a=weir-receipt:01", "a=weir-receipt:0x").contains("64 hexadecimal digits"));
    assert!(explain("a=weir-control:192.0.2.10:5005\r\n", "").contains("a=weir-control"));
    for nobody in ["239.0.0.1:5005", "255.255.255.255:5005", "0.0.0.0:5005", "192.0.2.10:0"] {
        assert!(explain("192.0.2.10:5005", nobody).contains("a=weir-control"), "{nobody}");
    }
    assert!("".parse::<Description>().is_err() && "v=0\n".repeat(100_000).parse::<Description>().is_err());
}

#[test]
fn rates_that_no_network_has_are_refused_before_anything_is_made_of_them() {
    let schemes = weir_core::registry::SCHEMES.iter().map(|scheme| scheme.name);
    for scheme in schemes {
        let text = EXAMPLE.replace("weir-cc:avmrc tau=100ms", &format!("weir-cc:{scheme}"));
        for absurd in ["1 18446744073709551615", "1000 1000000000001", "999 2000"] {
            let refused = text.replace("256000 384000 576000", absurd).parse::<Description>();
            assert!(refused.expect_err("absurd").to_string().contains("1 kbit/s to 1 Tbit/s"), "{scheme}: {absurd}");
        }
        // The widest that is read makes a session of the scheme or an error, and no more of it than a description has room for.
        let widest: Description = text.replace("256000 384000 576000", "1000 1000000000000").parse().expect("readable");
        let channels =
            widest.control.expect("it has congestion control").channel_rates().map_or(0, |rates| rates.len());
        assert!(channels <= 256, "{scheme}: {channels}");
    }
}

#[test]
fn text_that_a_terminal_would_act_on_is_refused() {
    for (sly, line) in [("\u{1b}[2J", 3), ("\u{9b}2J", 3), ("\u{7}", 3), ("\u{202e}", 3)] {
        let refused = EXAMPLE.replace("Site images", &format!("Site{sly}images")).parse::<Description>();
        let told = refused.expect_err("control characters").to_string();
        assert!(told.starts_with(&format!("line {line} of")) && told.contains("control characters"), "{told}");
        assert!(!told.chars().any(|c| c.is_control() || c == '\u{202e}'), "{told:?}");
    }
}

#[test]
fn a_name_cannot_add_lines() {
    let sly = Description { name: "x\r\na=flute-tsi:99".to_owned(), ..example() };
    let read: Description = sly.to_string().parse().expect("it stays a description");
    assert_eq!((read.tsi, read.name.as_str()), (7, "x  a=flute-tsi:99"));
}

prop_compose! {
    fn descriptions()(
        name in "[a-zA-Z0-9äöü][ -~]{0,30}[a-z]", tsi in any::<u16>(), flute_version in 1u8..=2, is_ipv4 in any::<bool>(),
        has_source in any::<bool>(), count in 1usize..40, port in 1u16.., ttl in any::<u8>(), is_controlled in any::<bool>(),
        settings in proptest::collection::vec(("[a-z_]{1,10}", "[!-~]{0,10}"), 0..4), form in 0usize..3,
        packet in 64u64..65_535, symbol_size in proptest::option::of(1u16..), public_key in any::<Option<[u8; 32]>>(),
        control_port in proptest::option::of(1u16..), receipt_key in any::<Option<[u8; 32]>>(),
        priority in proptest::option::of(1u16..=1000), sessions in proptest::option::of(1u16..=1000),
    ) -> Description {
        let (group, host) = if is_ipv4 { ("239.1.0.0", "192.0.2.1") } else { ("ff15::1", "2001:db8::1") };
        let host: IpAddr = host.parse().expect("an address");
        let base = SocketAddr::new(group.parse().expect("an address"), port);
        let settings = settings.into_iter().map(|(key, value)| Setting { key, value }).collect();
        let rates = (1..=count as u64).map(|step| Rate::from_bps(step * 77_777)).collect();
        let control = Control {
            scheme: "avmrc".to_owned(),
            settings,
            ladder: Ladder::from_rates(rates).expect("they rise"),
            form: [CciForm::Short, CciForm::Long, CciForm::Clocked][form],
            packet_size: Bytes::new(packet),
        };
        Description {
            name, tsi, flute_version, ttl, symbol_size, public_key, priority, sessions,
            source: has_source.then_some(host),
            channels: Description::channels_from(base, count).expect("in range"),
            control: is_controlled.then_some(control),
            epoch: control_port.map(u64::from),
            expires: receipt_key.map(|_| 4_000_000_000),
            control_address: control_port.map(|port| SocketAddr::new(host, port)),
            receipt_key: receipt_key.filter(|_| control_port.is_some()),
            sealing: Sealing::default(),
            media: None,
        }
    }
}

proptest! {
    #[test]
    fn reading_a_written_description_gives_it_back(description in descriptions()) {
        let text = description.to_string();
        prop_assert_eq!(text.parse::<Description>(), Ok(description), "{}", text);
    }

    #[test]
    fn rubbish_is_refused_without_panic(text in "\\PC{0,300}") {
        prop_assert!(text.parse::<Description>().is_err());
    }

    #[test]
    fn a_description_with_rubbish_in_it_is_read_or_refused_without_panic(
        at in 0..EXAMPLE.len(), cut in 0usize..40, rubbish in "[ -~\r\n]{0,20}",
    ) {
        let end = (at + cut).min(EXAMPLE.len());
        let text = format!("{}{rubbish}{}", &EXAMPLE[..at], &EXAMPLE[end..]);
        let _ = text.parse::<Description>();
    }
}

fn random() -> Random {
    Random::new(1, "endpoint")
}

#[test]
fn any_layered_scheme_makes_its_own_channels_of_the_ladder() {
    for (scheme, channels) in [("avmrc", 4), ("stair", 10), ("fglm", 4)] {
        let described = of_scheme(scheme, channels);
        assert!(described.sender_endpoint(random()).is_ok_and(|endpoint| endpoint.is_some()), "{scheme}");
        assert!(described.receiver_endpoint(random()).is_ok_and(|endpoint| endpoint.is_some()), "{scheme}");
        assert_eq!(described.to_string().parse(), Ok(described));
    }
}

#[test]
fn another_number_of_channels_than_the_scheme_makes_is_refused_at_both_ends() {
    let described = of_scheme("stair", 9);
    for error in [described.sender_endpoint(random()).err(), described.receiver_endpoint(random()).err()] {
        let wrong = ConfigError::WrongChannels { scheme: "stair", made: 10, given: 9 };
        assert_eq!(error, Some(wrong));
    }
}

#[test]
fn a_section_tells_the_highest_rate_of_its_own_channel() {
    let text = of_scheme("stair", 10).to_string();
    let rates: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("b=AS:")).collect();
    assert_eq!(rates, ["512", "512", "1024", "2048", "512", "1024", "512", "512", "512", "512"]);
    let unknown = of_scheme("moonshine", 2);
    assert!(!unknown.to_string().contains("b=AS") && unknown.to_string().parse() == Ok(unknown));
}

fn of_scheme(scheme: &str, channels: usize) -> Description {
    let example = example();
    let control = example.control.expect("it has congestion control");
    Description {
        channels: Description::channels_from(example.channels[0], channels).expect("groups enough"),
        control: Some(Control {
            scheme: scheme.to_owned(),
            settings: Vec::new(),
            ladder: Ladder::geometric(Rate::from_kbps(512), Rate::from_kbps(4096), 2.0).expect("four rates"),
            ..control
        }),
        ..example
    }
}
