//! What a person should know about the data: constant, badly scaled and equal columns, leakage, blanks, imbalance.

use crate::{
    Error,
    ranks::Ranks,
    scored::{MeasuredRows, ScoredRows, cells_of},
    table::{BLANK, CellForm, Cells, DataTable, NamedColumn, listed},
    task::{FitTask, Targets},
    transform::{Encoder, EncodingLosses, MOST_CATEGORIES},
};
use std::collections::{HashMap, HashSet};
use strust_data::words::{argument, plural};

/// Rows from which leakage is judged at most.
const MOST_ROWS: usize = 20_000;
/// A column that explains this share of the target alone is suspicious.
const LEAKS: f64 = 0.995;
/// Groups into which a column of numbers is cut.
const GROUPS: usize = 256;
/// A class with a larger share makes accuracy misleading.
const UNBALANCED: f64 = 0.9;

/// Rows from which on whole numbers without a gap number the rows.
const LEAST_NUMBERED: usize = 20;
/// How the name of a column that numbers rows ends, in upper or lower case.
const NUMBERING: [&str; 7] = ["id", "index", "key", "nr", "number", "row", "unnamed"];

/// Columns that name or number the rows. They say nothing about new rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Identifiers {
    /// Columns of texts that are almost all different.
    texts: Vec<String>,
    /// Columns of numbers, with the first and the last one.
    numbers: Vec<(String, f64, f64)>,
}

impl Identifiers {
    /// The names of all of them.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.texts.iter().chain(self.numbers.iter().map(|(name, ..)| name))
    }
}

/// The columns that name or number the rows, except those to keep.
///
/// A column numbers the rows if it has each of n consecutive whole numbers once, and if its name says so or if it counts the
/// rows in their order from 0 or 1. It stays if no other column would be left.
pub fn identifiers(table: &DataTable, target: &str, keep: &[String], ranks: &Ranks<'_>) -> Result<Identifiers, Error> {
    let (mut found, mut others) = (Identifiers::default(), usize::from(table.sparse.is_some()));
    for column in table.columns.iter().filter(|column| column.name != target) {
        let name = &column.name;
        match &column.cells {
            Cells::Texts => found.texts.push(name.clone()),
            _ if keep.contains(name) => others += 1,
            Cells::Words { words, .. } if words.len() > 20 && 2 * words.len() > table.all_rows => {
                found.texts.push(name.clone());
            }
            Cells::Numbers(values) if column.form == CellForm::Plain => match numbered(table, name, values, ranks)? {
                Some((first, last)) => found.numbers.push((name.clone(), first, last)),
                None => others += 1,
            },
            _ => others += 1,
        }
    }
    if others == 0 {
        found.numbers.clear();
    }
    Ok(found)
}

/// The first and the last number of a column that numbers the rows of all ranks.
fn numbered(table: &DataTable, name: &str, values: &[f64], ranks: &Ranks<'_>) -> Result<Option<(f64, f64)>, Error> {
    let n = table.all_rows;
    let far = |value: f64| value.fract() != 0.0 || value.abs() > 1e15;
    let mut ends = [f64::from(u8::from(values.iter().any(|&value| far(value)))), f64::NEG_INFINITY, f64::NEG_INFINITY];
    for value in values {
        ends = [ends[0], ends[1].max(-value), ends[2].max(*value)];
    }
    ranks.largest(&mut ends)?;
    let (first, last) = (-ends[1], ends[2]);
    if n < LEAST_NUMBERED || ends[0] > 0.0 || (last - first) as usize != n - 1 {
        return Ok(None);
    }
    let counts_rows = |(place, &value): (usize, &f64)| (value - first) as usize == table.share.row(place);
    let in_order = [0, 1].contains(&(first as i64)) && !ranks.any(!values.iter().enumerate().all(counts_rows));
    ranks.check()?;
    let lower = name.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    if !in_order && !words.any(|word| word == "no" || NUMBERING.iter().any(|end| word.ends_with(end))) {
        return Ok(None);
    }
    let mut counts = vec![0.0; n];
    for value in values {
        counts[(value - first) as usize] += 1.0;
    }
    ranks.add(&mut counts)?;
    Ok(counts.iter().all(|&count| count > 0.0).then_some((first, last)))
}

