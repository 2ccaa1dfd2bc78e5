use super::*;
use weir_units::Random;

/// A receiver that climbs level by level, settles below its link, tries the next level now and then, and completes.
pub(super) fn synthetic(link_mbps: u64, bytes: u64, rates: &[Rate], seed: u64) -> Series {
    let mut random = Random::new(seed, "series");
    let link = Rate::from_mbps(link_mbps);
    let ideal_seconds = bytes as f64 * 8.0 / link.bps() as f64;
    let fits = rates.iter().filter(|rate| **rate <= link).count();
    let mut series = Series { name: format!("{link_mbps} Mbit/s link"), link, ideal_seconds, ..Series::default() };
    let (mut t_s, mut level, mut useful, mut queue_ms, mut lost) = (0.0, 0, 0.0, 0.0f64, 0u64);
    while useful < bytes as f64 {
        let target = match level {
            level if level < fits => level + 1,
            level if level > fits => {
                if random.chance(0.4) {
                    fits
                } else {
                    level
                }
            }
            level if fits < rates.len() && random.chance(0.02) => level + 1,
            level if random.chance(0.01) => level - 1,
            level => level,
        };
        if target != level {
            level = target;
            series.steps.push(Step { t_s, level, rate: rates[level - 1] });
        }
        t_s += 0.25;
        let offered = rates[level - 1].bps() as f64;
        let arrived = offered.min(link.bps() as f64) * random.uniform(0.97, 1.0);
        queue_ms = (queue_ms + (offered / link.bps() as f64 - 0.93) * 60.0).clamp(2.0, 100.0);
        lost += if queue_ms > 95.0 { random.below(9) } else { 0 };
        useful += arrived * 0.25 / 8.0 * 0.955;
        let received = Rate::from_bps(arrived as u64);
        series.received += received * std::time::Duration::from_millis(250);
        series.samples.push(Sample { t_s, received, queuing_delay_ms: queue_ms, lost_packets: lost });
    }
    series.received_packets = series.received.count() / 1400;
    series.lost_packets = lost;
    Series { seconds: Some(t_s), verified: true, ..series }
}

pub(crate) fn report() -> Report {
    let bytes = 10_500_000;
    let ladder =
        weir_core::layers::Ladder::geometric(Rate::from_kbps(256), Rate::from_mbps(100), 1.5).expect("a valid ladder");
    let rates = ladder.rates().to_vec();
    Report {
        file: "soundings.csv".into(),
        bytes: Bytes::new(bytes),
        scheme: "avmrc".into(),
        links: "20 ms delay, 100 ms buffer".into(),
        receivers: [2, 8, 32, 100].map(|mbps| synthetic(mbps, bytes, &rates, 7)).into(),
        rates,
    }
}

pub(super) fn elements(xml: &roxmltree::Document<'_>, tag: &str, class: &str) -> usize {
    let has = |node: &roxmltree::Node<'_, '_>| node.attribute("class").unwrap_or("").split(' ').any(|c| c == class);
    xml.descendants().filter(|node| node.has_tag_name(tag) && has(node)).count()
}

/// The SVG elements of a page; these are XML even where HTML around them is not.
pub(super) fn charts(html: &str) -> Vec<&str> {
    let starts = html.match_indices("<svg class=\"chart").map(|(at, _)| at);
    starts.map(|at| &html[at..at + html[at..].find("</svg>").expect("it ends") + 6]).collect()
}

#[test]
fn the_page_holds_a_chart_for_each_receiver_and_fetches_nothing() {
    let html = report().html();
    assert!(
        html.starts_with("<!DOCTYPE html>")
            && html.contains("name=\"viewport\"")
            && html.contains("prefers-color-scheme")
    );
    for forbidden in ["http:", "https:", "src=", "@import", "<script", "<img", "<link", "url(//"] {
        assert!(!html.contains(forbidden), "{forbidden}");
    }
    let charts = charts(&html);
    assert_eq!(charts.len(), 8, "a wide and a narrow one each");
    for chart in charts {
        let xml = roxmltree::Document::parse(chart).expect("a chart is XML");
        for (tag, class) in
            [("line", "link"), ("path", "level"), ("path", "received"), ("path", "delay"), ("line", "done")]
        {
            assert_eq!(elements(&xml, tag, class), 1, "{tag}.{class}");
        }
        let root = xml.root_element();
        assert_eq!(root.attribute("role"), Some("img"));
        let named = root.attribute("aria-labelledby").expect("named").split(' ');
        for id in named {
            assert!(xml.descendants().any(|node| node.attribute("id") == Some(id)), "{id}");
        }
    }
    for link in ["2 Mbit/s", "8 Mbit/s", "32 Mbit/s", "100 Mbit/s"] {
        assert!(html.contains(&format!("<th scope=\"row\">{link}</th>")), "{link}");
    }
}

#[test]
fn ids_are_unique() {
    let html = report().html();
    let mut ids: Vec<&str> = html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
}

