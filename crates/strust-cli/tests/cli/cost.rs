//! What the repository may cost: lines, packages and files. `scripts/build-cost` prints these numbers by crate, and those
//! of a build.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (vec![], vec![folder.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let built = path.file_name().is_some_and(|name| name == "target");
            if path.is_dir() && !built {
                folders.push(path);
            } else if path.is_file() {
                files.push(path);
            }
        }
    }
    files
}

/// One of them is the library in the browser, and three write completions and manual pages.
#[test]
fn the_lock_file_has_at_most_224_packages() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let packages = lock.matches("[[package]]").count();
    assert!((100..=224).contains(&packages), "{packages} packages");
}

#[test]
fn the_code_outside_of_tests_has_a_bounded_number_of_lines() {
    let mut all = files(&root().join("crates"));
    all.extend(files(&root().join("python/src")));
    let of_tests = |path: &Path| path.ends_with("tests.rs") || path.iter().any(|part| part == "tests");
    let code = |path: &&PathBuf| path.extension().is_some_and(|ending| ending == "rs" || ending == "py");
    let lines: usize = all.iter().filter(code).filter(|path| !of_tests(path)).map(|path| lines_of_code(path)).sum();
    assert!((10_000..=MOST_LINES).contains(&lines), "{lines} lines");
}

/// The lines of a file without its unit tests.
fn lines_of_code(path: &Path) -> usize {
    let text = std::fs::read_to_string(path).unwrap();
    let (mut count, mut in_tests, mut last) = (0, false, "");
    for line in text.lines() {
        if last == "#[cfg(test)]" && line.starts_with("mod ") && line.ends_with('{') {
            in_tests = true;
            count -= 1;
        }
        count += usize::from(!in_tests);
        in_tests &= line != "}";
        last = line;
    }
    count
}

/// Whoever adds code looks for something to remove. strust-burn has 1,980 of these lines, strust-live 170.
const MOST_LINES: usize = 87_300;

#[test]
fn published_results_have_at_most_2_megabytes() {
    let bytes: u64 = files(&root().join("docs/results")).iter().map(|path| path.metadata().unwrap().len()).sum();
    assert!(bytes <= 2_000_000, "{bytes} bytes");
}

/// Only a release build shows the sizes. If there is none, or only one of older sources, nothing is checked;
/// `scripts/build-cost --cold --check` makes one.
#[test]
fn a_release_build_is_small() {
    let changed = |path: &PathBuf| path.metadata().and_then(|data| data.modified()).unwrap();
    let newest = files(&root().join("crates")).iter().map(changed).max().unwrap();
    let release = Path::new(env!("CARGO_BIN_EXE_strust")).join("../../release");
    let built = |folder: &str, prefix: &str, ending: &str| {
        let found = std::fs::read_dir(release.join(folder)).ok()?.map(|entry| entry.unwrap().path());
        let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        let wanted = found.filter(|path| name(path).starts_with(prefix) && name(path).ends_with(ending));
        wanted.filter(|path| changed(path) > newest).max_by_key(changed)
    };
    let largest =
        [("", "strust", "strust", 19), ("deps", "libstrust_lab-", ".rlib", 19), ("", "libstrust_python", ".so", 17)];
    for (folder, prefix, ending, megabytes) in largest {
        if let Some(path) = built(folder, prefix, ending) {
            let bytes = path.metadata().unwrap().len();
            assert!(bytes <= megabytes * 1_000_000, "{} has {bytes} bytes", path.display());
        }
    }
}
