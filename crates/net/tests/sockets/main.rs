//! Tenants of hosts over real sockets on the loopback.

mod common;

mod capture;
mod host;
mod impossible;
mod link;
mod loopback;
mod over;
mod packets;
mod peers;
mod probes;
mod receipts;
mod room;
mod stream;
mod tree;
