//! A scenario with all that its file says: what is run, what is claimed, what is shown.

use std::collections::BTreeMap;
use std::path::Path;

use crate::claim::{Claim, NameError, Names, Verdict, judge, judge_part};
use crate::figure::Figure;
use crate::results::{Results, Value};
use crate::scenario::{Override, Scenario, ScenarioError};

/// A scenario, its claims and its figure.
#[derive(Debug, Clone)]
pub struct Dossier {
    /// What is run.
    pub scenario: Scenario,
    /// What the paper says about it.
    pub claims: Vec<Claim>,
    /// How the paper shows it; `None` if it does not.
    pub figure: Option<Figure>,
    /// The file.
    pub text: String,
    /// The points of the whole sweep, if only a part of it was asked for.
    whole: Option<Vec<BTreeMap<String, Value>>>,
}

/// A scenario file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DossierError {
    /// It cannot be read.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A claim or the figure names what does not exist.
    #[error("{file}: {error}")]
    Names {
        /// The file.
        file: String,
        /// What is wrong.
        error: NameError,
    },
}

impl Dossier {
    /// Reads the file at `path`.
    pub fn load(path: &Path, overrides: &[Override]) -> Result<Dossier, DossierError> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Dossier::parse(&file, &text, overrides),
            Err(error) => Err(ScenarioError { file, line: None, message: error.to_string() }.into()),
        }
    }

    /// Reads `text`, which errors call `file`.
    pub fn parse(file: &str, text: &str, overrides: &[Override]) -> Result<Dossier, DossierError> {
        let scenario = Scenario::parse(file, text, overrides)?;
        let claims: Vec<Claim> = scenario.section("claim")?.unwrap_or_default();
        let figure: Option<Figure> = scenario.section("figure")?;
        let names = Names::of_scenario(&scenario)?;
        let twice = claims.iter().enumerate().find(|(i, claim)| claims[..*i].iter().any(|other| other.id == claim.id));
        let unique = match twice {
            Some((_, claim)) => {
                let who = format!("claim {:?}", claim.id);
                Err(NameError { who, what: "there are two of this name".to_owned() })
            }
            None => Ok(()),
        };
        unique
            .and_then(|()| claims.iter().try_for_each(|claim| claim.check(&names)))
            .and_then(|()| figure.iter().try_for_each(|figure| figure.check(&names)))
            .map_err(|error| DossierError::Names { file: file.to_owned(), error })?;
        let whole = scenario.whole_sweep()?;
        Ok(Dossier { scenario, claims, figure, text: text.to_owned(), whole })
    }

    /// The scenario's id.
    pub fn id(&self) -> &str {
        &self.scenario.head.id
    }

    /// The verdicts on all of its claims. Those about points that were not asked for are not judged.
    pub fn judge(&self, results: &Results) -> Vec<Verdict> {
        let verdict = |claim| match &self.whole {
            Some(whole) => judge_part(claim, results, whole),
            None => judge(claim, results),
        };
        self.claims.iter().map(verdict).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Ruling;
    use crate::results::Row;

    const FILE: &str = r#"
id = "mine/one"
title = "One client"
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
"#;

    fn read(more: &str) -> Result<Dossier, String> {
        Dossier::parse("mine.toml", &format!("{FILE}{more}"), &[]).map_err(|error| error.to_string())
    }

    #[test]
    fn claims_about_points_that_were_not_asked_for_are_not_judged() {
        let variants = "[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\n";
        let claim = |id: &str, keys: &str| {
            format!("[[claim]]\nid = '{id}'\nsays = 's'\nmetric = 'loss'\nholds = {{ max = 1 }}\n{keys}\n")
        };
        let claims = [
            claim("here", "where = { variant = 'a', clients = 1 }"),
            claim("other variant", "where = { variant = 'b' }"),
            claim("compared", "where = { variant = 'a' }\nratio_to = { where = { variant = 'b' } }"),
            claim("other point", "where = { clients = 2 }"),
            claim("trend", "where = { variant = 'a' }\nalong = 'clients'\npoints = 'rising'"),
            claim("every", ""),
        ];
        // Tables inside the scenario's own come last.
        let text = format!("{FILE}{}{variants}", claims.concat());
        let judged = |overrides: &[&str], points: &[(f64, &str)]| {
            let overrides: Vec<Override> = overrides.iter().map(|text| text.parse().expect("key=value")).collect();
            let dossier = Dossier::parse("mine.toml", &text, &overrides).expect("it is sound");
            let row = |(clients, variant): &(f64, &str)| Row {
                point: [
                    ("clients".to_owned(), Value::Number(*clients)),
                    ("variant".to_owned(), Value::Word((*variant).to_owned())),
                ]
                .into(),
                seed: 1,
                metrics: [("loss".to_owned(), *clients / 4.0)].into(),
                series: BTreeMap::new(),
            };
            let results = Results { scenario: "mine/one".to_owned(), rows: points.iter().map(row).collect() };
            dossier.judge(&results)
        };
        let verdicts = judged(&["variant=a", "clients=1"], &[(1.0, "a")]);
        let rulings: Vec<Ruling> = verdicts.iter().map(|verdict| verdict.verdict).collect();
        use Ruling::{Fails, Holds, NotJudged};
        assert_eq!(rulings, [Holds, NotJudged, NotJudged, NotJudged, NotJudged, Holds]);
        assert!(verdicts.iter().all(|verdict| !verdict.is_red()));
        assert_eq!(verdicts[1].detail, "no run has variant = b");
        assert_eq!(verdicts[5].detail, "by 1 of 4 points");
        let all = [(1.0, "a"), (1.0, "b"), (2.0, "a")];
        assert_eq!(judged(&[], &all)[2].verdict, Fails, "without --set, a missing point is missing data");
    }

    const CLAIM: &str = "[[claim]]\nid = 'c'\nsays = 'it is so'\nmetric = 'loss'\nholds = { max = 1 }\n";
    const PANEL: &str =
        "[[figure.panel]]\nx = { of = 'clients', label = 'clients' }\ny = { of = 'loss', label = 'loss' }\n";

    #[test]
    fn claims_and_figure_come_with_their_scenario() {
        let dossier = read(&format!("{CLAIM}{PANEL}")).expect("it is sound");
        assert_eq!((dossier.id(), dossier.claims.len()), ("mine/one", 1));
        assert_eq!(dossier.figure.map(|figure| figure.panels.len()), Some(1));
        let bare = read("").expect("neither is needed");
        assert!(bare.claims.is_empty() && bare.figure.is_none());
    }

    #[test]
    fn what_names_nothing_is_refused_with_the_file_s_name() {
        for (more, words) in [
            (CLAIM.replace("'loss'", "'los'"), "mine.toml: claim \"c\": there is no metric \"los\"; there are loss"),
            (PANEL.replace("of = 'loss'", "of = 'los'"), "mine.toml: figure, panel 1: there is no metric"),
            (PANEL.replace("of = 'clients'", "of = 'time'"), "there is no series \"loss\""),
            (format!("{CLAIM}{CLAIM}"), "two of this name"),
            (CLAIM.replace("max", "most"), "mine.toml:"),
        ] {
            let error = read(&more).expect_err(&more);
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn every_scenario_of_the_papers_claims_what_can_be_measured() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let mut read = 0;
        for folder in std::fs::read_dir(root).expect("the scenarios").flatten().filter(|entry| entry.path().is_dir()) {
            for file in std::fs::read_dir(folder.path()).expect("a paper's scenarios").flatten() {
                let dossier = Dossier::load(&file.path(), &[]).unwrap_or_else(|error| panic!("{error}"));
                let at: Vec<_> =
                    dossier.scenario.points().expect("read before").into_iter().map(|point| point.at).collect();
                for claim in &dossier.claims {
                    let takes = at.iter().any(|at| claim.selection.takes(at));
                    assert!(takes, "{}/{}: no point has {}", dossier.id(), claim.id, claim.selection);
                }
                for panel in dossier.figure.iter().flat_map(|figure| &figure.panels) {
                    assert!(at.iter().any(|at| panel.selection.takes(at)), "{}: a panel is empty", dossier.id());
                }
                read += 1;
            }
        }
        assert!(read > 0, "there are scenarios");
    }
}
