//! Tenants for the sender and the receivers of a layered session, as its description says.

use std::path::PathBuf;

use weir_capture::Capture;
use weir_core::Endpoint;
use weir_core::registry::{self, Scheme};
use weir_units::Bytes;

use crate::all_channels::AllChannels;
use crate::description::Description;
use crate::error::NetError;
use crate::host::{Tenant, TenantConfig};
use crate::interface::{Interface, InterfaceChoice};
use crate::profile::{AlcProfile, MediaProfile, Profile};
use crate::socket::{SendConfig, UnicastSocket, scoped};

/// How to take part in a session.
#[derive(Debug, Clone, Default)]
pub struct SessionConfig {
    /// The interface to send from, or to join on.
    pub interface: InterfaceChoice,
    /// The socket of a sender. Its TTL is that of the description.
    pub socket: SendConfig,
    /// How the host runs the party.
    pub tenant: TenantConfig,
    /// A pcapng file of all that is sent and received.
    pub capture: Option<PathBuf>,
}

/// The sender of a session.
pub fn sender(
    description: &Description,
    endpoint: Box<dyn Endpoint>,
    config: &SessionConfig,
) -> Result<Tenant<AlcProfile>, NetError> {
    sender_of(description, profile(description), endpoint, config)
}

/// The sender of layered media.
pub fn media_sender(
    description: &Description,
    endpoint: Box<dyn Endpoint>,
    config: &SessionConfig,
) -> Result<Tenant<MediaProfile>, NetError> {
    sender_of(description, media_profile(description), endpoint, config)
}

fn sender_of<P: Profile>(
    description: &Description,
    profile: P,
    endpoint: Box<dyn Endpoint>,
    config: &SessionConfig,
) -> Result<Tenant<P>, NetError> {
    let interface = interface(description, config)?;
    let packet = description.control.as_ref().map_or(Bytes::ZERO, |control| control.packet_size);
    if let Some(mtu) = interface.mtu().filter(|mtu| packet > *mtu) {
        return Err(NetError::PacketTooLarge { packet: packet.count(), mtu: mtu.count(), name: interface.name });
    }
    let mut tenant = Tenant::new(&config.tenant).with_endpoint(endpoint);
    let socket = SendConfig { ttl: description.ttl, ..config.socket.clone() };
    tenant.add_session(profile, &interface, &description.channels, None, false, Some(&socket))?;
    if let Some(address) = description.control_address {
        tenant.add_unicast(UnicastSocket::listen(scoped(address, interface.index))?)?;
    }
    record(&mut tenant, &interface, config)?;
    Ok(tenant)
}

/// A receiver of a session. Without an endpoint it takes every channel and every packet, which is right for a session without
/// congestion control.
pub fn receiver(
    description: &Description,
    endpoint: Option<Box<dyn Endpoint>>,
    config: &SessionConfig,
) -> Result<Tenant<AlcProfile>, NetError> {
    let profile = match endpoint {
        Some(_) => profile(description),
        None => AlcProfile::new(description.tsi, None),
    };
    receiver_of(description, profile, endpoint.unwrap_or_else(|| every_channel(description)), config)
}

/// The endpoint of a receiver that takes every channel and every packet.
pub fn every_channel(description: &Description) -> Box<dyn Endpoint> {
    Box::new(AllChannels::new(description.channels.len()))
}

/// A receiver of layered media.
pub fn media_receiver(
    description: &Description,
    endpoint: Box<dyn Endpoint>,
    config: &SessionConfig,
) -> Result<Tenant<MediaProfile>, NetError> {
    receiver_of(description, media_profile(description), endpoint, config)
}

fn receiver_of<P: Profile>(
    description: &Description,
    profile: P,
    endpoint: Box<dyn Endpoint>,
    config: &SessionConfig,
) -> Result<Tenant<P>, NetError> {
    let mut tenant = Tenant::new(&config.tenant).with_endpoint(endpoint);
    let interface = add_received(&mut tenant, profile, description, config)?;
    record(&mut tenant, &interface, config)?;
    Ok(tenant)
}

/// A receiver of several sessions, whose endpoint is a manager. Their senders are its peers, in this order.
pub fn managed<'d>(
    descriptions: impl IntoIterator<Item = &'d Description>,
    manager: Box<dyn Endpoint>,
    config: &SessionConfig,
) -> Result<Tenant<AlcProfile>, NetError> {
    let mut tenant = Tenant::new(&config.tenant).with_endpoint(manager);
    let mut last = None;
    for description in descriptions {
        last = Some(add_received(&mut tenant, profile(description), description, config)?);
    }
    let interface = last.ok_or(NetError::Channels("a manager needs at least one session"))?;
    record(&mut tenant, &interface, config)?;
    Ok(tenant)
}

/// Adds a session that is received, and its sender as a peer.
fn add_received<P: Profile>(
    tenant: &mut Tenant<P>,
    profile: P,
    description: &Description,
    config: &SessionConfig,
) -> Result<Interface, NetError> {
    let interface = interface(description, config)?;
    let channels = tenant.add_session(profile, &interface, &description.channels, description.source, true, None)?;
    if let Some(sender) = description.sender_address() {
        tenant.take_only_from(channels, sender);
    }
    match description.control_address {
        Some(address) => {
            let sender = scoped(address, interface.index);
            let socket = tenant.add_unicast(UnicastSocket::connect(sender)?)?;
            tenant.add_peer(socket, sender);
        }
        None => tenant.add_unreachable_peer(),
    }
    Ok(interface)
}

fn interface(description: &Description, config: &SessionConfig) -> Result<Interface, NetError> {
    let group = description.channels.first().ok_or(NetError::Channels("a session needs at least one channel"))?;
    Interface::choose(&config.interface, group.ip())
}

fn profile(description: &Description) -> AlcProfile {
    AlcProfile::new(description.tsi, description.form()).coalescing(coalesces(description))
}

fn media_profile(description: &Description) -> MediaProfile {
    MediaProfile::new(description.tsi).coalescing(coalesces(description))
}

/// Whether receivers need no packet's own time of arrival.
fn coalesces(description: &Description) -> bool {
    let scheme = description.control.as_ref().and_then(|control| registry::find(&control.scheme).ok());
    !scheme.is_some_and(Scheme::needs_each_arrival)
}

fn record<P: Profile>(tenant: &mut Tenant<P>, interface: &Interface, config: &SessionConfig) -> Result<(), NetError> {
    if let Some(path) = &config.capture {
        tenant.record(Capture::create(path, &interface.name)?);
    }
    Ok(())
}
