//! The simulator's TCP: what every flavour does on a path, and that it agrees with ns-2.

mod behaviour;
mod ns2;
mod path;
