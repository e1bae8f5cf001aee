//! Words of messages: singular and plural.

/// A noun that follows a number: `row` after 1, otherwise `rows`. Of several words, the last one changes.
///
/// ```
/// use strust_problems::words::noun;
/// assert_eq!([noun(1, "held-out row"), noun(2, "class"), noun(0, "category")], ["held-out row", "classes", "categories"]);
/// ```
#[must_use]
pub fn noun(number: usize, word: &str) -> String {
    match word.strip_suffix('y') {
        _ if number == 1 => word.into(),
        Some(stem) => format!("{stem}ies"),
        None if word.ends_with('s') => format!("{word}es"),
        None => format!("{word}s"),
    }
}

/// A number with its noun.
///
/// ```
/// use strust_problems::words::plural;
/// assert_eq!([plural(1, "seed"), plural(5, "seed")], ["1 seed", "5 seeds"]);
/// ```
#[must_use]
pub fn plural(number: usize, word: &str) -> String {
    format!("{number} {}", noun(number, word))
}
