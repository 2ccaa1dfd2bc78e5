//! Every scheme of the registry in the scenarios that all of its kind have to hold in: simulated, and on real sockets.

mod simulated;
mod sockets;
mod trees;
