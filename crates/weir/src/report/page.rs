//! The page: a table of all receivers, then each one's chart with what is to be seen in it.

use weir_units::Rate;

use super::overview::STYLE;
use super::svg::escape;
use super::{Report, Series, chart, plot};
use crate::progress::{percent, seconds};

/// The whole page.
pub(super) fn html(report: &Report) -> String {
    let title = format!("{} to {} receivers", report.file, report.receivers.len());
    let charts: String = report.receivers.iter().enumerate().map(|(i, series)| receiver(report, series, i)).collect();
    document(&title, "", &[head(report), summary(report), charts, reading(report), foot()].concat())
}

/// A page that stands alone; `style` is added to what all pages have.
pub(super) fn document(title: &str, style: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{}</title>\n<style>\n{STYLE}{PAGE_STYLE}{style}</style></head>\n<body><main>\n{body}</main></body></html>\n",
        escape(title),
    )
}

/// A chart of receiver `i` for wide pages and one for narrow ones, of which the style shows one; `draw` takes a width and an id.
pub(super) fn wide_and_narrow(i: usize, draw: impl Fn(f64, &str) -> String) -> String {
    let both = [("wide", 960.0), ("narrow", 350.0)].map(|(class, width)| {
        draw(width, &format!("r{i}-{class}")).replacen("class=\"chart\"", &format!("class=\"chart {class}\""), 1)
    });
    both.join("\n")
}

fn head(report: &Report) -> String {
    let verified = report.receivers.iter().filter(|series| series.verified).count();
    let all = report.receivers.len();
    let (class, mark) = if verified == all { ("good", "✓") } else { ("bad", "✗") };
    format!(
        "<header><h1>One file, {}, each at the rate of its own link</h1>\
         <p class=\"lead\"><b class=\"name\">{}</b>, {}, sent by one sender to all at once; each receiver chooses how much of it to take \
         ({}). <span class=\"{class}\">{mark} {verified} of {all} verified.</span></p></header>\n",
        receivers(all),
        escape(&report.file),
        report.bytes,
        escape(&report.scheme),
    )
}

fn summary(report: &Report) -> String {
    let row = |series: &Series| {
        let cell = |label: &str, text: String| format!("<td data-label=\"{label}\">{text}</td>");
        let verdict =
            if series.verified { "<span class=\"good\">✓ yes</span>" } else { "<span class=\"bad\">✗ no</span>" };
        let cells = [
            cell("time", series.seconds.map_or("—".to_owned(), seconds)),
            cell("file ÷ link", seconds(series.ideal_seconds)),
            cell("ratio", series.ratio().map_or("—".to_owned(), |ratio| format!("{ratio:.2}"))),
            cell("efficiency", if series.verified { percent(series.efficiency(report.bytes)) } else { "—".to_owned() }),
            cell("lost", percent(series.loss())),
            cell("mean level", format!("{:.1}", series.mean_level())),
            cell("verified", verdict.to_owned()),
        ];
        format!("<tr><th scope=\"row\">{}</th>{}</tr>\n", escape(&series.link_in_words()), cells.concat())
    };
    let heads = ["link", "time", "file ÷ link", "ratio", "efficiency", "lost", "mean level", "verified"];
    let heads: String = heads.iter().map(|head| format!("<th scope=\"col\">{head}</th>")).collect();
    let rows: String = report.receivers.iter().map(row).collect();
    let links =
        if report.links.is_empty() { String::new() } else { format!(" Every link: {}.", escape(&report.links)) };
    format!(
        "<section class=\"card\"><div class=\"wrap\"><table class=\"stack\"><caption>From each receiver’s first join to its verified file.{links}</caption>\
         <thead><tr>{heads}</tr></thead><tbody>\n{rows}</tbody></table></div></section>\n"
    )
}

fn receiver(report: &Report, series: &Series, i: usize) -> String {
    let verdict = match series.seconds {
        Some(took) if series.verified => format!("<span class=\"good\">✓ {}</span>", seconds(took)),
        Some(_) => "<span class=\"bad\">✗ not the file that was sent</span>".to_owned(),
        None => "<span class=\"bad\">✗ not complete</span>".to_owned(),
    };
    let charts = wide_and_narrow(i, |width, id| chart::draw(series, width, id));
    format!(
        "<section class=\"card\" id=\"receiver-{i}\"><div class=\"head\"><h2>{}</h2>{verdict}</div>\n{charts}\n{LEGEND}<p class=\"seen\">{}</p>{}</section>\n",
        escape(&series.name),
        escape(&seen(report, series).replace(" %", "\u{a0}%")),
        numbers(series),
    )
}

