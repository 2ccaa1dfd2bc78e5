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
mod early;
mod kept;
mod keys;
mod link;
mod outgoing;
mod outlets;
mod party;
mod peer_events;
mod peers;
mod record;
mod seats;
mod statistics;
mod strangers;
mod taking;
mod tenant;

use std::fmt;

use nix::poll::{PollFd, PollFlags};
use weir_units::Time;

use crate::clock::{self, Clock};
use crate::error::{NetError, Result};
use crate::profile::Profile;
use driver::Driver;

pub use application::{Application, Delivery, Departure, PeerChange, Progress};
pub use link::LinkInFront;
pub use statistics::{Amount, Ignored, Statistics};
pub use strangers::{Strange, Stranger, Strangers};
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

    /// What a wait that ended at `at` found; its own part of it, in the order of [`Run::waiting`].
    fn set_ready(&mut self, found: &mut dyn Iterator<Item = PollFlags>, at: Time);

    /// If something is there or due, takes what is there and brings the endpoint up to now.
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
        let tenants = self.tenants.into_iter().enumerate();
        let mut running: Vec<Running<'a>> =
            tenants.map(|(place, tenant)| Running { place, tenant, is_awake: false }).collect();
        running.retain_mut(|one| {
            let started = one.tenant.start(clock.now());
            one.goes_on(started, &mut outcomes)
        });
        while !running.is_empty() {
            let waited = wait(&mut running, &clock);
            running.retain_mut(|one| {
                let served = match waited {
                    Ok(()) if one.is_awake => one.tenant.round(),
                    Ok(()) => Ok(()),
                    Err(error) => Err(NetError::Wait(error.into())),
                };
                one.goes_on(served, &mut outcomes)
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

/// A tenant whose run is not over.
struct Running<'a> {
    /// Among the outcomes.
    place: usize,
    tenant: Box<dyn Run + 'a>,
    /// It does not rest, so that the loop serves it.
    is_awake: bool,
}

impl Running<'_> {
    /// Whether it is awake, and when the loop has to look at it again even if nothing arrives.
    fn look(&mut self, now: Time) -> Time {
        let (due, rests_until) = (self.tenant.due().unwrap_or(Time::ZERO), self.tenant.rests_until());
        self.is_awake = rests_until.min(due) <= now;
        if self.is_awake { due } else { due.min(rests_until) }
    }

    /// Whether its run goes on after `result`; if not, notes how it ended.
    fn goes_on(&mut self, result: Result<()>, outcomes: &mut [Option<Result<Statistics>>]) -> bool {
        outcomes[self.place] = match result {
            Ok(()) if self.tenant.due().is_some() => return true,
            Ok(()) => Some(self.tenant.end()),
            Err(error) => Some(Err(error)),
        };
        false
    }
}

/// Waits until something arrives at a tenant that is awake or any tenant has to be looked at, and tells those awake what there
/// is.
fn wait(running: &mut [Running<'_>], clock: &Clock) -> nix::Result<()> {
    let now = clock.now();
    let until = running.iter_mut().map(|one| one.look(now)).min().unwrap_or(now);
    let mut waiting = Vec::new();
    running.iter().filter(|one| one.is_awake).for_each(|one| one.tenant.waiting(&mut waiting));
    clock::wait(&mut waiting, until)?;
    let at = clock.now();
    let found: Vec<PollFlags> = waiting.iter().map(clock::found).collect();
    let mut found = found.into_iter();
    running.iter_mut().filter(|one| one.is_awake).for_each(|one| one.tenant.set_ready(&mut found, at));
    Ok(())
}
