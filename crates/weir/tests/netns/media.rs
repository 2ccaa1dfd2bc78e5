//! Layered media between hosts of their own: what each receiver's decoder gets over links of different rates, over a path that loses packets,
//! and a receiver that joins late. Needs root and ffmpeg; see `weir_testkit::netns::require_root`.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::time::Duration;

use weir_link::LinkConfig;
use weir_testkit::netns::{Network, Programme, Scratch, Stranger, decoded, generated_clip, pause, require_root};
use weir_units::Rate;
use weir_wire::Layered;
use weir_wire::media::{Media, PicturePlace, filled};
use weir_wire::rtcp::is_rtcp;
use weir_wire::rtp::Rtp;

use super::{MINUTE, WEIR, number};

/// Its layers need about 0.9, 1.7 and 3.4 Mbit/s. Leaves act after two seconds, as on switches as they come.
#[test]
fn each_receiver_gets_the_layers_that_its_link_carries_and_every_output_decodes_without_an_error() {
    let Some((frames, all)) = to_three_links([1, 3, 8].map(Rate::from_mbps), 30, false, ("sluice", [SMOOTH_MS; 3]))
    else {
        return;
    };
    assert!(frames[0] * 3 < frames[1] * 2 && frames[1] * 3 < frames[2] * 2, "frame rates do not rise: {frames:?}");
    assert!(frames[0] * 5 > all, "the base layer has a quarter of the pictures: {frames:?} of {all}");
}

/// FGLM's receivers have no channel in common: each channel carries all layers, and a link has to carry 2.7 times what its layers need. FGLM
/// is for leaves that act at once, and on a path of a millisecond it tries a whole step more several times a second: where the link has little
/// more than the base layer takes (2.4 Mbit/s here), the base pauses; at 3 Mbit/s for 1.2 and 1.3 s in two of three runs. At 4 Mbit/s 16 to 25 %
/// are lost, and where a compiler has the same cores the base paused for 0.9 and 1.7 s in two of nine runs. Behind the two slower links it has to be back with a key picture.
#[test]
fn receivers_of_any_channels_get_the_layers_that_their_links_carry_and_every_output_decodes_without_an_error() {
    let Some((frames, all)) = to_three_links([4, 6, 16].map(Rate::from_mbps), 10, true, ("fglm", FGLM_MS)) else {
        return;
    };
    assert!(frames.is_sorted_by(|slower, faster| slower < faster), "frame rates do not rise: {frames:?}");
    // Each of the others has a part of the packets of every picture.
    assert!(frames[2] * 20 > all * 19, "the fastest link carries all: {frames:?} of {all}");
}

/// The longest pause of a base layer that does not stop.
const SMOOTH_MS: f64 = 500.0;
/// From one key picture of the clips to the next, and a picture of the base more.
const KEY_PICTURES_MS: f64 = 2_000.0 + 134.0;

/// Behind each link.
const FGLM_MS: [f64; 3] = [KEY_PICTURES_MS, KEY_PICTURES_MS, SMOOTH_MS];

/// Sends a clip of this length to three receivers, one behind each link. Each one's base layer may pause for up to its `longest_pauses_ms`.
/// Returns the number of frames that each decoded, and the number in the clip.
fn to_three_links(
    links: [Rate; 3],
    seconds: u32,
    fast_leave: bool,
    (scheme, longest_pauses_ms): (&str, [f64; 3]),
) -> Option<(Vec<usize>, usize)> {
    if !require_root() {
        return None;
    }
    let scratch = Scratch::new();
    let clip = scratch.join("clip.ivf");
    generated_clip(&clip, SIZE, seconds);
    let (all, _) = decoded(&clip);
    let network = Network::new().links(links).fast_leave(fast_leave).build();
    let options = ["--layer-rates", "0.9M,1.9M,3.8M", "--cc", scheme];
    let programme = Programme::start(&network, Path::new(WEIR), &clip, scratch.path(), options);
    let outs = [0, 1, 2].map(|index| scratch.join(format!("out{index}.ivf")));
    let receivers = [0, 1, 2].map(|index| programme.watch(&network, index, &outs[index], []));
    let sent = programme.sender.wait(MINUTE);
    assert!(sent.is_success(), "{}", sent.told());
    let seen = receivers.map(|receiver| receiver.wait(MINUTE));
    let mut frames = Vec::new();
    for ((seen, out), longest_pause_ms) in seen.iter().zip(&outs).zip(longest_pauses_ms) {
        assert!(seen.is_success(), "{}", seen.told());
        let end = seen.last_event("end");
        eprintln!("{end}");
        let (digests, complaints) = decoded(out);
        assert_eq!(complaints, "", "{end}");
        assert!(is_part_of(&digests, &all), "frames that the whole stream does not have: {end}");
        assert_eq!(digests.len() as u64, number(&end, "pictures"), "{end}");
        assert!(end["longest_pause_ms"].as_f64() < Some(longest_pause_ms), "the base layer stopped: {end}");
        frames.push(digests.len());
    }
    let dropped = [0, 1].map(|index| network.link_counters(index).dropped_packets);
    eprintln!("{frames:?} of {} pictures; dropped at the two slower links: {dropped:?}", all.len());
    Some((frames, all.len()))
}

