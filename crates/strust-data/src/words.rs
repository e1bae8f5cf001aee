//! Words of messages: singular and plural, and names that are similar to a wrong one.

/// A noun that follows a number: `row` after 1, otherwise `rows`. Of several words, the last one changes.
///
/// ```
/// use strust_data::words::noun;
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
/// use strust_data::words::plural;
/// assert_eq!([plural(1, "seed"), plural(5, "seed")], ["1 seed", "5 seeds"]);
/// ```
#[must_use]
pub fn plural(number: usize, word: &str) -> String {
    format!("{number} {}", noun(number, word))
}

/// Words with commas, and with `and` before the last one.
///
/// ```
/// use strust_data::words::joined;
/// assert_eq!([joined(&["a"]), joined(&["a", "b", "c"])], ["a", "a, b and c"]);
/// ```
#[must_use]
pub fn joined<S: AsRef<str>>(words: &[S]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match &words[..] {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        words => words.concat(),
    }
}

/// The candidate most similar to `word`, if it is similar enough.
///
/// ```
/// use strust_data::words::nearest;
/// assert_eq!(nearest("qualty", ["width", "quality"]), Some("quality"));
/// assert_eq!(nearest("xyz", ["width", "quality"]), None);
/// ```
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // One measure favors a common prefix, the other favors swapped letters. In short names one wrong letter is much.
    let likeness = |c: &str| [strsim::jaro_winkler(word, c), strsim::normalized_damerau_levenshtein(word, c)];
    let few = 1 + word.chars().count() / 3;
    let differs = |c: &str| strsim::damerau_levenshtein(&word.to_lowercase(), &c.to_lowercase());
    candidates
        .into_iter()
        .map(|c| (likeness(c), c))
        .filter(|([beginning, letters], c)| *beginning > 0.75 || *letters > 0.6 || differs(c) <= few)
        .max_by(|(a, _), (b, _)| a.iter().sum::<f64>().total_cmp(&b.iter().sum()))
        .map(|(_, c)| c)
}

/// Quotes a piece of input for a message: escaped, and shortened if it is long.
#[must_use]
pub fn quoted(part: &str) -> String {
    const SHOWN: usize = 40;
    match part.char_indices().nth(SHOWN) {
        None => format!("{part:?}"),
        Some((end, _)) => format!("{:?}…", &part[..end]),
    }
}

/// A name as a shell reads it.
///
/// ```
/// use strust_data::words::argument;
/// assert_eq!([argument("age"), argument("start day")], ["age", "'start day'"]);
/// ```
#[must_use]
pub fn argument(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=,:@%+".contains(c);
    let is_plain = !name.is_empty() && name.chars().all(plain);
    if is_plain { name.into() } else { format!("'{}'", name.replace('\'', r"'\''")) }
}
