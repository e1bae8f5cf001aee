//! The prelude is what a user of slices and closures needs, and no more.

/// The most names.
const MOST: usize = 30;

#[test]
fn the_prelude_has_at_most_30_names() {
    let source = include_str!("../../src/lib.rs");
    let (_, rest) = source.split_once("pub mod prelude {").unwrap();
    let (prelude, _) = rest.split_once("\n}").unwrap();
    let names: Vec<&str> = prelude
        .split(';')
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .map(|item| item.strip_prefix("pub use crate::").expect("only names of this crate"))
        .flat_map(|path| path.rsplit_once("::").map_or(path, |(_, names)| names).split(['{', '}', ',']))
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    assert!(names.contains(&"minimize") && names.contains(&"Error") && names.contains(&"StrSqpConfig"), "{names:?}");
    assert!(names.iter().all(|name| *name != "*"), "a glob hides its names: {names:?}");
    assert!(names.len() <= MOST, "{} names, of at most {MOST}: {names:?}", names.len());
}
