//! Requests by the program `curl`.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, ChildStdout, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
};

/// Without the settings of the user, which could change the output. The proxy comes from the environment. A connection
/// fails if the server sends nothing for a minute.
#[rustfmt::skip]
const OPTIONS: &[&str] = &[
    "--disable", "--silent", "--show-error", "--include", "--suppress-connect-headers", "--no-buffer", "--globoff",
    "--http1.1", "--location", "--max-redirs", "10", "--proto", "=http,https", "--proto-redir", "=http,https",
    "--connect-timeout", "60", "--speed-limit", "1", "--speed-time", "60",
    "--user-agent", concat!("strust/", env!("CARGO_PKG_VERSION")),
];

/// The exit code of `curl` without a connection. Its message depends on the version.
const NO_CONNECTION: i32 = 7;

/// The longest head of a response, in bytes.
const LONGEST_HEAD: u64 = 1 << 16;

/// The program, its options, and its process while it runs.
#[derive(Clone)]
pub struct Curl {
    pub program: &'static str,
    pub options: &'static [&'static str],
    process: Arc<Mutex<Option<Child>>>,
}

impl Curl {
    pub fn new(program: &'static str, options: &'static [&'static str]) -> Self {
        Self { program, options, process: Arc::default() }
    }
    /// Requests a file from this byte on.
    pub fn get(&self, url: &str, begin: u64) -> Result<Response<'_>, String> {
        let program = self.program;
        let mut command = Command::new(program);
        command.args(OPTIONS).args(self.options).args(["--url", url]);
        if begin > 0 {
            command.args(["--range", &format!("{begin}-")]);
        }
        let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = started.map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => {
                format!("the program `{program}`, which downloads files, was not found: install it")
            }
            _ => format!("cannot start `{program}`: {e}"),
        })?;
        let output = child.stdout.take().ok_or_else(|| format!("`{program}` has no output"))?;
        *self.process.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        // From here on, the response ends the process.
        let mut response =
            Response { curl: self, code: 0, status: String::new(), headers: vec![], body: BufReader::new(output) };
        // Redirections and other preliminary responses come first.
        while response.code < 200 || (300..400).contains(&response.code) {
            if !response.read_head() {
                let invalid = || match response.status.as_str() {
                    "" => "the server sent no valid response".into(),
                    status => format!("the server returned {status}"),
                };
                return Err(response.why_it_ended().unwrap_or_else(invalid));
            }
        }
        Ok(response)
    }
    /// Ends the process, if it runs.
    pub fn stop(&self) {
        if let Some(mut child) = self.process.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // It may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A response and the process that receives it, which ends with it.
pub struct Response<'a> {
    curl: &'a Curl,
    pub code: u16,
    /// The code with its reason, such as `404 Not Found`.
    pub status: String,
    headers: Vec<(String, String)>,
    pub body: BufReader<ChildStdout>,
}

impl Response<'_> {
    /// The value of a header; the name is in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|(key, value)| (key == name).then_some(value.as_str()))
    }
    /// The reason why the transfer failed.
    pub fn why_it_ended(&self) -> Option<String> {
        let mut child = self.curl.process.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let mut why = String::new();
        child.stderr.take()?.read_to_string(&mut why).ok()?;
        let code = child.wait().ok()?.code();
        let why = why.trim();
        match code {
            Some(0) => None,
            Some(NO_CONNECTION) => Some(format!("the server refused the connection or cannot be reached ({why})")),
            _ if why.is_empty() => Some(format!("`{}` failed", self.curl.program)),
            _ => Some(why.into()),
        }
    }
    /// Reads a status line and its headers; false if there is none.
    fn read_head(&mut self) -> bool {
        let mut lines = self.body.by_ref().take(LONGEST_HEAD).lines().map_while(Result::ok);
        let Some(first) = lines.next() else { return false };
        let Some((_, status)) = first.split_once(' ').filter(|_| first.starts_with("HTTP/")) else { return false };
        let Ok(code) = status.split(' ').next().unwrap_or_default().parse() else { return false };
        (self.code, self.status) = (code, status.trim().into());
        self.headers.clear();
        for line in lines {
            if line.is_empty() {
                return true;
            }
            if let Some((key, value)) = line.split_once(':') {
                self.headers.push((key.trim().to_ascii_lowercase(), value.trim().into()));
            }
        }
        false
    }
}

impl Drop for Response<'_> {
    fn drop(&mut self) {
        self.curl.stop();
    }
}
