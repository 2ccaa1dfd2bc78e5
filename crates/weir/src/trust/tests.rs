use super::*;

fn secret(seed: u8) -> SecretKey {
    SecretKey::from_seed([seed; 32])
}

fn text(seed: u8) -> String {
    let key = Hex(&secret(seed).public().to_bytes()).to_string();
    format!(
        "v=0\r\no=- 7 1 IN IP4 0.0.0.0\r\ns=news\r\nt=0 0\r\na=flute-tsi:7\r\na=weir-key:ed25519 {key}\r\n\
         m=application 5004 FLUTE/UDP 0\r\nc=IN IP4 239.255.0.1/1\r\n"
    )
}

fn trust(pinned: Option<u8>, known: Option<&Path>) -> Trust {
    Trust { pinned: pinned.map(|seed| secret(seed).public()), takes_all: false, known: known.map(Path::to_owned) }
}

fn check(trust: &Trust, source: &str, text: &str) -> Result<Vec<String>, String> {
    let source: SessionSource = source.parse().expect("a source");
    let description = text.parse().expect("a description");
    trust.check(&source, text, &description).map_err(|failure| {
        assert_eq!(failure.exit, Exit::Unverified, "{failure}");
        failure.message
    })
}

#[test]
fn a_signed_description_survives_other_line_ends_and_no_change() {
    let signed = signed(&text(1), &secret(1));
    for same in
        [signed.clone(), signed.replace("\r\n", "\n"), signed.replace("\r\n", "\n\n"), signed.replace("\r\n", " \n")]
    {
        assert_eq!(is_signed(&same, &secret(1).public()), Some(true), "{same}");
        assert_eq!(check(&trust(Some(1), None), "weir.sdp", &same), Ok(Vec::new()));
    }
    for changed in [
        signed.replace("239.255.0.1", "239.255.0.2"),
        signed.clone() + "m=application 5005 FLUTE/UDP 0\r\nc=IN IP4 239.255.0.9/1\r\n",
        signed.replace("s=news", "s=views"),
        signed[..signed.len() - 4].to_owned(),
    ] {
        let refused = check(&trust(None, None), "weir.sdp", &changed).expect_err("changed");
        assert!(refused.contains("changed after the sender signed it"), "{refused}");
    }
}

/// A tail of any text after the signature, or a signature of any text, is no signature.
#[test]
fn a_signature_that_is_not_one_is_refused_without_panic() {
    for tail in ["", "zz", "00", &"0".repeat(128), &"é".repeat(64), "\r\na=weir-signature:"] {
        let forged = format!("{}{SIGNATURE}{tail}", text(1));
        assert_eq!(is_signed(&forged, &secret(1).public()), Some(false), "{tail}");
    }
    assert_eq!(is_signed("", &secret(1).public()), None);
}

#[test]
fn a_pinned_key_takes_its_sender_alone() {
    let own = trust(Some(1), None);
    assert_eq!(check(&own, "weir.sdp", &signed(&text(1), &secret(1))), Ok(Vec::new()));
    let other = check(&own, "weir.sdp", &signed(&text(2), &secret(2))).expect_err("another sender");
    assert!(other.contains("another sender") && other.contains(&secret(2).public().to_string()), "{other}");
    assert!(check(&own, "weir.sdp", &text(1)).expect_err("unsigned").contains("did not sign"));
    let without: String =
        text(1).lines().filter(|line| !line.contains("weir-key")).map(|line| line.to_owned() + "\n").collect();
    assert!(check(&own, "weir.sdp", &without).expect_err("no key").contains("holds no key"));
    assert_eq!(check(&trust(None, None), "weir.sdp", &text(1)), Ok(Vec::new()), "a file by hand needs no more");
}

