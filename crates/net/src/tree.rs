//! Tenants for the sender and the members of a stream over a tree: data on a channel, everything else between the nodes
//! (`docs/wire.md`).

use std::net::SocketAddr;

use weir_capture::Capture;
use weir_core::Endpoint;

use crate::error::NetError;
use crate::handshake::Secret;
use crate::host::Tenant;
use crate::interface::Interface;
use crate::profile::MtcpProfile;
use crate::session::SessionConfig;
use crate::socket::{UnicastSocket, scoped, unspecified};

/// What all parties of a stream agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeSession {
    /// Transport session identifier.
    pub tsi: u16,
    /// Group and port of the data.
    pub channel: SocketAddr,
}

/// Where a node takes members below it.
#[derive(Debug, Clone, Copy)]
pub struct Door {
    /// Its address. Port 0 is any.
    pub listen: SocketAddr,
    /// Random, and nobody else's.
    pub secret: Secret,
    /// How many members it takes at most.
    pub most: usize,
}

/// The sender of a stream.
pub fn sender(
    session: &TreeSession,
    door: Door,
    endpoint: Box<dyn Endpoint>,
    config: &SessionConfig,
) -> Result<Tenant<MtcpProfile>, NetError> {
    let (mut tenant, interface) = tenant(session, endpoint, config, Ways { receives: false, sends: true })?;
    open(&mut tenant, session, &interface, door)?;
    Ok(tenant)
}

/// A receiver, which looks for the node above it from the one at `first` on; with a door it takes members of its own. `ssrc` is
/// random.
pub fn receiver(
    session: &TreeSession,
    first: SocketAddr,
    ssrc: u32,
    door: Option<Door>,
    endpoint: Box<dyn Endpoint>,
    config: &SessionConfig,
) -> Result<Tenant<MtcpProfile>, NetError> {
    member(session, first, ssrc, door, endpoint, config, Ways { receives: true, sends: false })
}

/// An agent: as [`receiver`], but that it can also send to the channel, for a network to which no multicast leads.
pub fn agent(
    session: &TreeSession,
    first: SocketAddr,
    ssrc: u32,
    door: Door,
    endpoint: Box<dyn Endpoint>,
    config: &SessionConfig,
) -> Result<Tenant<MtcpProfile>, NetError> {
    member(session, first, ssrc, Some(door), endpoint, config, Ways { receives: true, sends: true })
}

/// What a party does with the channel.
#[derive(Debug, Clone, Copy)]
struct Ways {
    receives: bool,
    sends: bool,
}

fn member(
    session: &TreeSession,
    first: SocketAddr,
    ssrc: u32,
    door: Option<Door>,
    endpoint: Box<dyn Endpoint>,
    config: &SessionConfig,
    ways: Ways,
) -> Result<Tenant<MtcpProfile>, NetError> {
    let (mut tenant, interface) = tenant(session, endpoint, config, ways)?;
    let first = scoped(first, interface.index);
    let any = SocketAddr::new(unspecified(first.ip()), 0);
    let socket = tenant.add_unicast(UnicastSocket::listen(any)?)?;
    tenant.call_through(socket, &interface, ssrc);
    tenant.add_contact(socket, first, ssrc);
    door.map_or(Ok(()), |door| open(&mut tenant, session, &interface, door))?;
    Ok(tenant)
}

fn tenant(
    session: &TreeSession,
    endpoint: Box<dyn Endpoint>,
    config: &SessionConfig,
    ways: Ways,
) -> Result<(Tenant<MtcpProfile>, Interface), NetError> {
    let interface = Interface::choose(&config.interface, session.channel.ip())?;
    let mut tenant = Tenant::new(&config.tenant).with_endpoint(endpoint);
    let profile = MtcpProfile { tsi: session.tsi };
    let sends = ways.sends.then_some(&config.socket);
    tenant.add_session(profile, &interface, &[session.channel], None, ways.receives, sends)?;
    if let Some(path) = &config.capture {
        tenant.record(Capture::create(path, &interface.name)?);
    }
    Ok((tenant, interface))
}

fn open(
    tenant: &mut Tenant<MtcpProfile>,
    session: &TreeSession,
    interface: &Interface,
    door: Door,
) -> Result<(), NetError> {
    let socket = UnicastSocket::listen(scoped(door.listen, interface.index))?;
    let mut local = socket.local();
    if local.ip().is_unspecified() {
        local.set_ip(interface.source_address(session.channel.ip())?);
    }
    tenant.reachable_at(local);
    tenant.add_unicast(socket)?;
    tenant.admit(door.secret, door.most);
    Ok(())
}
