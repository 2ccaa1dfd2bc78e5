use super::super::tests::{charts, elements};
use super::*;
use crate::report::{Sample, Step};

/// A receiver that takes its first layers from the second second on.
fn receiver(link_mbps: u64, layers: usize) -> LiveSeries {
    let link = Rate::from_mbps(link_mbps);
    let seconds = || (0u32..=10).map(f64::from);
    let counts = |t_s: f64| (0..3).map(move |layer| if layer < layers { (t_s - 2.0).max(0.0) as u64 * 8 } else { 0 });
    let sample =
        |t_s| Sample { t_s, received: Rate::from_kbps(800), lost_packets: t_s as u64 / 5, ..Sample::default() };
    LiveSeries {
        series: Series {
            name: format!("{link_mbps} Mbit/s link"),
            link,
            samples: seconds().skip(1).map(sample).collect(),
            steps: vec![Step { t_s: 0.1, level: layers, rate: Rate::from_kbps(900) }],
            ..Series::default()
        },
        pictures: seconds().map(|t_s| Pictures { t_s, by_layer: counts(t_s).collect() }).collect(),
        lags: seconds().skip(3).map(|t_s| (t_s, 2_000.0)).collect(),
        layers,
        layer_pictures: counts(10.0).collect(),
        decoded: 64 * layers,
        frame_rate: 8.0 * layers as f64,
        first_picture_s: Some(2.0),
        longest_pause_ms: Some(134.0),
        is_part_of_clip: true,
        strip: (10..18)
            .map(|number| Thumbnail { number, jpeg: (number % 4 < layers).then(|| vec![0xff, 0xd8, 0xff]) })
            .collect(),
        ..LiveSeries::default()
    }
}

fn report() -> LiveReport {
    LiveReport {
        clip: "clip.ivf".into(),
        seconds: 10.0,
        pictures: 300,
        size: (640, 360),
        frame_rate: 30.0,
        scheme: "sluice".into(),
        rates: [900, 1_900, 3_800].map(Rate::from_kbps).into(),
        layers: 3,
        links: "20 ms delay".into(),
        dropped: 0,
        receivers: vec![receiver(1, 1), receiver(3, 2), receiver(8, 3)],
    }
}

#[test]
fn the_page_has_charts_and_pictures_and_fetches_nothing() {
    let html = report().html(&[]);
    for forbidden in ["http:", "https:", "@import", "<script", "<link", "NaN", "inf"] {
        assert!(!html.contains(forbidden), "{forbidden}");
    }
    assert_eq!(html.matches("src=\"data:image/jpeg;base64,/9j/\"").count(), html.matches("src=").count());
    let (pictures, gaps) = (html.matches("<img ").count(), html.matches("class=\"gap\"").count());
    assert_eq!((pictures, gaps), (12, 12), "8 pictures each: 2, 4 and 6 that were put out");
    assert!(html.contains("✓ All outputs decode") && html.contains("<td data-label=\"layers\">2 of 3</td>"));
    let charts = charts(&html);
    assert_eq!(charts.len(), 6, "a wide and a narrow one each");
    for chart in charts {
        let xml = roxmltree::Document::parse(chart).expect("a chart is XML");
        for (tag, class) in [("path", "level"), ("path", "received"), ("path", "delay"), ("line", "link")] {
            assert_eq!(elements(&xml, tag, class), 1, "{tag}.{class}");
        }
        assert_eq!((elements(&xml, "path", "layer"), elements(&xml, "line", "loss")), (3, 2));
    }
}

#[test]
fn pictures_are_counted_over_stretches_of_time() {
    let rates = receiver(3, 2).frame_rates(1.9);
    let expected = [(2.0, 0.0), (4.0, 8.0), (6.0, 8.0), (8.0, 8.0), (10.0, 8.0)];
    assert_eq!(rates, expected.map(|(until, rate)| (until, vec![rate, rate, 0.0])));
}

#[test]
fn what_failed_is_said_and_names_from_outside_are_text() {
    let evil = "<script>alert('1')</script>\u{202e}";
    let mut report = LiveReport { clip: evil.into(), ..report() };
    report.receivers[0].complaints = vec![evil.into()];
    report.receivers[1] = LiveSeries::default();
    let html = report.html(&[evil.into()]);
    assert!(!html.contains("<script") && !html.contains('\u{202e}'));
    assert_eq!(html.matches("&lt;script&gt;").count(), 4, "the title, the lead, what failed, the complaint");
    assert!(html.contains("✗ 1 error") && html.contains("✗ Not all") && html.contains("✗ does not decode"));
    assert!(!html.contains("NaN") && !html.contains("inf") && !html.contains("never damaged"), "numbers stay numbers");
    charts(&html).iter().for_each(|chart| drop(roxmltree::Document::parse(chart).expect("XML")));
}
