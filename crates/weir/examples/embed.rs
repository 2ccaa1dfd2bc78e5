//! Sends a file and receives it in one process, over this machine's loopback interface.
//!
//! `cargo run --example embed -- FILE FOLDER` puts FILE into FOLDER, verified. What a program of its own does is the same: options,
//! an observer, a call.

use std::error::Error;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use weir::events::{ReceiverEvent, SenderEvent};
use weir::{Exit, Recv, SendFile, SessionSource, receive_files, send_files};

#[expect(clippy::disallowed_methods, reason = "waits for the sender to write its description")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(file), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("usage: embed FILE FOLDER".into());
    };
    std::fs::create_dir_all(&folder)?;
    let description = folder.join("embedded.sdp");

    let mut send = SendFile::new(vec![file], "239.255.77.1:50770".parse()?);
    send.iface = Some("127.0.0.1".to_owned());
    send.session = description.clone();
    send.receipts = Some(1);
    send.duration = Some(Duration::from_secs(60));
    let sender = thread::spawn(move || {
        send_files(&send, &mut |event: &SenderEvent| {
            if let SenderEvent::Receipt(receipt) = event {
                println!("a receiver at {} has everything after {:.1} s", receipt.from, receipt.seconds);
            }
            ControlFlow::Continue(())
        })
    });
    while !description.exists() && !sender.is_finished() {
        thread::sleep(Duration::from_millis(10));
    }

    let mut receive = Recv::new(SessionSource::File(description.clone()));
    receive.iface = Some("127.0.0.1".to_owned());
    receive.out = Some(folder);
    receive.overwrite = true;
    receive.duration = Some(Duration::from_secs(60));
    let received = receive_files(&receive, &mut |event: &ReceiverEvent| {
        if let ReceiverEvent::File(file) = event {
            println!("{} is there, {} bytes, BLAKE3 {}", file.name, file.bytes, file.blake3);
        }
        ControlFlow::Continue(())
    })?;
    let sent = sender.join().map_err(|_| "the sender panicked")??;
    std::fs::remove_file(&description)?;
    match (received, sent) {
        (Exit::Done, Exit::Done) => Ok(()),
        (received, sent) => Err(format!("the receiver ended with {received:?}, the sender with {sent:?}").into()),
    }
}
