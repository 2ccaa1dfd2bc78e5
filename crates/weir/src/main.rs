//! `weir`: delivers files over layered multicast, each receiver at the rate that its own path can fairly carry, and streams to one
//! viewer.

mod args;
mod cli;
mod collector;
mod demo;
mod describe;
mod events;
mod exit;
mod fetch;
mod interrupt;
mod lab;
mod live;
mod progress;
mod recv;
mod report;
mod schemes;
mod send;
mod session;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
