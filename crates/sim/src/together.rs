//! Packets that reach many endpoints in one instant, handled by several threads, with the same result as by one.
//!
//! What an endpoint decides depends on itself and its packet alone. So endpoints may decide at the same time, if what they
//! want is carried out afterwards, in the order in which their packets came. Whatever is no endpoint sees its packet then.

use std::collections::VecDeque;
use std::ops::Range;

use weir_core::Action;
use weir_units::Time;

use crate::AgentId;
use crate::agent::Agent;
use crate::packet::{Handle, Pool};

/// Threads, and what the agents of each made of their packets.
#[derive(Debug)]
pub(crate) struct Together {
    logs: Vec<Log>,
}

#[derive(Debug, Default)]
struct Log {
    /// The agents that this log is of.
    agents: Range<usize>,
    replies: VecDeque<Reply>,
    /// What the replies count, one after the other.
    actions: VecDeque<Action>,
}

/// What an agent made of a packet, unless it was an endpoint that wanted the payload given to its application and nothing
/// else: so it is with most packets, and of these nothing is written.
#[derive(Debug)]
pub(crate) struct Reply {
    /// The packet's place among those that have reached agents.
    place: usize,
    pub(crate) outcome: Outcome,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing yet: it is no endpoint.
    Unseen,
    /// The endpoint handled it.
    Seen {
        /// Whether the first thing it wanted was the payload given to its application.
        delivers: bool,
        /// How many other things it wanted: [`Together::action`] has them.
        actions: usize,
        /// When it is to be woken, if an event is to be put out for that.
        wake: Option<Time>,
    },
}

impl Outcome {
    const USUAL: Outcome = Outcome::Seen { delivers: true, actions: 0, wake: None };
}

impl Together {
    pub(crate) fn new(threads: usize) -> Together {
        Together { logs: (0..threads).map(|_| Log::default()).collect() }
    }

    /// Whether this number of packets is worth the threads.
    pub(crate) fn is_worth(&self, packets: usize) -> bool {
        self.logs.len() > 1 && packets >= MANY
    }

    /// Lets endpoints handle the packets that have reached them at `now`. The last share is this thread's own.
    pub(crate) fn handle(&mut self, now: Time, reached: &[(AgentId, Handle)], pool: &Pool, agents: &mut [Agent]) {
        self.divide(reached.iter().map(|(agent, _)| agent.index()), agents.len());
        let Some((own, others)) = self.logs.split_last_mut() else { return };
        std::thread::scope(|scope| {
            let mut rest = agents;
            for log in others {
                let (theirs, others) = rest.split_at_mut(log.agents.len());
                rest = others;
                scope.spawn(move || log.handle(now, reached, pool, theirs));
            }
            own.handle(now, reached, pool, rest);
        });
    }

    /// Gives every thread about as many packets, to judge by a sample. They come in no order of their agents: where levels
    /// differ, some have waited behind others.
    fn divide(&mut self, reached: impl Iterator<Item = usize>, agents: usize) {
        let mut sample: Vec<usize> = reached.step_by(SAMPLE_STEP).collect();
        sample.sort_unstable();
        let (threads, mut begin) = (self.logs.len(), 0);
        for (number, log) in self.logs.iter_mut().enumerate() {
            let end = sample.get(sample.len() * (number + 1) / threads).copied().unwrap_or(agents);
            log.agents = begin..end;
            begin = end;
        }
    }

    /// What its agent made of the packet of this place. They are asked about in order, every one.
    #[inline]
    pub(crate) fn outcome(&mut self, place: usize) -> Outcome {
        let next = |log: &&mut Log| log.replies.front().is_some_and(|reply| reply.place == place);
        let reply = self.logs.iter_mut().find(next).and_then(|log| log.replies.pop_front());
        reply.map_or(Outcome::USUAL, |reply| reply.outcome)
    }

    /// The next thing that the agent wanted when it handled the packet asked about last.
    pub(crate) fn action(&mut self, agent: AgentId) -> Option<Action> {
        self.log(agent)?.actions.pop_front()
    }

    fn log(&mut self, agent: AgentId) -> Option<&mut Log> {
        self.logs.iter_mut().find(|log| log.agents.contains(&agent.index()))
    }
}

impl Log {
    fn handle(&mut self, now: Time, reached: &[(AgentId, Handle)], pool: &Pool, agents: &mut [Agent]) {
        let packets = reached.iter().enumerate();
        for (place, (agent, handle)) in packets.filter(|(_, (agent, _))| self.agents.contains(&agent.index())) {
            let (mut delivers, begin) = (false, self.actions.len());
            let agent = &mut agents[agent.index() - self.agents.start];
            let seen = agent.receive_apart(now, pool.get(*handle), &mut |action| match action {
                Action::Deliver { number: None } if !delivers && self.actions.len() == begin => delivers = true,
                action => self.actions.push_back(action.clone()),
            });
            let outcome = match seen {
                None => Outcome::Unseen,
                Some(wake) => Outcome::Seen { delivers, actions: self.actions.len() - begin, wake },
            };
            if outcome != Outcome::USUAL {
                self.replies.push_back(Reply { place, outcome });
            }
        }
    }
}

/// Packets in one instant from which on threads save more than they cost.
const MANY: usize = 2_000;
/// One packet in this number tells where the agents are that packets have reached.
const SAMPLE_STEP: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_get_equal_shares_of_packets_that_come_in_no_order() {
        let is_late = |agent: &usize| agent.is_multiple_of(5);
        let agents = || 10_000..40_000;
        let reached: Vec<usize> = agents().filter(|agent| !is_late(agent)).chain(agents().filter(is_late)).collect();
        let mut together = Together::new(3);
        together.divide(reached.iter().copied(), 50_000);
        for log in &together.logs {
            let share = reached.iter().filter(|agent| log.agents.contains(agent)).count();
            assert!((9_900..=10_100).contains(&share), "{share} of 30 000");
        }
        assert_eq!((together.logs[0].agents.start, together.logs[2].agents.end), (0, 50_000));
    }
}
