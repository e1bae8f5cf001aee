//! Checks the version of libtorch before anything is compiled against it. Compiles the files in `native` and links
//! libtorch's CUDA library into every program that uses this crate.

#[path = "native/find_libtorch.rs"]
mod find_libtorch;

use std::{env, path::PathBuf, process::ExitCode};

fn main() -> ExitCode {
    for file in ["build.rs", "native/find_libtorch.rs", find_libtorch::SCRIPT] {
        println!("cargo:rerun-if-changed={file}");
    }
    println!("cargo:rustc-check-cfg=cfg(libtorch_cuda, cuda_graphs)");
    if variable("DOCS_RS").is_some() {
        println!("cargo:rustc-env=STRUST_LIBTORCH_VERSION=unknown");
        return ExitCode::SUCCESS;
    }
    match find_libtorch::find(variable) {
        Ok(libtorch) => {
            link(&libtorch);
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

fn link(libtorch: &find_libtorch::Libtorch) {
    let lib = libtorch.lib.display();
    println!("cargo:rustc-env=STRUST_LIBTORCH_VERSION={}", libtorch.version.as_deref().unwrap_or("unknown"));
    // Build scripts of programs read this as DEP_STRUST_TORCH_LIBTORCH_LIB.
    println!("cargo:libtorch_lib={lib}");
    if env::var("CARGO_CFG_TARGET_FAMILY").as_deref() == Ok("unix") {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{lib}");
    }
    if libtorch.lib.join("libtorch_cuda.so").exists() {
        println!("cargo:rustc-cfg=libtorch_cuda");
        // rustc passes `--as-needed` to the linker. The linker then drops every library whose symbols are not used, and
        // the program would run on the CPU without a warning. Link arguments do not reach the programs that depend on
        // this crate, but static libraries do, so a static library uses a symbol of libtorch_cuda.
        println!("cargo:rerun-if-changed=native/keep_cuda.c");
        println!("cargo:rustc-link-search=native={lib}");
        println!("cargo:rustc-link-search=native={}", env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
        cc::Build::new().file("native/keep_cuda.c").cargo_metadata(false).compile("strust_keep_cuda");
        println!("cargo:rustc-link-lib=static:+whole-archive=strust_keep_cuda");
        match libtorch.cuda_headers(variable) {
            Some(headers) => compile_native(&headers),
            None => println!(
                "cargo:warning=CUDA's headers were not found, so there are no CUDA graphs and no fused kernels; \
                 run  eval \"$(scripts/torch-env cuda)\"  and build again"
            ),
        }
        println!("cargo:rustc-link-lib=dylib=torch_cuda");
        println!("cargo:rustc-link-lib=dylib=c10_cuda");
    }
}

const SOURCES: [&str; 5] =
    ["native/auto.cpp", "native/conv.cpp", "native/graph.cpp", "native/kernels.cpp", "native/norm.cpp"];
/// The `.cu` files are included by the C++ files as text and are compiled at run time.
const INCLUDED: [&str; 5] =
    ["native/attempt.h", "native/common.cu", "native/conv.cu", "native/kernels.h", "native/norm.cu"];

fn compile_native(headers: &[PathBuf]) {
    for file in INCLUDED.iter().chain(&SOURCES) {
        println!("cargo:rerun-if-changed={file}");
    }
    println!("cargo:rustc-cfg=cuda_graphs");
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").includes(headers).warnings(false).cargo_metadata(false).files(SOURCES);
    build.compile("strust_native");
    println!("cargo:rustc-link-lib=static=strust_native");
}
