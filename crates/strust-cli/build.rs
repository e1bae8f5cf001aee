//! Lets a program that was built with libtorch find it where it was found at build time.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_FAMILY").as_deref() == Ok("unix")
        && let Ok(lib) = std::env::var("DEP_STRUST_TORCH_LIBTORCH_LIB")
    {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{lib}");
    }
}
