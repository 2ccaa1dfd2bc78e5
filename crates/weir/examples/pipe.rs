//! Sends what standard input has to two receivers in the same process, over this machine's loopback interface, and prints how
//! many bytes each got.
//!
//! `cargo run --example pipe < FILE`

use std::error::Error;
use std::io;
use std::thread;

use weir::{Exit, Recv, SendStream, SessionSource, StreamAddress, StreamReader, StreamWriter};

fn main() -> Result<(), Box<dyn Error>> {
    let mut send = SendStream::new("239.255.77.2:50772".parse()?);
    send.iface = Some("127.0.0.1".to_owned());
    send.receivers = 2;
    let mut writer = StreamWriter::start(send)?;
    let receivers = [1, 2].map(|number| {
        let address = writer.address().clone();
        thread::spawn(move || receive(address).map(|bytes| println!("receiver {number} has {bytes} bytes")))
    });
    let sent = io::copy(&mut io::stdin().lock(), &mut writer)?;
    match writer.finish()? {
        Exit::Done => println!("all have the {sent} bytes"),
        exit => return Err(format!("the sender ended with {exit:?}").into()),
    }
    for receiver in receivers {
        receiver.join().map_err(|_| "a receiver panicked")??;
    }
    Ok(())
}

fn receive(address: StreamAddress) -> Result<u64, String> {
    let mut recv = Recv::new(SessionSource::Stream(Box::new(address.clone())));
    recv.iface = Some("127.0.0.1".to_owned());
    let mut reader = StreamReader::start(recv, address).map_err(|failure| failure.to_string())?;
    let bytes = io::copy(&mut reader, &mut io::sink()).map_err(|error| error.to_string())?;
    match reader.finish() {
        Ok(Exit::Done) => Ok(bytes),
        ended => Err(format!("a receiver ended with {ended:?}")),
    }
}
