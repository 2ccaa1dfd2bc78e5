//! `weir lab`: scenarios listed, run, judged, drawn and reported. The work is done in `weir_lab`; here it is asked for.

mod bench;
mod table;
mod watch;

use std::path::Path;

use serde_json::{Value, json};
use weir_lab::claim::Verdict;
use weir_lab::dossier::Dossier;
use weir_lab::export;
use weir_lab::recording::{Recording, RecordingError};
use weir_lab::report::{Case, html, verdict_mark};

use crate::args::{Lab, LabList, LabPlot, LabReport, LabRun, LabVerify};
use crate::exit::{Exit, Failure};
use crate::progress::{Stdout, print};
use bench::{Bench, library};

/// Does what is asked.
pub(crate) fn run(what: &Lab) -> Result<Exit, Failure> {
    match what {
        Lab::List(args) => list(args),
        Lab::Run(args) => run_one(args),
        Lab::Verify(args) => verify(args),
        Lab::Plot(args) => plot(args),
        Lab::Report(args) => report(args),
    }
}

fn list(args: &LabList) -> Result<Exit, Failure> {
    let library = library(&args.scenarios)?;
    let mut rows = Vec::new();
    let mut entries = Vec::new();
    for id in library.ids() {
        let dossier = library.open(id, &[]).map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
        let head = &dossier.scenario.head;
        let points = dossier.scenario.points().map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
        let (points, runs) = (points.len(), points.iter().map(|point| point.seeds).sum::<usize>());
        entries.push(json!({
            "id": id, "title": head.title, "paper": head.paper, "reproduces": head.reproduces,
            "points": points, "runs": runs, "claims": dossier.claims.len(),
        }));
        rows.push(vec![
            id.to_owned(),
            format!("{runs} runs"),
            format!("{} claims", dossier.claims.len()),
            head.title.clone(),
        ]);
    }
    if args.json { print_json(&Value::Array(entries)) } else { shown(&table::plain(&rows)) }
}

fn run_one(args: &LabRun) -> Result<Exit, Failure> {
    let bench = Bench::new(&args.runs, std::slice::from_ref(&args.scenario))?;
    let [dossier] = bench.dossiers() else {
        let ids: Vec<&str> = bench.dossiers().iter().map(Dossier::id).collect();
        let message = format!("{} means {} scenarios: {}", args.scenario, ids.len(), ids.join(", "));
        return Err(Failure::new(Exit::Usage, message));
    };
    write_down(args, dossier)?;
    let results = bench.run(dossier, 0)?;
    if let Some(path) = &args.parquet {
        write(path, &export::runs(&results).to_parquet())?;
    }
    if let Some(path) = &args.series {
        write(path, &export::series(&results).to_parquet())?;
    }
    if args.json {
        return shown(&(export::json(&results) + "\n"));
    }
    if args.csv {
        return shown(&export::runs(&results).to_csv());
    }
    let verdicts = dossier.judge(&results);
    let mut text = format!("{}: {}\n\n{}", dossier.id(), dossier.scenario.head.title, table::of_results(&results));
    if !verdicts.is_empty() {
        text += &format!("\n{}", verdict_lines(&verdicts));
    }
    shown(&text)
}

/// Writes a run of the first point down, if that is asked for.
fn write_down(args: &LabRun, dossier: &Dossier) -> Result<(), Failure> {
    let recording = Recording { trace: args.trace.file(), pcap: args.pcap.clone() };
    if !recording.is_wanted() {
        return Ok(());
    }
    let points = dossier.scenario.points().map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
    let first = points.first().ok_or_else(|| Failure::new(Exit::Usage, format!("{} has no points", dossier.id())))?;
    recording.write(&first.setup, args.record_seed.unwrap_or(1)).map_err(|error| match error {
        error @ (RecordingError::Run(_) | RecordingError::Filter(_)) => Failure::new(Exit::Usage, error.to_string()),
        error => Failure::new(Exit::Files, error.to_string()),
    })
}

