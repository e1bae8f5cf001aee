//! Checks libtorch before anything is compiled against it, and ties its CUDA half to every program that links this crate.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

/// The one place that names the version.
const SCRIPT: &str = "../../scripts/torch-env";
const ADVICE: &str = "run:  eval \"$(scripts/torch-env)\"  in this shell, then build again";

fn main() -> ExitCode {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={SCRIPT}");
    println!("cargo:rustc-check-cfg=cfg(libtorch_cuda)");
    if variable("DOCS_RS").is_some() {
        println!("cargo:rustc-env=STRUST_LIBTORCH_VERSION=unknown");
        return ExitCode::SUCCESS;
    }
    match find().and_then(|found| check(&found).map(|()| found)) {
        Ok(found) => {
            link(&found);
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("\nstrust-torch: {message}\n");
            ExitCode::FAILURE
        }
    }
}

struct Found {
    lib: PathBuf,
    /// As it is written in the package, such as `2.11.0+cu130`.
    version: Option<String>,
}

fn variable(name: &str) -> Option<String> {
    println!("cargo:rerun-if-env-changed={name}");
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn wanted() -> Option<String> {
    // Absent where this crate is built outside its repository; tch then checks alone.
    let script = fs::read_to_string(SCRIPT).ok()?;
    script.lines().find_map(|line| line.strip_prefix("TORCH_VERSION=")).map(|version| version.trim().to_string())
}

/// libtorch where torch-sys will look for it, in the same order.
fn find() -> Result<Found, String> {
    let wanted = wanted().map_or_else(String::new, |version| format!(" {version}"));
    if variable("LIBTORCH_USE_PYTORCH").is_some() {
        let python = if variable("VIRTUAL_ENV").is_some() { "python" } else { "python3" };
        let code = "import torch; print(torch.__version__); print(torch.__path__[0])";
        let output = Command::new(python).args(["-c", code]).output();
        let output = output.map_err(|e| format!("LIBTORCH_USE_PYTORCH is set, but `{python}` did not run: {e}; {ADVICE}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let [version, folder] = text.lines().collect::<Vec<_>>()[..] else {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(format!(
                "LIBTORCH_USE_PYTORCH is set and libtorch{wanted} is wanted, but `{python}` has no torch; {ADVICE}\n{why}"
            ));
        };
        return Ok(Found { lib: Path::new(folder).join("lib"), version: Some(version.into()) });
    }
    let Some(folder) = variable("LIBTORCH").or_else(|| Path::new("/usr/lib/libtorch.so").exists().then(|| "/usr".into()))
    else {
        return Err(format!("libtorch{wanted} is wanted, but none was found (LIBTORCH is not set); {ADVICE}"));
    };
    let lib = Path::new(&variable("LIBTORCH_LIB").unwrap_or_else(|| folder.clone())).join("lib");
    if !["libtorch_cpu.so", "libtorch_cpu.dylib", "torch_cpu.lib"].iter().any(|name| lib.join(name).exists()) {
        return Err(format!("libtorch{wanted} is wanted, but {} holds no libtorch_cpu; {ADVICE}", lib.display()));
    }
    Ok(Found { version: version_in(Path::new(&folder)), lib })
}

/// A Python package says it in `version.py`, an archive of libtorch in `build-version`.
fn version_in(folder: &Path) -> Option<String> {
    let read = |name: &str| {
        let file = folder.join(name);
        println!("cargo:rerun-if-changed={}", file.display());
        fs::read_to_string(file).ok()
    };
    let package = read("version.py")
        .and_then(|text| Some(text.lines().find_map(|l| l.strip_prefix("__version__ = "))?.trim_matches('\'').to_string()));
    package.or_else(|| read("build-version").map(|text| text.trim().to_string()))
}

fn check(found: &Found) -> Result<(), String> {
    let (Some(wanted), Some(version)) = (wanted(), &found.version) else { return Ok(()) };
    let number = version.split('+').next().unwrap_or_default();
    if number != wanted && variable("LIBTORCH_BYPASS_VERSION_CHECK").is_none() {
        let place = found.lib.display();
        return Err(format!("libtorch {wanted} is wanted, but {version} was found in {place}; {ADVICE}"));
    }
    Ok(())
}

fn link(found: &Found) {
    let lib = found.lib.display();
    println!("cargo:rustc-env=STRUST_LIBTORCH_VERSION={}", found.version.as_deref().unwrap_or("unknown"));
    println!("cargo:libtorch_lib={lib}");
    if env::var("CARGO_CFG_TARGET_FAMILY").as_deref() == Ok("unix") {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{lib}");
    }
    if found.lib.join("libtorch_cuda.so").exists() {
        println!("cargo:rustc-cfg=libtorch_cuda");
        // A linker that is told `--as-needed`, as rustc tells it, drops a library no symbol of which is used, and the
        // program then runs on the CPU without a word. Link arguments do not reach the programs that depend on this
        // crate, but static libraries do: this one uses a symbol.
        println!("cargo:rerun-if-changed=src/keep_cuda.c");
        println!("cargo:rustc-link-search=native={lib}");
        cc::Build::new().file("src/keep_cuda.c").cargo_metadata(false).compile("strust_keep_cuda");
        println!("cargo:rustc-link-search=native={}", env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
        println!("cargo:rustc-link-lib=static:+whole-archive=strust_keep_cuda");
        println!("cargo:rustc-link-lib=dylib=torch_cuda");
    }
}
