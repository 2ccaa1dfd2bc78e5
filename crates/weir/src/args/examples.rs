//! Examples for the help texts of the commands.

pub(super) const TOP_EXAMPLES: &str = "\
Examples:
  weir send file image.iso --to 239.255.0.1:5004 --receipts 40
  weir recv weir.sdp --out /srv/images
  weir doctor --iface eth0
  weir key new
  weir send live --unicast 5004 --in movie.ts
  weir recv sender.example.org:5004 | mpv -
  weir demo
  weir lab verify avmrc

`weir COMMAND --help` tells more, with examples and exit codes.";

pub(super) const SEND_EXAMPLES: &str = "\
Examples:
  weir send file image.iso --to 239.255.0.1:5004 --receipts 40
      writes weir.sdp, sends until 40 receivers have verified image.iso
  weir send file maps/ --to 239.255.0.1:5004 --for 2h --rates 64k..20M --ttl 8
      a folder, for two hours, over up to seven routers, to sites on
      64 kbit/s and better
  weir send file b.iso --to 239.255.0.1:5004 --iface eth0 --rates 64k..
      up to what suits eth0, to sites on 64 kbit/s and better
  weir send file a.bin --to 239.255.0.1:5004 --key my.key --describe
      only writes weir.sdp, to be handed out before the session starts
  weir send file a.bin --to 239.255.0.1:5004 --expect hosts.txt --for 4h
      until all hosts in the list have it, with a table of results
  weir send file a.bin --to 239.255.0.1:5004 --announce --receipts 40
      to receivers that wait for it: weir recv --announced
  weir send file a.bin --to 239.255.0.1:5004 --encrypt --readers hosts.txt
      packets that only the hosts in the list can read

Receivers that come late, sleep or restart lose nothing: what is sent is
always new.";

pub(super) const LIVE_EXAMPLES: &str = "\
Examples:
  ffmpeg -re -i movie.mp4 -c copy -f mpegts - | weir send live --unicast 5004
      viewers receive it with `weir recv HOST:5004 --out rtp://127.0.0.1:6000`
  weir send live --unicast 5004 --in big.tar --cc-set max_rate=20M
  weir send live --unicast 192.0.2.7:5004 --in rtp://127.0.0.1:6000
  weir send live --unicast 5004 --in movie.ts --encrypt
      says its key, by which viewers know it: weir recv HOST:5004 --sender-key KEY

Each viewer gets the stream at the rate that its own path can carry. A pipe, or
a file without a clock, is read as fast as the slowest viewer gets it, and the
program that writes waits. RTP and datagrams do not wait, nor do several viewers
of a file with a clock: what a viewer has not got within --latency is dropped
for that viewer, and counted.";

pub(super) const MEDIA_EXAMPLES: &str = "\
Examples:
  weir send media --in clip.ivf --to 239.255.0.1:5004
      at the pictures' times, until the clip ends; a receiver takes it with
      weir recv weir.sdp --out - | mpv -
  ffmpeg -re -i movie.mp4 -an -c:v libvpx-vp9 -deadline realtime -cpu-used 8 \\
      -error-resilient 1 -lag-in-frames 0 -g 60 -b:v 1500k \\
      -minrate 1500k -maxrate 1500k -bufsize 1500k -ts-parameters \\
      ts_number_layers=3:ts_target_bitrate=600,1000,1500:ts_rate_decimator=4,2,1:\
ts_periodicity=4:ts_layer_id=0,2,1,2:ts_layering_mode=3 \\
      -f ivf - | weir send media --to 239.255.0.1:5004
      VP9 in three temporal layers: a quarter, half and all of the pictures
  weir send media --in clip.hevc --to 239.255.0.1:5004 --latency 500ms
  weir send media --in base.ivf --layer middle.ivf --layer top.ivf --unicast 5004
  weir send media --in rtp://127.0.0.1:6000 --codec vp9 --to 239.255.0.1:5004
  weir send media --in clip.ivf --to 239.255.0.1:5004 --encrypt --readers hosts.txt
  weir send media --in rtp://127.0.0.1:6000 --layer rtp://127.0.0.1:6002 --codec vp9 --unicast 5004
  weir send media --in clip.ivf --unicast 5004
      to viewers who ask (weir recv HOST:5004), each as many layers as its path
      carries; a file goes ahead of its time, by up to 20 s

The layers are what the stream has, whatever the encoder was told. A receiver
that joins late begins with the next key picture: let the encoder make one every
second or two (-g).";

