//! Descriptions from the web, signed and not, and keys that are made, pinned and remembered: on this machine, with the program itself.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weir_testkit::netns::{Command, Finished, Scratch, free_port, generated_file, unsigned};

use super::WEIR;

#[test]
fn the_key_of_a_web_address_is_remembered_and_another_is_refused_until_the_user_says_so() {
    let scratch = Scratch::new();
    let served = Arc::new(Mutex::new(describe(&scratch, "one.key")));
    let url = serve(Arc::clone(&served));
    let recv = |words: &[&str]| recv(&scratch, &url, words);

    let first = recv(&[]);
    assert_eq!(first.code(), Some(INCOMPLETE), "{}", first.told());
    assert!(first.told().contains("plain http") && first.told().contains("from now on"), "{}", first.told());
    let again = recv(&[]);
    assert!(again.code() == Some(INCOMPLETE) && !again.told().contains("plain http"), "{}", again.told());

    *served.lock().expect("no panic") = describe(&scratch, "two.key");
    let other = recv(&[]);
    assert_eq!(other.code(), Some(UNVERIFIED), "{}", other.told());
    assert!(
        other.told().contains("another key than before") && other.told().contains("remove line 1"),
        "{}",
        other.told()
    );
    let two = public(&scratch, "two.key");
    assert_eq!(recv(&["--sender-key", &two]).code(), Some(INCOMPLETE), "the user says whom he believes");
    let of_file = scratch.join("two.key.pub");
    assert_eq!(recv(&["--sender-key", of_file.to_str().expect("UTF-8")]).code(), Some(INCOMPLETE));
    let wrong = recv(&["--sender-key", &public(&scratch, "one.key")]);
    assert!(wrong.code() == Some(UNVERIFIED) && wrong.told().contains("another sender"), "{}", wrong.told());

    // Somebody on the way changes where it leads, or takes the signature off.
    let text = describe(&scratch, "one.key");
    *served.lock().expect("no panic") = text.replace("239.255.", "239.254.");
    let changed = recv(&[]);
    assert!(changed.code() == Some(UNVERIFIED) && changed.told().contains("changed after"), "{}", changed.told());
    *served.lock().expect("no panic") = unsigned(&text);
    let bare = recv(&[]);
    assert!(bare.code() == Some(UNVERIFIED) && bare.told().contains("not signed"), "{}", bare.told());
}

#[test]
fn groups_of_others_are_refused_and_odd_ones_are_warned_of() {
    let scratch = Scratch::new();
    let file = scratch.join("input");
    generated_file(&file, 1_000, 1);
    let send = |to: &str, words: &[&str]| {
        let command =
            Command::here(WEIR).args(["send", "file"]).arg(&file).args(["--to", to, "--iface", "lo", "--for", "300ms"]);
        command.arg("--session").arg(scratch.join("weir.sdp")).args(words).start().wait(LIMIT)
    };
    let to = |group: &str| format!("{group}:{}", free_port());
    let refused = |to: String, word: &str| {
        let done = send(&to, &[]);
        assert!(done.code() == Some(USAGE) && done.told().contains(word), "{to}: {}", done.told());
    };
    refused(to("224.0.0.251"), "224.0.0.0/24");
    refused(to("232.1.1.1"), "--source-specific");
    // The base is free, and the channels above it are not.
    refused(to("239.255.254.250"), "239.255.255.0");
    let odd = send(&to("239.255.78.2"), &["--source-specific"]);
    assert!(odd.is_success() && odd.told().contains("no group for source-specific multicast"), "{}", odd.told());
    let right = send(&to("232.78.1.1"), &["--source-specific"]);
    assert!(right.is_success() && !right.told().contains("no group"), "{}", right.told());

    let text = describe(&scratch, "one.key");
    let theirs = scratch.join("theirs.sdp");
    std::fs::write(&theirs, unsigned(&text).replace("239.255.78.", "224.0.1.")).expect("room for a description");
    let doctor = Command::here(WEIR).arg("doctor").arg(&theirs).args(["--iface", "lo", "--for", "100ms"]);
    for done in [recv(&scratch, theirs.to_str().expect("UTF-8"), &[]), doctor.start().wait(LIMIT)] {
        assert!(done.code() == Some(SESSION) && done.told().contains("224.0.1.0/24"), "{}", done.told());
    }
}

/// The description of a session that this key signs. The key is made if it is not there.
#[test]
fn a_session_whose_key_nobody_will_have_again_is_not_described() {
    let scratch = Scratch::new();
    let (file, description) = (scratch.join("input"), scratch.join("weir.sdp"));
    generated_file(&file, 1_000, 1);
    let describe = || {
        let command = Command::here(WEIR).args(["send", "file"]).arg(&file).args(["--describe", "--iface", "lo"]);
        command.args(["--to", "239.255.78.1:5004"]).arg("--session").arg(&description)
    };
    let refused = describe().start().wait(LIMIT);
    assert!(refused.code() == Some(2) && refused.told().contains("weir key new"), "{}", refused.told());
    assert!(!description.exists());
    let described = describe().arg("--key").arg(scratch.join("key")).start().wait(LIMIT);
    assert!(described.is_success() && description.exists(), "{}", described.told());
}

fn describe(scratch: &Scratch, key: &str) -> String {
    let (file, key) = (scratch.join("input"), scratch.join(key));
    if !file.exists() {
        generated_file(&file, 1_000, 1);
    }
    if !key.exists() {
        let made = Command::here(WEIR).args(["key", "new"]).arg(&key).start().wait(LIMIT);
        assert!(made.is_success(), "{}", made.told());
    }
    let command = Command::here(WEIR).args(["send", "file"]).arg(&file).args(["--describe", "--iface", "lo", "--to"]);
    let command = command.arg(format!("239.255.78.1:{}", free_port())).arg("--key").arg(&key);
    let done = command.arg("--session").arg(scratch.join("weir.sdp")).start().wait(LIMIT);
    assert!(done.is_success(), "{}", done.told());
    std::fs::read_to_string(scratch.join("weir.sdp")).expect("it was described")
}

/// What `weir key show` says of a key.
fn public(scratch: &Scratch, key: &str) -> String {
    let done = Command::here(WEIR).args(["key", "show"]).arg(scratch.join(key)).start().wait(LIMIT);
    assert!(done.is_success(), "{}", done.told());
    done.out[0].text.clone()
}

/// A receiver that waits for nothing, for a moment.
fn recv(scratch: &Scratch, url: &str, words: &[&str]) -> Finished {
    let state: &Path = &scratch.join("state");
    let command =
        Command::here("env").arg(format!("XDG_STATE_HOME={}", state.display())).arg(WEIR).arg("recv").arg(url);
    let command = command.arg("--out").arg(scratch.join("out")).args(["--iface", "lo", "--for", "200ms"]);
    command.args(words).start().wait(LIMIT)
}

/// A web server that answers every request with the text as it is then; gives its address.
fn serve(text: Arc<Mutex<String>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let url = format!("http://{}/weir.sdp", listener.local_addr().expect("it is bound"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a client comes");
            let _ = stream.read(&mut [0; 1024]).expect("it asks");
            let text = text.lock().expect("no panic").clone();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", text.len());
            stream.write_all((head + &text).as_bytes()).expect("it listens");
        }
    });
    url
}

const LIMIT: Duration = Duration::from_secs(30);
const USAGE: i32 = 2;
const SESSION: i32 = 3;
const INCOMPLETE: i32 = 5;
const UNVERIFIED: i32 = 6;
