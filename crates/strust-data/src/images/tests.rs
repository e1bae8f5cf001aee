use super::*;
use crate::read::tests::{gzip, xz};
use proptest::prelude::*;
use std::fs;

/// `count` records of CIFAR-10. The label and the pixels identify a record.
fn records(first: u8, count: u8) -> Vec<u8> {
    (first..first + count).flat_map(|i| std::iter::once(i % 10).chain(std::iter::repeat_n(i, 3072))).collect()
}

#[test]
fn turned_images_have_four_times_as_many_classes() {
    // 0 1 / 2 3, turned counterclockwise.
    let turns = [[0, 1, 2, 3], [1, 3, 0, 2], [3, 2, 1, 0], [2, 0, 3, 1]];
    let images = |count: usize| Images {
        pixels: [0, 1, 2, 3, 4, 5, 6, 7].repeat(count),
        labels: vec![1; count],
        shape: [2, 2, 2],
    };
    let set = |count| ImageSet { train: images(count), test: images(count), classes: vec!["a".into(), "b".into()] };
    let turned = set(400).turned().unwrap();
    assert_eq!(turned.classes[4..], ["b 0°", "b 90°", "b 180°", "b 270°"]);
    for i in 0..400 {
        let turn = turns[usize::from(turned.train.labels[i]) - 4];
        assert_eq!(turned.train.image(i), [turn, turn.map(|pixel| pixel + 4)].concat());
    }
    let counts = turned.train.labels.iter().fold([0; 4], |mut counts, label| {
        counts[usize::from(*label) - 4] += 1;
        counts
    });
    assert!(counts.iter().all(|count| (60..140).contains(count)), "{counts:?}");
    assert_ne!(turned.train.labels, turned.test.labels);
    assert_eq!(set(9).turned().unwrap().train, turned.train.take(9));
    let wide = Images { shape: [1, 2, 4], ..images(3) };
    assert!(ImageSet { train: wide, ..set(3) }.turned().is_err());
}

/// A tar archive as tar(1) writes it.
fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, bytes) in files {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..136].copy_from_slice(format!("{:011o}\0", bytes.len()).as_bytes());
        header[156] = b'0';
        sign(&mut header);
        out.extend(header);
        out.extend(*bytes);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.extend([0; 1024]);
    out
}

#[test]
fn a_name_that_is_too_long_for_its_header_is_found_before_it() {
    let folders = "a/".repeat(100);
    let names = [format!("{folders}data_batch_1.bin\0"), format!("222 path={folders}test_batch.bin\n")];
    let (one, test) = (records(0, 1), records(1, 1));
    let mut archive =
        tar(&[("x", names[0].as_bytes()), (&folders[..100], &one), ("x", names[1].as_bytes()), ("x", &test)]);
    for (at, kind) in [(0, b'L'), (1024 + 512 + 3584, b'x')] {
        archive[at + 156] = kind;
        sign(&mut archive[at..at + 512]);
    }
    let place = folder(&[("a.tar", &archive)]);
    let set = cifar10(&place.path().join("a.tar"), Checksums::Unchecked).unwrap();
    assert_eq!((set.train.labels, set.test.labels), (vec![0], vec![1]));
}

/// Writes the checksum of a tar header: the sum of its bytes, with blanks in place of the checksum.
fn sign(header: &mut [u8]) {
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|&b| u32::from(b)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
}

fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    folder
}

/// The error message for a folder with these files.
#[track_caller]
fn refused(files: &[(&str, &[u8])], checksums: Checksums) -> String {
    let folder = folder(files);
    let message = cifar10(folder.path(), checksums).unwrap_err().to_string();
    message.strip_prefix(folder.path().to_str().unwrap()).expect("the message begins with the file").to_string()
}

