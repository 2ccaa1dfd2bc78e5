//! Tenants for the two ends of a paced unicast stream: RTP one way, RTCP both ways (`docs/wire.md`).

pub mod order;
pub mod playout;

use std::net::SocketAddr;
use std::path::PathBuf;

use weir_capture::Capture;

use crate::error::NetError;
use crate::handshake::Secret;
use crate::host::{Tenant, TenantConfig};
use crate::profile::RtpProfile;
use crate::seal::PairConfig;
use crate::socket::UnicastSocket;

/// How to take part in a stream.
#[derive(Debug, Clone, Default)]
pub struct LiveConfig {
    /// How the host runs the party.
    pub tenant: TenantConfig,
    /// A pcapng file of all that is sent and received.
    pub capture: Option<PathBuf>,
    /// What it brings to streams that are encrypted; a source without it sends in the clear.
    pub keys: Option<PairConfig>,
}

/// The source of a stream, which takes up to `most` viewers at a time at `listen`. The application makes an endpoint for each. `secret`
/// is random.
pub fn source(
    listen: SocketAddr,
    secret: Secret,
    most: usize,
    config: &LiveConfig,
) -> Result<Tenant<RtpProfile>, NetError> {
    let mut tenant = tenant(config)?;
    tenant.add_unicast(UnicastSocket::listen(listen)?)?;
    tenant.admit(secret, most);
    Ok(tenant)
}

/// A viewer of the stream of `sender`. The application makes the endpoint when the stream is offered. `ssrc` is random.
pub fn sink(sender: SocketAddr, ssrc: u32, config: &LiveConfig) -> Result<Tenant<RtpProfile>, NetError> {
    let mut tenant = tenant(config)?;
    let socket = tenant.add_unicast(UnicastSocket::connect(sender)?)?;
    tenant.add_contact(socket, sender, ssrc);
    Ok(tenant)
}

fn tenant(config: &LiveConfig) -> Result<Tenant<RtpProfile>, NetError> {
    let mut tenant = Tenant::new(&config.tenant);
    tenant.add_unicast_session(RtpProfile);
    if let Some(keys) = &config.keys {
        tenant.share_keys(keys.clone());
    }
    if let Some(path) = &config.capture {
        tenant.record(Capture::create(path, "any")?);
    }
    Ok(tenant)
}
