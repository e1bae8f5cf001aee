//! Stores the path of libtorch in the program, so that it finds the libtorch it was built with.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_FAMILY").as_deref() == Ok("unix")
        && let Ok(lib) = std::env::var("DEP_STRUST_TORCH_LIBTORCH_LIB")
    {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{lib}");
    }
}
