//! The library as a program embeds it: options, an observer, a call.

#![expect(clippy::disallowed_methods, reason = "drives real sockets: it waits and reads the clock")]

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use weir::events::{ReceiverEvent, SenderEvent, Top};
use weir::{Exit, Recv, SendFile, SessionSource, receive_files, send_files};
use weir_core::registry::OfferedRates;
use weir_net::Description;
use weir_units::Rate;

const LOOPBACK: &str = "127.0.0.1";

fn sending(file: &Path, description: &Path, to: &str) -> SendFile {
    let to: SocketAddr = to.parse().expect("a group and port");
    let mut send = SendFile::new(vec![file.to_owned()], to);
    send.iface = Some(LOOPBACK.to_owned());
    send.session = description.to_owned();
    send.receipts = Some(1);
    send.duration = Some(Duration::from_secs(60));
    send
}

fn receiving(description: &Path, folder: &Path) -> Recv {
    let mut receive = Recv::new(SessionSource::File(description.to_owned()));
    receive.iface = Some(LOOPBACK.to_owned());
    receive.out = Some(folder.to_owned());
    receive.duration = Some(Duration::from_secs(60));
    receive
}

fn wait_for(file: &Path) {
    let begun = Instant::now();
    while !file.exists() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{} is not written", file.display());
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_one_call_sends_another_receives_and_both_hear_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, description) = (folder.path().join("content.bin"), folder.path().join("session.sdp"));
    let content: Vec<u8> = (0..1_000_000_u32).map(|number| (number % 251) as u8).collect();
    std::fs::write(&file, &content).expect("written");
    let send = sending(&file, &description, "239.255.77.2:50772");
    let sender = thread::spawn(move || {
        let mut receipts = 0;
        let ended = send_files(&send, &mut |event: &SenderEvent| {
            receipts += u32::from(matches!(event, SenderEvent::Receipt(_)));
            ControlFlow::Continue(())
        });
        (ended, receipts)
    });
    wait_for(&description);
    let out = folder.path().join("out");
    let mut verified = 0;
    let received = receive_files(&receiving(&description, &out), &mut |event: &ReceiverEvent| {
        verified += u32::from(matches!(event, ReceiverEvent::File(file) if file.verified));
        ControlFlow::Continue(())
    });
    assert_eq!((received, verified), (Ok(Exit::Done), 1));
    assert_eq!(sender.join().expect("no panic"), (Ok(Exit::Done), 1));
    assert_eq!(std::fs::read(out.join("content.bin")).expect("it is there"), content);
}

#[test]
fn an_observer_that_breaks_ends_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, description) = (folder.path().join("content.bin"), folder.path().join("session.sdp"));
    std::fs::write(&file, [7; 1_000]).expect("written");
    let mut send = sending(&file, &description, "239.255.77.3:50774");
    send.receipts = None;
    let begun = Instant::now();
    let sent = send_files(&send, &mut |event: &SenderEvent| match event {
        SenderEvent::Progress(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    assert_eq!(sent, Ok(Exit::Done));
    // Nobody sends any more, and the receiver would wait for its 60 s.
    let out = folder.path().join("out");
    let received = receive_files(&receiving(&description, &out), &mut |event: &ReceiverEvent| match event {
        ReceiverEvent::Progress(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    assert_eq!(received, Ok(Exit::Interrupted));
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

#[test]
fn the_highest_rate_on_the_loopback_is_100_mbit_s_and_a_description_with_other_rates_is_spoken_of() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, description) = (folder.path().join("content.bin"), folder.path().join("session.sdp"));
    std::fs::write(&file, [7; 1_000]).expect("written");
    let mut send = sending(&file, &description, "239.255.77.5:50778");
    (send.receipts, send.tsi, send.key) = (None, Some(7), Some(folder.path().join("key")));
    let begun = |send: &SendFile| {
        let (mut starts, mut troubles) = (Vec::new(), Vec::new());
        let ended = send_files(send, &mut |event: &SenderEvent| {
            match event {
                SenderEvent::Start(start) => starts.push(start.clone()),
                SenderEvent::Error(trouble) => troubles.push(trouble.message.clone()),
                _ => return ControlFlow::Break(()),
            }
            ControlFlow::Continue(())
        });
        assert_eq!((ended, starts.len()), (Ok(Exit::Done), 1));
        (starts.remove(0), troubles)
    };
    send.describe = true;
    assert_eq!(send_files(&send, &mut |_: &SenderEvent| ControlFlow::Continue(())), Ok(Exit::Done));
    let described = std::fs::read_to_string(&description).expect("it was described");
    send.describe = false;
    let (start, troubles) = begun(&send);
    assert_eq!((start.top, start.interface_speed_bps), (Top::Virtual, None));
    assert_eq!((start.rates_bps.last(), troubles), (Some(&100_000_000), Vec::new()));
    // It says no more than that the sender has started again.
    let again = std::fs::read_to_string(&description).expect("still there");
    let [before, after] = [&described, &again].map(|text| text.parse::<Description>().expect("a description"));
    assert!(after.epoch > before.epoch, "{:?} and then {:?}", before.epoch, after.epoch);
    assert_eq!(Description { epoch: before.epoch, ..after.clone() }, before);
    // To describe it again, which may be while it is sent, is no start.
    send.describe = true;
    assert_eq!(send_files(&send, &mut |_: &SenderEvent| ControlFlow::Continue(())), Ok(Exit::Done));
    let described = std::fs::read_to_string(&description).expect("it was described");
    assert_eq!(described.parse::<Description>().expect("a description").epoch, after.epoch);
    send.describe = false;

    let twenty = OfferedRates { low: Rate::from_mbps(1), high: Rate::from_mbps(20), ratio: 1.5 };
    send.rates.choose(twenty);
    let (start, troubles) = begun(&send);
    assert_eq!((start.top, start.rates_bps.last()), (Top::Asked, Some(&20_000_000)));
    assert!(troubles.len() == 1 && troubles[0].contains("other rates"), "{troubles:?}");
}

#[test]
fn options_have_the_defaults_of_the_command_line() {
    let send = SendFile::new(vec!["a".into(), "b".into()], "239.255.77.4:50776".parse().expect("a group and port"));
    assert_eq!((send.paths.len(), send.ttl, send.packet_size, send.rates.cc.name), (2, 1, None, "sluice"));
    let receive = Recv::new(SessionSource::Stdin);
    assert_eq!((receive.memory.count(), receive.overwrite), (256_000_000, false));
}
