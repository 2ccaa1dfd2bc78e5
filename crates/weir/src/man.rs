//! Manual pages, made from the command line as it is, so that they say what `--help` says. The examples and exit codes, which are text
//! there, get sections of their own.

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap_mangen::Man;
use roff::{Roff, roman};

use crate::exit::{Exit, Failure};

/// Writes a page for `command` and one for each command below it into `folder`.
pub(crate) fn write(command: Command, folder: &Path) -> Result<Exit, Failure> {
    fs::create_dir_all(folder).map_err(Failure::of(Exit::Files, format!("cannot make {}", folder.display())))?;
    for (name, page) in pages(command) {
        let path = folder.join(name);
        fs::write(&path, page).map_err(Failure::of(Exit::Files, format!("cannot write {}", path.display())))?;
    }
    Ok(Exit::Done)
}

/// The name of each page's file, and the page.
fn pages(command: Command) -> Vec<(String, Vec<u8>)> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    collect(&command, None, &mut pages);
    pages
}

fn collect(command: &Command, above: Option<&str>, pages: &mut Vec<(String, Vec<u8>)>) {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    pages.push((format!("{name}.1"), page(command, above).expect("a vector takes all that is written")));
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        collect(below, Some(name), pages);
    }
}

fn page(command: &Command, above: Option<&str>) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone()).source(concat!("weir ", env!("CARGO_PKG_VERSION"))).manual("Weir");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut roff = Roff::new();
    if let Some(text) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        sections(&mut roff, &text.to_string());
    }
    if let Some(above) = above {
        roff.control("SH", ["SEE ALSO"]).text([roman(format!("{above}(1)"))]);
    }
    roff.to_writer(&mut page)?;
    Ok(page)
}

/// The text below the options: a line that ends in a colon begins a section, indented lines stay as they are, others are filled.
fn sections(roff: &mut Roff, text: &str) {
    let mut keeps_lines = false;
    for line in text.lines() {
        let is_indented = line.starts_with(' ');
        if is_indented != keeps_lines && !line.is_empty() {
            roff.control(if is_indented { "nf" } else { "fi" }, []);
            keeps_lines = is_indented;
        }
        match line {
            "" => roff.control("PP", []),
            "Examples:" => roff.control("SH", ["EXAMPLES"]),
            "Exit codes:" => roff.control("SH", ["EXIT STATUS"]),
            _ => roff.text([roman(line)]),
        };
    }
    if keeps_lines {
        roff.control("fi", []);
    }
}

#[cfg(test)]
mod tests;