#[test]
fn names_from_outside_are_text_not_markup() {
    let evil = "<script>alert('1')</script>\"&\u{1b}\u{202e}.csv";
    let mut report = Report { file: evil.into(), links: evil.into(), scheme: evil.into(), ..report() };
    report.receivers[0].name = evil.into();
    for text in [report.html(), report.overview()] {
        assert!(!text.contains("<script") && !text.contains('\u{1b}') && !text.contains('\u{202e}'));
        assert!(text.contains("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot;&amp;"));
    }
    roxmltree::Document::parse(&report.overview()).expect("still XML");
}

#[test]
fn the_overview_stands_alone_with_a_panel_for_each_receiver() {
    let overview = report().overview();
    let xml = roxmltree::Document::parse(&overview).expect("XML");
    assert_eq!(xml.root_element().tag_name().namespace(), Some("http://www.w3.org/2000/svg"));
    assert_eq!((elements(&xml, "text", "panel-title"), elements(&xml, "text", "done-label")), (4, 4));
    assert!(xml.descendants().any(|node| node.has_tag_name("style")));
}

#[test]
fn the_overview_has_plain_colours_and_a_ground_of_its_own() {
    let overview = report().overview();
    for unknown in ["var(", "--", ":root", "@media"] {
        assert!(!overview.contains(unknown), "{unknown} is not known everywhere");
    }
    assert!(overview.contains("rect.card{fill:#fff}") && overview.contains(".chart text{fill:#16202a}"), "{overview}");
    assert!(report().html().contains("prefers-color-scheme:dark"), "the page follows the reader's choice");
}

#[test]
fn a_receiver_that_did_not_make_it_is_shown_as_such() {
    let mut report = report();
    report.receivers[0].seconds = None;
    report.receivers[0].verified = false;
    report.receivers[1].verified = false;
    report.receivers[2] = Series {
        name: "never heard a packet".into(),
        link: Rate::from_mbps(32),
        ideal_seconds: 2.6,
        ..Series::default()
    };
    let html = report.html();
    assert!(
        html.contains("1 of 4 verified")
            && html.contains("not complete")
            && html.contains("not the file that was sent")
    );
    assert!(!html.contains("NaN") && !html.contains("inf"), "numbers stay numbers");
    charts(&html).iter().for_each(|chart| drop(roxmltree::Document::parse(chart).expect("XML")));
    assert!(report.overview().contains("✗ not complete"));
}

#[test]
fn figures_are_worked_from_the_series() {
    let step = |t_s, level| Step { t_s, level, rate: Rate::from_mbps(level as u64) };
    let series = Series {
        steps: vec![step(0.0, 1), step(1.0, 3), step(4.0, 2), step(9.0, 7)],
        seconds: Some(5.0),
        ideal_seconds: 2.5,
        received: Bytes::new(1_000),
        received_packets: 99,
        lost_packets: 1,
        ..Series::default()
    };
    assert_eq!(series.ratio(), Some(2.0));
    assert_eq!(series.loss(), 0.01);
    assert_eq!(series.efficiency(Bytes::new(900)), 0.9);
    assert_eq!(series.mean_level(), (1.0 + 3.0 * 3.0 + 2.0) / 5.0);
    assert_eq!(series.usual_step().map(|step| step.level), Some(3));
}

#[test]
fn thinning_keeps_the_amount_that_arrived() {
    let samples: Vec<Sample> = (1u32..=40)
        .map(|i| Sample {
            t_s: f64::from(i) * 0.25,
            received: Rate::from_kbps(u64::from(i) * 100),
            ..Sample::default()
        })
        .collect();
    let amount = |samples: &[Sample]| {
        let mut before = 0.0;
        samples.iter().fold(0.0, |sum, sample| {
            let span = sample.t_s - before;
            before = sample.t_s;
            sum + span * sample.received.bps() as f64
        })
    };
    let thinned = plot::thin(&samples, 1.0);
    assert_eq!(thinned.len(), 10);
    assert!((amount(&samples) - amount(&thinned)).abs() < 40.0);
}

#[test]
fn the_axis_of_a_strip_has_one_to_three_ticks_above_zero_however_long_it_is() {
    for tenths in 100..100_000 {
        let ticks = scale::Scale::new(f64::from(tenths) / 10.0, (0.0, 30.0)).ticks(chart::STRIP_TICKS).len() - 1;
        assert!((1..=3).contains(&ticks), "{ticks} up to {tenths} tenths");
    }
}

#[test]
fn axes_have_round_numbers() {
    let scale = |max| scale::Scale::new(max, (0.0, 100.0));
    assert_eq!(scale(2.24).ticks(5), [0.0, 0.5, 1.0, 1.5, 2.0]);
    assert_eq!(scale(112.0).ticks(5).last(), Some(&100.0));
    assert_eq!(scale(53.0).time_ticks(6), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
    assert_eq!(scale(400.0).time_ticks(7).get(1), Some(&60.0));
    assert_eq!(scale::RateUnit::for_max(2.2e6).name, "Mbit/s");
}
