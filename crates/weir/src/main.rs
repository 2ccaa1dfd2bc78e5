//! `weir`: the command line. What it does is in the library of the same name.

use std::process::ExitCode;

fn main() -> ExitCode {
    weir::cli::run()
}
