//! Rules of the repository: every dependency has a documented reason and a compatible license, and no modules depend on
//! each other in a circle.

use crate::{modules::Crate, support::requires};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::Command,
};

/// Licenses that may be combined with MIT OR Apache-2.0 in a program.
const COMPATIBLE: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "0BSD",
    "Unicode-3.0",
    "Unlicense",
    "CC0-1.0",
    "BSL-1.0",
];

/// The metadata of all packages. Cargo may have to download those that only strust-torch needs. Without a network the
/// tests are skipped, unless `STRUST_REQUIRE` names `packages` or `CI` is set.
fn metadata() -> Option<serde_json::Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &host()])
        .current_dir(root)
        .output()
        .expect("cargo runs");
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() || std::env::var_os("CI").is_none(), "{why}");
    if !requires("packages", output.status.success()) {
        eprintln!("{why}");
        return None;
    }
    Some(serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON"))
}

/// Packages for other platforms may not be downloaded.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().expect("rustc runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().find_map(|line| line.strip_prefix("host: ").map(String::from)).expect("rustc prints its host")
}

/// Whether an SPDX expression of ANDs and ORs allows a compatible choice.
fn is_compatible(expression: &str) -> bool {
    let expression = expression.replace(['(', ')'], "").replace('/', " OR ");
    expression.split(" AND ").all(|part| part.split(" OR ").any(|license| COMPATIBLE.contains(&license.trim())))
}

#[test]
fn every_dependency_has_a_license_that_is_compatible() {
    let Some(metadata) = metadata() else { return };
    let incompatible: Vec<String> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|package| !is_compatible(package["license"].as_str().unwrap_or("none")))
        .map(|package| format!("{} ({})", package["name"], package["license"]))
        .collect();
    assert!(incompatible.is_empty(), "{incompatible:#?}");
}

#[test]
fn the_docs_list_exactly_the_direct_dependencies() {
    let Some(metadata) = metadata() else { return };
    let ours = |package: &&serde_json::Value| package["source"].is_null();
    let mut direct = BTreeSet::new();
    for package in metadata["packages"].as_array().unwrap().iter().filter(ours) {
        for dependency in package["dependencies"].as_array().unwrap() {
            let name = dependency["name"].as_str().unwrap();
            if !name.starts_with("strust") {
                direct.insert(name.to_string());
            }
        }
    }
    let docs =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/contributing/dependencies.md"))
            .unwrap();
    let recorded: BTreeSet<String> = docs
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name.to_string()))
        .collect();
    assert_eq!(direct, recorded);
}

#[test]
fn a_license_expression_needs_one_of_its_ors_and_all_of_its_ands() {
    assert!(
        is_compatible("MIT OR Apache-2.0")
            && is_compatible("GPL-3.0 OR MIT")
            && is_compatible("(MIT OR Apache-2.0) AND Unicode-3.0")
            && is_compatible("MIT/Apache-2.0")
    );
    assert!(!is_compatible("GPL-3.0") && !is_compatible("MIT AND GPL-3.0") && !is_compatible("none"));
}

/// The crates whose modules must not depend on each other in a circle.
const WITHOUT_CIRCLES: &[&str] = &[
    "strust",
    "strust-baselines",
    "strust-data",
    "strust-problems",
    "strust-torch",
    "strust-burn",
    "strust-mpi",
    "strust-fit",
    "strust-lab",
    "strust-suites",
    "strust-cli",
    "strust-python",
    "strust-live",
];

#[test]
fn no_modules_depend_on_each_other_in_a_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let circles: Vec<String> = WITHOUT_CIRCLES
        .iter()
        .flat_map(|name| {
            let found = Crate::read(&crates.join(name).join("src")).circles();
            found.into_iter().map(move |circle| format!("{name}: {circle}"))
        })
        .collect();
    assert!(circles.is_empty(), "{circles:#?}");
}

/// The Markdown files that people read, with their text.
fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut pages, mut folders) = (Vec::new(), vec![root.join("docs")]);
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() && !path.ends_with("results") {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                pages.push(path);
            }
        }
    }
    pages.extend(
        ["README.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md"]
            .map(|name| root.join(name)),
    );
    assert!(pages.len() > 30, "{pages:?}");
    pages.into_iter().map(|path| (path.display().to_string(), std::fs::read_to_string(&path).unwrap())).collect()
}

/// The pages of the site that people wrote: without the table of contents and what commands generate.
fn written_pages() -> Vec<(String, String)> {
    let written = |(path, text): &(String, String)| {
        path.contains("/docs/") && !path.ends_with("SUMMARY.md") && !text.contains("<!-- strust:generated -->")
    };
    pages().into_iter().filter(written).collect()
}

