//! Downloads of data sets from a local test server.

use crate::{
    server::{Answer, Server},
    support::{Finished, Folder, finished, strust},
};
use std::process::Stdio;

/// The length of the CIFAR-10 archive in bytes.
const LENGTH: usize = 170_052_171;

fn data(arguments: &[&str]) -> Finished {
    finished(&strust().arg("data").args(arguments).env("NO_PROXY", "*").output().expect("the program starts"))
}

#[test]
fn without_a_network_the_message_explains_how_to_add_the_file() {
    let folder = Folder::new();
    let to = folder.path("data");
    let to = to.to_str().unwrap();
    let result = data(&["cifar10", "--to", to, "--from", &Server::unreachable()]);
    assert_eq!(result.code, Some(1));
    let expected =
        format!("save the file as {to}/cifar-10-binary.tar.gz (170052171 bytes, MD5 c32a1d4ab5d03f1284b67883e8d87530)");
    assert!(result.err.contains("refused") && result.err.contains(&expected), "{}", result.err);
    assert_eq!(std::fs::read_dir(to).unwrap().count(), 0);
}

#[test]
fn a_missing_or_different_file_on_the_server_is_an_error_with_its_url() {
    let folder = Folder::new();
    let to = folder.path("data");
    let download = |server: &Server, more: &[&str]| {
        data(&[&["mnist", "--to", to.to_str().unwrap(), "--from", &server.url], more].concat())
    };
    let server = Server::new(vec![], &[Answer::Status(404)]);
    let result = download(&server, &[]);
    let expected = format!("error: {}/train-images-idx3-ubyte.gz: the server returned 404", server.url);
    assert!(result.code == Some(1) && result.err.contains(&expected), "{}", result.err);
    let result = download(&Server::new(vec![0; 9_912_422], &[Answer::Requested]), &["--quiet"]);
    assert!(
        result.code == Some(1) && result.err.contains("instead of f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        "{}",
        result.err
    );
    assert!(result.out.is_empty() && result.err.starts_with("error: "), "{}", result.err);
    assert_eq!(std::fs::read_dir(&to).unwrap().count(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn an_error_names_a_folder_that_cannot_be_written() {
    let result = data(&["mnist", "--to", "/proc/strust-test", "--from", &Server::unreachable()]);
    assert_eq!(result.code, Some(1));
    assert!(result.err.contains("cannot create the folder /proc/strust-test"), "{}", result.err);
    assert!(result.err.contains("Choose another one with --to"), "{}", result.err);
    let result = data(&["mnist", "--to", "/proc", "--from", &Server::unreachable()]);
    assert!(result.err.contains("cannot write /proc/train-images-idx3-ubyte.gz.part"), "{}", result.err);
}

#[cfg(unix)]
#[test]
fn a_link_in_the_place_of_the_part_is_refused_and_its_target_stays() {
    let folder = Folder::new();
    let (mine, to) = (folder.write("mine.txt", "mine"), folder.path("data"));
    std::fs::create_dir(&to).unwrap();
    for (i, target) in [mine.clone(), folder.path("nothing")].iter().enumerate() {
        let part = to.join("train-images-idx3-ubyte.gz.part");
        std::os::unix::fs::symlink(target, &part).unwrap();
        let server = Server::new(vec![0; 9_912_422], &[Answer::Requested]);
        let result = data(&["mnist", "--to", to.to_str().unwrap(), "--from", &server.url]);
        assert_eq!((result.code, server.requested().len()), (Some(1), 0), "link {i}: {}", result.err);
        assert!(result.err.contains(".part is not a regular file: remove it"), "{}", result.err);
        std::fs::remove_file(part).unwrap();
    }
    assert_eq!(std::fs::read_to_string(mine).unwrap(), "mine");
    assert!(!folder.path("nothing").exists());
}

#[cfg(unix)]
#[test]
fn ctrl_c_saves_the_received_bytes_and_the_same_command_resumes() {
    let server = Server::new(vec![0; LENGTH], &[Answer::Stall(100_000), Answer::Status(404)]);
    let folder = Folder::new();
    let part = folder.path("cifar-10-binary.tar.gz.part");
    let arguments = ["data", "cifar10", "--to", folder.0.path().to_str().unwrap(), "--from", &server.url];
    let mut command = strust();
    command.args(arguments).env("NO_PROXY", "*").stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    while std::fs::metadata(&part).map_or(0, |data| data.len()) < 100_000 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let status = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    let first = finished(&child.wait_with_output().unwrap());
    assert!(first.code == Some(1) && first.err.contains("run the same command again to resume"), "{}", first.err);
    assert_eq!(std::fs::metadata(&part).unwrap().len(), 100_000);
    let again = finished(&command.output().unwrap());
    assert!(again.err.contains("the server returned 404"), "{}", again.err);
    assert_eq!(server.requested(), [0, 100_000]);
}

#[test]
fn wrong_usage_of_data_exits_with_two() {
    for arguments in [&["cifar10"][..], &["imagenet", "--to", "x"], &["mnist", "--to", "x", "--seeds", "2"]] {
        assert_eq!(data(arguments).code, Some(2), "{arguments:?}");
    }
}