/// What is to be seen, in a sentence or three.
fn seen(report: &Report, series: &Series) -> String {
    let mut text = String::new();
    if let Some(step) = series.usual_step() {
        let share = step.rate.bps() as f64 / series.link.bps().max(1) as f64;
        let top = report.rates.last().is_some_and(|rate| *rate == step.rate);
        let next = report.rates.iter().find(|rate| **rate > step.rate);
        text = format!(
            "Longest at level {} of {}, {}: {} of the link",
            step.level,
            report.rates.len(),
            step.rate,
            percent(share)
        );
        text += &match next {
            _ if top => ", and the most that the sender offers.".to_owned(),
            Some(next) if *next > series.link => format!("; the next level, {next}, is more than the link carries."),
            Some(next) => format!("; the next level is {next}."),
            None => ".".to_owned(),
        };
    }
    if let Some(took) = series.seconds.filter(|took| *took < SHORT_SECS) {
        let mean = Rate::from_bps((report.bytes.count() as f64 * 8.0 / took) as u64);
        text += &format!(
            " Done in {} at {mean} on average: the file is so small for this link that the climb from the lowest rate is a good part of the time.",
            seconds(took)
        );
    }
    text += &match series.lost_packets {
        0 => " No packet was lost.".to_owned(),
        1 => " The link dropped one packet.".to_owned(),
        lost => format!(" The link dropped {lost} packets ({}).", percent(series.loss())),
    };
    if series.host_dropped_packets > 0 {
        text += &format!(" This machine dropped {} more: it was too busy to read them.", series.host_dropped_packets);
    }
    text
}

/// The chart's data as a table, some twelve rows.
fn numbers(series: &Series) -> String {
    let rows = plot::thin(&series.samples, series.end_s() / 12.0);
    if rows.is_empty() {
        return String::new();
    }
    let level_at = |t_s: f64| series.steps.iter().rev().find(|step| step.t_s <= t_s).map_or(0, |step| step.level);
    let row = |sample: &super::Sample| {
        let (t_s, delay, lost) = (sample.t_s, sample.queuing_delay_ms, sample.lost_packets);
        format!(
            "<tr><th scope=\"row\">{t_s:.1} s</th><td>{}</td><td>{}</td><td>{delay:.0} ms</td><td>{lost}</td></tr>\n",
            sample.received,
            level_at(t_s)
        )
    };
    format!(
        "<details><summary>The numbers</summary><div class=\"wrap\"><table><thead><tr><th scope=\"col\">until</th><th scope=\"col\">received</th>\
         <th scope=\"col\">level</th><th scope=\"col\">delay</th><th scope=\"col\">lost so far</th></tr></thead><tbody>\n{}</tbody></table></div></details>",
        rows.iter().map(row).collect::<String>()
    )
}

fn reading(report: &Report) -> String {
    let levels = match report.rates.as_slice() {
        [] | [_] => "one rate".to_owned(),
        [low, .., high] => format!("{} levels from {low} to {high}", report.rates.len()),
    };
    format!(
        "<section class=\"card\"><h2>How to read this</h2><dl>\
         <dt>Level</dt><dd>The sender offers {levels}, each a multicast group on top of those below it. A receiver joins and leaves groups by what it \
         measures on its own path, and asks nobody.</dd>\
         <dt>file ÷ link, ratio</dt><dd>The bits of the file divided by the rate of the link: the time of a perfect transfer without headers, start-up or \
         repair. The ratio is the time that it took over this.</dd>\
         <dt>Efficiency</dt><dd>Bytes of the file over bytes received: what is left after headers and repair symbols.</dd>\
         <dt>Delay, loss</dt><dd>How long packets waited in the link’s buffer, and which the link threw away: what the receiver steers by.</dd>\
         <dt>Verified</dt><dd>The received file was compared with the one that was sent by a digest (BLAKE3) of each, made after the transfer.</dd></dl></section>\n"
    )
}

pub(super) fn foot() -> String {
    format!(
        "<footer>weir {}. The links are modelled; the packets went through real sockets.</footer>\n",
        env!("CARGO_PKG_VERSION")
    )
}

pub(super) fn receivers(n: usize) -> String {
    let words = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    let number = words.get(n).map_or_else(|| n.to_string(), |word| (*word).to_owned());
    format!("{number} receiver{}", if n == 1 { "" } else { "s" })
}

const PAGE_STYLE: &str = include_str!("page.css");

const LEGEND: &str = "<ul class=\"legend chart\" aria-hidden=\"true\">\
<li><svg viewBox=\"0 0 26 12\"><line class=\"link\" x1=\"0\" y1=\"6\" x2=\"26\" y2=\"6\"/></svg>link</li>\
<li><svg viewBox=\"0 0 26 12\"><line class=\"level\" x1=\"0\" y1=\"6\" x2=\"26\" y2=\"6\"/></svg>subscribed level</li>\
<li><svg viewBox=\"0 0 26 12\"><rect class=\"received-area\" width=\"26\" height=\"12\"/><line class=\"received\" x1=\"0\" y1=\"1\" x2=\"26\" y2=\"1\"/></svg>received</li>\
<li><svg viewBox=\"0 0 26 12\"><line class=\"delay\" x1=\"0\" y1=\"6\" x2=\"26\" y2=\"6\"/></svg>queuing delay</li>\
<li><svg viewBox=\"0 0 26 12\"><line class=\"loss\" x1=\"13\" y1=\"1\" x2=\"13\" y2=\"11\"/></svg>packets lost</li></ul>\n";

/// Below this, start-up is a good part of a transfer.
const SHORT_SECS: f64 = 8.0;