#[test]
fn over_a_path_that_loses_two_percent_repair_brings_packets_back_and_the_rest_decodes() {
    if !require_root() {
        return;
    }
    let ways = ["rate=20mbit,delay=5ms,loss=2%", "rate=20mbit,delay=5ms"];
    let ways = ways.map(|way| way.parse::<LinkConfig>().expect("a link"));
    let scratch = Scratch::new();
    let [clip, out] = ["clip.ivf", "out.ivf"].map(|name| scratch.join(name));
    generated_clip(&clip, SIZE, 12);
    let (all, _) = decoded(&clip);
    let network = Network::new().receivers(1).modelled(ways).fast_leave(false).build();
    let programme = Programme::start(&network, Path::new(WEIR), &clip, scratch.path(), []);
    let receiver = programme.watch(&network, 0, &out, []);
    let (sent, seen) = (programme.sender.wait(MINUTE), receiver.wait(MINUTE));
    assert!(sent.is_success() && seen.is_success(), "{}\n{}", sent.told(), seen.told());
    let (end, (lost, _)) = (seen.last_event("end"), network.lost_and_delivered(0));
    eprintln!("{lost} lost on the path: {end}");
    assert!(lost > 40, "the path lost {lost}: {end}");
    assert!(number(&end, "recovered_packets") * 2 > lost, "{lost} lost: {end}");
    let (digests, complaints) = decoded(&out);
    assert_eq!(complaints, "", "{end}");
    assert!(is_part_of(&digests, &all), "{end}");
}

/// A key picture comes every two seconds, and the latency is one. The programme is sealed: a restart has other keys of packets.
#[test]
fn who_joins_late_begins_with_the_next_key_picture_and_one_restarted_sender_is_followed() {
    if !require_root() {
        return;
    }
    let scratch = Scratch::new();
    let [clip, out, late] = ["clip.ivf", "out.ivf", "late.ivf"].map(|name| scratch.join(name));
    generated_clip(&clip, SIZE, 14);
    let key = scratch.join("sender.key");
    let key = key.to_str().expect("a path of the test");
    let words = ["--latency", "1s", "--tsi", "9", "--authenticate", "group", "--key", key];
    let network = Network::new().receivers(2).fast_leave(false).build();
    let programme = Programme::start(&network, Path::new(WEIR), &clip, scratch.path(), words);
    let receiver = programme.watch(&network, 0, &out, []);
    pause(Duration::from_secs(5));
    let latecomer = programme.watch(&network, 1, &late, []);
    pause(Duration::from_secs(4));
    programme.sender.kill();
    let before = [&receiver, &latecomer].map(|receiver| receiver.last_count("progress", "pictures"));
    assert!(before.iter().all(|pictures| *pictures > 10), "what came before the sender was killed: {before:?}");
    let again = Programme::start(&network, Path::new(WEIR), &clip, scratch.path(), words);
    let sent = again.sender.wait(MINUTE);
    assert!(sent.is_success(), "{}", sent.told());
    for (seen, out, before) in [(receiver.wait(MINUTE), out, before[0]), (latecomer.wait(MINUTE), late, before[1])] {
        let end = seen.last_event("end");
        eprintln!("{end}");
        assert!(seen.is_success(), "{}", seen.told());
        // The first key picture after the restart counts.
        assert!(number(&end, "pictures") > before + 380, "of 420 pictures after the restart, {before} before: {end}");
        assert_eq!(decoded(&out).1, "", "{end}");
        assert!(end["first_picture_s"].as_f64() < Some(2.0 + 1.0 + 1.0), "key interval, latency, and a second: {end}");
    }
}

