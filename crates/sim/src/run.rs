//! A network runs, and says what has become of its parts.

use std::time::Duration;

use weir_link::Counters;
use weir_units::Time;

use crate::agent::{Agent, Received};
use crate::fabric::{Control, Due};
use crate::party::Party;
use crate::together::Outcome;
use crate::{AgentId, FlowId, LinkId, Monitor, Network, NodeId};

impl Network {
    /// Runs until `until`, that instant included.
    pub fn run_until(&mut self, until: Time, monitor: &mut impl Monitor) {
        while let Some((now, due)) = self.fabric.events.pop(until) {
            self.now = now;
            match due {
                Due::Link(link) => self.fabric.arrivals(now, link, monitor),
                Due::Agent(agent) => self.agents[agent.index()].wake(now, agent, &mut self.fabric, monitor),
                Due::Control(number) => self.control(number, monitor),
            }
            // First everything moves, then everybody looks at what has come: each of the two loops stays with its own data.
            if !self.fabric.reached.is_empty() && !self.fabric.events.has_more_now() {
                self.hand_over(monitor);
            }
        }
        self.now = self.now.max(until);
    }

    /// Packets that have reached their agents in this instant are given to them.
    fn hand_over(&mut self, monitor: &mut impl Monitor) {
        if self.together.is_worth(self.fabric.reached.len()) {
            self.hand_over_together(monitor);
        }
        while let Some((agent, handle)) = self.fabric.reached.pop_front() {
            let packet = *self.fabric.pool.get(handle);
            self.fabric.pool.release(handle);
            self.agents[agent.index()].receive(self.now, agent, &packet, &mut self.fabric, monitor);
        }
    }

    /// The same, with several threads; after that, what the endpoints wanted is done in the order of their packets.
    #[cold]
    fn hand_over_together(&mut self, monitor: &mut impl Monitor) {
        let now = self.now;
        let mut reached = std::mem::take(&mut self.fabric.reached);
        self.together.handle(now, reached.make_contiguous(), &self.fabric.pool, &mut self.agents);
        for (place, (id, handle)) in reached.drain(..).enumerate() {
            let packet = *self.fabric.pool.get(handle);
            self.fabric.pool.release(handle);
            match self.together.outcome(place) {
                Outcome::Unseen => self.agents[id.index()].receive(now, id, &packet, &mut self.fabric, monitor),
                Outcome::Seen { delivers, actions, wake } => {
                    monitor.arrive(now, id, &packet);
                    if delivers {
                        monitor.deliver(now, id, packet.size.count(), None);
                    }
                    for action in (0..actions).map_while(|_| self.together.action(id)) {
                        self.agents[id.index()].carry_out(now, id, &packet, &action, &mut self.fabric, monitor);
                    }
                    if let Some(at) = wake {
                        self.fabric.events.push(at, Due::Agent(id));
                    }
                }
            }
        }
        // What has reached agents meanwhile comes next.
        reached.append(&mut self.fabric.reached);
        self.fabric.reached = reached;
    }

    fn control(&mut self, number: u32, monitor: &mut impl Monitor) {
        let now = self.now;
        match self.fabric.take_control(number) {
            Control::Start(agent) => self.agents[agent.index()].start(now, agent, &mut self.fabric, monitor),
            Control::Stop(agent) => {
                self.agents[agent.index()].stop(now, agent, &mut self.fabric, monitor);
                self.say_goodbye(agent);
            }
            Control::Link(link, config) => self.fabric.change_link(now, link, &config, monitor),
            Control::Membership(tree, pending) => self.fabric.change_above(now, tree, pending),
            Control::Goodbye(from, to) => self.bring_goodbye(from, to, monitor),
            Control::Reached(by, at) if self.is_reachable(at) => {
                self.agents[by.index()].on_reached(now, by, at, &mut self.fabric, monitor);
            }
            Control::Reached(..) => {}
        }
    }

    /// Whether an agent takes part, and takes those who contact it.
    fn is_reachable(&self, agent: AgentId) -> bool {
        self.agents.get(agent.index()).and_then(Agent::party).is_some_and(Party::is_reachable)
    }

    /// An endpoint that has stopped says goodbye to those whom it knows, if they may know it.
    fn say_goodbye(&mut self, from: AgentId) {
        let Some(party) = self.agents[from.index()].party().filter(|party| party.has_started()) else { return };
        for to in party.correspondents() {
            if self.agents[to.index()].party().is_some_and(|other| other.may_know(from)) {
                self.fabric.schedule(self.now, Control::Goodbye(from, to));
            }
        }
    }

    /// A goodbye is no packet, so that it is not lost and delays nobody. It comes when nothing else is on its way.
    fn bring_goodbye(&mut self, from: AgentId, to: AgentId, monitor: &mut impl Monitor) {
        match self.fabric.pool.has_any(from, to) {
            true => self.fabric.schedule(self.now + GOODBYE_STEP, Control::Goodbye(from, to)),
            false => self.agents[to.index()].on_goodbye(self.now, to, from, &mut self.fabric, monitor),
        }
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// What a link has done so far.
    pub fn link_counters(&self, link: LinkId) -> Counters {
        self.fabric.link(link).counters()
    }

    /// Packets that wait on a link, not counting the one that is being sent.
    pub fn waiting(&self, link: LinkId) -> usize {
        self.fabric.link(link).waiting(self.now)
    }

    /// Packets that have come out of all links together.
    pub fn link_traversals(&self) -> u64 {
        self.fabric.traversals()
    }

    /// What has arrived at an agent.
    pub fn received(&self, agent: AgentId) -> Received {
        self.agents[agent.index()].received
    }

    /// The node on which an agent is.
    pub fn node_of(&self, agent: AgentId) -> NodeId {
        self.agents[agent.index()].node
    }

    /// The flow to which what an agent sends belongs.
    pub fn flow_of(&self, agent: AgentId) -> FlowId {
        self.agents[agent.index()].flow
    }

    /// Packets that are on links.
    pub fn travelling(&self) -> usize {
        self.fabric.pool.len()
    }
}

/// How often it is looked whether the last packets before a goodbye have come.
const GOODBYE_STEP: Duration = Duration::from_millis(1);
