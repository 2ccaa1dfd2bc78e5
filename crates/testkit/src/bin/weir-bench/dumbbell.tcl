# 64 endless TCP connections over one bottleneck, as weir-sim-load's "tcp" has them. ns dumbbell.tcl SECONDS MONITOR
# Prints the packets that left the bottleneck (0 without MONITOR), those that arrived in order, and the scheduler's events.
set seconds [lindex $argv 0]
set monitor [lindex $argv 1]
remove-all-packet-headers
add-packet-header IP TCP Flags
set ns [new Simulator]
Queue set limit_ 100000
Agent/TCP set packetSize_ 1000
Agent/TCP set window_ 100000
Agent/TCP set overhead_ 0
set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right 50Mb 20ms DropTail
$ns queue-limit $left $right 275
if {$monitor} { set queue [$ns monitor-queue $left $right ""] }
for {set i 0} {$i < 64} {incr i} {
    set from [$ns node]
    set to [$ns node]
    $ns duplex-link $from $left 1000Mb 1ms DropTail
    $ns duplex-link $right $to 1000Mb 1ms DropTail
    set tcp($i) [new Agent/TCP/Sack1]
    set sink [new Agent/TCPSink/Sack1]
    $ns attach-agent $from $tcp($i)
    $ns attach-agent $to $sink
    $ns connect $tcp($i) $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp($i)
    $ns at [expr {$i / 64.0}] "$ftp start"
}
$ns at $seconds {
    set acked 0
    for {set i 0} {$i < 64} {incr i} { incr acked [$tcp($i) set ack_] }
    puts "[expr {$monitor ? [$queue set pdepartures_] : 0}] $acked [$ns at [expr {[$ns now] + 1}] {}]"
    exit 0
}
$ns run