#[test]
fn cifar_is_read_from_files_a_subfolder_and_the_archive_in_any_order() {
    let (one, two, test) = (records(0, 2), records(2, 3), records(7, 1));
    let files = [("data_batch_1.bin", &one[..]), ("data_batch_2.bin", &two), ("test_batch.bin", &test)];
    let set = cifar10(folder(&files).path(), Checksums::Unchecked).unwrap();
    assert_eq!((&set.train.labels[..], &set.test.labels[..]), (&[0, 1, 2, 3, 4][..], &[7][..]));
    assert_eq!((set.train.shape, set.train.image(3)), ([3, 32, 32], &[3; 3072][..]));
    assert_eq!((set.classes.len(), &set.classes[7][..]), (10, "horse"));
    set.train.validate(10).unwrap();

    let inside = files.map(|(name, bytes)| (format!("cifar-10-batches-bin/{name}"), bytes));
    let inside: Vec<_> = inside.iter().map(|(name, bytes)| (&name[..], *bytes)).collect();
    assert_eq!(cifar10(folder(&inside).path(), Checksums::Unchecked).unwrap(), set);

    let mixed = [("cifar-10-batches-bin/readme.html", &b"hello"[..]), inside[2], inside[1], inside[0]];
    let archive = tar(&mixed);
    let place = folder(&[("cifar-10-binary.tar.gz", &gzip(&archive)), ("my.tar.xz", &xz(&archive))]);
    assert_eq!(cifar10(place.path(), Checksums::Unchecked).unwrap(), set);
    assert_eq!(cifar10(&place.path().join("my.tar.xz"), Checksums::Unchecked).unwrap(), set);
}

#[test]
fn a_missing_cifar_file_is_an_error_that_states_how_to_get_it() {
    use Checksums::{Official, Unchecked};
    let one = records(0, 1);
    let message = cifar10("/nowhere/cifar".as_ref(), Official).unwrap_err().to_string();
    let get = "Get it again: `strust data cifar10 --to FOLDER` downloads the official archive";
    assert_eq!(message, format!("/nowhere/cifar: there is no such file or folder. {get}"));
    let gap = [("data_batch_1.bin", &one[..]), ("data_batch_3.bin", &one), ("test_batch.bin", &one)];
    assert!(refused(&gap, Unchecked).starts_with(": data_batch_2.bin is missing, though data_batch_3.bin is there."));
    assert_eq!(
        refused(&[], Official),
        format!(": neither data_batch_1.bin nor cifar-10-binary.tar.gz is in this folder. {get}")
    );
    let message = refused(&[("data_batch_1.bin", &one)], Unchecked);
    assert!(message.starts_with("/test_batch.bin: there is no such file. Expected are"), "{message}");
    let message = refused(&[("test_batch.bin", &one)], Official);
    assert!(message.starts_with("/data_batch_1.bin: there is no such file. Get it again"), "{message}");
    let archive = gzip(&tar(&[("a/data_batch_1.bin", &one), ("a/readme.html", b"")]));
    let message = refused(&[("cifar-10-binary.tar.gz", &archive)], Unchecked);
    assert!(message.starts_with("/cifar-10-binary.tar.gz: test_batch.bin is not in this archive."), "{message}");
}

#[test]
fn incomplete_or_unofficial_cifar_files_are_errors() {
    use Checksums::{Official, Unchecked};
    let (one, mut wrong) = (records(0, 1), records(0, 3));
    let check = |bytes: &[u8], checksums, expected: &str| {
        let message = refused(&[("data_batch_1.bin", bytes), ("test_batch.bin", &one)], checksums);
        assert!(message.starts_with(&format!("/data_batch_1.bin: {expected}")), "{message}");
    };
    check(&[], Unchecked, "0 bytes, but the size must be a positive multiple of 3073 bytes (one record). Expected");
    check(&wrong[..4000], Unchecked, "4000 bytes, but the size must be a positive multiple");
    check(&wrong[..4000], Official, "4000 bytes, but the official file has 30730000. Get it again");
    let full = vec![0; 10_000 * 3073];
    check(
        &full,
        Official,
        "its MD5 is 229a4f9bbbc879e7371f2391ac1f4775, but that of the official file is 5dd7e06a14cb22eb9f671a540d1b7c25. Get",
    );
    check(&[&full[..], &one].concat(), Official, "at least 30733073 bytes, but the official file has 30730000");
    wrong[2 * 3073] = 10;
    check(&wrong, Unchecked, "at byte 6146: label 10 of record 2 (from 0); expected 0 to 9");
}

