//! Session descriptions: any text is read or refused; what is read says the same when it is written down again, and its
//! endpoints can be built or cannot.

use weir_core::layers::Ladder;
use weir_core::registry::{Parties, SCHEMES};
use weir_net::Description;
use weir_net::description::{Control, MediaFormat, Sealing, WrappedKey};
use weir_net::seal::{MasterKey, Members, Seals};
use weir_units::{Bytes, Rate};
use weir_wire::CciForm;

#[test]
fn any_text_is_a_description_or_refused() {
    weir_fuzz::check!(5_000, seeds(), read);
}

#[test]
fn the_seeds_are_descriptions() {
    let refused = |seed: &Vec<u8>| String::from_utf8_lossy(seed).parse::<Description>().err();
    assert_eq!(seeds().iter().find_map(refused), None);
    assert!(seeds().len() > 10, "{} seeds", seeds().len());
}

fn read(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let description: Description = match text.parse() {
        Ok(description) => description,
        Err(refusal) => {
            let refusal = refusal.to_string();
            return assert!(refusal.len() < 1_000 && !refusal.contains(is_control), "{refusal:?}");
        }
    };
    let written = description.to_string();
    assert!(!written.replace("\r\n", "").contains(is_control), "{written:?}");
    assert_eq!(written.parse().as_ref(), Ok(&description), "written as {written:?}");
    let built = description.check();
    if let Some(control) = &description.control {
        let (levels, rates) = (control.levels(), control.channel_rates());
        assert!(built.is_err() || (levels.is_ok() && rates.is_ok()), "built without levels or rates: {written:?}");
    }
}

fn is_control(c: char) -> bool {
    c.is_control()
}

/// A description for each layered scheme, with few rates and with many, one of layered media, two of other senders, and what
/// once took gigabytes.
fn seeds() -> Vec<Vec<u8>> {
    let layered = SCHEMES.iter().filter(|scheme| matches!(scheme.parties, Parties::Layered(_)));
    let with_rates = layered.flat_map(|scheme| [(scheme.name, 1.5), (scheme.name, 1.05)]);
    let own = with_rates.filter_map(|(name, ratio)| Some(description(name, ratio)?.to_string()));
    let media = description("sluice", 1.5).map(|files| with_media(files).to_string());
    let others = OTHERS.iter().map(|text| (*text).to_owned());
    own.chain(media).chain(others).map(String::into_bytes).collect()
}

/// `None` where the scheme cannot make channels of so many rates.
fn description(scheme: &str, ratio: f64) -> Option<Description> {
    let control = Control {
        scheme: scheme.to_owned(),
        settings: Vec::new(),
        ladder: Ladder::geometric(Rate::from_kbps(256), Rate::from_mbps(100), ratio).expect("rising rates"),
        form: CciForm::Short,
        packet_size: Bytes::new(1_456),
    };
    let count = control.channel_rates().ok()?.len();
    let base = "239.255.0.1:5004".parse().expect("an address");
    Some(Description {
        name: "Site images".to_owned(),
        tsi: 7,
        flute_version: 2,
        source: Some([192, 0, 2, 10].into()),
        channels: Description::channels_from(base, count)?,
        ttl: 4,
        control: Some(control),
        symbol_size: Some(1_400),
        public_key: Some([0xab; 32]),
        epoch: Some(1_795_000_000_000),
        expires: None,
        control_address: Some("192.0.2.10:5005".parse().expect("an address")),
        receipt_key: Some([1; 32]),
        priority: Some(3),
        sessions: Some(4),
        sealing: Sealing {
            seals: Seals { members: Some(Members::Encrypt), source: true },
            key: Some(MasterKey::new([2; 32])),
            wrapped: vec![WrappedKey { receiver: [3; 32], key: [4; WrappedKey::LEN] }],
        },
        media: None,
    })
}

/// Layered media in place of files.
fn with_media(description: Description) -> Description {
    let layers =
        (0..description.channels.len()).map(|channel| (channel % 3) as u8).map(|layer| layer..=layer).collect();
    let media = MediaFormat { encoding: "VP9".to_owned(), payload_type: 98, layers, latency_ms: 300 };
    Description { media: Some(media), ..description }
}

const OTHERS: [&str; 3] = [
    "v=0\ns=x\na=flute-tsi:7\na=weir-cc:stair\na=weir-packet:1456\na=weir-ladder:2056 384000 2143375 332150635120\n\
     m=application 5005 FLUTE/UDP 0\nc=IN IP4 239.255.0.27/4\n",
    "v=0\no=user123 2890844526 2890842807 IN IP6 2001:db8::1\ns=File delivery\nt=2873397496 2873404696\n\
     a=mbms-mode:broadcast 1234 1\na=FEC-declaration:0 encoding-id=1\na=source-filter: incl IN IP6 * 2001:db8::1\n\
     a=flute-tsi:3\nm=application 12345 FLUTE/UDP 0\nc=IN IP6 ff1e:3ad::7f2e\nb=64\na=lang:EN\na=FEC:0\n",
    "v=0\ns=x\nc=IN IP4 224.2.1.1/127/3\na=flute-tsi:1\na=flute-ch:3\nm=audio 9 RTP/AVP 0\nc=nonsense\n\
     m=application 49170 FLUTE/UDP 0\n",
];
