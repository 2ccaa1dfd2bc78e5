//! What links become during a run, and which of them are watched.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_link::LinkConfig;
use weir_sim::{LinkId, Network};
use weir_units::Time;

use super::RunError;
use super::recorder::Recorder;
use super::site::Site;
use super::watched::WatchedLink;
use crate::metric::{Capacity, LinkRecord};
use crate::scenario::Setup;

/// What becomes of a link when.
pub(super) struct Becoming {
    pub(super) at: Time,
    pub(super) link: LinkId,
    pub(super) config: LinkConfig,
}

/// All changes of links, in the order of their times.
pub(super) fn changes(setup: &Setup, site: &Site<'_>, network: &Network) -> Result<Vec<Becoming>, RunError> {
    let mut all = Vec::new();
    for change in &setup.change {
        let link = site.link(network, change.between.as_ref())?;
        let every = change.every.map_or(setup.duration.0, |every| every.0);
        let times = (0..).map(|n| change.at.0 + every * n).take_while(|at| *at < setup.duration.0);
        let before = network.link_config(link);
        for at in times.map(|at| Time::ZERO + at) {
            let becomes = change.link.iter().map(|becomes| (Duration::ZERO, becomes.0.clone()));
            let steps = change.rates.0.iter().take_while(|(step, _)| *step < every);
            let steps = steps.map(|(step, rate)| (*step, LinkConfig { rate: Some(*rate), ..before.clone() }));
            all.extend(becomes.chain(steps).map(|(after, config)| Becoming { at: at + after, link, config }));
        }
    }
    all.sort_by_key(|becoming| becoming.at);
    Ok(all)
}

/// Watches the bottleneck and the links that measures and series name.
pub(super) fn recorder(
    setup: &Setup,
    site: &Site<'_>,
    network: &Network,
    changes: &[Becoming],
) -> Result<Recorder, RunError> {
    let measures = setup.metrics.values().map(|measure| (&measure.link, measure.needs_waits()));
    let series = setup.series.values().map(|trace| (&trace.link, trace.needs_waits()));
    let mut wanted = vec![(site.bottleneck, false)];
    let mut names = BTreeMap::new();
    for (name, waits) in measures.chain(series) {
        let link = site.link(network, name.as_ref())?;
        let place = wanted.iter().position(|(known, _)| *known == link).unwrap_or_else(|| {
            wanted.push((link, false));
            wanted.len() - 1
        });
        wanted[place].1 |= waits;
        names.extend(name.iter().map(|name| (name.clone(), place)));
    }
    let capacity = |config: &LinkConfig| Capacity { rate: config.rate, delay: config.delay };
    let links = wanted.into_iter().map(|(id, waits)| {
        let own = changes.iter().filter(|becoming| becoming.link == id);
        let later = own.map(|becoming| (becoming.at, capacity(&becoming.config)));
        let all = std::iter::once((Time::ZERO, capacity(network.link_config(id)))).chain(later).collect();
        WatchedLink::new(id, LinkRecord { capacity: all, ..LinkRecord::default() }, waits)
    });
    Ok(Recorder::new(links.collect(), names))
}
