//! Applications that load the network: HTTP users, constant and on/off senders.
