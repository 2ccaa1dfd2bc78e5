//! Those of whom something is recorded while a run goes on: sessions, their clients, flows and trees.

use weir_sim::{AgentId, FlowId};
use weir_units::{Bytes, Time};

use super::in_order::InOrder;
use crate::metric::{ClientRecord, FlowRecord, SessionRecord, TreeRecord};

/// A session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) name: String,
    pub(super) record: SessionRecord,
    pub(super) slot: usize,
    pub(super) header: u64,
    pub(super) clients: Vec<usize>,
}

/// A client, and the bytes of its session's packets that are not payload.
#[derive(Debug, Default)]
pub(super) struct Client {
    pub(super) record: ClientRecord,
    pub(super) header: u64,
}

/// A client of a session that a manager has.
#[derive(Debug)]
pub(super) struct ManagedClient {
    pub(super) session: u16,
    pub(super) flow: FlowId,
    pub(super) first_channel: u16,
    pub(super) client: usize,
}

/// A stream over a tree.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) name: String,
    pub(super) slot: usize,
    pub(super) header: u64,
    pub(super) record: TreeRecord,
}

/// A unicast flow that is recorded.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) name: String,
    pub(super) slot: usize,
    pub(super) sender: Sender,
    pub(super) record: FlowRecord,
}

/// Who sends a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sender {
    /// The sending end of a TCP connection.
    Tcp(AgentId),
    /// The source of a paced stream.
    Source(AgentId),
    /// Somebody of whom there is nothing to tell.
    Datagrams,
}

/// A unicast flow as it is built.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) flow: FlowId,
    pub(super) sender: Sender,
    pub(super) receiver: AgentId,
    /// Bytes of a packet that are not payload.
    pub(super) header: u64,
    /// When it starts.
    pub(super) started: Time,
    /// How much payload it has to send, if it ends.
    pub(super) size: Option<Bytes>,
}

/// The receiving end of a flow.
#[derive(Debug)]
pub(super) struct Sink {
    pub(super) flow: usize,
    pub(super) header: u64,
    pub(super) order: InOrder,
}
