//! Downloads of files whose length and checksum are known, resumed where they were broken off.

use md5::{Digest, Md5};
use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::Duration,
};
use ureq::{
    Agent,
    config::{Config, ConfigBuilder},
    http::{StatusCode, header},
    typestate::AgentScope,
};

/// How often a broken connection is taken up again before the user is asked to.
const ATTEMPTS: u32 = 5;
/// A server that is silent for longer is gone.
const SILENCE: Duration = Duration::from_secs(60);

/// A file to have.
pub struct Wanted {
    pub url: String,
    pub path: PathBuf,
    pub bytes: u64,
    pub md5: u128,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was there already.
    Kept,
    Downloaded,
}

/// Why an attempt ended.
enum Trouble {
    /// The next one may do better.
    Broken(String),
    /// The next one would end as this one did.
    Final(String),
}

/// How to speak to a server. A proxy is taken from the environment.
pub fn config() -> ConfigBuilder<AgentScope> {
    Config::builder()
        .http_status_as_error(false)
        .user_agent(concat!("strust/", env!("CARGO_PKG_VERSION")))
        .timeout_connect(Some(SILENCE))
        .timeout_recv_response(Some(SILENCE))
        .timeout_per_read(Some(SILENCE))
}

/// Gets the file, unless it is there. It grows beside its place, as `.part`, and is put there when it is whole and right;
/// `tell` hears how many bytes there are.
pub fn fetch(agent: &Agent, wanted: &Wanted, tell: &mut dyn FnMut(u64)) -> Result<Outcome, String> {
    let Wanted { url, path, bytes, md5 } = wanted;
    let failed = |doing: &str, path: &Path, e| format!("cannot {doing} {}: {e}", path.display());
    match File::open(path) {
        Ok(mut file) => {
            let found = checksum(&mut file).map_err(|e| failed("read", path, e))?;
            return if found == *md5 {
                Ok(Outcome::Kept)
            } else {
                let path = path.display();
                Err(format!(
                    "{path} is there, but it is another file: its MD5 is {found:032x} instead of {md5:032x}. Move it away, or choose another folder with --to"
                ))
            };
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        Err(e) => return Err(failed("read", path, e)),
    }

    let part = path.with_file_name(format!("{}.part", path.file_name().unwrap_or_default().to_string_lossy()));
    let writing = |e| failed("write", &part, e);
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&part).map_err(writing)?;
    // A file system without locks is no reason not to work.
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        return Err(format!(
            "{}: another program is downloading this file: wait for it, or stop it first",
            part.display()
        ));
    }
    let by_hand = || {
        let path = path.display();
        format!(
            "\nTo do without the network: get this file elsewhere, as {path} ({bytes} bytes, MD5 {md5:032x}); the same command then checks it"
        )
    };
    let mut attempt = 0;
    while let Err(trouble) = proceed(agent, wanted, &mut file, tell) {
        attempt += 1;
        let why = match trouble {
            Trouble::Broken(_) if attempt < ATTEMPTS => {
                std::thread::sleep(Duration::from_millis(100) * attempt);
                continue;
            }
            Trouble::Broken(why) | Trouble::Final(why) => why,
        };
        let kept = match file.metadata().map_or(0, |data| data.len()) {
            0 => {
                // Nothing is lost with it, and what cannot be removed stays.
                let _ = std::fs::remove_file(&part);
                String::new()
            }
            kept => format!(". {kept} of {bytes} bytes are kept; the same command goes on from there"),
        };
        return Err(format!("{url}: {why}{kept}{}", by_hand()));
    }
    let found = checksum(&mut file).map_err(|e| failed("read", &part, e))?;
    if found != *md5 {
        std::fs::remove_file(&part).map_err(|e| failed("remove", &part, e))?;
        return Err(format!(
            "{url}: what came has the MD5 {found:032x} instead of {md5:032x}; it was thrown away. Try again, or another address with --from{}",
            by_hand()
        ));
    }
    file.sync_all().map_err(writing)?;
    std::fs::rename(&part, path).map_err(|e| failed("write", path, e))?;
    Ok(Outcome::Downloaded)
}

/// Asks for what is missing of the file, and appends it.
fn proceed(agent: &Agent, wanted: &Wanted, file: &mut File, tell: &mut dyn FnMut(u64)) -> Result<(), Trouble> {
    let writing = |e: std::io::Error| Trouble::Final(format!("cannot write: {e}"));
    let mut have = file.seek(SeekFrom::End(0)).map_err(writing)?;
    let restart = |file: &mut File| file.set_len(0).and_then(|()| file.rewind()).map_err(writing);
    if have > wanted.bytes {
        restart(file)?;
        have = 0;
    }
    tell(have);
    if have == wanted.bytes {
        return Ok(());
    }
    let mut request = agent.get(&wanted.url);
    if have > 0 {
        request = request.header(header::RANGE, format!("bytes={have}-"));
    }
    let mut response = request.call().map_err(|e| Trouble::Final(e.to_string()))?;
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let other = |total: &str| {
        Trouble::Final(format!("the file there has {total} bytes instead of {}: it is another one", wanted.bytes))
    };
    match response.status() {
        StatusCode::PARTIAL_CONTENT if have > 0 => {
            let range = header(header::CONTENT_RANGE).unwrap_or_default();
            let (part, total) = range.split_once('/').unwrap_or_default();
            if !part.starts_with(&format!("bytes {have}-")) {
                restart(file)?;
                return Err(Trouble::Broken(format!("byte {have} was asked for, and the answer is {range:?}")));
            }
            if total != wanted.bytes.to_string() {
                return Err(other(total));
            }
        }
        // The whole file, whatever was asked for.
        StatusCode::OK => {
            if let Some(total) = header(header::CONTENT_LENGTH).filter(|total| *total != wanted.bytes.to_string()) {
                return Err(other(total));
            }
            restart(file)?;
            have = 0;
        }
        StatusCode::RANGE_NOT_SATISFIABLE => {
            restart(file)?;
            return Err(Trouble::Broken(format!("the server does not go on at byte {have}")));
        }
        status if status.is_server_error() => return Err(Trouble::Broken(format!("the server answers {status}"))),
        status => return Err(Trouble::Final(format!("the server answers {status}"))),
    }
    let (mut body, mut piece) = (response.body_mut().as_reader(), vec![0; 1 << 16]);
    loop {
        let broken = |why: &str| Trouble::Broken(format!("the connection broke off ({why})"));
        let read = match body.read(&mut piece) {
            Ok(0) if have < wanted.bytes => return Err(broken("it ended")),
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(broken(&e.to_string())),
        };
        have += read as u64;
        if have > wanted.bytes {
            restart(file)?;
            return Err(other("more"));
        }
        file.write_all(&piece[..read]).map_err(writing)?;
        tell(have);
    }
}

fn checksum(file: &mut File) -> std::io::Result<u128> {
    let (mut digest, mut piece) = (Md5::new(), vec![0; 1 << 16]);
    file.rewind()?;
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(u128::from_be_bytes(digest.finalize().into())),
            Ok(read) => digest.update(&piece[..read]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests;
