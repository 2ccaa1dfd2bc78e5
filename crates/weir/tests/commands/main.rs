//! The program's commands as a user runs them on one machine, without any privilege.

mod alone;
mod demo;
mod dissect;
mod lab;
mod layer_files;
mod library;
mod live;
mod metrics;
mod receipts;
mod several;
mod stream;
mod trust;
mod tutorial;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
