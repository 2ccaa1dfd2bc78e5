//! The library as a program embeds it: options, an observer, a call.

#![expect(clippy::disallowed_methods, reason = "drives real sockets: it waits and reads the clock")]

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use weir::events::{ReceiverEvent, SenderEvent};
use weir::{Exit, Recv, SendFile, SessionSource, receive_files, send_files};

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
fn options_have_the_defaults_of_the_command_line() {
    let send = SendFile::new(vec!["a".into(), "b".into()], "239.255.77.4:50776".parse().expect("a group and port"));
    assert_eq!((send.paths.len(), send.ttl, send.packet_size, send.rates.cc.name), (2, 1, 1456, "sluice"));
    let receive = Recv::new(SessionSource::Stdin);
    assert_eq!((receive.memory.count(), receive.overwrite), (256_000_000, false));
}
