//! A small HTTP server that serves one file under every name, and can misbehave.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    time::Duration,
};

#[derive(Clone, Copy)]
#[allow(dead_code, reason = "the tests of downloads and those of the program each need some of them")]
pub enum Answer {
    /// What is asked for.
    Asked,
    /// So many bytes of it, then the connection is closed.
    Cut(usize),
    /// So many bytes of it, then nothing, and the connection stays open.
    Stall(usize),
    /// The whole file, whatever is asked for.
    Whole,
    /// The whole file without saying how long it is.
    Endless,
    /// What is asked for, of a file that claims to be longer.
    Longer,
    /// No more than a status.
    Status(u16),
}

pub struct Server {
    pub url: String,
    asked: Arc<Mutex<Vec<usize>>>,
}

impl Server {
    /// Answers request after request so; the last answer stays.
    pub fn new(file: Vec<u8>, answers: &[Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (heard, answers) = (Arc::clone(&asked), answers.to_vec());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let count = heard.lock().expect("no thread panicked").len();
                let Some(begin) = request(&stream) else { continue };
                heard.lock().expect("no thread panicked").push(begin);
                // A client that goes away is part of the game.
                let _ = answer(stream, &file, begin, answers[count.min(answers.len() - 1)]);
            }
        });
        Self { url, asked }
    }
    /// Where each request asked to begin.
    pub fn asked(&self) -> Vec<usize> {
        self.asked.lock().expect("no thread panicked").clone()
    }
    /// An address where nobody listens.
    pub fn nobody() -> String {
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
    let begin = if matches!(answer, Answer::Whole | Answer::Endless) { 0 } else { begin };
    let head = match answer {
        Answer::Status(status) => format!("{status} As Told\r\nContent-Length: 0"),
        _ if begin > 0 && begin >= total => "416 Range Not Satisfiable\r\nContent-Length: 0".into(),
        Answer::Endless => "200 OK".into(),
        Answer::Longer => format!("206 Partial Content\r\nContent-Range: bytes {begin}-{total}/{}", total + 1),
        _ if begin > 0 => format!(
            "206 Partial Content\r\nContent-Range: bytes {begin}-{}/{total}\r\nContent-Length: {}",
            total - 1,
            total - begin
        ),
        _ => format!("200 OK\r\nContent-Length: {total}"),
    };
    let length = match answer {
        Answer::Status(_) => 0,
        Answer::Cut(length) | Answer::Stall(length) => length,
        _ => total,
    };
    let body = file.get(begin..).unwrap_or_default();
    stream.write_all(format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n").as_bytes())?;
    stream.write_all(&body[..body.len().min(length)])?;
    stream.flush()?;
    if let Answer::Stall(_) = answer {
        // Until the client goes away.
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let _ = stream.read(&mut [0])?;
    }
    Ok(())
}
