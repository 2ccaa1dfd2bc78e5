//! Multicast TCP (Rhee, Balaguru, Rouskas: "MTCP: Scalable TCP-like Congestion Control for Reliable Multicast").
//!
//! A sender multicasts a stream; its receivers are the nodes of a tree. Each acknowledges to the node above it, which repairs
//! what is missing, keeps a window as TCP Vegas does, and passes up how the worst of its subtree stands. The sender sends no
//! faster than the worst path of all allows. What the paper leaves open, and where it does not work as it stands, is decided in
//! `docs/papers/mtcp.md`, to which "decision n" in these files refers.

mod arrivals;
mod child;
mod config;
mod delay;
mod downlink;
mod member;
mod newcomers;
mod orphans;
mod path;
mod position;
mod search;
mod sender;
mod settings;
mod window;

pub use config::{Config, Control, NackRule};
pub use member::Member;
pub use sender::Sender;

use alloc::boxed::Box;

use crate::definition::{Parties, Scheme, Tree};

/// MTCP.
pub const MTCP: Scheme = Scheme {
    name: "mtcp",
    summary: "A reliable stream over a tree, whose nodes report the worst window below them to the sender",
    suits: "Streams of which every receiver needs every byte, in order",
    paper: "Rhee, Balaguru, Rouskas, INFOCOM 1999",
    parties: Parties::Tree(Tree {
        sender: |stream, settings, _| Ok(Box::new(Sender::new(stream, settings::read(stream.habitat, settings)?))),
        agent: |stream, settings, random| {
            Ok(Box::new(Member::new(stream, settings::read(stream.habitat, settings)?, false, random)))
        },
        receiver: |stream, settings, random| {
            Ok(Box::new(Member::new(stream, settings::read(stream.habitat, settings)?, true, random)))
        },
    }),
    settings: settings::help,
};
