//! One host for real sockets: it drives any number of tenants on one thread, with one poll loop and one clock.
//!
//! A [`Tenant`] is an endpoint with its profile, its application, its sockets and its peers: a sender of a session, a receiver,
//! an agent that is both, either end of a unicast stream. The host mirrors the simulator's driver: packets reach an endpoint
//! in the order and at the times of their arrival in the kernel, over all its sockets, with its deadlines between them where
//! they belong. How late this thread was does not show.
//!
//! Not here: which packets to send and which channels to join, which endpoints decide; what the bytes mean, which profiles
//! know; and what is done with payloads, which is the application's business.

mod actions;
mod application;
mod driver;
mod kept;
mod link;
mod outgoing;
mod party;
mod peer_events;
mod peers;
mod record;
mod statistics;
mod tenant;

use std::fmt;

use nix::poll::PollFd;
use weir_units::Time;

use crate::clock::{self, Clock};
use crate::error::{NetError, Result};
use crate::profile::Profile;
use driver::Driver;

pub use application::{Application, Delivery, Departure, PeerChange, Progress};
pub use link::LinkInFront;
pub use statistics::{Amount, Ignored, Statistics};
pub use tenant::{Tenant, TenantConfig};

/// Tenants, and the loop that serves them.
#[derive(Default)]
pub struct Host<'a> {
    tenants: Vec<Box<dyn Run + 'a>>,
    clock: Clock,
}

/// What the loop asks of a tenant.
trait Run {
    /// The session starts.
    fn start(&mut self, now: Time) -> Result<()>;

    /// When it must be called next if nothing arrives; `None` once its run is over.
    fn due(&self) -> Option<Time>;

    /// Until when it need not be called for what arrives.
    fn rests_until(&self) -> Time;

    /// What it waits for.
    fn waiting<'s>(&'s self, into: &mut Vec<PollFd<'s>>);

    /// Takes what is there, and if there is something or something is due, brings the endpoint up to now.
    fn round(&mut self) -> Result<()>;

    /// The account of the run, which is over.
    fn end(&mut self) -> Result<Statistics>;
}

impl<'a> Host<'a> {
    /// A host without tenants.
    pub fn new() -> Host<'a> {
        Host { tenants: Vec::new(), clock: Clock::new() }
    }

    /// Takes a tenant in, to be run for `application`. Outcomes come in the order of these calls.
    pub fn add<P: Profile + 'a, A: Application<P::Label>>(&mut self, tenant: Tenant<P>, application: &'a mut A) {
        self.tenants.push(Box::new(Driver::new(tenant, application)));
    }

    /// Runs one tenant alone.
    pub fn run_one<P: Profile + 'a, A: Application<P::Label>>(
        tenant: Tenant<P>,
        application: &'a mut A,
    ) -> Result<Statistics> {
        let mut host = Host::new();
        host.add(tenant, application);
        host.run().pop().expect("a tenant was added")
    }

    /// Runs until the run of every tenant is over. What ends one does not end the others.
    pub fn run(self) -> Vec<Result<Statistics>> {
        let clock = self.clock;
        let mut outcomes: Vec<Option<Result<Statistics>>> = self.tenants.iter().map(|_| None).collect();
        let mut running: Vec<(usize, Box<dyn Run + 'a>)> = self.tenants.into_iter().enumerate().collect();
        running.retain_mut(|(place, tenant)| {
            let started = tenant.start(clock.now());
            goes_on(tenant.as_mut(), started, &mut outcomes[*place])
        });
        while let Some(until) = running.iter().map(|(_, tenant)| wakes_at(tenant.as_ref(), clock.now())).min() {
            let waited = wait(&running, until, clock.now());
            let now = clock.now();
            running.retain_mut(|(place, tenant)| {
                let is_to_be_served = tenant.rests_until() <= now || tenant.due().is_none_or(|due| due <= now);
                let served = match waited {
                    Ok(_) if is_to_be_served => tenant.round(),
                    Ok(_) => Ok(()),
                    Err(error) => Err(NetError::Wait(error.into())),
                };
                goes_on(tenant.as_mut(), served, &mut outcomes[*place])
            });
        }
        outcomes.into_iter().flatten().collect()
    }
}

impl fmt::Debug for Host<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("tenants", &self.tenants.len()).finish_non_exhaustive()
    }
}

/// When the loop has to look at a tenant even if nothing arrives.
fn wakes_at(tenant: &dyn Run, now: Time) -> Time {
    let (due, rests_until) = (tenant.due().unwrap_or(Time::ZERO), tenant.rests_until());
    if rests_until > now { due.min(rests_until) } else { due }
}

/// Waits until something arrives at a tenant that does not rest, or it is `until`.
fn wait(running: &[(usize, Box<dyn Run + '_>)], until: Time, now: Time) -> nix::Result<bool> {
    let mut waiting = Vec::new();
    let awake = running.iter().filter(|(_, tenant)| tenant.rests_until() <= now);
    awake.for_each(|(_, tenant)| tenant.waiting(&mut waiting));
    clock::wait(&mut waiting, until)
}

/// Whether a run goes on after `result`; if not, notes how it ended.
fn goes_on(tenant: &mut dyn Run, result: Result<()>, outcome: &mut Option<Result<Statistics>>) -> bool {
    *outcome = match result {
        Ok(()) if tenant.due().is_some() => return true,
        Ok(()) => Some(tenant.end()),
        Err(error) => Some(Err(error)),
    };
    false
}
