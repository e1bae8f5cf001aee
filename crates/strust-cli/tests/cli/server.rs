//! A small HTTP server for tests. It serves one file under every name and can simulate faults.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    time::Duration,
};

#[derive(Clone, Copy)]
#[allow(dead_code, reason = "each of the two test binaries uses some of them")]
pub enum Answer {
    /// The requested bytes.
    Requested,
    /// This many of the requested bytes; then the connection is closed.
    Cut(usize),
    /// This many of the requested bytes; then nothing more, and the connection stays open.
    Stall(usize),
    /// The whole file, whatever the request.
    Whole,
    /// The whole file without its length.
    UnknownLength,
    /// The requested bytes, with a header that gives a longer file.
    Longer,
    /// Only a status.
    Status(u16),
    /// The same file, under another name.
    Moved,
}

pub struct Server {
    pub url: String,
    requested: Arc<Mutex<Vec<usize>>>,
}

impl Server {
    /// Gives these answers in order, and repeats the last one.
    pub fn new(file: Vec<u8>, answers: &[Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        let requested = Arc::new(Mutex::new(Vec::new()));
        let (requests, answers) = (Arc::clone(&requested), answers.to_vec());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let count = requests.lock().expect("no thread panicked").len();
                let Some(begin) = request(&stream) else { continue };
                requests.lock().expect("no thread panicked").push(begin);
                // Some tests close the connection.
                let _ = answer(stream, &file, begin, answers[count.min(answers.len() - 1)]);
            }
        });
        Self { url, requested }
    }
    /// The first requested byte of each request.
    pub fn requested(&self) -> Vec<usize> {
        self.requested.lock().expect("no thread panicked").clone()
    }
    /// An address without a server.
    pub fn unreachable() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        format!("http://{}", listener.local_addr().expect("its address"))
    }
}

fn request(stream: &TcpStream) -> Option<usize> {
    let mut begin = 0;
    for line in BufReader::new(stream).lines() {
        let line = line.ok()?.to_ascii_lowercase();
        if line.is_empty() {
            return Some(begin);
        }
        if let Some(range) = line.strip_prefix("range: bytes=") {
            begin = range.trim_end_matches('-').parse().ok()?;
        }
    }
    None
}

fn answer(mut stream: TcpStream, file: &[u8], begin: usize, answer: Answer) -> std::io::Result<()> {
    let total = file.len();
    let begin = if matches!(answer, Answer::Whole | Answer::UnknownLength) { 0 } else { begin };
    let head = match answer {
        Answer::Status(status) => {
            let reason = if status == 404 { "Not Found" } else { "Test" };
            format!("{status} {reason}\r\nContent-Length: 0")
        }
        Answer::Moved => "302 Found\r\nLocation: /other\r\nContent-Length: 0".into(),
        _ if begin > 0 && begin >= total => "416 Range Not Satisfiable\r\nContent-Length: 0".into(),
        Answer::UnknownLength => "200 OK".into(),
        Answer::Longer => format!("206 Partial Content\r\nContent-Range: bytes {begin}-{total}/{}", total + 1),
        _ if begin > 0 => format!(
            "206 Partial Content\r\nContent-Range: bytes {begin}-{}/{total}\r\nContent-Length: {}",
            total - 1,
            total - begin
        ),
        _ => format!("200 OK\r\nContent-Length: {total}"),
    };
    let length = match answer {
        Answer::Status(_) | Answer::Moved => 0,
        Answer::Cut(length) | Answer::Stall(length) => length,
        _ => total,
    };
    let body = file.get(begin..).unwrap_or_default();
    stream.write_all(format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n").as_bytes())?;
    stream.write_all(&body[..body.len().min(length)])?;
    stream.flush()?;
    if let Answer::Stall(_) = answer {
        // Wait until the client closes the connection.
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let _ = stream.read(&mut [0])?;
    }
    Ok(())
}