#[test]
fn damaged_archives_are_errors() {
    let (one, test) = (records(0, 1), records(1, 1));
    let archive = tar(&[("data_batch_1.bin", &one), ("test_batch.bin", &test)]);
    let check = |name: &str, bytes: &[u8], expected: &str| {
        let folder = folder(&[(name, bytes)]);
        let message = cifar10(&folder.path().join(name), Checksums::Unchecked).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    };
    let packed = gzip(&archive);
    for end in [packed.len() / 2, packed.len() - 1] {
        check("a.tar.gz", &packed[..end], "the gzip data is truncated or damaged");
    }
    check("a.tar", &archive[..300], "at byte 300: the archive is truncated: copy the file again");
    check("a.tar", &archive[..512 + 3073], "at byte 3585: the archive is truncated");
    check("a.tar", &archive[..1000], "a.tar/data_batch_1.bin: 488 bytes, but the size must be a positive multiple");
    check("a.tar", &[b'x'; 2000], "at byte 0: this is not a tar archive, or it is damaged");
    let twice = tar(&[("data_batch_1.bin", &one), ("data_batch_1.bin", &one)]);
    check("a.tar", &twice, "a.tar/data_batch_1.bin: it is in the archive twice");
    let mut wrong = archive.clone();
    wrong[124..135].copy_from_slice(b"0000000600x");
    sign(&mut wrong[..512]);
    check("a.tar", &wrong, "at byte 124: the size of a file in the archive is not an octal number");
}

/// An idx file.
fn idx(shape: &[u32], bytes: &[u8]) -> Vec<u8> {
    let sizes = shape.iter().flat_map(|size| size.to_be_bytes());
    [0, 0, 8, shape.len() as u8].into_iter().chain(sizes).chain(bytes.iter().copied()).collect()
}

#[test]
fn mnist_is_read_from_plain_and_gzipped_files() {
    let place = folder(&[
        (MNIST[0], &idx(&[2, 2, 3], &(0..12).collect::<Vec<_>>())),
        ("train-labels-idx1-ubyte.gz", &gzip(&idx(&[2], &[9, 4]))),
        ("t10k-images-idx3-ubyte.gz", &gzip(&idx(&[1, 2, 3], &[255; 6]))),
        (MNIST[3], &idx(&[1], &[0])),
    ]);
    let set = mnist(place.path()).unwrap();
    let train = Images { pixels: (0..12).collect(), labels: vec![9, 4], shape: [1, 2, 3] };
    assert_eq!((&set.train, &set.test.labels[..], &set.classes[9][..]), (&train, &[0][..], "9"));
    let test = set.test.classified(10).unwrap();
    assert_eq!((test.rows(), test.columns(), test.features()[(0, 5)]), (1, 6, 1.0));
}

#[test]
fn mnist_files_that_do_not_match_are_errors() {
    let whole = [idx(&[1, 2, 3], &[0; 6]), idx(&[1], &[5]), idx(&[1, 2, 3], &[0; 6]), idx(&[1], &[5])];
    for (k, file, expected) in [
        (0, idx(&[6], &[0; 6]), "train-images-idx3-ubyte: an array of shape [6]; expected images × height × width"),
        (1, idx(&[2], &[5; 2]), "train-labels-idx1-ubyte: labels of shape [2] for 1 images; expected [1]"),
        (1, idx(&[1], &[10]), "train-labels-idx1-ubyte: at byte 8: label 10 of image 0 (from 0); expected 0 to 9"),
        (2, idx(&[1, 3, 2], &[0; 6]), "t10k-images-idx3-ubyte: test images of 3×2, but training images of 2×3"),
        (3, vec![], "t10k-labels-idx1-ubyte: at byte 0: the file ends within the header"),
    ] {
        let mut files = whole.clone();
        files[k] = file;
        let place = folder(&[0, 1, 2, 3].map(|i| (MNIST[i], &files[i][..])));
        let message = mnist(place.path()).unwrap_err().to_string();
        assert!(message.ends_with(expected), "{message}");
    }
}

