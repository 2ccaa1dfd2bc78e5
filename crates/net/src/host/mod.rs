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
mod company;
mod driver;
mod kept;
mod link;
mod outgoing;
mod party;
mod peers;
mod record;
mod statistics;
mod tenant;

use std::fmt;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use weir_units::Time;

use crate::clock::{self, Clock};
use crate::error::NetError;
use crate::profile::Profile;
use driver::Driver;

pub use application::{Application, Delivery, PeerChange, Progress};
pub use link::LinkInFront;
pub use peers::Departure;
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
    fn start(&mut self, now: Time) -> Result<(), NetError>;

    /// When it must be called next if nothing arrives; `None` once its run is over.
    fn due(&self) -> Option<Time>;

    /// Until when it need not be called for what arrives.
    fn rests_until(&self) -> Time;

    /// What it waits for.
    fn waiting<'s>(&'s self, into: &mut Vec<PollFd<'s>>);

    /// What was found, in the order of [`Run::waiting`].
    fn set_ready(&mut self, found: &[PollFlags]);

    /// Takes what is there, and brings the endpoint up to now.
    fn round(&mut self) -> Result<(), NetError>;

    /// The account of the run, which is over.
    fn end(&mut self) -> Result<Statistics, NetError>;
}

/// A tenant in the loop.
struct Running<'a> {
    tenant: Box<dyn Run + 'a>,
    /// Its place among the outcomes.
    place: usize,
    /// Whether something has arrived; `None` if the last wait did not look for that.
    has_arrivals: Option<bool>,
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
    ) -> Result<Statistics, NetError> {
        let mut host = Host::new();
        host.add(tenant, application);
        host.run().pop().expect("a tenant was added")
    }

    /// Runs until the run of every tenant is over. What ends one does not end the others.
    pub fn run(self) -> Vec<Result<Statistics, NetError>> {
        let clock = self.clock;
        let mut outcomes: Vec<Option<Result<Statistics, NetError>>> = self.tenants.iter().map(|_| None).collect();
        let tenants = self.tenants.into_iter().enumerate();
        let mut all: Vec<Running<'a>> =
            tenants.map(|(place, tenant)| Running { tenant, place, has_arrivals: None }).collect();
        all.retain_mut(|one| {
            let started = one.tenant.start(clock.now());
            one.goes_on(started, &mut outcomes)
        });
        while let Some(until) = all.iter().map(|one| one.wakes_at(clock.now())).min() {
            let waited = wait(&mut all, until, clock.now());
            let (now, is_alone) = (clock.now(), all.len() == 1);
            all.retain_mut(|one| {
                let served = waited.map_err(waiting_failed).and_then(|()| one.serve(now, is_alone));
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

impl Running<'_> {
    /// When the loop has to look at it even if nothing arrives.
    fn wakes_at(&self, now: Time) -> Time {
        let (due, rests_until) = (self.tenant.due().unwrap_or(Time::ZERO), self.tenant.rests_until());
        if rests_until > now { due.min(rests_until) } else { due }
    }

    /// Lets it do what there is to do. What arrives during a rest is looked for when the rest is over, or something is due.
    fn serve(&mut self, now: Time, is_alone: bool) -> Result<(), NetError> {
        let is_due = self.tenant.due().is_none_or(|due| due <= now);
        let is_at_rest = self.has_arrivals.is_none() && self.tenant.rests_until() > now;
        if !is_due && (is_at_rest || self.has_arrivals == Some(false)) {
            return Ok(());
        }
        if !is_alone || self.has_arrivals.is_none() {
            // Other tenants took their time since the wait. A time that has passed, at which nobody rests: it is a look.
            wait(std::slice::from_mut(self), Time::ZERO, Time::from_nanos(u64::MAX)).map_err(waiting_failed)?;
        }
        if is_due || self.has_arrivals == Some(true) { self.tenant.round() } else { Ok(()) }
    }

    /// Whether its run goes on after `result`; if not, notes how it ended.
    fn goes_on(&mut self, result: Result<(), NetError>, outcomes: &mut [Option<Result<Statistics, NetError>>]) -> bool {
        outcomes[self.place] = match result {
            Ok(()) if self.tenant.due().is_some() => return true,
            Ok(()) => Some(self.tenant.end()),
            Err(error) => Some(Err(error)),
        };
        false
    }
}

/// Waits until something arrives at a tenant that does not rest, or it is `until`.
fn wait(tenants: &mut [Running<'_>], until: Time, now: Time) -> nix::Result<()> {
    let is_polled = |one: &Running<'_>| one.tenant.rests_until() <= now;
    let mut waiting = Vec::new();
    let mut counts = Vec::with_capacity(tenants.len());
    for one in tenants.iter().filter(|one| is_polled(one)) {
        let before = waiting.len();
        one.tenant.waiting(&mut waiting);
        counts.push(waiting.len() - before);
    }
    clock::wait(&mut waiting, until)?;
    let found: Vec<PollFlags> = waiting.iter().map(clock::found).collect();
    let mut rest = &found[..];
    tenants.iter_mut().for_each(|one| one.has_arrivals = None);
    for (one, count) in tenants.iter_mut().filter(|one| is_polled(one)).zip(counts) {
        let (own, others) = rest.split_at(count);
        rest = others;
        one.has_arrivals = Some(own.iter().any(|flags| !flags.is_empty()));
        one.tenant.set_ready(own);
    }
    Ok(())
}

fn waiting_failed(error: Errno) -> NetError {
    NetError::Wait(error.into())
}
