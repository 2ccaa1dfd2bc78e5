//! Which number of an event is which metric.

use serde_json::{Map, Value};

/// A metric: a field of the `progress` and `end` events of any command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// The field.
    pub(super) field: &'static str,
    /// The metric's name, without the `_total` of a counter.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// From the field's unit to the metric's.
    pub(super) scale: f64,
    pub(super) help: &'static str,
}

/// What may be computed from a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Only grows while a session lasts.
    Counter,
    /// Goes up and down.
    Gauge,
}

const fn counter(field: &'static str, name: &'static str, help: &'static str) -> Row {
    Row { field, name, kind: Kind::Counter, scale: 1.0, help }
}

const fn gauge(field: &'static str, name: &'static str, help: &'static str) -> Row {
    Row { field, name, kind: Kind::Gauge, scale: 1.0, help }
}

/// Milliseconds in the event, seconds in the metric, as Prometheus has them.
const fn delay(field: &'static str, name: &'static str, help: &'static str) -> Row {
    Row { field, name, kind: Kind::Gauge, scale: 1e-3, help }
}

/// Whether a session runs: not a field but a matter of its `start` and `end`.
pub(super) const RUNNING: &str = "weir_running";
pub(super) const EVENTS: &str = "weir_events";
pub(super) const EVENTS_HELP: &str = "Events of docs/events.md by kind, and by what sort of it";

