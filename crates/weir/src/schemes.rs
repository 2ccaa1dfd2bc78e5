//! `weir schemes`: the registry, for people.

use std::fmt::Write;

use weir_core::manager;
use weir_core::registry::{SCHEMES, Scheme, SettingHelp};

use crate::args::{LAYERED_DEFAULT, PACED_DEFAULT};

/// All schemes with their settings.
pub(crate) fn listing() -> String {
    let mut text = choice();
    text += &SCHEMES.iter().map(|scheme| describe(scheme)).collect::<Vec<_>>().join("\n");
    text += "\nmanager\n  Divides bandwidth among several sessions that one host receives (PSLM)\n";
    text += &settings(&manager::help());
    text += "\nChoose one with --cc NAME, change its settings with --cc-set KEY=VALUE, and those of the manager with --manager-set.\n";
    text
}

/// Which scheme to take when.
fn choice() -> String {
    let mut text = String::from("Which one to take:\n");
    for scheme in SCHEMES {
        let default = if [LAYERED_DEFAULT, PACED_DEFAULT].contains(&scheme.name) { " (the default)" } else { "" };
        writeln!(text, "  {:8}{}{default}", scheme.name, scheme.suits).expect("writing to a string cannot fail");
    }
    text + "\n"
}

fn describe(scheme: &Scheme) -> String {
    let mut text = format!("{}\n  {}\n  {}\n", scheme.name, scheme.summary, scheme.paper);
    text += &settings(&scheme.settings());
    text
}

fn settings(settings: &[SettingHelp]) -> String {
    let mut text = String::new();
    let width = settings.iter().map(|setting| setting.key.len()).max().unwrap_or(0);
    for setting in settings {
        writeln!(text, "    {:width$}  {setting}", setting.key).expect("writing to a string cannot fail");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheme_and_setting_is_listed() {
        let text = listing();
        for scheme in SCHEMES {
            assert!(text.contains(&format!("{}\n", scheme.name)) && text.contains(scheme.suits));
            for setting in scheme.settings() {
                let help = setting.to_string();
                assert!(text.contains(setting.key) && text.contains(&help), "{} {}", scheme.name, setting.key);
            }
        }
    }
}
