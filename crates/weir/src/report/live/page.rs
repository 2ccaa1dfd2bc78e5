//! The page: a table of all receivers, then each one's pictures and chart.

use std::fmt::Write as _;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::super::page::{document, foot, receivers, wide_and_narrow};
use super::super::svg::escape;
use super::{COLUMNS, LiveReport, LiveSeries, chart};
use crate::report::round_rate;

/// The whole page.
pub(super) fn html(report: &LiveReport, failed: &[String]) -> String {
    let title = format!("{} to {}, as layers", report.clip, receivers(report.receivers.len()));
    let cards: String = report.receivers.iter().enumerate().map(|(i, one)| card(report, one, i)).collect();
    let body = [head(report, failed), summary(report), cards, reading(report), foot()].concat();
    document(&title, STYLE, &body)
}

fn head(report: &LiveReport, failed: &[String]) -> String {
    let verdict = match failed {
        [] => "<span class=\"good\">✓ All outputs decode without an error.</span>".to_owned(),
        failed => {
            let items: String = failed.iter().map(|text| format!("<li>{}</li>", escape(text))).collect();
            format!("<span class=\"bad\">✗ Not all is as it should be:</span></p><ul class=\"bad\">{items}</ul><p>")
        }
    };
    format!(
        "<header><h1>One programme, {}, each with the frame rate of its own link</h1>\
         <p class=\"lead\"><b class=\"name\">{}</b>, {:.0} s at {:.0} pictures a second, sent by one sender to all at once in {} layers; \
         each receiver chooses how many of them to take ({}). {verdict}</p></header>\n",
        receivers(report.receivers.len()),
        escape(&report.clip),
        report.seconds,
        report.frame_rate,
        report.layers,
        escape(&report.scheme),
    )
}

fn summary(report: &LiveReport) -> String {
    let heads: String = COLUMNS.iter().map(|head| format!("<th scope=\"col\">{head}</th>")).collect();
    let row = |receiver: &LiveSeries| {
        let [link, cells @ ..] = receiver.in_words(report.layers);
        let cells = cells.iter().zip(&COLUMNS[1..]).enumerate().map(|(i, (text, label))| {
            let text = escape(text);
            let text = match i + 2 {
                n if n < COLUMNS.len() => text,
                _ if receiver.complaints.is_empty() => format!("<span class=\"good\">✓ {text}</span>"),
                _ => format!("<span class=\"bad\">✗ {text}</span>"),
            };
            format!("<td data-label=\"{label}\">{text}</td>")
        });
        format!("<tr><th scope=\"row\">{}</th>{}</tr>\n", escape(&link), cells.collect::<String>())
    };
    let rows: String = report.receivers.iter().map(row).collect();
    format!(
        "<section class=\"card\"><div class=\"wrap\"><table class=\"stack\"><caption>What each receiver put out. Every link: {}.</caption>\
         <thead><tr>{heads}</tr></thead><tbody>\n{rows}</tbody></table></div><p class=\"seen\">{}</p></section>\n",
        escape(&report.links),
        escape(&seen(report)),
    )
}

/// What is to be seen, in a paragraph.
fn seen(report: &LiveReport) -> String {
    let mut text = String::new();
    for receiver in &report.receivers {
        write!(
            text,
            "Behind the link of {}, {} of {} layers came at the end, and {:.1} of the clip’s {:.0} pictures a second from its first picture on. ",
            receiver.series.link_in_words(),
            receiver.layers,
            report.layers,
            receiver.frame_rate,
            report.frame_rate,
        )
        .expect("writing to a string cannot fail");
    }
    if report.receivers.iter().all(|receiver| receiver.is_part_of_clip && receiver.complaints.is_empty()) {
        text += "A slower link has fewer pictures, never damaged ones: each that was put out is, bit for bit, the one that a decoder of the whole clip makes. ";
    }
    text += &match report.dropped {
        0 => "The sender dropped none.".to_owned(),
        1 => "The sender dropped one picture that had waited for too long.".to_owned(),
        dropped => format!("The sender dropped {dropped} pictures that had waited for too long."),
    };
    text
}