#[test]
fn every_page_of_the_site_is_in_its_contents_and_begins_with_what_the_reader_can_do() {
    let contents =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/SUMMARY.md")).unwrap();
    let mut wrong = Vec::new();
    for (path, text) in written_pages() {
        let name = path.split("/docs/").last().unwrap();
        let first = text.lines().skip(1).find(|line| !line.is_empty()).unwrap_or_default();
        if !contents.contains(&format!("({name})"))
            || !text.starts_with("# ")
            || !first.starts_with("After this page you")
        {
            wrong.push(path);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_site_can_be_read_in_a_day() {
    let words_of = |text: &str| text.split_whitespace().filter(|word| *word != "|").count();
    let words: usize = written_pages().iter().map(|(_, text)| words_of(text)).sum();
    assert!((10_000..=30_000).contains(&words), "{words} words");
}

#[test]
fn markdown_is_wrapped_at_120_columns() {
    let mut long = Vec::new();
    for (path, text) in pages() {
        let (mut code, mut generated) = (false, false);
        for (number, line) in text.lines().enumerate() {
            code ^= line.trim_start().starts_with("```");
            generated = line.starts_with("<!-- strust:") || generated && !line.starts_with("<!-- /strust");
            // Tables, images and generated lines cannot be wrapped.
            let fixed = code || generated || ["|", "!["].iter().any(|start| line.starts_with(start));
            if !fixed && line.chars().count() > 120 {
                long.push(format!("{path}:{}", number + 1));
            }
        }
    }
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn the_readme_has_at_most_900_words() {
    let (_, readme) = pages().into_iter().find(|(path, _)| path.ends_with("../README.md")).unwrap();
    let words = readme.split_whitespace().count();
    assert!(words <= 900, "{words} words");
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut broken = Vec::new();
    for (path, text) in pages() {
        let folder = Path::new(&path).parent().unwrap().to_path_buf();
        for part in text.split("](").skip(1) {
            let target = part.split(')').next().unwrap_or_default();
            let file = target.split('#').next().unwrap_or_default();
            if !file.is_empty() && !file.contains("://") && !folder.join(file).exists() {
                broken.push(format!("{path}: {target}"));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// The files that may open, read or write files by themselves. All others use `open_plain`, `atomic` and `OutputFile`.
const OPENS_FILES: &[&str] = &[
    "strust-data/src/read/plain.rs",
    "strust-lab/src/io/atomic.rs",
    "strust-lab/src/io/jsonl.rs",
    "strust-lab/src/io/lock.rs",
    // The experiment file may be a pipe.
    "strust-lab/src/io/stream.rs",
    // The processor, and the program itself.
    "strust-lab/src/machine.rs",
    "strust-lab/src/team.rs",
    // Downloads continue a part of a file.
    "strust-cli/src/download.rs",
    // Scripts for Python in a temporary folder, memory and time of this process, and what libtorch has just written.
    "strust-suites/src/bench/cifar10.rs",
    "strust-torch/src/bench.rs",
    "strust-torch/src/model_file.rs",
];

#[test]
fn files_are_opened_in_few_places() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let functions = [
        "File::open(",
        "File::create",
        "fs::read(",
        "fs::read)",
        "fs::read_to_string(",
        "fs::write(",
        "fs::copy(",
        "OpenOptions::new(",
    ];
    let (mut found, mut seen) = (Vec::new(), 0);
    for path in WITHOUT_CIRCLES.iter().flat_map(|name| sources(&crates.join(name).join("src"))) {
        let text = std::fs::read_to_string(&path).unwrap();
        let code =
            text.split("\nmod tests {").next().unwrap_or_default().split("\n#[cfg(test)]").next().unwrap_or_default();
        let opens = |line: &&str| !line.trim_start().starts_with("//") && functions.iter().any(|f| line.contains(f));
        let lines: Vec<&str> = code.lines().filter(opens).collect();
        seen += usize::from(!lines.is_empty());
        if !OPENS_FILES.iter().any(|file| path.ends_with(file)) {
            found.extend(lines.iter().map(|line| format!("{}: {}", path.display(), line.trim())));
        }
    }
    assert!(found.is_empty() && seen == OPENS_FILES.len(), "{seen} of {}: {found:#?}", OPENS_FILES.len());
}

/// The Rust files of a folder, without tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") && !path.ends_with("tests.rs") {
                files.push(path.canonicalize().unwrap());
            }
        }
    }
    files
}

/// Names that several files may use: one error per crate, scratch space, the entries of the registry, and the two forms of
/// a capture with and without CUDA.
const SHARED_NAMES: &[&str] = &["Error", "Scratch", "Method", "Problem", "Capture"];

#[test]
fn no_two_types_have_the_same_name() {
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    // strust-burn and strust-torch do the same for two frameworks, and no program uses both.
    for name in WITHOUT_CIRCLES.iter().filter(|name| **name != "strust-burn") {
        for path in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src")) {
            let text = std::fs::read_to_string(&path).unwrap();
            for line in text.split("\nmod tests {").next().unwrap_or_default().lines() {
                let words: Vec<&str> = line.split_whitespace().take(3).collect();
                let at = words.iter().position(|word| ["struct", "enum", "trait"].contains(word));
                let before_is_visibility = at.is_some_and(|at| words[..at].iter().all(|w| w.starts_with("pub")));
                let Some(word) = at.filter(|_| before_is_visibility).and_then(|at| words.get(at + 1)) else {
                    continue;
                };
                let name: String = word.chars().take_while(|c| c.is_alphanumeric()).collect();
                places.entry(name).or_default().insert(path.display().to_string());
            }
        }
    }
    assert!(places.len() > 300, "only {} types were found", places.len());
    places.retain(|name, places| places.len() > 1 && !SHARED_NAMES.contains(&name.as_str()) && !name.is_empty());
    assert!(places.is_empty(), "{places:#?}");
}
