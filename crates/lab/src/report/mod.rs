//! One page of all figures and verdicts, with everything in it: nothing is fetched from anywhere.

mod words;

use crate::claim::{Ruling, Verdict};
use crate::dossier::Dossier;
use crate::figure::style;
use crate::figure::svg::escape;
use crate::results::Results;

pub use words::{measured, measured_within, verdict_mark};

/// A scenario on the page.
#[derive(Debug, Clone)]
pub struct Case {
    /// What was run, claimed and shown.
    pub dossier: Dossier,
    /// What was measured.
    pub results: Results,
    /// What came of its claims.
    pub verdicts: Vec<Verdict>,
}

/// The page. `version` stands at its foot.
pub fn html(cases: &[Case], version: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>What the papers say, and what came out</title>\n\
         <style>\n{}{STYLE}</style></head>\n<body><main>\n{}{}{}<footer>weir {}. The same file and the same seeds give the same \
         numbers on every machine.</footer>\n</main></body></html>\n",
        style::for_page(),
        head(cases),
        red(cases),
        papers(cases),
        escape(version),
    )
}

fn head(cases: &[Case]) -> String {
    let count =
        |ruling| cases.iter().flat_map(|case| &case.verdicts).filter(|verdict| verdict.verdict == ruling).count();
    let [green, red] = [Ruling::Holds, Ruling::Fails].map(count);
    let more = [(Ruling::Reported, "more reported without a band"), (Ruling::NotJudged, "not judged")];
    let more = more.map(|(ruling, words)| match count(ruling) {
        0 => String::new(),
        n => format!("; {n} {words}"),
    });
    let runs: usize = cases.iter().map(|case| case.results.rows.len()).sum();
    format!(
        "<header><h1>What the papers say, and what came out</h1><p class=\"lead\">{} scenarios, {runs} runs. Of {} claims \
         <b class=\"good\">{green} hold</b>, <b class=\"bad\">{red} do not</b>{}.</p></header>\n",
        cases.len(),
        green + red,
        more.concat(),
    )
}

/// What does not hold, before anything else.
fn red(cases: &[Case]) -> String {
    let rows: String = cases
        .iter()
        .flat_map(|case| case.verdicts.iter().filter(|verdict| verdict.is_red()).map(move |verdict| (case, verdict)))
        .map(|(case, verdict)| row(verdict, Some(case)))
        .collect();
    match rows.as_str() {
        "" => String::new(),
        rows => format!("<section class=\"card\"><h2>What does not hold</h2>\n{}</section>\n", table(rows)),
    }
}

fn papers(cases: &[Case]) -> String {
    let mut names: Vec<&str> = cases.iter().map(|case| case.dossier.scenario.head.paper.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let paper = |name: &&str| {
        let of_paper = cases.iter().filter(|case| case.dossier.scenario.head.paper == **name);
        let title = if name.is_empty() { "Without a paper".to_owned() } else { name.to_uppercase() };
        format!("<h2 class=\"paper\">{}</h2>\n{}", escape(&title), of_paper.map(section).collect::<String>())
    };
    names.iter().map(paper).collect()
}

fn section(case: &Case) -> String {
    let Case { dossier, results, verdicts } = case;
    let (head, anchor) = (&dossier.scenario.head, anchor(case));
    let panels = dossier.figure.iter().flat_map(|figure| figure.elements(results, &anchor));
    let panels: String = panels.map(|panel| format!("<div>{panel}</div>")).collect();
    let rows: String = verdicts.iter().map(|verdict| row(verdict, None)).collect();
    format!(
        "<section class=\"card\" id=\"{anchor}\"><h3>{}</h3><p class=\"what\">{}<code>{}</code>, {} runs</p>\n\
         <div class=\"panels\">{panels}</div>\n{}<details><summary>The scenario: {}</summary><pre>{}</pre></details></section>\n",
        escape(&head.title),
        if head.reproduces.is_empty() { String::new() } else { format!("{} · ", escape(&head.reproduces)) },
        escape(&head.id),
        results.rows.len(),
        if rows.is_empty() { String::new() } else { table(&rows) },
        escape(&format!("{}.toml", head.id)),
        escape(&dossier.text),
    )
}

/// A verdict as a row; with its `case`, a link to it.
fn row(verdict: &Verdict, case: Option<&Case>) -> String {
    let (class, word) = match verdict.verdict {
        Ruling::Holds => ("good", "holds"),
        Ruling::Fails => ("bad", "does not hold"),
        Ruling::Reported => ("muted", "reported"),
        Ruling::NotJudged => ("muted", "not judged"),
    };
    let link =
        case.map_or(String::new(), |case| format!("<a href=\"#{}\">{}</a> ", anchor(case), escape(case.dossier.id())));
    let detail = if verdict.detail.is_empty() { String::new() } else { format!(" ({})", verdict.detail) };
    format!(
        "<tr><th scope=\"row\">{link}{}<small>{}</small></th><td data-label=\"measured\">{}</td><td data-label=\"band\">{}</td>\
         <td data-label=\"verdict\" class=\"{class}\">{} {word}</td></tr>\n",
        escape(&verdict.claim),
        escape(&format!("{}{detail}", verdict.how)),
        verdict.measured.map_or("—".to_owned(), |value| measured_within(value, verdict.uncertainty)),
        verdict.band.map_or("—".to_owned(), |band| escape(&band.to_string())),
        verdict_mark(verdict),
    )
}

fn table(rows: &str) -> String {
    format!(
        "<table class=\"stack\"><thead><tr><th scope=\"col\">the paper says</th><th scope=\"col\">measured</th>\
         <th scope=\"col\">band</th><th scope=\"col\">verdict</th></tr></thead><tbody>\n{rows}</tbody></table>\n"
    )
}

/// The id of a scenario's section: letters, digits and hyphens.
fn anchor(case: &Case) -> String {
    case.dossier.id().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

const STYLE: &str = include_str!("page.css");

#[cfg(test)]
mod tests;
