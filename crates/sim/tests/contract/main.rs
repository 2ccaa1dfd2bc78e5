//! The simulator keeps the promises of the contract between endpoints and drivers, one by one.

mod channels;
mod payloads;
mod peers;
mod scripted;