pub(super) const STREAM_EXAMPLES: &str = "\
Examples:
  tail -f log | weir send stream --to 239.255.0.1:5004 --receivers 3
      prints the address that receivers need, waits for three of them, and
      ends when all have everything
  weir recv stream://192.0.2.7:5005/239.255.0.1:5004/4711/1456 > copy
  weir send stream --to 239.255.0.1:5004 --in dump.sql --keep 1G --min-rate 1M
      a late receiver gets up to 1 GB from before, and one that takes less than
      1 Mbit/s for a minute is waited for no more

Every receiver gets every byte, at the rate of the slowest. Each finds the
nearest node with room for it, the sender or another receiver or an agent, and
another one if that is lost. Nothing is encrypted.";

pub(super) const AGENT_EXAMPLES: &str = "\
Examples:
  weir agent stream://192.0.2.7:5005/239.255.0.1:5004/4711/1456 --listen 6000

Receivers near an agent find it: the sender tells them of it. It then hears one
voice for all of them, and what one lacks comes from the agent. Where no
multicast comes from the sender, the node above sends the agent the stream, and
the agent sends it to the group: one such agent serves a whole site.";

pub(super) const RECV_EXAMPLES: &str = "\
Examples:
  weir recv weir.sdp --out /srv/images
  weir recv weir.sdp --out /dev/sdb --overwrite
      the image of a disk to a disk that nothing uses, as it comes
  weir recv https://updates.example.org/weir.sdp --out . --for 1h --json
  weir recv weir.sdp --sender-key sender.key.pub --out .
  ssh sender cat weir.sdp | weir recv - --out .
  weir recv weir.sdp --out trial --link rate=2mbit,delay=20ms,buffer=100ms
  weir recv audio.sdp video.sdp --priority 2,1 --out .
  weir recv --announced --sender-key sender.key.pub --out /srv --hook ./done
      stays, and takes every session that this sender announces
  weir recv sender.example.org:5004 | mpv -
  weir recv 192.0.2.7:5004 --out rtp://127.0.0.1:6000 --sdp live.sdp
      a live stream; a player opens live.sdp. Packets that overtook others are
      put back in order, for which one waits 30 ms at most

A receiver that was stopped goes on where it was when it is started again
with the same --out.";

pub(super) const KEY_EXAMPLES: &str = "\
Examples:
  weir key new
      on the sender, once; from then on `weir send` signs with it
  weir key show
      what receivers give as `weir recv --sender-key`
  weir key new site.key && weir send file a.iso --to 239.255.0.1:5004 --key site.key
  weir key host
      on a receiver: its line for the sender's --readers and --expect

A receiver that fetches descriptions from the web remembers their key the first
time, and refuses another one later.";

pub(super) const DOCTOR_EXAMPLES: &str = "\
Examples:
  weir doctor --iface eth0
      on the sender and on a receiver at the same time: each hears the other
  weir doctor weir.sdp --for 130s
      whether the session's packets come here, and who asks for memberships

It changes nothing. As root it sees more: queriers, and packets that this host
drops.";

pub(super) const DEMO_EXAMPLES: &str = "\
Examples:
  weir demo
      a made-up file of 12.5 MB to links of 2, 8, 32 and 100 Mbit/s;
      the slowest takes about a minute
  weir demo photo.tif --links 500k,4M,50M --loss 1%

Needs no privileges and no configuration: everything goes over this
machine's loopback interface. It leaves report.html, overview.svg and
summary.json in --out, with the received files, logs and events in run/.";

pub(super) const DEMO_LIVE_EXAMPLES: &str = "\
Examples:
  weir demo-live
      half a minute of made-up video in three temporal layers to links of
      1, 3 and 8 Mbit/s
  weir demo-live --length 60s --links 1.2M,4M,20M --loss 1%
  weir demo-live clip.ivf --cc avmrc
      a clip of your own, encoded as `weir send media --help` shows

Needs ffmpeg, no privileges and no configuration: everything goes over this
machine's loopback interface. It leaves report.html and summary.json in --out,
with the received clips, pictures, logs and events in run/. The exit code is 0
if every output decodes without an error, frame rates rise with the links, and
the base layer paused nowhere for longer than --pause; it is 1 if not.";

pub(super) const LAB_EXAMPLES: &str = "\
Examples:
  weir lab list
  weir lab run avmrc/fig02
  weir lab verify avmrc
  weir lab report --out report.html

Runs are simulated: the same scenario and the same seeds give the same
numbers on every machine. Results are kept, and no run is made twice.";

pub(super) const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  weir completions bash | sudo tee /etc/bash_completion.d/weir
  weir completions zsh > ~/.zfunc/_weir
  weir completions fish > ~/.config/fish/completions/weir.fish";
