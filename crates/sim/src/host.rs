//! What a host does beside running an endpoint: its clock is ahead, it is late with what is due, and its application hands
//! over payloads. Most hosts do none of these.

use std::time::Duration;

use weir_units::{Random, Time};

use crate::traffic::{Supply, UdpSource};

/// A host whose clock is ahead, that is late, or has an application with payloads to send.
#[derive(Debug, Default)]
pub(crate) struct Host {
    clock_ahead: Duration,
    lateness: Option<Lateness>,
    application: Option<Application>,
}

/// By how much it is late with each deadline: uniform between nothing and `most`.
#[derive(Debug)]
struct Lateness {
    most: Duration,
    random: Random,
    /// The deadline for which it was drawn, and when the host wakes for that.
    drawn: Option<(Time, Time)>,
}

#[derive(Debug)]
enum Application {
    Endless,
    Payloads(Box<UdpSource>),
}

impl Host {
    pub(crate) fn ahead(mut self, clock_ahead: Duration) -> Host {
        self.clock_ahead = clock_ahead;
        self
    }

    /// How far its clock is ahead of the network's.
    pub(crate) fn clock_ahead(&self) -> Duration {
        self.clock_ahead
    }

    pub(crate) fn late(mut self, most: Duration, random: Random) -> Host {
        self.lateness = Some(Lateness { most, random, drawn: None });
        self
    }

    /// `random` decides on the bursts of the application.
    pub(crate) fn with_supply(mut self, supply: Supply, random: Random) -> Host {
        self.application = Some(match supply {
            Supply::Endless => Application::Endless,
            Supply::Payloads(config) => Application::Payloads(Box::new(UdpSource::new(config, random))),
        });
        self
    }

    /// The application begins: gives how many payloads it has at once.
    pub(crate) fn start(&mut self, now: Time) -> u64 {
        let mut payloads = 0;
        match &mut self.application {
            Some(Application::Endless) => payloads = u64::MAX,
            Some(Application::Payloads(source)) => source.start(now, &mut |_| payloads += 1),
            None => {}
        }
        payloads
    }

    /// Gives how many payloads the application has more by now.
    pub(crate) fn expire(&mut self, now: Time) -> u64 {
        let mut payloads = 0;
        if let Some(Application::Payloads(source)) = &mut self.application {
            source.expire(now, &mut |_| payloads += 1);
        }
        payloads
    }

    /// The application has had enough.
    pub(crate) fn stop(&mut self) {
        self.application = None;
    }

    /// When the host has something to do for an endpoint with this deadline.
    pub(crate) fn wakes_at(&mut self, deadline: Option<Time>) -> Option<Time> {
        let late = deadline.map(|at| self.lateness.as_mut().map_or(at, |lateness| lateness.wakes_at(at)));
        let payloads = match &self.application {
            Some(Application::Payloads(source)) => source.deadline(),
            Some(Application::Endless) | None => None,
        };
        late.into_iter().chain(payloads).min()
    }
}

impl Lateness {
    /// Drawn once a deadline: what happens between does not change how late it will be.
    fn wakes_at(&mut self, deadline: Time) -> Time {
        match self.drawn {
            Some((known, wake)) if known == deadline => wake,
            _ => {
                let wake = deadline + self.most.mul_f64(self.random.unit());
                self.drawn = Some((deadline, wake));
                wake
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_late_by_one_draw_however_often_it_is_asked_for() {
        let most = Duration::from_millis(10);
        let mut host = Host::default().late(most, Random::new(1, "host"));
        let deadline = Time::from_secs(1);
        let wake = host.wakes_at(Some(deadline)).expect("there is a deadline");
        assert!((deadline..=deadline + most).contains(&wake));
        assert_eq!(host.wakes_at(Some(deadline)), Some(wake));
        assert_ne!(host.wakes_at(Some(Time::from_secs(2))), Some(wake + Duration::from_secs(1)));
        assert_eq!(host.wakes_at(None), None);
    }
}
