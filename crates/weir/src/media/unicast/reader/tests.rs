use std::collections::BTreeMap;

use weir_core::observation::{PaceCause, PaceReport};
use weir_core::scheme::rap::quality::LayerRates;
use weir_media::Codec;
use weir_units::Rate;

use super::*;
use crate::media::unicast::shelf::tests::picture;

const PACKET: Bytes = Bytes::new(1_000);
const ROOM: usize = 900;
const LATENCY: Duration = Duration::from_millis(500);
const STEP: Duration = Duration::from_millis(2);

/// A path that carries packets at a rate, and a sender of pictures of 20 ms, 50 a second, each two packets: 100 packets or 800 kbit/s, a
/// quarter of it the base layer's.
struct Path {
    reader: Reader,
    shelf: Shelf,
    now: Time,
    next_picture: u16,
    most_pictures: u16,
    /// Pictures go to the shelf so much ahead of their time.
    ahead: Duration,
    free_at: Time,
    /// What arrives when: the payload's number, and whether it is lost.
    under_way: BTreeMap<Time, (u64, bool)>,
    payloads: u64,
    /// By layer, pictures of which all parts went.
    pictures: [u64; 3],
    lost_every: Option<u64>,
}

fn config(is_live: bool) -> QualityConfig {
    let rates = [200, 200, 400].map(Rate::from_kbps);
    let grain = Duration::from_millis(240);
    QualityConfig {
        layers: LayerRates::new(&rates).expect("rates"),
        start_up_delay: LATENCY,
        k_max: 4,
        max_buffer: if is_live { LATENCY + grain } else { Duration::from_secs(10) },
        live: is_live.then_some(grain),
        average_over: Duration::from_secs(10),
        decrease: 0.5,
        repair: Some(Duration::from_secs(20)),
    }
}

impl Path {
    fn new(is_live: bool) -> Path {
        let spans = [80, 80, 40].map(Duration::from_millis);
        Path {
            reader: Reader::new(config(is_live), PACKET, Duration::ZERO),
            shelf: Shelf::new(Codec::Vp9, &spans, ROOM),
            now: Time::from_secs(1),
            next_picture: 0,
            most_pictures: u16::MAX,
            ahead: if is_live { Duration::ZERO } else { Duration::from_secs(10) },
            free_at: Time::ZERO,
            under_way: BTreeMap::new(),
            payloads: 0,
            pictures: [0; 3],
            lost_every: None,
        }
    }

    /// So much time passes on a path of this rate.
    fn run(&mut self, span: Duration, rate: Rate) {
        let end = self.now + span;
        while self.now < end {
            self.now += STEP;
            let position = self.now.since(Time::from_secs(1)) + self.ahead;
            while self.next_picture < self.most_pictures && picture(self.next_picture, 1_000).0 <= position {
                let (at, picture) = picture(self.next_picture, 1_000);
                self.shelf.push(at, &picture);
                self.next_picture += 1;
            }
            while let Some(first) = self.under_way.first_entry().filter(|first| *first.key() <= self.now) {
                let (number, is_lost) = first.remove();
                let fate = if is_lost { PayloadFate::Lost } else { PayloadFate::Arrived };
                self.reader.observe(self.now, &Observation::Payload { number, fate });
            }
            let report = PaceReport {
                rate,
                smoothed_round_trip: Duration::from_millis(20),
                outstanding_packets: 0,
                cause: PaceCause::Step,
            };
            self.reader.observe(self.now, &Observation::Pace(report));
            self.shelf.forget(self.reader.wants_from(self.now));
            self.reader.refill(self.now, &self.shelf);
            while self.free_at <= self.now && self.reader.waiting() > 0 {
                self.send(rate);
            }
        }
    }

    fn send(&mut self, rate: Rate) {
        let next = self.reader.take(self.now).expect("one waits");
        let part = next.header.origin.and_then(|origin| origin.part).expect("a part of a picture");
        self.pictures[usize::from(part.picture.layer)] += u64::from(next.header.marker && !next.is_again);
        let is_lost = self.lost_every.is_some_and(|every| self.payloads.is_multiple_of(every));
        let arrives = self.now + Duration::from_millis(20) + Duration::from_nanos(self.payloads % 1_000);
        self.under_way.insert(arrives, (self.payloads, is_lost));
        self.payloads += 1;
        self.free_at = self.free_at.max(self.now) + PACKET / rate;
        self.reader.refill(self.now, &self.shelf);
    }
}

#[test]
fn all_layers_of_a_live_programme_go_over_a_path_that_carries_them() {
    let mut path = Path::new(true);
    path.run(Duration::from_secs(20), Rate::from_kbps(1_600));
    assert_eq!(path.reader.counts(), Counts::default(), "{:?}", path.pictures);
    let [base, middle, top] = path.pictures;
    assert!(base >= 249 && middle >= 249 && top >= 499, "{:?}", path.pictures);
}

#[test]
fn upper_pictures_of_a_live_programme_are_left_out_when_the_path_narrows_and_come_back_when_it_widens() {
    let mut path = Path::new(true);
    path.run(Duration::from_secs(10), Rate::from_kbps(1_600));
    path.run(Duration::from_secs(10), Rate::from_kbps(300));
    let narrow = path.reader.counts();
    assert!(narrow.left >= 1 && narrow.dropped > 50, "{narrow:?}");
    path.run(Duration::from_secs(30), Rate::from_kbps(1_600));
    let counts = path.reader.counts();
    assert_eq!((counts.underflows, counts.added), (0, counts.left), "{counts:?}, all are there again");
    assert!(path.pictures[0] >= 620, "{:?}", path.pictures);
}

#[test]
fn a_stored_programme_is_sent_ahead_and_what_is_lost_goes_again() {
    let mut path = Path::new(false);
    path.lost_every = Some(20);
    path.run(Duration::from_secs(20), Rate::from_kbps(1_600));
    let counts = path.reader.counts();
    assert_eq!((counts.underflows, counts.dropped, counts.left), (0, 0, 0), "{counts:?}");
    assert!(path.pictures[0] >= 360, "{:?}: ten seconds ahead", path.pictures);
    assert!(path.payloads > 2 * path.pictures.iter().sum::<u64>() + 50, "lost parts went again");
}

#[test]
fn all_layers_of_a_stored_programme_go_though_the_base_is_at_its_end_before_the_path_is_known() {
    for kbps in [800, 100_000] {
        let mut path = Path::new(false);
        path.most_pictures = 200;
        path.run(Duration::from_millis(100), Rate::from_kbps(kbps));
        let end = path.shelf.end();
        path.reader.end(end);
        path.run(Duration::from_secs(8), Rate::from_kbps(kbps));
        assert!(path.reader.is_served(&path.shelf));
        // At 800 kbit/s, upper layers wait until the base is sent, and begin where the viewer is.
        let least = if kbps == 800 { [50, 30, 60] } else { [50, 50, 100] };
        assert!(path.pictures.iter().zip(least).all(|(went, least)| *went >= least), "{kbps}: {:?}", path.pictures);
    }
}
