//! Finds libtorch in the places where torch-sys looks for it and checks its version. The build script and its test use
//! this file.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The script that names the required version. No other file does.
pub const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/torch-env");
const ADVICE: &str = "run  eval \"$(scripts/torch-env)\"  in this shell, then build again";

/// An installed libtorch.
#[derive(Debug)]
pub struct Libtorch {
    /// The folder of its libraries.
    pub lib: PathBuf,
    /// The version that the package states, such as `2.11.0+cu130`.
    pub version: Option<String>,
}

impl Libtorch {
    /// The folders of the headers that the C++ files in `native` include: libtorch's own, and those of CUDA. CUDA's
    /// come from the Python packages next to libtorch or from an installed CUDA. Returns `None` if a header is missing.
    /// PyTorch does not install CUDA's `crt` headers.
    pub fn cuda_headers(&self, variable: impl Fn(&str) -> Option<String>) -> Option<[PathBuf; 2]> {
        let torch = self.lib.parent()?;
        let packages = fs::read_dir(torch.parent()?.join("nvidia")).ok();
        let packages = packages.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
        let installed = variable("CUDA_HOME").unwrap_or_else(|| "/usr/local/cuda".into()).into();
        let mut folders = packages.chain([installed]).map(|folder| folder.join("include"));
        let whole = |folder: &PathBuf| {
            ["cuda_runtime_api.h", "crt/host_defines.h", "nvrtc.h"].iter().all(|h| folder.join(h).exists())
        };
        let own = torch.join("include");
        own.join("ATen/cuda/CUDAGraph.h").exists().then_some([own, folders.find(whole)?])
    }
}

/// The required version. It is unknown if this crate is built outside its repository; then only tch checks the version.
pub fn required_version() -> Option<String> {
    let script = fs::read_to_string(SCRIPT).ok()?;
    script.lines().find_map(|line| line.strip_prefix("TORCH_VERSION=")).map(|version| version.trim().to_string())
}

/// The libtorch that the environment variables name. Returns an error if its version is not the required one.
pub fn find(variable: impl Fn(&str) -> Option<String>) -> Result<Libtorch, String> {
    let required = required_version();
    let name = required.as_ref().map_or_else(|| "libtorch".into(), |version| format!("libtorch {version}"));
    let found = locate(&variable).map_err(|why| format!("{name} is required, but {why}; {ADVICE}"))?;
    if let (Some(required), Some(version)) = (required, &found.version)
        && version.split('+').next() != Some(&required)
        && variable("LIBTORCH_BYPASS_VERSION_CHECK").is_none()
    {
        return Err(format!("{name} is required, but {version} was found in {}; {ADVICE}", found.lib.display()));
    }
    Ok(found)
}

fn locate(variable: impl Fn(&str) -> Option<String>) -> Result<Libtorch, String> {
    if variable("LIBTORCH_USE_PYTORCH").is_some() {
        let python = if variable("VIRTUAL_ENV").is_some() { "python" } else { "python3" };
        return ask(python).map_err(|why| format!("LIBTORCH_USE_PYTORCH is set and {why}"));
    }
    let system = || Path::new("/usr/lib/libtorch.so").exists().then(|| "/usr".into());
    let folder = variable("LIBTORCH").or_else(system).ok_or("none was found (LIBTORCH is not set)")?;
    let lib = Path::new(&variable("LIBTORCH_LIB").unwrap_or_else(|| folder.clone())).join("lib");
    if !["libtorch_cpu.so", "libtorch_cpu.dylib", "torch_cpu.lib"].iter().any(|name| lib.join(name).exists()) {
        return Err(format!("{} holds no libtorch_cpu", lib.display()));
    }
    Ok(Libtorch { version: version_in(Path::new(&folder)), lib })
}

fn ask(python: &str) -> Result<Libtorch, String> {
    let code = "import torch; print(torch.__version__); print(torch.__path__[0])";
    let output =
        Command::new(python).args(["-c", code]).output().map_err(|e| format!("`{python}` did not run: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let [version, folder] = text.lines().collect::<Vec<_>>()[..] else {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{python}` cannot import torch ({})", why.lines().last().unwrap_or_default()));
    };
    Ok(Libtorch { lib: Path::new(folder).join("lib"), version: Some(version.into()) })
}

/// A Python package states its version in `version.py`, an archive of libtorch in `build-version`.
fn version_in(folder: &Path) -> Option<String> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let package = read("version.py").and_then(|text| {
        let version = text.lines().find_map(|line| line.strip_prefix("__version__ = "))?;
        Some(version.trim_matches('\'').to_string())
    });
    package.or_else(|| read("build-version").map(|text| text.trim().to_string()))
}
