//! One page over HTTP/1.1, for scrapers. One connection at a time, each for a few seconds at most.
//!
//! Not here: TLS, passwords, keep-alive. Whoever reaches the address may read.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use weir_net::clock::Clock;

/// Serves what `page` gives at `address`; the address, with the port that the system chose if it was 0.
pub(super) fn start(address: SocketAddr, page: impl Fn() -> String + Send + 'static) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    let address = listener.local_addr()?;
    std::thread::Builder::new().name("metrics".into()).spawn(move || {
        loop {
            match listener.accept() {
                // A client that does not ask, or does not listen, gets no answer.
                Ok((stream, _)) => drop(answer(stream, &page)),
                // No descriptors are left, say. Others may be let go.
                Err(_) => std::thread::park_timeout(PAUSE),
            }
        }
    })?;
    Ok(address)
}

fn answer(mut stream: TcpStream, page: &impl Fn() -> String) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let (status, kind, body, is_head) = match read(&mut stream)? {
        Asked::Page { is_head } => ("200 OK", OPEN_METRICS, page(), is_head),
        Asked::Other => ("404 Not Found", PLAIN, "the metrics are at /metrics\n".to_owned(), false),
        Asked::Change => ("405 Method Not Allowed", PLAIN, "metrics can be read, with GET\n".to_owned(), false),
        Asked::Nonsense => ("400 Bad Request", PLAIN, "this is no HTTP request\n".to_owned(), false),
    };
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{allow}Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    if !is_head {
        stream.write_all(body.as_bytes())?;
    }
    stream.flush()
}

/// What a client wants.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Page { is_head: bool },
    Other,
    Change,
    Nonsense,
}

fn read(stream: &mut TcpStream) -> io::Result<Asked> {
    let clock = Clock::new();
    let ends = clock.now() + PATIENCE;
    let mut bytes = [0; LONGEST_REQUEST];
    let mut length = 0;
    loop {
        match parse(&bytes[..length]) {
            Some(asked) => return Ok(asked),
            None if length == bytes.len() => return Ok(Asked::Nonsense),
            None => {}
        }
        // However slowly it asks, it has no more time than this in all.
        let left = ends.since(clock.now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut bytes[length..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            more => length += more,
        }
    }
}

/// What these bytes ask for; nothing yet if more have to come.
fn parse(bytes: &[u8]) -> Option<Asked> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) => return None,
        Ok(httparse::Status::Complete(_)) => {}
        Err(_) => return Some(Asked::Nonsense),
    }
    let path = request.path.unwrap_or_default().split('?').next().unwrap_or_default();
    Some(match (request.method, path) {
        (Some("GET"), "/metrics") => Asked::Page { is_head: false },
        (Some("HEAD"), "/metrics") => Asked::Page { is_head: true },
        (Some("GET" | "HEAD"), _) => Asked::Other,
        _ => Asked::Change,
    })
}

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";
/// To ask, and again to take the answer.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_REQUEST: usize = 8 << 10;
const MOST_HEADERS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    #[test]
    fn the_page_is_served_and_nothing_else_is() {
        let address = start("127.0.0.1:0".parse().expect("an address"), || "weir 1\n".to_owned()).expect("a free port");
        let page = ask(address, "GET /metrics?a=b HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("\r\n\r\nweir 1\n"), "{page}");
        assert!(page.contains("Content-Length: 7\r\n") && page.contains("application/openmetrics-text"), "{page}");
        let head = ask(address, "HEAD /metrics HTTP/1.0\r\n\r\n");
        assert!(head.contains("Content-Length: 7\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(ask(address, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        let post = ask(address, "POST /metrics HTTP/1.1\r\n\r\n");
        assert!(post.starts_with("HTTP/1.1 405 ") && post.contains("Allow: GET, HEAD\r\n"), "{post}");
    }

    #[test]
    fn who_sends_rubbish_or_nothing_keeps_nobody_from_the_page() {
        let address = start("127.0.0.1:0".parse().expect("an address"), || "weir 1\n".to_owned()).expect("a free port");
        assert!(ask(address, "\u{1}\u{2}\r\n\r\n").starts_with("HTTP/1.1 400 "));
        let long = format!("GET /metrics HTTP/1.1\r\nA: {}", "a".repeat(LONGEST_REQUEST));
        assert!(ask(address, &long[..LONGEST_REQUEST]).starts_with("HTTP/1.1 400 "));
        let mute = TcpStream::connect(address).expect("it listens");
        assert!(ask(address, "GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 "));
        drop(mute);
    }
}
