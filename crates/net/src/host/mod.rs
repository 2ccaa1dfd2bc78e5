//! One host for real sockets: it drives any number of tenants on one thread, with one poll loop and one clock.
//!
//! A [`Tenant`] is an endpoint with its profile, its application, its sockets and its peers: a sender of a session, a receiver,
//! an agent that is both, either end of a unicast stream. The host mirrors the simulator's driver: packets reach an endpoint
//! in the order and at the times of their arrival in the kernel, over all its sockets, with its deadlines between them where
//! they belong. How late this thread was does not show.
//!
//! Not here: which packets to send and which channels to join, which endpoints decide; what the bytes mean, which profiles
//! know; and what is done with payloads, which is the application's business.

mod application;
mod driver;
mod kept;
mod link;
mod outgoing;
mod party;
mod peers;
mod statistics;
mod tenant;

use std::fmt;

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
    /// Whether something has arrived, if the last wait looked for that.
    has_arrivals: Option<bool>,
    outcome: Option<Result<Statistics, NetError>>,
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
        let running = |tenant| Running { tenant, has_arrivals: None, outcome: None };
        let mut tenants: Vec<Running<'a>> = self.tenants.into_iter().map(running).collect();
        for running in &mut tenants {
            let started = running.tenant.start(clock.now());
            running.note(started);
        }
        while let Some(until) = tenants.iter().filter_map(|running| running.wakes_at(clock.now())).min() {
            wait(&mut tenants, until, clock.now());
            let now = clock.now();
            tenants.iter_mut().filter(|running| running.outcome.is_none()).for_each(|running| running.serve(now));
        }
        tenants.into_iter().filter_map(|running| running.outcome).collect()
    }
}

impl fmt::Debug for Host<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("tenants", &self.tenants.len()).finish_non_exhaustive()
    }
}

impl Running<'_> {
    /// When the loop has to look at it even if nothing arrives.
    fn wakes_at(&self, now: Time) -> Option<Time> {
        let due = self.tenant.due().filter(|_| self.outcome.is_none())?;
        let rests_until = self.tenant.rests_until();
        Some(if rests_until > now { due.min(rests_until) } else { due })
    }

    /// Lets it do what there is to do. What arrives during a rest is looked for when the rest is over, or something is due.
    fn serve(&mut self, now: Time) {
        let is_due = self.tenant.due().is_none_or(|due| due <= now);
        if self.has_arrivals.is_none() && (is_due || self.tenant.rests_until() <= now) {
            // A time at which nobody rests, and which has passed: it is a look, not a wait.
            wait(std::slice::from_mut(self), Time::ZERO, Time::from_nanos(u64::MAX));
        }
        if is_due || self.has_arrivals == Some(true) {
            let result = self.tenant.round();
            self.note(result);
        }
    }

    fn note(&mut self, result: Result<(), NetError>) {
        match result {
            Err(error) => self.outcome = Some(Err(error)),
            Ok(()) if self.tenant.due().is_none() => self.outcome = Some(self.tenant.end()),
            Ok(()) => {}
        }
    }
}

/// Waits until something arrives at a tenant that does not rest, or it is `until`.
fn wait(tenants: &mut [Running<'_>], until: Time, now: Time) {
    let is_polled = |running: &Running<'_>| running.outcome.is_none() && running.tenant.rests_until() <= now;
    let mut waiting = Vec::new();
    let mut counts = Vec::with_capacity(tenants.len());
    for running in tenants.iter() {
        let before = waiting.len();
        if is_polled(running) {
            running.tenant.waiting(&mut waiting);
        }
        counts.push(waiting.len() - before);
    }
    let result = clock::wait(&mut waiting, until);
    let found: Vec<PollFlags> = waiting.iter().map(clock::found).collect();
    let mut rest = &found[..];
    for (running, count) in tenants.iter_mut().zip(counts) {
        let (own, others) = rest.split_at(count);
        rest = others;
        running.has_arrivals = is_polled(running).then(|| own.iter().any(|flags| !flags.is_empty()));
        match &result {
            Ok(_) => running.tenant.set_ready(own),
            Err(error) => running.note(Err(NetError::Wait((*error).into()))),
        }
    }
}
