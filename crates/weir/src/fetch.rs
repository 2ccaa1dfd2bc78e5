//! Reads a session description from a file, standard input or the web.

use std::fs::File;
use std::io::{self, Read};
use std::time::Duration;

use ureq::tls::TlsConfig;

use crate::args::SessionSource;
use crate::exit::{Exit, Failure};
use crate::trust;

/// The text of the description. It is small: more than [`MAX_BYTES`] is refused, whatever the source.
pub(crate) fn session(source: &SessionSource) -> Result<String, Failure> {
    let refuse = |reason: String| {
        Failure::new(Exit::Session, format!("cannot read the session description from {source}: {reason}"))
    };
    let bytes = match source {
        SessionSource::File(path) => File::open(path).and_then(limited).map_err(|error| refuse(advice(&error)))?,
        SessionSource::Stdin => limited(io::stdin().lock()).map_err(|error| refuse(error.to_string()))?,
        SessionSource::Url(url) => download(url).map_err(refuse)?,
        SessionSource::Sender(_) | SessionSource::Stream(_) => {
            return Err(refuse("a stream has none; `weir recv` takes it as it is".to_owned()));
        }
    };
    if bytes.len() as u64 > MAX_BYTES {
        return Err(refuse("it is larger than 1 MB; is it really a session description?".to_owned()));
    }
    String::from_utf8(bytes).map_err(|_| refuse("it is not text; is it really a session description?".to_owned()))
}

fn limited(source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn download(url: &str) -> Result<Vec<u8>, String> {
    download_trusting(url, TlsConfig::default())
}

fn download_trusting(url: &str, tls: TlsConfig) -> Result<Vec<u8>, String> {
    let explain = |error: ureq::Error| match error {
        ureq::Error::StatusCode(status) => format!("the server answered {status}"),
        ureq::Error::RequireHttpsOnly(to) => {
            format!(
                "the server leads on to {to}, over plain http, where anybody on the way could change it; ask for that if you mean it"
            )
        }
        error => format!("{error}; another tool may fetch it, as in `curl … | weir recv -`"),
    };
    let mut response = agent(url, tls).get(url).call().map_err(explain)?;
    limited(response.body_mut().as_reader()).map_err(|error| error.to_string())
}

/// What asks for an address. Of one that the way there guards, nothing comes by a way that does not.
fn agent(url: &str, tls: TlsConfig) -> ureq::Agent {
    let config = ureq::Agent::config_builder().timeout_global(Some(TIMEOUT)).https_only(!trust::is_open(url));
    config.tls_config(tls).build().into()
}

fn advice(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file; the sender writes it, weir.sdp unless told otherwise".to_owned(),
        _ => error.to_string(),
    }
}

/// A session of 256 channels is described in some 30 kB.
const MAX_BYTES: u64 = 1_000_000;

const TIMEOUT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::thread;

    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use ureq::tls::{Certificate, RootCerts};

    /// A web server for one request.
    fn serve(answer: &'static str) -> SessionSource {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let url = format!("http://{}/weir.sdp", listener.local_addr().expect("bound"));
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client comes");
            let mut request = [0; 1024];
            let length = stream.read(&mut request).expect("it asks");
            assert!(request[..length].starts_with(b"GET /weir.sdp"));
            stream.write_all(answer.as_bytes()).expect("it listens");
        });
        SessionSource::Url(url)
    }

    #[test]
    fn a_description_comes_from_the_web() {
        let source = serve(DESCRIPTION);
        assert_eq!(session(&source), Ok("v=0\r\n".to_owned()));
    }

    #[test]
    fn a_server_s_refusal_is_told() {
        let failure = session(&serve("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"));
        let failure = failure.expect_err("there is none");
        assert!(failure.exit == Exit::Session && failure.message.contains("404"), "{failure}");
    }

    #[test]
    fn a_redirection_over_plain_http_is_followed_where_plain_http_was_asked_for() {
        let SessionSource::Url(there) = serve(DESCRIPTION) else { panic!("it has an address") };
        assert_eq!(session(&serve(leading_to(&there).leak())), Ok("v=0\r\n".to_owned()));
    }

    #[test]
    fn a_redirection_from_https_to_http_is_refused_and_one_to_https_followed() {
        let SessionSource::Url(open) = serve(DESCRIPTION) else { panic!("it has an address") };
        let led_to = |there: &str| download_trusting(&serve_guarded(leading_to(there)), trust());
        assert_eq!(led_to(&serve_guarded(DESCRIPTION.to_owned())), Ok(b"v=0\r\n".to_vec()));
        let refused = led_to(&open).expect_err("it is a step down");
        assert!(refused.contains("over plain http") && refused.contains(&open), "{refused}");
        // The other server answers, so it was the redirection that was refused.
        assert_eq!(session(&SessionSource::Url(open)), Ok("v=0\r\n".to_owned()));
    }

    #[test]
    fn a_server_whose_certificate_nobody_vouches_for_is_not_believed() {
        let refused = session(&SessionSource::Url(serve_guarded(DESCRIPTION.to_owned())));
        assert!(refused.as_ref().is_err_and(|failure| failure.exit == Exit::Session), "{refused:?}");
    }

    /// What believes the web servers of these tests.
    fn trust() -> TlsConfig {
        let certificate = Certificate::from_pem(CERTIFICATE).expect("a certificate");
        TlsConfig::builder().root_certs(RootCerts::new_with_certs(&[certificate])).build()
    }

    /// Serves one request over https; gives its address.
    fn serve_guarded(answer: String) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let url = format!("https://{}/weir.sdp", listener.local_addr().expect("bound"));
        let chain = vec![CertificateDer::from_pem_slice(CERTIFICATE).expect("a certificate")];
        let key = PrivateKeyDer::from_pem_slice(KEY).expect("a key");
        let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("there are some")
            .with_no_client_auth()
            .with_single_cert(chain, key);
        let config = Arc::new(config.expect("they belong together"));
        thread::spawn(move || {
            let (stream, _) = listener.accept().expect("a client comes");
            let connection = rustls::ServerConnection::new(config).expect("it has a certificate");
            let mut stream = rustls::StreamOwned::new(connection, stream);
            let mut request = [0; 1024];
            // A client that does not believe the certificate asks for nothing.
            if let Ok(length) = stream.read(&mut request) {
                assert!(request[..length].starts_with(b"GET /weir.sdp"));
                stream.write_all(answer.as_bytes()).expect("it listens");
                stream.conn.send_close_notify();
                stream.flush().expect("it listens");
            }
        });
        url
    }

    fn leading_to(there: &str) -> String {
        format!("HTTP/1.1 302 Found\r\nLocation: {there}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    }

    /// Signed by itself, and its key, which guards nothing.
    const CERTIFICATE: &[u8] = include_bytes!("fetch/certificate.pem");
    const KEY: &[u8] = include_bytes!("fetch/key.pem");
    const DESCRIPTION: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nv=0\r\n";

    #[test]
    fn files_that_cannot_be_descriptions_are_refused_with_the_reason() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("weir.sdp");
        let source = SessionSource::File(path.clone());
        let message = || session(&source).expect_err("refused").message;
        assert!(message().contains("no such file"));
        std::fs::write(&path, vec![b'a'; 1_000_001]).expect("room for a megabyte");
        assert!(message().contains("larger than 1 MB"));
        std::fs::write(&path, [0xff, 0xfe]).expect("room for two bytes");
        assert!(message().contains("not text"));
        std::fs::write(&path, "v=0\r\n").expect("room for five bytes");
        assert_eq!(session(&source), Ok("v=0\r\n".to_owned()));
    }
}
