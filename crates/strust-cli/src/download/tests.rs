use super::*;

#[path = "../../tests/cli/server.rs"]
mod server;
use server::{Answer, Server};

/// A file of 200,000 bytes that no two pieces of are alike.
fn contents() -> Vec<u8> {
    (0..50_000_u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes()).collect()
}

struct Place {
    folder: tempfile::TempDir,
    wanted: Wanted,
}

impl Place {
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
    fn fetch(&self) -> Result<Outcome, String> {
        let agent = config().proxy(None).build().new_agent();
        fetch(&agent, &self.wanted, &mut |_| ())
    }
    /// Downloaded, whole, right, and nothing else is left.
    #[track_caller]
    fn succeeds(&self) {
        assert_eq!(self.fetch(), Ok(Outcome::Downloaded));
        assert!(std::fs::read(&self.wanted.path).unwrap() == contents());
        assert_eq!(std::fs::read_dir(self.folder.path()).unwrap().count(), 1);
    }
    /// Not put in place, and said why.
    #[track_caller]
    fn fails(&self, why: &str) -> String {
        let message = self.fetch().unwrap_err();
        assert!(message.contains(why), "{message}");
        assert!(!self.wanted.path.exists());
        message
    }
}

fn kept(place: &Place) -> u64 {
    std::fs::metadata(place.part()).map_or(0, |data| data.len())
}

#[test]
fn a_file_is_downloaded_once_and_then_kept() {
    let server = Server::new(contents(), &[Answer::Asked]);
    let place = Place::new(&server.url);
    place.succeeds();
    assert_eq!(place.fetch(), Ok(Outcome::Kept));
    assert_eq!(server.asked(), [0]);
}

#[test]
fn a_connection_that_breaks_is_taken_up_where_it_broke() {
    let server =
        Server::new(contents(), &[Answer::Cut(70_000), Answer::Status(503), Answer::Cut(30_000), Answer::Asked]);
    Place::new(&server.url).succeeds();
    assert_eq!(server.asked(), [0, 70_000, 70_000, 100_000]);
}

#[test]
fn a_download_that_was_given_up_goes_on_with_the_next_command() {
    let server = Server::new(contents(), &[Answer::Cut(50_000), Answer::Status(404), Answer::Asked]);
    let place = Place::new(&server.url);
    place
        .fails("the server answers 404 Not Found. 50000 of 200000 bytes are kept; the same command goes on from there");
    assert_eq!(kept(&place), 50_000);
    place.succeeds();
    assert_eq!(server.asked(), [0, 50_000, 50_000]);
}

#[test]
fn without_ranges_a_download_starts_again() {
    let server = Server::new(contents(), &[Answer::Cut(50_000), Answer::Whole]);
    Place::new(&server.url).succeeds();
    assert_eq!(server.asked(), [0, 50_000]);
    let server = Server::new(contents(), &[Answer::Endless]);
    Place::new(&server.url).succeeds();
}

#[test]
fn a_connection_that_always_breaks_is_given_up() {
    let server = Server::new(contents(), &[Answer::Cut(10)]);
    let message = Place::new(&server.url).fails("the connection broke off");
    assert!(message.contains("50 of 200000 bytes are kept"), "{message}");
    assert_eq!(server.asked().len(), 5);
}

#[test]
fn a_part_that_is_too_long_or_does_not_fit_is_thrown_away() {
    let server = Server::new(contents(), &[Answer::Asked]);
    let place = Place::new(&server.url);
    std::fs::write(place.part(), vec![0; 200_001]).unwrap();
    place.succeeds();
    assert_eq!(server.asked(), [0]);
    let server = Server::new(contents(), &[Answer::Status(416), Answer::Asked]);
    let place = Place::new(&server.url);
    std::fs::write(place.part(), vec![0; 50]).unwrap();
    place.succeeds();
    assert_eq!(server.asked(), [50, 0]);
}

#[test]
fn a_wrong_checksum_is_an_error_and_nothing_is_left() {
    let mut damaged = contents();
    damaged[7] ^= 1;
    let server = Server::new(damaged, &[Answer::Asked]);
    let place = Place::new(&server.url);
    let message = place.fails("it was thrown away. Try again, or another address with --from");
    assert!(message.contains(&format!("instead of {:032x}", place.wanted.md5)), "{message}");
    assert!(!place.part().exists());
}

#[test]
fn another_length_is_noticed_before_or_while_it_comes() {
    let server = Server::new(vec![0; 300_000], &[Answer::Asked]);
    Place::new(&server.url).fails("the file there has 300000 bytes instead of 200000: it is another one");
    let server = Server::new(vec![0; 300_000], &[Answer::Endless]);
    Place::new(&server.url).fails("the file there has more bytes instead of 200000");
    let server = Server::new(contents(), &[Answer::Cut(9), Answer::Longer]);
    Place::new(&server.url).fails("the file there has 200001 bytes instead of 200000");
}

#[test]
fn another_file_in_its_place_is_left_alone() {
    let place = Place::new(&Server::nobody());
    std::fs::write(&place.wanted.path, "mine").unwrap();
    let message = place.fetch().unwrap_err();
    assert!(message.contains("is there, but it is another file") && message.contains("Move it away"), "{message}");
    assert_eq!(std::fs::read(&place.wanted.path).unwrap(), b"mine");
}

#[test]
fn two_programs_do_not_download_one_file() {
    let place = Place::new(&Server::nobody());
    let file = File::create(place.part()).unwrap();
    file.lock().unwrap();
    place.fails("another program is downloading this file");
}
