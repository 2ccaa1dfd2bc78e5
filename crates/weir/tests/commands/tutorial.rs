//! docs/tutorial-lab.md, word for word: its commands are run, and give what it shows. `WEIR_BLESS=1` writes what they give.

use std::fmt::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn the_laboratory_s_tutorial_shows_what_its_commands_give() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").canonicalize().expect("there are docs");
    let clone = tempfile::tempdir().expect("a folder");
    symlink(&docs, clone.path().join("docs")).expect("a clone has its docs");
    let page = docs.join("tutorial-lab.md");
    let written = std::fs::read_to_string(&page).expect("the page");
    let mut made = String::new();
    let (mut in_console, mut commands) = (false, 0);
    for line in written.lines() {
        match line.strip_prefix("$ ") {
            _ if line == "```console" => in_console = true,
            _ if line == "```" => in_console = false,
            Some(command) if in_console => {
                commands += 1;
                writeln!(made, "{line}\n{}", shell(clone.path(), command)).expect("a string takes everything");
                continue;
            }
            _ if in_console => continue,
            _ => {}
        }
        writeln!(made, "{line}").expect("a string takes everything");
    }
    // A command without output leaves no empty line.
    let made = made.replace("\n\n$ ", "\n$ ").replace("\n\n```\n", "\n```\n");
    assert!(commands >= 5, "{commands} commands");
    is_as_kept(&page, made.as_bytes());
    let picture = std::fs::read(clone.path().join("pictures/row.svg")).expect("the picture is drawn");
    is_as_kept(&docs.join("tutorial/row.svg"), &picture);
}

/// What a command prints. `weir` is the one under test; nothing comes from an earlier run.
fn shell(clone: &Path, command: &str) -> String {
    let weir = PathBuf::from(env!("CARGO_BIN_EXE_weir"));
    let path = format!("{}:{}", weir.parent().expect("a folder").display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(clone).env("PATH", path);
    let output = shell.env("XDG_CACHE_HOME", clone.join("cache")).output().expect("there is a shell");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
}

fn is_as_kept(file: &Path, made: &[u8]) {
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(file, made).expect("it can be written");
    }
    let kept = std::fs::read(file).unwrap_or_default();
    let (kept, made) = (String::from_utf8_lossy(&kept), String::from_utf8_lossy(made));
    let first = kept.lines().zip(made.lines()).find(|(kept, made)| kept != made);
    assert!(kept == made, "{} shows something else: {first:?}; look at it, then run with WEIR_BLESS=1", file.display());
}
