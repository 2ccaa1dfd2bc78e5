//! Sets of files, from a carousel to a store, in memory: what arrives, and what damaged, hostile or impossible input does.

mod common;

mod asked;
mod bundles;
mod hostile;
mod interop_flute;
mod mishaps;
mod seen;
mod sparse;
mod subsets;
mod tables;
mod transfer;