/// Whether a test can run that needs a special resource. If `available` is false, the test fails if `STRUST_REQUIRE`
/// names the resource (names are separated by commas); otherwise it is skipped.
#[cfg(unix)]
#[track_caller]
fn requires(resource: &str, available: bool) -> bool {
    let required = std::env::var("STRUST_REQUIRE").unwrap_or_default();
    let named = required.split(',').any(|name| name.trim() == resource);
    assert!(available || !named, "STRUST_REQUIRE names `{resource}`, but it is not available here");
    if !available {
        eprintln!("skipped: `{resource}` is not available here");
    }
    available
}

#[cfg(unix)]
#[test]
fn a_folder_without_permission_is_an_error_that_names_the_cause() {
    use std::os::unix::fs::PermissionsExt;
    let place = folder(&[]);
    let closed = place.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read_dir(&closed).is_ok() {
        // Root may read every folder, so another user runs this test.
        return run_as_another_user("images::tests::a_folder_without_permission_is_an_error_that_names_the_cause");
    }
    for message in [cifar10(&closed, Checksums::Official).unwrap_err(), mnist(&closed).unwrap_err()] {
        assert!(message.to_string().contains("Permission denied"), "{message}");
    }
}

/// Runs a test of this program again as the user nobody.
#[cfg(unix)]
fn run_as_another_user(test: &str) {
    use std::{
        os::unix::{fs::PermissionsExt, process::CommandExt},
        process::Command,
    };
    const NOBODY: u32 = 65534;
    const MARK: &str = "STRUST_TEST_OF_ANOTHER_USER";
    assert!(std::env::var_os(MARK).is_none(), "another user can read the closed folder too");
    // The other user may have no access to the program in its folder.
    let place = folder(&[]);
    let program = place.path().join("tests");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    for path in [place.path(), &program] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let mut command = Command::new(&program);
    command.args(["--exact", test]).current_dir(place.path()).env(MARK, "1").env("TMPDIR", place.path());
    let output = command.uid(NOBODY).gid(NOBODY).output();
    if !requires("other-user", output.is_ok()) {
        return;
    }
    let output = output.expect("the program started");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn inconsistent_images_are_an_error() {
    let images = |pixels, labels: &[u8]| Images { pixels: vec![0; pixels], labels: labels.to_vec(), shape: [1, 2, 2] };
    let message = |pixels, labels| images(pixels, labels).validate(3).unwrap_err().to_string();
    assert_eq!(message(5, &[0]), "pixels of images: expected shape [4], found [5]");
    assert_eq!(message(8, &[0, 3]), "images: `labels` is 3 at image 1, but must be below 3 (classes)");
    let huge = Images { shape: [usize::MAX, 2, 2], ..images(4, &[0]) };
    assert!(huge.validate(3).is_err());
    assert!(images(0, &[]).is_empty() && images(0, &[]).validate(3).is_ok());
    assert_eq!(images(8, &[0, 1]).take(5), images(8, &[0, 1]));
    assert_eq!(images(8, &[0, 1]).take(1), images(4, &[0]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_damaged_archive_never_panics(at in any::<prop::sample::Index>(), byte in any::<u8>(), keep in any::<prop::sample::Index>()) {
        let mut archive = tar(&[("data_batch_1.bin", &records(0, 1)), ("x", &[1; 600]), ("test_batch.bin", &records(1, 1))]);
        let at = at.index(archive.len());
        archive[at] = byte;
        archive.truncate(keep.index(2 * archive.len()));
        let place = folder(&[("a.tar", &archive)]);
        let _ = cifar10(&place.path().join("a.tar"), Checksums::Unchecked);
    }
}
