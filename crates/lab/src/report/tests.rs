//! The page: complete, self-contained, red first.

use std::collections::BTreeMap;

use super::*;
use crate::results::{Row, Value};

const FILE: &str = r#"
id = "mine/one"
title = "Clients & <losses>"
paper = "avmrc"
reproduces = "Figure 2"
seeds = 1
duration = "1s"
[sweep]
clients = [1, 2]
[topology.dumbbell]
bottleneck = "rate=3M,buffer=80p"
[session.main]
scheme = "avmrc"
ladder = { low = "256k", high = "6561k", ratio = 1.5 }
receivers = { count = "{clients}", rtt = "100ms" }
[metrics]
loss = { measure = "steady_loss", session = "main" }
[[claim]]
id = "small"
says = "little is lost"
metric = "loss"
holds = { max = 1 }
[[claim]]
id = "none"
says = "nothing is lost"
metric = "loss"
holds = { exact = 0 }
[[claim]]
id = "mean"
says = "what is lost"
metric = "loss"
points = "mean"
[[figure.panel]]
x = { of = "clients", label = "clients" }
y = { of = "loss", label = "loss", unit = "%" }
"#;

fn case() -> Case {
    let dossier = Dossier::parse("one.toml", FILE, &[]).expect("it is sound");
    let row = |clients: f64| Row {
        point: BTreeMap::from([("clients".to_owned(), Value::Number(clients))]),
        seed: 1,
        metrics: BTreeMap::from([("loss".to_owned(), 0.25 * clients)]),
        series: BTreeMap::new(),
    };
    let results = Results { scenario: "mine/one".to_owned(), rows: vec![row(1.0), row(2.0)] };
    let verdicts = dossier.judge(&results);
    Case { dossier, results, verdicts }
}

#[test]
fn red_comes_first_and_leads_to_its_scenario() {
    let page = html(&[case()], "1.0");
    let (red, section) =
        (page.find("What does not hold").expect("red"), page.find("id=\"mine-one\"").expect("a section"));
    assert!(red < section && page.contains("href=\"#mine-one\""));
    assert_eq!(page.matches("does not hold</td>").count(), 2, "once at the top, once in its place");
    assert!(page.contains("1 hold</b>") && page.contains("1 do not</b>") && page.contains("1 more reported"));
}

#[test]
fn without_red_there_is_no_red_table() {
    let mut green = case();
    green.verdicts.retain(|verdict| !verdict.is_red());
    assert!(!html(&[green], "1.0").contains("What does not hold"));
}

#[test]
fn the_page_holds_figure_and_file_and_fetches_nothing() {
    let page = html(&[case()], "1.0");
    assert!(page.contains("<svg class=\"figure\"") && page.contains("bottleneck = &quot;rate=3M,buffer=80p&quot;"));
    assert!(page.contains("Clients &amp; &lt;losses&gt;") && !page.contains("<losses>"));
    for fetched in ["http://", "https://", "src=", "@import", "url(\"", "<script"] {
        assert!(!page.contains(fetched), "{fetched}");
    }
    assert!(page.contains("prefers-color-scheme:dark") && page.contains("width=device-width"));
}
