//! Checks libtorch before anything is compiled against it, and ties its CUDA half to every program that links this crate.

#[path = "build/libtorch.rs"]
mod libtorch;

use std::{env, path::PathBuf, process::ExitCode};

fn main() -> ExitCode {
    for file in ["build.rs", "build/libtorch.rs", libtorch::SCRIPT] {
        println!("cargo:rerun-if-changed={file}");
    }
    println!("cargo:rustc-check-cfg=cfg(libtorch_cuda, cuda_graphs)");
    if variable("DOCS_RS").is_some() {
        println!("cargo:rustc-env=STRUST_LIBTORCH_VERSION=unknown");
        return ExitCode::SUCCESS;
    }
    match libtorch::find(variable) {
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

fn variable(name: &str) -> Option<String> {
    println!("cargo:rerun-if-env-changed={name}");
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn link(found: &libtorch::Found) {
    let lib = found.lib.display();
    println!("cargo:rustc-env=STRUST_LIBTORCH_VERSION={}", found.version.as_deref().unwrap_or("unknown"));
    // For the build scripts of programs, as DEP_STRUST_TORCH_LIBTORCH_LIB.
    println!("cargo:libtorch_lib={lib}");
    if env::var("CARGO_CFG_TARGET_FAMILY").as_deref() == Ok("unix") {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{lib}");
    }
    if found.lib.join("libtorch_cuda.so").exists() {
        println!("cargo:rustc-cfg=libtorch_cuda");
        // A linker that is told `--as-needed`, as rustc tells it, drops a library no symbol of which is used, and the
        // program then runs on the CPU without a word. Link arguments do not reach the programs that depend on this
        // crate, but static libraries do: this one uses a symbol.
        println!("cargo:rerun-if-changed=build/keep_cuda.c");
        println!("cargo:rustc-link-search=native={lib}");
        println!("cargo:rustc-link-search=native={}", env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
        cc::Build::new().file("build/keep_cuda.c").cargo_metadata(false).compile("strust_keep_cuda");
        println!("cargo:rustc-link-lib=static:+whole-archive=strust_keep_cuda");
        match found.cuda_headers(variable) {
            Some(headers) => compile_shim(&headers),
            None => println!(
                "cargo:warning=CUDA's headers were not found, so there are no CUDA graphs and no fused kernels; \
                 run  eval \"$(scripts/torch-env cuda)\"  and build again"
            ),
        }
        println!("cargo:rustc-link-lib=dylib=torch_cuda");
        println!("cargo:rustc-link-lib=dylib=c10_cuda");
    }
}

const SHIM: [&str; 4] = ["build/conv.cpp", "build/graph.cpp", "build/kernels.cpp", "build/norm.cpp"];

fn compile_shim(headers: &[PathBuf]) {
    for file in
        ["build/attempt.h", "build/common.cu", "build/conv.cu", "build/kernels.h", "build/norm.cu"].iter().chain(&SHIM)
    {
        println!("cargo:rerun-if-changed={file}");
    }
    println!("cargo:rustc-cfg=cuda_graphs");
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").includes(headers).warnings(false).cargo_metadata(false).files(SHIM);
    build.compile("strust_shim");
    println!("cargo:rustc-link-lib=static=strust_shim");
}
