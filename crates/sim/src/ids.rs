//! Names of the network's parts. Each is an index, and means something only to the network that gave it.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $name {
            pub(crate) fn new(index: usize) -> $name {
                $name(u32::try_from(index).expect("a network has fewer than four billion of anything"))
            }

            /// Its number, counted from 0 in the order in which they were made.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id! {
    /// A node: a host or a router.
    NodeId
}
id! {
    /// One direction of a link.
    LinkId
}
id! {
    /// Something that runs on a node: an endpoint, one end of a connection, a source of datagrams.
    AgentId
}
id! {
    /// A multicast session: a sender and its channels.
    SessionId
}
id! {
    /// What belongs together: a session, a connection, a stream of datagrams. Queues and monitors tell flows apart.
    FlowId
}
