//! If libtorch is missing or has another version, the build prints both versions.

#[path = "../native/find_libtorch.rs"]
mod find_libtorch;

use std::{collections::HashMap, fs, path::Path};

/// The error message of a build with these environment variables.
fn message(variables: &[(&str, &str)]) -> String {
    let variables: HashMap<&str, &str> = variables.iter().copied().collect();
    find_libtorch::find(|name| variables.get(name).map(ToString::to_string)).unwrap_err()
}

fn package(folder: &Path, version: &str) {
    fs::create_dir(folder.join("lib")).unwrap();
    fs::write(folder.join("lib/libtorch_cpu.so"), "").unwrap();
    fs::write(folder.join("version.py"), format!("from typing import Optional\n__version__ = '{version}'\n")).unwrap();
}

#[test]
fn the_script_names_the_required_version() {
    assert_eq!(find_libtorch::required_version().unwrap(), "2.11.0");
}

#[test]
fn the_message_for_a_missing_libtorch_has_its_version_and_the_command_that_installs_it() {
    let text = message(&[]);
    let expected =
        "libtorch 2.11.0 is required, but none was found (LIBTORCH is not set); run  eval \"$(scripts/torch-env)\"";
    assert!(text.starts_with(expected), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let text = message(&[("LIBTORCH", folder.path().to_str().unwrap())]);
    assert!(text.starts_with("libtorch 2.11.0 is required, but ") && text.contains("holds no libtorch_cpu"), "{text}");
}

#[test]
fn a_libtorch_of_another_version_is_refused_with_both_versions() {
    let folder = tempfile::tempdir().unwrap();
    package(folder.path(), "2.6.0+cu124");
    let path = folder.path().to_str().unwrap();
    let text = message(&[("LIBTORCH", path)]);
    assert!(text.starts_with("libtorch 2.11.0 is required, but 2.6.0+cu124 was found in "), "{text}");
    let bypass = |name: &str| match name {
        "LIBTORCH" => Some(path.to_string()),
        "LIBTORCH_BYPASS_VERSION_CHECK" => Some("1".into()),
        _ => None,
    };
    assert!(find_libtorch::find(bypass).is_ok());
}

#[test]
fn the_right_version_passes_whatever_it_was_built_for() {
    for version in ["2.11.0", "2.11.0+cpu", "2.11.0+cu130"] {
        let folder = tempfile::tempdir().unwrap();
        package(folder.path(), version);
        let found =
            find_libtorch::find(|name| (name == "LIBTORCH").then(|| folder.path().to_str().unwrap().into())).unwrap();
        assert_eq!(found.version.as_deref(), Some(version));
        assert!(found.lib.ends_with("lib"));
    }
}

#[test]
fn graphs_are_compiled_if_all_headers_exist() {
    let folder = tempfile::tempdir().unwrap();
    let torch = folder.path().join("torch");
    fs::create_dir(&torch).unwrap();
    package(&torch, "2.11.0+cu130");
    let found =
        || find_libtorch::Libtorch { lib: torch.join("lib"), version: None }.cuda_headers(|_| Some("nowhere".into()));
    for header in ["torch/include/ATen/cuda/CUDAGraph.h", "nvidia/cu13/include/cuda_runtime_api.h"] {
        let header = folder.path().join(header);
        fs::create_dir_all(header.parent().unwrap()).unwrap();
        fs::write(header, "").unwrap();
    }
    assert_eq!(found(), None);
    let cuda = folder.path().join("nvidia/cu13/include");
    fs::create_dir(cuda.join("crt")).unwrap();
    fs::write(cuda.join("nvrtc.h"), "").unwrap();
    fs::write(cuda.join("crt/host_defines.h"), "").unwrap();
    assert_eq!(found(), Some([torch.join("include"), cuda]));
}