/// Whether `part` is `whole` with some left out.
/// The stranger sends under the sender's address what the next picture could begin with.
#[test]
fn sealed_programmes_are_whole_under_a_stranger_whose_packets_tear_one_without_seals() {
    if !require_root() {
        return;
    }
    let scratch = Scratch::new();
    let clip = scratch.join("clip.ivf");
    generated_clip(&clip, SIZE, 8);
    let (all, _) = decoded(&clip);
    let network = Network::new().receivers(2).fast_leave(false).build();
    let programmes: [(u8, &[&str]); 4] = [
        (1, &[]),
        (2, &["--authenticate", "group"]),
        (3, &["--authenticate", "source"]),
        (4, &["--encrypt", "--authenticate", "source"]),
    ];
    let watched = programmes.map(|(number, seals)| {
        let folder = scratch.join(format!("programme{number}"));
        std::fs::create_dir(&folder).expect("the folder is ours");
        let group = SocketAddrV4::new(Ipv4Addr::new(239, 255, number, 1), 5000 + 10 * u16::from(number));
        let words = seals.iter().copied().chain(["--latency", "500ms"]);
        let programme = Programme::start_to(&group.to_string(), &network, Path::new(WEIR), &clip, &folder, words);
        let out = folder.join("out.ivf");
        let receiver = programme.watch(&network, 0, &out, []);
        let stranger = Stranger::start(network.receiver(1), group, |air| {
            while air.sent() < FORGED {
                let Some(heard) = air.hear() else { return };
                if let Some(forged) = ahead_of_the_next_picture(heard.bytes()) {
                    air.say_as(heard.from(), &forged);
                }
            }
        });
        (programme, receiver, out, stranger)
    });
    let ends = watched.map(|(programme, receiver, out, stranger)| {
        let (sent, seen) = (programme.sender.wait(MINUTE), receiver.wait(MINUTE));
        assert!(sent.is_success() && seen.is_success(), "{}\n{}", sent.told(), seen.told());
        let (end, forged) = (seen.last_event("end"), stranger.done());
        eprintln!("{forged} forged: {end}");
        assert_eq!(forged, FORGED, "packets that the stranger forged");
        let (digests, complaints) = decoded(&out);
        let is_clean = complaints.is_empty() && is_part_of(&digests, &all);
        (is_clean, digests.len(), end["layer_withheld"][0].as_u64(), number(&end, "forged_packets"))
    });
    let [(is_clean, _, withheld, _), sealed @ ..] = ends;
    assert!(!is_clean || withheld > Some(0), "the stranger does no harm");
    for (is_clean, shown, withheld, refused) in sealed {
        assert!(is_clean && withheld == Some(0), "a sealed programme is damaged: {withheld:?} withheld");
        // The receiver joins while the first pictures are sent, and the upper layers a little later.
        assert!(shown * 10 > all.len() * 8, "{shown} of {} pictures", all.len());
        assert!(refused * 2 > FORGED, "{refused} of {FORGED} refused");
    }
}

/// One for each of the last thirty base pictures or so, of sixty.
const FORGED: u64 = 30;

/// What the next base picture begins with, a little wrong, by the last packet of a base picture. Of an encrypted packet, that with a bit turned.
fn ahead_of_the_next_picture(heard: &[u8]) -> Option<Vec<u8>> {
    let Ok((layered, media, payload)) = Media::decode(heard) else {
        return (!is_rtcp(heard)).then(|| [&heard[..heard.len() - 1], &[!heard[heard.len() - 1]]].concat());
    };
    let place = media.picture.filter(|place| media.rtp.marker && place.layer == 0)?;
    let picture =
        PicturePlace { number: place.number.wrapping_add(4), needs: 4, is_key: false, is_start: true, ..place };
    let rtp = Rtp {
        marker: false,
        sequence: media.rtp.sequence.wrapping_add(1),
        timestamp: media.rtp.timestamp.wrapping_add(4 * 3000),
        ..media.rtp
    };
    let layered = Layered { sequence: layered.sequence.wrapping_add(1), ..layered };
    let mut packet = vec![0; heard.len()];
    let wrong: Vec<u8> = payload.iter().map(|byte| !byte).collect();
    let room = heard.len() - Media::LEN;
    let fill = filled(&wrong, room, &mut packet[Media::LEN..]);
    Media { rtp, picture: Some(picture), fill }.encode(&layered, &mut packet);
    Some(packet)
}

fn is_part_of(part: &[String], whole: &[String]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|digest| rest.any(|other| other == digest))
}

const SIZE: &str = "400x224";