/// Sentences about the data, for the person who fits a model. `known` are the rows that have a target, `losses` is what
/// happened to the cells, and `identifiers` are the columns that were left out because they are [`identifiers`].
pub(crate) fn remarks(
    table: &DataTable,
    target: &str,
    known: MeasuredRows<'_>,
    encoder: &Encoder,
    losses: &EncodingLosses,
    identifiers: &Identifiers,
    leave_out: &[String],
) -> Result<Vec<String>, Error> {
    let MeasuredRows { data: ScoredRows { targets, .. }, index: rows, task, ranks } = known;
    let mut found = table.notes.clone();
    if rows.len() < table.all_rows {
        let without = table.all_rows - rows.len();
        let were = if without == 1 { "was" } else { "were" };
        found.push(format!("{} without a target {were} left out", plural(without, "row")));
    }
    let used: HashSet<&str> = encoder.columns.iter().map(|column| column.name.as_str()).collect();
    let known: HashSet<&str> =
        identifiers.names().map(String::as_str).chain([target]).chain(used.iter().copied()).collect();
    let is_constant = |name: &&str| !known.contains(name) && leave_out.iter().all(|other| other != name);
    let constant: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).filter(is_constant).collect();
    if !identifiers.texts.is_empty() {
        found.push(format!("left out {}: almost every row has a text of its own", listed(&identifiers.texts)));
    }
    found.extend(identifiers.numbers.iter().map(|(name, first, last)| {
        let option = argument(name);
        format!("left out `{name}`: it numbers the rows from {first} to {last}. If it matters, use --keep {option}")
    }));
    if !constant.is_empty() {
        found.push(format!("left out {}: the same value in every training row", listed(&constant)));
    }
    found.extend(blanks(losses));
    let features: Vec<&NamedColumn> =
        table.columns.iter().filter(|column| used.contains(&column.name.as_str())).collect();
    for column in &features {
        ranks.proceed()?;
        found.extend(badly_scaled(column, table.all_rows, ranks)?);
    }
    found.extend(features.iter().filter_map(|column| many_categories(column)));
    found.extend(equal_columns(&features, ranks)?);
    found.extend(equal_rows(table, rows, ranks)?);
    found.extend(leakages(&features, task, targets, rows, ranks)?);
    found.extend(imbalance(task, targets, rows));
    Ok(found)
}

fn blanks(losses: &EncodingLosses) -> Option<String> {
    let total: usize = losses.blanks.iter().map(|(_, count)| count).sum();
    let (name, count) = losses.blanks.iter().max_by_key(|(_, count)| *count)?;
    let columns = losses.blanks.len();
    let of =
        if columns == 1 { format!("in `{name}`") } else { format!("in {columns} columns, most in `{name}` ({count})") };
    Some(format!(
        "{} {of}: a blank number becomes the mean, a blank text a category of its own",
        plural(total, "blank cell")
    ))
}

/// Most values are tiny beside a few large ones.
fn badly_scaled(column: &NamedColumn, all_rows: usize, ranks: &Ranks<'_>) -> Result<Option<String>, Error> {
    let (mut sorted, mut from) = (Vec::new(), 0);
    while sorted.len() < MOST_ROWS && from < all_rows {
        let rows: Vec<usize> = (from..all_rows.min(from + MOST_ROWS)).collect();
        let Cells::Numbers(values) = cells_of(&column.cells, &rows, ranks)? else { return Ok(None) };
        sorted.extend(values.into_iter().filter(|value| !value.is_nan()));
        from += MOST_ROWS;
    }
    sorted.truncate(MOST_ROWS);
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted[(share * (sorted.len() - 1) as f64) as usize];
    if sorted.len() < 20 {
        return Ok(None);
    }
    let (low, high) = (at(0.25), at(0.75));
    let (middle, range) = (high - low, sorted[sorted.len() - 1] - sorted[0]);
    Ok((middle > 0.0 && range > 1e3 * middle).then(|| {
        format!(
            "`{}` is badly scaled: half of its values are within {low:.4} and {high:.4}, but the range is {range:.3e}. \
             Check for typing errors, or use its logarithm",
            column.name
        )
    }))
}

fn many_categories(column: &NamedColumn) -> Option<String> {
    let Cells::Words { words, .. } = &column.cells else { return None };
    (words.len() > MOST_CATEGORIES).then(|| {
        let name = &column.name;
        format!("`{name}` has {} categories: the {MOST_CATEGORIES} most frequent are used", words.len())
    })
}