/// All of them.
pub(super) const ROWS: &[Row] = &[
    gauge("", RUNNING, "Whether the session runs: 1 from its start to its end, then 0"),
    counter("received_bytes", "weir_received_bytes", "Bytes of packets received, all headers included"),
    counter("received_packets", "weir_received_packets", "Packets received"),
    counter("sent_bytes", "weir_sent_bytes", "Bytes of packets sent, all headers included"),
    counter("sent_packets", "weir_sent_packets", "Packets sent"),
    counter("useful_bytes", "weir_useful_bytes", "Bytes of content gained: symbols that were new"),
    gauge("needed_bytes", "weir_needed_bytes", "Bytes of content needed"),
    counter("payload_bytes", "weir_payload_bytes", "Bytes of content of a live stream"),
    counter("stream_bytes", "weir_stream_bytes", "Bytes of a stream over a tree, sent or given out in order"),
    gauge("rate_bps", "weir_rate_bits_per_second", "Rate sent or received since the progress event before"),
    counter("lost_packets", "weir_lost_packets", "Packets that the network lost"),
    counter(
        "host_dropped_packets",
        "weir_host_dropped_packets",
        "Packets that this host dropped after the network had delivered them",
    ),
    counter(
        "ignored_packets",
        "weir_ignored_packets",
        "Packets of other senders or sessions, or unreadable; known at the end",
    ),
    counter(
        "forged_packets",
        "weir_forged_packets",
        "Packets without the session's seal, or that came before; known at the end",
    ),
    counter("bad_blocks", "weir_bad_blocks", "Blocks that were forged or damaged in part; known at the end"),
    counter("bad_tables", "weir_bad_tables", "Tables of files that the sender had not signed; known at the end"),
    counter("old_tables", "weir_old_tables", "Signed tables of files that were out of date; known at the end"),
    counter(
        "recovered_packets",
        "weir_recovered_packets",
        "Packets of a live stream that came after later ones and in time: sent again, or overtaken",
    ),
    counter(
        "resent_packets",
        "weir_resent_packets",
        "Packets of a live stream whose content was sent to the same viewer before",
    ),
    counter("reconnects", "weir_reconnects", "How often a viewer took its stream again after its sender was gone"),
    counter("missed_s", "weir_missed_seconds", "How long nothing had come to a viewer before it took its stream again"),
    delay("lag_ms", "weir_lag_seconds", "From a live sender's input to a viewer's output, less the fastest way"),
    counter("late_packets", "weir_late_packets", "Packets of a live stream that came too late; known at the end"),
    counter("marked_packets", "weir_marked_packets", "Packets with a congestion mark; known at the end"),
    counter("ignored", "weir_ignored_messages", "Messages of others, or unreadable; known at the end"),
    counter(
        "turned_away",
        "weir_turned_away_viewers",
        "Questions of others while there was no room for another viewer; known at the end",
    ),
    counter(
        "forged_messages",
        "weir_forged_messages",
        "Reports and receipts of no receiver of this session; known at the end",
    ),
    counter(
        "overflowed_messages",
        "weir_overflowed_messages",
        "Reports and receipts without time or room; known at the end",
    ),
    gauge("loss_event_rate", "weir_loss_event_rate", "Short-term loss event rate, per packet"),
    delay("queuing_delay_ms", "weir_queuing_delay_seconds", "Short-term average of the one-way queuing delay"),
    delay("round_trip_ms", "weir_round_trip_seconds", "Round trip as measured last, or smoothed"),
    gauge("level", "weir_level", "Subscription level; of a stream over a tree, nodes from the sender to this one"),
    gauge("levels", "weir_levels", "Levels that there are"),
    gauge("level_rate_bps", "weir_level_rate_bits_per_second", "Rate of the subscription level"),
    gauge(
        "target_bps",
        "weir_target_bits_per_second",
        "Rate that the scheme aims at, or that a live sender's encoder should aim at for its slowest viewer",
    ),
    gauge(
        "allowed_bps",
        "weir_allowed_bits_per_second",
        "Least rate that congestion control allows a live sender to a viewer",
    ),
    counter("backoffs", "weir_backoffs", "How often congestion made a live sender's rate to a viewer fall"),
    gauge("waiting", "weir_waiting_payloads", "Payloads of a live stream that wait for the viewer farthest behind"),
    counter(
        "dropped",
        "weir_dropped_payloads",
        "Payloads of a live stream that waited for too long, counted for each viewer",
    ),
    counter(
        "layer_changes",
        "weir_layer_changes",
        "How often viewers of layered media got a layer more or less; known at the end",
    ),
    counter(
        "base_underflows",
        "weir_base_underflows",
        "How often viewers of layered media had nothing of the base layer to play; known at the end",
    ),
    counter("pictures", "weir_pictures", "Pictures of layered media, sent or put out"),
    counter("dropped_pictures", "weir_dropped_pictures", "Pictures that waited for too long at the sender"),
    counter(
        "withheld_pictures",
        "weir_withheld_pictures",
        "Pictures that came, and of which one that they need is missing",
    ),
    counter(
        "late_pictures",
        "weir_late_pictures",
        "Pictures that came when they were of no use any more; known at the end",
    ),
    counter("repair_packets", "weir_repair_packets", "Packets sent of repair and padding"),
    delay("waited_ms", "weir_waited_seconds", "For how long the picture that goes next has waited at the sender"),
    gauge("first_picture_s", "weir_first_picture_seconds", "From the start to the first picture; known at the end"),
    delay(
        "longest_pause_ms",
        "weir_longest_pause_seconds",
        "Longest time between two pictures of the base layer; known at the end",
    ),
    gauge("members", "weir_members", "Members right below this node of a tree"),
    gauge("window_packets", "weir_window_packets", "Congestion window of this node of a tree"),
    gauge("transit_packets", "weir_transit_packets", "Packets that not all members have acknowledged"),
    gauge("eta_s", "weir_eta_seconds", "Seconds to go at the present pace"),
    gauge("passes", "weir_passes", "Content sent, in times the size of the files"),
    gauge("receipts", "weir_receipts", "Receivers that have sent a receipt"),
    gauge("receivers", "weir_receivers", "Receivers that have told what they want and not left, where that is known"),
    gauge("lowest_bps", "weir_lowest_bits_per_second", "What the slowest of these receivers wants"),
    gauge("highest_bps", "weir_highest_bits_per_second", "What the fastest of these receivers wants"),
    gauge("complete", "weir_complete", "Whether everything came; known at the end"),
    gauge("verified", "weir_verified", "Whether everything is what the sender signed; known at the end"),
    gauge("files", "weir_files", "Files that came; known at the end"),
    gauge("bytes", "weir_files_bytes", "Size of the files that came; known at the end"),
    gauge("exit_code", "weir_exit_code", "The exit code; known at the end"),
    gauge("viewers", "weir_viewers", "Viewers that there are; at the end those that there were"),
    gauge("peers", "weir_peers", "Members that came, and the node above; known at the end"),
];

/// What sort of its kind an event is: the cause of a level, what became of an announcement. Never what others can make up.
pub(super) fn detail(kind: &str, fields: &Map<String, Value>) -> String {
    let text = |key| fields.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    match kind {
        "level" => text("cause"),
        "announced" | "result" => text("outcome"),
        "viewer" | "peer" | "place" => text("what"),
        "meeting" => text("stage"),
        // A message says what went wrong.
        "hook" if fields.get("message").is_some_and(|message| !message.is_null()) => "failed".to_owned(),
        "receipt" if fields.get("acknowledged") == Some(&Value::Bool(false)) => "unacknowledged".to_owned(),
        _ => String::new(),
    }
}
