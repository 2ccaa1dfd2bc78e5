//! MTCP for an hour of churn: a hundred receivers, of whom some leave, die or are cut off for a while, and others come. What every
//! survivor was promised it gets, the stream comes to its end, and nobody keeps more than it may.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::tree::{Notes, Plan, Site, build, fig_9};
use weir_core::registry::Setting;
use weir_link::LinkConfig;
use weir_sim::traffic::{Pattern, Supply, UdpConfig};
use weir_units::{Bytes, Random, Rate, Time};

#[test]
fn an_hour_of_churn_costs_no_survivor_a_payload() {
    assert_all(1..=SEEDS);
}

#[test]
#[ignore = "it takes an hour: make churn"]
fn a_thousand_hours_of_churn_cost_no_survivor_a_payload() {
    assert_all(1..=1_000);
}

#[test]
fn an_hour_of_churn_without_the_low_mark_costs_survivors_payloads() {
    assert!(run(1, false).is_err(), "the low mark is not needed in this hour");
}

/// One run for each seed, on all cores.
fn assert_all(seeds: RangeInclusive<u64>) {
    let count = seeds.clone().count();
    let seeds = Mutex::new(seeds);
    let work = || {
        let next = || seeds.lock().unwrap_or_else(PoisonError::into_inner).next();
        std::iter::from_fn(next).filter_map(one).collect::<Vec<String>>()
    };
    let failed: Vec<String> = thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("it runs")).collect()
    });
    assert!(failed.is_empty(), "{} of {count} hours failed: {failed:#?}", failed.len());
}

/// An hour, of which is told at once if it goes wrong, as now and then when all goes well.
fn one(seed: u64) -> Option<String> {
    let failure = run(seed, true).err();
    match &failure {
        Some(failure) => eprintln!("{failure}"),
        None if seed.is_multiple_of(50) => eprintln!("hour {seed} is done"),
        None => {}
    }
    failure
}

/// What happens to the members.
struct Fates {
    plan: Plan,
    gone: BTreeSet<usize>,
    /// When a member's link is cut, and when it is mended, if it is.
    cuts: Vec<(usize, Time, Option<Time>)>,
}

impl Fates {
    fn draw(seed: u64, low_mark: bool) -> Fates {
        let mut random = Random::new(seed, "fates");
        let mut others: Vec<usize> = (1..=RECEIVERS).collect();
        let mut draw = |random: &mut Random| others.swap_remove((random.bits() % others.len() as u64) as usize);
        let moment = |random: &mut Random| Time::from_millis(20_000 + random.bits() % (1_000 * (STREAM_SECONDS - 60)));
        let udp = UdpConfig { packet_size: Bytes::new(1000), rate: RATE, pattern: Pattern::Constant };
        let mut plan = Plan {
            link: "rate=4M,delay=10ms,buffer=30p",
            hosts: Some(HOST),
            supply: Supply::Payloads { source: udp, count: Some(PAYLOADS) },
            builds_itself: true,
            ..fig_9(RECEIVERS + LATE, false)
        }
        .set("receivers", &RECEIVERS.to_string())
        .set("fan_out", "5")
        .set("buffer", &BUFFER.to_string())
        .set("low_mark", if low_mark { "yes" } else { "no" })
        .set("evict_after", "60s");
        let (mut gone, mut cuts) = (BTreeSet::new(), Vec::new());
        for kind in 0..3 * EACH {
            let (number, at) = (draw(&mut random), moment(&mut random));
            match kind % 3 {
                0 => _ = plan.leave.insert(number, at),
                1 => cuts.push((number, at, None)),
                _ => cuts.push((number, at, Some(at + Duration::from_millis(random.bits() % 20_000)))),
            }
            if kind % 3 < 2 {
                gone.insert(number);
            }
        }
        for number in RECEIVERS + 1..=RECEIVERS + LATE {
            plan.come.insert(number, moment(&mut random));
            let from_now = Setting { key: "from_now".to_owned(), value: "yes".to_owned() };
            plan.own_settings.insert(number, vec![from_now]);
        }
        Fates { plan, gone, cuts }
    }

    fn cut_links(&self, site: &mut Site) {
        let [cut, mended]: [LinkConfig; 2] = [CUT, HOST].map(|link| link.parse().expect("a link"));
        for (number, at, until) in &self.cuts {
            let (router, host) = (site.routers[*number], site.nodes[*number]);
            for (from, to) in [(router, host), (host, router)] {
                let link = site.net.link_between(from, to).expect("its link");
                site.net.change_link(*at, link, &cut);
                until.iter().for_each(|until| site.net.change_link(*until, link, &mended));
            }
        }
    }
}

/// What went wrong in an hour, if anything did.
fn run(seed: u64, low_mark: bool) -> Result<(), String> {
    let fates = Fates::draw(seed, low_mark);
    let mut site = build(&fates.plan, seed);
    fates.cut_links(&mut site);
    let mut notes = Notes::default();
    notes.late.extend(&site.members[RECEIVERS..]);
    while !notes.complete.contains_key(&site.sender) {
        if site.net.now() > Time::from_secs(STREAM_SECONDS + 300) {
            return Err(format!("seed {seed}: the sender is not done"));
        }
        site.net.run_until(site.net.now() + Duration::from_secs(5), &mut notes);
        let kept = site.members.iter().chain([&site.sender]).map(|agent| site.net.kept_payloads(*agent)).max();
        if kept > Some(BUFFER) {
            return Err(format!("seed {seed}: somebody keeps {kept:?} payloads at {}", site.net.now()));
        }
    }
    for (agent, number) in site.members.iter().zip(1..).filter(|(_, number)| !fates.gone.contains(number)) {
        let got = notes.delivered.get(agent).copied().unwrap_or_default();
        if got != PAYLOADS || !notes.complete.contains_key(agent) {
            return Err(format!("seed {seed}: member {number} has {got}"));
        }
    }
    Ok(())
}

const RECEIVERS: usize = 100;
/// A receiver that comes while the stream is under way.
const LATE: usize = 30;
/// Members that leave, that die, and whose links are cut for up to 20 s.
const EACH: usize = 15;
const BUFFER: usize = 200;
const HOST: &str = "rate=4M,delay=1ms,buffer=30p,loss=0.5%";
const CUT: &str = "rate=4M,delay=1ms,loss=100%";
/// Two packets a second.
const RATE: Rate = Rate::from_kbps(16);
const STREAM_SECONDS: u64 = 3_600;
const PAYLOADS: u64 = 2 * STREAM_SECONDS;
const SEEDS: u64 = 4;