fn verify(args: &LabVerify) -> Result<Exit, Failure> {
    let bench = Bench::new(&args.runs, &args.ids)?;
    let mut verdicts: Vec<Verdict> = Vec::new();
    for (i, dossier) in bench.dossiers().iter().enumerate() {
        let found = dossier.judge(&bench.run(dossier, i)?);
        if !args.json && !args.markdown && !found.is_empty() && print(&verdict_lines(&found)) == Stdout::Closed {
            return Ok(Exit::Done);
        }
        verdicts.extend(found);
    }
    let red = verdicts.iter().filter(|verdict| verdict.is_red()).count();
    let judged = verdicts.iter().filter(|verdict| verdict.holds.is_some()).count();
    let exit = if red > 0 { Exit::RED } else { Exit::Done };
    if args.json {
        let list: Vec<Value> = verdicts.iter().map(as_json).collect();
        return print_json(&Value::Array(list)).map(|_| exit);
    }
    if args.markdown {
        return shown(&table::markdown(&verdicts)).map(|_| exit);
    }
    let missed = verdicts.iter().filter(|verdict| verdict.is_not_judged()).count();
    let reported = match verdicts.len() - judged - missed {
        0 => String::new(),
        n => format!("; {n} more reported without a band"),
    };
    let missed = match missed {
        0 => String::new(),
        n => format!("; {n} not judged, as their points were not run"),
    };
    shown(&format!("\n{} of {judged} claims hold, {red} do not{reported}{missed}\n", judged - red)).map(|_| exit)
}

fn plot(args: &LabPlot) -> Result<Exit, Failure> {
    let bench = Bench::new(&args.runs, &args.ids)?;
    for (i, dossier) in bench.dossiers().iter().enumerate() {
        let Some(figure) = &dossier.figure else { continue };
        let results = bench.run(dossier, i)?;
        let title = &dossier.scenario.head.title;
        let [svg, png] = ["svg", "png"].map(|kind| args.out.join(format!("{}.{kind}", dossier.id())));
        write(&svg, figure.svg(&results, title).as_bytes())?;
        write(&png, &figure.png(&results, title))?;
        if print(&format!("{}\n{}\n", svg.display(), png.display())) == Stdout::Closed {
            break;
        }
    }
    Ok(Exit::Done)
}

fn report(args: &LabReport) -> Result<Exit, Failure> {
    let bench = Bench::new(&args.runs, &args.ids)?;
    let mut cases = Vec::new();
    for (i, dossier) in bench.dossiers().iter().enumerate() {
        let results = bench.run(dossier, i)?;
        let verdicts = dossier.judge(&results);
        cases.push(Case { dossier: dossier.clone(), results, verdicts });
    }
    write(&args.out, html(&cases, env!("CARGO_PKG_VERSION")).as_bytes())?;
    shown(&format!("{}\n", args.out.display()))
}

/// The verdict as machines are promised it.
fn as_json(verdict: &Verdict) -> Value {
    serde_json::to_value(verdict).expect("a verdict is plain data")
}

fn verdict_lines(verdicts: &[Verdict]) -> String {
    let row = |verdict: &Verdict| {
        let [number, band] = table::numbers(verdict);
        let detail = if verdict.detail.is_empty() { String::new() } else { format!(" ({})", verdict.detail) };
        vec![format!("{} {}", verdict_mark(verdict), verdict.id), number, band, format!("{}{detail}", verdict.claim)]
    };
    table::plain(&verdicts.iter().map(row).collect::<Vec<_>>())
}

fn print_json(value: &Value) -> Result<Exit, Failure> {
    let text = serde_json::to_string_pretty(value).expect("a value is plain data");
    shown(&format!("{text}\n"))
}

/// Prints what was asked for. A reader that stops reading has seen enough.
fn shown(text: &str) -> Result<Exit, Failure> {
    match print(text) {
        Stdout::Open | Stdout::Closed => Ok(Exit::Done),
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let cannot = |error| Failure::new(Exit::Files, format!("cannot write {}: {error}", path.display()));
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(cannot)?;
    }
    std::fs::write(path, bytes).map_err(cannot)
}
