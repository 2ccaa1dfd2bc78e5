//! The simulated network: it drives the endpoints that the sockets drive, in virtual time, and repeats a run bit for bit
//! from its seed.

pub mod tcp;
pub mod traffic;
