use clap::CommandFactory;

use super::*;
use crate::args::Cli;

fn text(name: &str) -> String {
    let (_, page) = pages(Cli::command()).into_iter().find(|(found, _)| found == name).expect("the page is there");
    String::from_utf8(page).expect("text")
}

/// As `--help` would show them: without those that are hidden.
fn all(command: &Command, names: &mut Vec<(String, Vec<String>)>) {
    let options = command.get_arguments().filter(|option| !option.is_hide_set());
    let options = options.filter_map(|option| option.get_long().map(|long| format!("--{long}"))).collect();
    names.push((command.get_display_name().unwrap_or(command.get_name()).to_owned(), options));
    command.get_subcommands().filter(|below| !below.is_hide_set()).for_each(|below| all(below, names));
}

#[test]
fn every_command_that_help_shows_has_a_page_with_all_its_options() {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut expected = Vec::new();
    all(&command, &mut expected);
    assert!(expected.iter().any(|(name, options)| name == "weir-send-file" && options.len() > 25), "{expected:?}");
    assert_eq!(pages(Cli::command()).len(), expected.len());
    for (name, options) in expected {
        let page = text(&format!("{name}.1")).replace("\\-", "-");
        assert!(page.contains(&format!(".TH {name} 1")), "{page}");
        options.iter().for_each(|option| assert!(page.contains(&**option), "{name} lacks {option}"));
    }
    assert!(!text("weir.1").contains("weir\\-man(1)"), "a hidden command is not told");
}

#[test]
fn examples_keep_their_lines_and_what_follows_them_is_filled() {
    let page = text("weir-recv.1").replace("\\-", "-");
    let (_, examples) = page.split_once(".SH EXAMPLES\n.nf\n  weir recv weir.sdp").expect("a section of their own");
    let (examples, rest) = examples.split_once(".fi\n").expect("the lines end");
    assert!(examples.lines().count() > 5);
    assert!(rest.starts_with("A receiver that was stopped"), "{rest}");
    assert!(rest.contains("EXIT STATUS\"\n.nf\n"), "{rest}");
    assert!(page.ends_with(".SH \"SEE ALSO\"\nweir(1)\n"), "{page}");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let failure = write(Cli::command(), Path::new("/dev/null/man")).expect_err("no folder can be there");
    assert_eq!(failure.exit, Exit::Files);
    assert!(failure.to_string().contains("/dev/null/man"), "{failure}");
}
