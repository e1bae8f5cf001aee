use super::*;

#[path = "../../tests/cli/server.rs"]
mod server;
use server::{Answer, Server};

/// A file of 200,000 bytes in which no two blocks are equal.
fn contents() -> Vec<u8> {
    (0..50_000_u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes()).collect()
}

struct Target {
    folder: tempfile::TempDir,
    wanted: Wanted,
}

impl Target {
    fn new(url: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let contents = contents();
        let md5 = u128::from_be_bytes(Md5::digest(&contents).into());
        let wanted =
            Wanted { url: format!("{url}/a.gz"), path: folder.path().join("a.gz"), bytes: contents.len() as u64, md5 };
        Self { folder, wanted }
    }
    fn part(&self) -> PathBuf {
        self.folder.path().join("a.gz.part")
    }
    fn fetch(&self) -> Result<FetchOutcome, String> {
        fetch(&Curl::new("curl", &["--noproxy", "*"]), &self.wanted, &mut |_| ())
    }
    /// Asserts that the file is complete and correct, and that no other file remains.
    #[track_caller]
    fn succeeds(&self) {
        assert_eq!(self.fetch(), Ok(FetchOutcome::Downloaded));
        assert!(std::fs::read(&self.wanted.path).unwrap() == contents());
        assert_eq!(std::fs::read_dir(self.folder.path()).unwrap().count(), 1);
    }
    /// Asserts that the download fails with this message and writes no file.
    #[track_caller]
    fn fails(&self, why: &str) -> String {
        let message = self.fetch().unwrap_err();
        assert!(message.contains(why), "{message}");
        assert!(!self.wanted.path.exists());
        message
    }
}

fn saved_bytes(place: &Target) -> u64 {
    std::fs::metadata(place.part()).map_or(0, |data| data.len())
}

#[test]
fn an_existing_file_is_not_downloaded_again() {
    let server = Server::new(contents(), &[Answer::Requested]);
    let place = Target::new(&server.url);
    place.succeeds();
    assert_eq!(place.fetch(), Ok(FetchOutcome::Kept));
    assert_eq!(server.requested(), [0]);
}

#[test]
fn a_broken_connection_is_resumed_at_the_same_byte() {
    let server =
        Server::new(contents(), &[Answer::Cut(70_000), Answer::Status(503), Answer::Cut(30_000), Answer::Requested]);
    Target::new(&server.url).succeeds();
    assert_eq!(server.requested(), [0, 70_000, 70_000, 100_000]);
}

#[test]
fn a_failed_download_is_resumed_by_the_next_command() {
    let server = Server::new(contents(), &[Answer::Cut(50_000), Answer::Status(404), Answer::Requested]);
    let place = Target::new(&server.url);
    place.fails(
        "the server returned 404 Not Found. 50000 of 200000 bytes are saved; run the same command again to resume",
    );
    assert_eq!(saved_bytes(&place), 50_000);
    place.succeeds();
    assert_eq!(server.requested(), [0, 50_000, 50_000]);
}

#[test]
fn a_download_restarts_if_the_server_ignores_ranges() {
    let server = Server::new(contents(), &[Answer::Cut(50_000), Answer::Whole]);
    Target::new(&server.url).succeeds();
    assert_eq!(server.requested(), [0, 50_000]);
    let server = Server::new(contents(), &[Answer::UnknownLength]);
    Target::new(&server.url).succeeds();
}

#[test]
fn a_connection_that_always_breaks_fails_after_five_attempts() {
    let server = Server::new(contents(), &[Answer::Cut(10)]);
    let message = Target::new(&server.url).fails("the connection broke");
    assert!(message.contains("50 of 200000 bytes are saved"), "{message}");
    assert_eq!(server.requested().len(), 5);
}

#[test]
fn a_part_that_is_too_long_or_does_not_match_is_replaced() {
    let server = Server::new(contents(), &[Answer::Requested]);
    let place = Target::new(&server.url);
    std::fs::write(place.part(), vec![0; 200_001]).unwrap();
    place.succeeds();
    assert_eq!(server.requested(), [0]);
    let server = Server::new(contents(), &[Answer::Status(416), Answer::Requested]);
    let place = Target::new(&server.url);
    std::fs::write(place.part(), vec![0; 50]).unwrap();
    place.succeeds();
    assert_eq!(server.requested(), [50, 0]);
}

#[test]
fn a_wrong_checksum_is_an_error_and_the_file_is_deleted() {
    let mut damaged = contents();
    damaged[7] ^= 1;
    let server = Server::new(damaged, &[Answer::Requested]);
    let place = Target::new(&server.url);
    let message = place.fails("was deleted. Try again, or give another URL with --from");
    assert!(message.contains(&format!("instead of {:032x}", place.wanted.md5)), "{message}");
    assert!(!place.part().exists());
}

#[test]
fn a_wrong_length_is_detected_before_or_during_the_download() {
    let server = Server::new(vec![0; 300_000], &[Answer::Requested]);
    Target::new(&server.url).fails("the server's file has 300000 bytes instead of 200000: it is a different file");
    let server = Server::new(vec![0; 300_000], &[Answer::UnknownLength]);
    Target::new(&server.url).fails("the server's file has more bytes instead of 200000");
    let server = Server::new(contents(), &[Answer::Cut(9), Answer::Longer]);
    Target::new(&server.url).fails("the server's file has 200001 bytes instead of 200000");
}

#[test]
fn a_different_file_is_not_replaced() {
    let place = Target::new(&Server::unreachable());
    std::fs::write(&place.wanted.path, "mine").unwrap();
    let message = place.fetch().unwrap_err();
    assert!(message.contains("exists, but it is a different file") && message.contains("Move it"), "{message}");
    assert_eq!(std::fs::read(&place.wanted.path).unwrap(), b"mine");
}

#[test]
fn two_programs_do_not_download_the_same_file() {
    let place = Target::new(&Server::unreachable());
    let file = File::create(place.part()).unwrap();
    file.lock().unwrap();
    place.fails("another program is downloading this file");
}

#[test]
fn without_curl_the_message_names_it() {
    let place = Target::new(&Server::unreachable());
    let message = fetch(&Curl::new("no-such-program", &[]), &place.wanted, &mut |_| ()).unwrap_err();
    assert!(message.contains("`no-such-program`, which downloads files, was not found: install it"), "{message}");
    assert!(message.contains("save the file as"), "{message}");
    assert_eq!(std::fs::read_dir(place.folder.path()).unwrap().count(), 0);
}

#[test]
fn a_redirection_is_followed_and_keeps_the_range() {
    let server = Server::new(contents(), &[Answer::Cut(50_000), Answer::Moved, Answer::Requested]);
    Target::new(&server.url).succeeds();
    assert_eq!(server.requested(), [0, 50_000, 50_000]);
}
