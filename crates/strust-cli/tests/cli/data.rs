//! Data sets over the network, from a server of the test's own.

use crate::{
    server::{Answer, Server},
    support::{Folder, Said, said, strust},
};
use std::process::Stdio;

/// The bytes of the archive of CIFAR-10.
const LENGTH: usize = 170_052_171;

fn data(arguments: &[&str]) -> Said {
    said(&strust().arg("data").args(arguments).env("NO_PROXY", "*").output().expect("the program starts"))
}

#[test]
fn without_a_network_the_message_says_which_file_to_put_where() {
    let folder = Folder::new();
    let to = folder.path("data");
    let to = to.to_str().unwrap();
    let said = data(&["cifar10", "--to", to, "--from", &Server::nobody()]);
    assert_eq!(said.code, Some(1));
    let expected = format!(
        "get this file elsewhere, as {to}/cifar-10-binary.tar.gz (170052171 bytes, MD5 c32a1d4ab5d03f1284b67883e8d87530)"
    );
    assert!(said.err.contains("refused") && said.err.contains(&expected), "{}", said.err);
    assert_eq!(std::fs::read_dir(to).unwrap().count(), 0);
}

#[test]
fn a_server_without_the_file_or_with_another_one_is_named() {
    let folder = Folder::new();
    let to = folder.path("data");
    let ask = |server: &Server, more: &[&str]| {
        data(&[&["mnist", "--to", to.to_str().unwrap(), "--from", &server.url], more].concat())
    };
    let server = Server::new(vec![], &[Answer::Status(404)]);
    let said = ask(&server, &[]);
    let expected = format!("error: {}/train-images-idx3-ubyte.gz: the server answers 404", server.url);
    assert!(said.code == Some(1) && said.err.contains(&expected), "{}", said.err);
    let said = ask(&Server::new(vec![0; 9_912_422], &[Answer::Asked]), &["--quiet"]);
    assert!(said.code == Some(1) && said.err.contains("instead of f68b3c2dcbeaaa9fbdd348bbdeb94873"), "{}", said.err);
    assert!(said.out.is_empty() && said.err.starts_with("error: "), "{}", said.err);
    assert_eq!(std::fs::read_dir(&to).unwrap().count(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let said = data(&["mnist", "--to", "/proc/strust-test", "--from", &Server::nobody()]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("cannot make the folder /proc/strust-test"), "{}", said.err);
    assert!(said.err.contains("Choose another with --to"), "{}", said.err);
    let said = data(&["mnist", "--to", "/proc", "--from", &Server::nobody()]);
    assert!(said.err.contains("cannot write /proc/train-images-idx3-ubyte.gz.part"), "{}", said.err);
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_came_and_the_same_command_goes_on_from_there() {
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
    let first = said(&child.wait_with_output().unwrap());
    assert!(first.code == Some(1) && first.err.contains("the same command goes on from there"), "{}", first.err);
    assert_eq!(std::fs::metadata(&part).unwrap().len(), 100_000);
    let again = said(&command.output().unwrap());
    assert!(again.err.contains("the server answers 404"), "{}", again.err);
    assert_eq!(server.asked(), [0, 100_000]);
}

#[test]
fn wrong_usage_of_data_exits_with_two() {
    for arguments in [&["cifar10"][..], &["imagenet", "--to", "x"], &["mnist", "--to", "x", "--seeds", "2"]] {
        assert_eq!(data(arguments).code, Some(2), "{arguments:?}");
    }
}
