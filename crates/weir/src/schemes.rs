//! `weir schemes`: the registry, for people.

use std::fmt::Write;

use weir_core::registry::{SCHEMES, Scheme};

/// All schemes with their settings.
pub(crate) fn listing() -> String {
    let mut text = SCHEMES.iter().map(|scheme| describe(scheme)).collect::<Vec<_>>().join("\n");
    text += "\nChoose one with --cc NAME, change its settings with --cc-set KEY=VALUE.\n";
    text
}

fn describe(scheme: &Scheme) -> String {
    let mut text = format!("{}\n  {}\n  {}\n", scheme.name, scheme.summary, scheme.paper);
    let settings = scheme.settings();
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
            assert!(text.contains(&format!("{}\n", scheme.name)));
            for setting in scheme.settings() {
                let help = setting.to_string();
                assert!(text.contains(setting.key) && text.contains(&help), "{} {}", scheme.name, setting.key);
            }
        }
    }
}