#[test]
fn the_key_of_an_address_is_remembered_and_another_one_is_refused_in_words() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let known = folder.path().join("state").join("known_senders");
    let trust = trust(None, Some(&known));
    let url = "https://updates.example.org/weir.sdp";
    let first = check(&trust, url, &signed(&text(1), &secret(1))).expect("the first time");
    assert!(first.len() == 1 && first[0].contains("from now on"), "{first:?}");
    assert_eq!(check(&trust, url, &signed(&text(1), &secret(1))), Ok(Vec::new()));
    let changed = check(&trust, url, &signed(&text(2), &secret(2))).expect_err("another key");
    for word in ["another key than before", "remove line 1", "--sender-key"] {
        assert!(changed.contains(word), "{word}: {changed}");
    }
    assert!(check(&trust, url, &text(1)).expect_err("not signed any more").contains("not signed"));
    let other = check(&trust, "https://other.example.org/weir.sdp", &signed(&text(2), &secret(2)));
    assert!(other.is_ok(), "{other:?}");
    // The key that the user gives goes before what is remembered.
    let pinned = Trust { pinned: Some(secret(2).public()), ..trust };
    assert_eq!(check(&pinned, url, &signed(&text(2), &secret(2))), Ok(Vec::new()));
}

#[test]
fn plain_http_is_warned_of_unless_a_key_is_pinned_or_known() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trust = trust(None, Some(&folder.path().join("known_senders")));
    let url = "http://updates.example.org/weir.sdp";
    let warned =
        |told: Result<Vec<String>, String>| told.expect("taken").iter().any(|told| told.contains("plain http"));
    let signed = signed(&text(1), &secret(1));
    assert!(!warned(check(&Trust { pinned: Some(secret(1).public()), ..trust.clone() }, url, &signed)));
    assert!(warned(check(&trust, url, &signed)), "the first time");
    assert!(!warned(check(&trust, url, &signed)), "its key is known now");
}

#[test]
fn what_nobody_signed_is_not_taken_from_the_web_unless_the_user_takes_anything() {
    for url in ["http://updates.example.org/weir.sdp", "https://updates.example.org/weir.sdp"] {
        let refused = check(&trust(None, None), url, &text(1)).expect_err("not signed");
        assert!(refused.contains("not signed") && refused.contains("--any-sender"), "{refused}");
        let takes_all = Trust { takes_all: true, ..trust(None, None) };
        assert_eq!(check(&takes_all, url, &text(1)), Ok(Vec::new()));
    }
}

#[test]
fn a_key_that_cannot_be_remembered_is_said_and_https_is_not_called_http() {
    let told = |url| check(&trust(None, None), url, &signed(&text(1), &secret(1))).expect("taken").join("\n");
    let guarded = told("https://updates.example.org/weir.sdp");
    assert!(guarded.contains("cannot be remembered") && !guarded.contains("plain http"), "{guarded}");
    let open = told("http://updates.example.org/weir.sdp");
    assert!(open.contains("cannot be remembered") && open.contains("plain http"), "{open}");
}

#[test]
fn of_receivers_that_come_at_once_one_is_first_and_no_line_is_broken() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("known_senders");
    // Somebody has written into it by hand, and ended no line.
    fs::write(&path, format!("https://a.example.org/ {}", secret(99).public())).expect("room for a line");
    let keys: Vec<PublicKey> = (1..=4).map(|seed| secret(seed).public()).collect();
    let together = std::sync::Barrier::new(keys.len());
    for round in 0..100 {
        let url = format!("https://b.example.org/{round}");
        let come = |key| {
            together.wait();
            remember(&path, &url, key).expect("ours")
        };
        let there: Vec<Option<(PublicKey, usize)>> = std::thread::scope(|scope| {
            let all: Vec<_> = keys.iter().map(|key| scope.spawn(|| come(*key))).collect();
            all.into_iter().map(|one| one.join().expect("no panic")).collect()
        });
        let came = keys.iter().zip(&there);
        let first: Vec<PublicKey> = came.filter(|(_, there)| there.is_none()).map(|(key, _)| *key).collect();
        assert_eq!(first.len(), 1, "round {round}: {there:?}");
        assert!(there.iter().flatten().all(|there| *there == (first[0], round + 2)), "round {round}: {there:?}");
    }
    assert_eq!(remembered(&path, "https://a.example.org/"), Ok(Some((secret(99).public(), 1))));
}
