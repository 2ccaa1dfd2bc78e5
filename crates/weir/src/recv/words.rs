//! What a receiver tells its user, in words.

use weir_object::name::Name;
use weir_units::Rate;

/// What to tell of a network that sends what nobody here asked for.
pub(crate) fn flooded(received: Rate) -> String {
    format!(
        "the path is full whatever this receiver leaves, and brings it {received}: a switch sends every channel to every port, or other traffic \
         fills the path. The sender is asked to send less for a while. Turn on IGMP snooping (for IPv6 MLD snooping) and an IGMP querier on the \
         switch, or have the sender send with a lower --rates"
    )
}

/// What to tell of a path that loses this part of its packets without a queue.
pub(crate) fn lossy(lost: f64) -> String {
    let own_loss = (OWN_LOSS_MARGIN * lost / OWN_LOSS_STEP).ceil() * OWN_LOSS_STEP;
    format!(
        "the path loses {:.0} % of its packets although no queue stands, and giving way has not helped. Weir takes that for congestion, so the rate stays low. \
         Where a radio link does it, as Wi-Fi does to multicast, have the sender send with --cc-set own_loss={own_loss:.2}, or with the one --rates that the path carries",
        lost * 100.0
    )
}

/// A path's losses vary from second to second, so the setting allows for more than was seen, in round numbers.
const OWN_LOSS_MARGIN: f64 = 2.0;
const OWN_LOSS_STEP: f64 = 0.05;

/// What to tell of a block that is not the sender's.
pub(super) fn bad_block(name: &Name) -> String {
    format!(
        "a part of {name} is not what the sender has: its packets were forged or damaged on the way, or this host's memory or disk spoiled them. It comes \
         again. More of this is counted in the end and not told; where it does not end, find the host that sends to the session's groups, or check \
         this host's memory and disk"
    )
}

/// What to tell of a file system that takes less than files have.
pub(super) fn attributes_refused(name: &str, error: &std::io::Error) -> String {
    format!(
        "{name} is there without the permissions or the time that it had, and may be more open: the file system refuses them ({error}). Other files may be \
         in the same state; this is reported once"
    )
}

/// What to tell of a table that has expired.
pub(super) fn expired_table(ago_secs: u32) -> String {
    format!(
        "the sender's table of files expired {ago_secs} s ago by this host's clock, and is ignored: somebody plays an old session again, or the clock of \
         this host or the sender's is wrong"
    )
}

/// What to tell of a table that is older than the last one.
pub(super) const OLD_TABLE: &str = "a table of files of an earlier start of the sender came, and is ignored: somebody plays an old session again, or two senders \
                         use one key and one TSI";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lossy_path_is_named_with_a_setting_of_twice_what_is_lost_in_round_numbers() {
        assert!(lossy(0.08).contains("loses 8 %") && lossy(0.08).contains("own_loss=0.20,"));
        assert!(lossy(0.25).contains("own_loss=0.50,"), "the most that there is");
    }
}