fn card(report: &LiveReport, receiver: &LiveSeries, i: usize) -> String {
    let verdict = if receiver.complaints.is_empty() && receiver.decoded > 0 {
        format!("<span class=\"good\">✓ {:.1} pictures a second</span>", receiver.frame_rate)
    } else {
        "<span class=\"bad\">✗ does not decode</span>".to_owned()
    };
    let charts = wide_and_narrow(i, |width, id| chart::draw(report, receiver, width, id));
    let complaints: String =
        receiver.complaints.iter().take(5).map(|line| format!("<li>{}</li>", escape(line))).collect();
    format!(
        "<section class=\"card\" id=\"receiver-{i}\"><div class=\"head\"><h2>{}</h2>{verdict}</div>\n{}{charts}\n{}{}</section>\n",
        escape(&receiver.series.name),
        strip(report, receiver),
        legend(report.layers),
        if complaints.is_empty() { String::new() } else { format!("<ul class=\"bad\">{complaints}</ul>") },
    )
}

/// Pictures that follow one another in the clip: those that were put out, and gaps for those that were not.
fn strip(report: &LiveReport, receiver: &LiveSeries) -> String {
    let (width, height) = (report.size.0.max(1), report.size.1.max(1));
    let picture = |thumbnail: &super::Thumbnail| {
        let number = thumbnail.number + 1;
        let style = format!("style=\"aspect-ratio:{width}/{height}\"");
        match &thumbnail.jpeg {
            Some(jpeg) => format!(
                "<figure><img {style} alt=\"picture {number}\" src=\"data:image/jpeg;base64,{}\"><figcaption>{number}</figcaption></figure>",
                STANDARD.encode(jpeg)
            ),
            None => format!(
                "<figure><div {style} class=\"gap\"></div><figcaption>{number}: not put out</figcaption></figure>"
            ),
        }
    };
    let pictures: String = receiver.strip.iter().map(picture).collect();
    if pictures.is_empty() { pictures } else { format!("<div class=\"strip\">{pictures}</div>\n") }
}

fn legend(layers: usize) -> String {
    let key = |shape: &str, text: &str| format!("<li><svg viewBox=\"0 0 26 12\">{shape}</svg>{text}</li>");
    let line =
        |class: &str, text: &str| key(&format!("<line class=\"{class}\" x1=\"0\" y1=\"6\" x2=\"26\" y2=\"6\"/>"), text);
    let area = "<rect class=\"received-area\" width=\"26\" height=\"12\"/><line class=\"received\" x1=\"0\" y1=\"1\" x2=\"26\" y2=\"1\"/>";
    let mut keys = [line("link", "link"), line("level", "subscribed level"), key(area, "received")].concat();
    for layer in 0..layers {
        let name = if layer == 0 { "base layer".to_owned() } else { format!("layer {}", layer + 1) };
        keys += &key(&format!("<rect class=\"layer layer-{layer}\" width=\"26\" height=\"12\"/>"), &name);
    }
    keys += &line("delay", "lag");
    keys += &key("<line class=\"loss\" x1=\"13\" y1=\"1\" x2=\"13\" y2=\"11\"/>", "packets lost");
    format!("<ul class=\"legend chart\" aria-hidden=\"true\">{keys}</ul>\n")
}

fn reading(report: &LiveReport) -> String {
    let rates: Vec<String> = report.rates.iter().map(|rate| round_rate(*rate)).collect();
    format!(
        "<section class=\"card\"><h2>How to read this</h2><dl>\
         <dt>Level</dt><dd>The sender offers {}, each with the layers below it and the room for repair. A receiver joins and leaves layers by what \
         it measures on its own path, and asks nobody.</dd>\
         <dt>The strips</dt><dd>Pictures that follow one another in the clip, the same for all receivers. A gap is one that the receiver did \
         not put out: of a layer that it did not take, mostly.</dd>\
         <dt>Layers</dt><dd>Those of which pictures came out in the last two seconds.</dd>\
         <dt>Pictures</dt><dd>By layer, the base layer first. Those a second are from the first picture to the last, the climb from the base layer included; in \
         the charts over about a second.</dd>\
         <dt>Withheld</dt><dd>Pictures that came but need one that did not, also those before the first key picture: a decoder gets none that it cannot decode.</dd>\
         <dt>Lost, recovered</dt><dd>Packets that the link threw away, and those that repair brought back.</dd>\
         <dt>First after</dt><dd>A receiver begins with the next key picture, and gives pictures out with a fixed lag in which repair has its time.</dd>\
         <dt>Pause</dt><dd>The longest between two pictures of the base layer.</dd>\
         <dt>Decoder</dt><dd>What ffmpeg complained of when it decoded the output.</dd></dl></section>\n",
        escape(&rates.join(", ")),
    )
}

const STYLE: &str = include_str!("live.css");