/// A number for the contents of a cell: equal cells have equal numbers.
fn cell_bits(cells: &Cells, i: usize) -> u64 {
    match cells {
        Cells::Numbers(values) => (values[i] + 0.0).to_bits(),
        Cells::Words { codes, .. } => u64::from(codes[i]),
        Cells::Texts => 0,
    }
}

/// One step of a hash.
fn mixed(hash: u64, bits: u64) -> u64 {
    (hash ^ bits).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

fn equal_columns(columns: &[&NamedColumn], ranks: &Ranks<'_>) -> Result<Vec<String>, Error> {
    let mut seen: HashMap<u64, &NamedColumn> = HashMap::new();
    let mut found = Vec::new();
    // Two columns are equal if they are on every rank.
    let hash = |column: &&NamedColumn| if ranks.is_interrupted() { 0 } else { hash_of(&column.cells) };
    let hashes: Vec<u64> = columns.iter().map(hash).collect();
    ranks.proceed()?;
    let hashes = ranks.all(&hashes)?;
    for (j, &column) in columns.iter().enumerate().filter(|(_, column)| column.cells != Cells::Texts) {
        let hash = hashes.iter().fold(1, |hash, of_rank| mixed(hash, of_rank[j]));
        match seen.get(&hash) {
            Some(first) if matches!(first.cells, Cells::Numbers(_)) == matches!(column.cells, Cells::Numbers(_)) => {
                found.push(format!("`{}` and `{}` are equal in every row: leave one out", first.name, column.name));
            }
            _ => drop(seen.insert(hash, column)),
        }
    }
    Ok(found)
}

fn hash_of(cells: &Cells) -> u64 {
    let rows = match cells {
        Cells::Numbers(values) => values.len(),
        Cells::Words { codes, .. } => codes.len(),
        Cells::Texts => 0,
    };
    (0..rows).fold(1, |hash, i| mixed(hash, cell_bits(cells, i)))
}

/// Equal rows can be in the training part and in the test part, so the test is too easy.
fn equal_rows(table: &DataTable, rows: &[usize], ranks: &Ranks<'_>) -> Result<Option<String>, Error> {
    if table.sparse.is_some() || table.columns.iter().any(|column| column.cells == Cells::Texts) {
        return Ok(None);
    }
    let mut hashes = vec![1_u64; table.rows];
    for column in table.columns.iter().take_while(|_| !ranks.is_interrupted()) {
        hashes.iter_mut().enumerate().for_each(|(i, hash)| *hash = mixed(*hash, cell_bits(&column.cells, i)));
    }
    ranks.proceed()?;
    let owners = (0..table.all_rows).map(|i| table.share.owner(i));
    let hashes = ranks.collect(owners, 1, hashes.into_iter().map(f64::from_bits).collect())?;
    let mut hashes: Vec<u64> = rows.iter().map(|&i| hashes[i].to_bits()).collect();
    hashes.sort_unstable();
    let equal = hashes.windows(2).filter(|pair| pair[0] == pair[1]).count();
    let repeat = if equal == 1 { "repeats" } else { "repeat" };
    Ok((100 * equal > rows.len()).then(|| {
        let equal = plural(equal, "row");
        format!("{equal} {repeat} another row: if both are drawn apart, the held-out rows are too easy")
    }))
}

fn leakages(
    columns: &[&NamedColumn],
    task: &FitTask,
    targets: &Targets,
    rows: &[usize],
    ranks: &Ranks<'_>,
) -> Result<Vec<String>, Error> {
    let step = rows.len().div_ceil(MOST_ROWS).max(1);
    let rows: Vec<usize> = rows.iter().copied().step_by(step).collect();
    let targets = targets.only(&rows);
    let mut found = Vec::new();
    for column in columns {
        ranks.proceed()?;
        found.extend(leakage(&column.name, &cells_of(&column.cells, &rows, ranks)?, task, &targets));
    }
    Ok(found)
}

/// Whether one column alone gives the target.
fn leakage(name: &str, cells: &Cells, task: &FitTask, targets: &Targets) -> Option<String> {
    let groups = grouped(cells)?;
    let (share, leaks, [gives, what]) = match (task, targets) {
        (FitTask::Classes { names }, Targets::Classes(classes)) => {
            let mut counts: HashMap<u64, Vec<u32>> = HashMap::new();
            let mut totals = vec![0_u32; names.len()];
            for (&group, &class) in groups.iter().zip(classes) {
                counts.entry(group).or_insert_with(|| vec![0; names.len()])[class as usize] += 1;
                totals[class as usize] += 1;
            }
            // Groups of one row are always pure.
            let pure: u32 =
                counts.values().filter(|of| of.iter().sum::<u32>() > 1).filter_map(|of| of.iter().max()).sum();
            let (right, base) = (f64::from(pure), f64::from(totals.iter().copied().max().unwrap_or(0)));
            let n = classes.len() as f64;
            let leaks = right > LEAKS * n && n - right < 0.05 * (n - base);
            (100.0 * right / n, leaks, ["gives", "classes"])
        }
        (FitTask::Regression { .. }, Targets::Numbers(values)) => {
            let share = explained(&groups, values).max(correlation(cells, values).powi(2));
            (100.0 * share, share > LEAKS, ["explains", "target"])
        }
        _ => return None,
    };
    leaks.then(|| {
        format!(
            "`{name}` alone {gives} {share:.1} % of the {what}: is it known before the target? If not, leave it out with \
             --drop {}",
            argument(name)
        )
    })
}

/// The group of each row: its category, or the interval of its number.
fn grouped(cells: &Cells) -> Option<Vec<u64>> {
    match cells {
        Cells::Words { codes, .. } => Some(codes.iter().map(|&code| u64::from(code)).collect()),
        Cells::Numbers(values) => {
            let mut sorted: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
            sorted.sort_by(f64::total_cmp);
            let cuts: Vec<f64> = (1..GROUPS).filter_map(|k| sorted.get(k * sorted.len() / GROUPS).copied()).collect();
            let group = |value: f64| {
                if value.is_nan() { u64::from(BLANK) } else { cuts.partition_point(|&cut| cut <= value) as u64 }
            };
            Some(values.iter().map(|&value| group(value)).collect())
        }
        Cells::Texts => None,
    }
}

/// The share of the variance that the means of the groups explain.
fn explained(groups: &[u64], values: &[f64]) -> f64 {
    let mut sums: HashMap<u64, (f64, f64)> = HashMap::new();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let mut total = 0.0;
    for (&group, value) in groups.iter().zip(values) {
        let value = value - mean;
        let sum = sums.entry(group).or_default();
        *sum = (sum.0 + 1.0, sum.1 + value);
        total += value * value;
    }
    // Groups of one row explain themselves.
    let between: f64 = sums.values().filter(|(count, _)| *count > 1.0).map(|(count, sum)| sum * sum / count).sum();
    if total > 0.0 { between / total } else { 0.0 }
}

fn correlation(cells: &Cells, values: &[f64]) -> f64 {
    let Cells::Numbers(feature) = cells else { return 0.0 };
    let pairs = feature.iter().copied().zip(values.iter().copied());
    let pairs: Vec<(f64, f64)> = pairs.filter(|(feature, _)| !feature.is_nan()).collect();
    let n = pairs.len() as f64;
    let (a, b) = (pairs.iter().map(|p| p.0).sum::<f64>() / n, pairs.iter().map(|p| p.1).sum::<f64>() / n);
    let sum = |f: &dyn Fn(f64, f64) -> f64| pairs.iter().map(|&(x, y)| f(x - a, y - b)).sum::<f64>();
    let spread = (sum(&|x, _| x * x) * sum(&|_, y| y * y)).sqrt();
    if spread > 0.0 { sum(&|x, y| x * y) / spread } else { 0.0 }
}

fn imbalance(task: &FitTask, targets: &Targets, rows: &[usize]) -> Vec<String> {
    let (Some(names), Targets::Classes(classes)) = (task.class_names(), targets) else { return Vec::new() };
    let mut counts = vec![0_usize; names.len()];
    for &i in rows {
        counts[classes[i] as usize] += 1;
    }
    let mut found = Vec::new();
    let largest = (0..names.len()).max_by_key(|&c| counts[c]).unwrap_or(0);
    let share = counts[largest] as f64 / rows.len() as f64;
    if share > UNBALANCED {
        found.push(format!(
            "the class `{}` has {:.1} % of the rows: accuracy alone says little, see the recall of each class",
            names[largest],
            100.0 * share
        ));
    }
    let few: Vec<&String> = names.iter().zip(&counts).filter(|(_, count)| **count < 5).map(|(name, _)| name).collect();
    if !few.is_empty() {
        found.push(format!("fewer than 5 rows of the class {}", listed(&few)));
    }
    found
}
