//! One libFuzzer program for all targets. The variable `TARGET` selects one; `scripts/campaign fuzz` runs all of them.
//!
//! A finding is a panic, a failed debug assertion, an integer overflow, more than 1 GiB of memory or more than 10 s.

#![no_main]

mod fixture;
mod targets;

use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

static TARGET: OnceLock<fn(&[u8])> = OnceLock::new();

fuzz_target!(|data: &[u8]| {
    let target = TARGET.get_or_init(|| {
        let wanted = std::env::var("TARGET").unwrap_or_default();
        let found = targets::ALL.iter().find(|(name, _)| *name == wanted);
        let names = || targets::ALL.map(|(name, _)| name).join(", ");
        found.unwrap_or_else(|| panic!("TARGET is {wanted:?}, but must be one of {}", names())).1
    });
    target(data);
});
