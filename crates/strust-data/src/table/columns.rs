//! From the texts of cells to columns of numbers and words, for all files of texts.
//!
//! The kind of each column and how its cells are written is guessed from the first rows. If a later cell refutes a guess,
//! the file is read again with a better one, until a guess agrees with all cells of all ranks.

use super::{
    BLANK, CellForm, CellKind, Cells, DataTable, ReadOptions,
    cells::{is_blank, number},
    check_columns,
    date_parts::{DateParts, add_parts},
    dropped_target,
    forms::{FormSurvey, first_form, is_readable, is_sentinel},
    listed,
    parsed::{OddCells, Parsed, Use},
    target_among,
    unusable::{self, ExampleAt, MixedCells, UnusableColumn},
    without_target,
};
use crate::{
    DataError,
    ranks::Ranks,
    words::{joined, noun, plural, quoted},
};
use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
};

/// Rows that the first guess is made from.
pub(super) const FIRST: usize = 1000;
/// A target of at most this many different values has classes, also if most of them are numbers.
const FEW: usize = 20;

/// The columns of a file.
pub(super) struct ColumnLayout {
    pub(super) names: Vec<String>,
    pub(super) target: Option<String>,
    pub(super) uses: Vec<Use>,
}

impl ColumnLayout {
    /// The target is checked before the other columns, and only where a model is to be made.
    pub(super) fn new(path: &Path, names: Vec<String>, options: &ReadOptions) -> Result<Self, DataError> {
        let target = target_of(path, &names, options)?;
        Ok(Self { uses: uses(path, &names, options)?, names, target })
    }
}

fn target_of(path: &Path, names: &[String], options: &ReadOptions) -> Result<Option<String>, DataError> {
    match (&options.expected, &options.target) {
        (None, None) if options.needs_target => Err(without_target(names)),
        (None, None) if options.experiment => Ok(names.last().cloned()),
        (Some(_), _) | (None, None) => Ok(None),
        (None, Some(wanted)) => match target_among(names, wanted, path)? {
            name if options.drop.iter().any(|dropped| dropped == name) => Err(dropped_target(name)),
            name => Ok(Some(name.into())),
        },
    }
}

fn uses(path: &Path, names: &[String], options: &ReadOptions) -> Result<Vec<Use>, DataError> {
    check_columns(path, names, "--drop", &options.drop)?;
    check_columns(path, names, "--category", &options.categories)?;
    let (dropped, categories): (HashSet<_>, HashSet<_>) =
        (options.drop.iter().collect(), options.categories.iter().collect());
    let use_of = |name: &String| match &options.expected {
        Some(expected) => expected.kinds.get(name).map_or(Use::Skip, |&kind| Use::As(kind)),
        None if dropped.contains(name) => Use::Skip,
        None if categories.contains(name) => Use::As(CellKind::Word),
        None if options.only_numbers => Use::OnlyNumbers,
        None => Use::As(CellKind::Number(CellForm::Plain)),
    };
    Ok(names.iter().map(use_of).collect())
}

/// Reads columns. `pass` reads the files once, with the uses of the layout.
pub(super) fn read(
    paths: &[PathBuf],
    layout: ColumnLayout,
    options: &ReadOptions,
    ranks: &Ranks<'_>,
    mut pass: impl FnMut(&ColumnLayout) -> Result<Parsed, DataError>,
) -> Result<DataTable, DataError> {
    ranks.same(&layout.names, "has a file with other columns than rank 0")?;
    let forms = vec![u64::MAX; layout.names.len()];
    let (best, unusable) = (BTreeMap::new(), BTreeMap::new());
    let mut guesses = Guesses { layout, paths, options, ranks, forms, best, unusable };
    loop {
        let parsed = ranks.agree(pass(&guesses.layout))?;
        let odd = parsed.odd_cells(ranks)?;
        if guesses.refute(&parsed, &odd)? {
            continue;
        }
        let mut table = parsed.table(&paths[0], guesses.layout.names.clone(), ranks)?;
        if guesses.check_words(&table)? {
            continue;
        }
        unusable::check(guesses.unusable, &paths[0], guesses.layout.target.as_deref(), options.experiment)?;
        let dates = add_parts(&mut table, options.expected.as_ref(), ranks)?;
        table.notes = notes(&odd, &dates, &table, options);
        return Ok(table);
    }
}

/// What the columns are taken for, and why.
struct Guesses<'a> {
    layout: ColumnLayout,
    paths: &'a [PathBuf],
    options: &'a ReadOptions,
    ranks: &'a Ranks<'a>,
    /// The forms of each column that no cell has refuted so far, as bits.
    forms: Vec<u64>,
    /// Of columns that no form reads completely, the form with the fewest cells that it does not read.
    best: BTreeMap<usize, (CellForm, OddCells)>,
    unusable: BTreeMap<usize, UnusableColumn>,
}

impl Guesses<'_> {
    /// Replaces guesses that cells have refuted. Returns whether to read the files again.
    fn refute(&mut self, parsed: &Parsed, odd: &BTreeMap<usize, OddCells>) -> Result<bool, DataError> {
        let mut again = false;
        for (&j, found) in odd {
            let Use::As(CellKind::Number(form)) = self.layout.uses[j] else { continue };
            let better = self.better(j, form, found, parsed)?;
            again |= matches!(better, Some(Use::As(_)));
            self.layout.uses[j] = better.unwrap_or(self.layout.uses[j]);
        }
        Ok(again)
    }

    /// A better use of a column of numbers with these odd cells; `None` if it can stay.
    fn better(
        &mut self,
        j: usize,
        form: CellForm,
        found: &OddCells,
        parsed: &Parsed,
    ) -> Result<Option<Use>, DataError> {
        let name = self.layout.names[j].clone();
        let is_target = self.layout.target.as_ref() == Some(&name);
        let Some((cell, survey)) = &found.refuted else {
            return Ok(match (form, &found.example) {
                _ if self.options.expected.is_some() => None,
                _ if found.numbers == 0 => Some(Use::As(CellKind::Word)),
                (CellForm::Date(_), Some(cell)) if is_target || !found.decided => {
                    let at = (&*self.paths[cell.at.0], cell.at.1);
                    self.unusable.insert(j, UnusableColumn::of_dates(&name, &cell.text, is_target, at));
                    Some(Use::Skip)
                }
                _ => None,
            });
        };
        if self.options.expected.is_some() {
            let text = quoted(&cell.text);
            let why = match form {
                CellForm::Plain => format!("{text} in column `{name}` is not a number, but the model needs one"),
                form => format!("{text} in column `{name}` is not written like {form}, as the model needs it"),
            };
            return Err(DataError::line(&self.paths[cell.at.0], cell.at.1, why));
        }
        let refuted = |odd: &OddCells| odd.refuted.as_ref().map_or(0, |(_, survey)| survey.cells);
        if self.best.get(&j).is_none_or(|(_, best)| survey.cells < refuted(best)) {
            self.best.insert(j, (form, found.clone()));
        }
        self.forms[j] &= survey.forms();
        if let Some(form) = first_form(self.forms[j]) {
            return Ok(Some(Use::As(CellKind::Number(form))));
        }
        // More cells are written in another form, and no cell is written in both.
        let (other, read) = survey.best();
        if read > found.numbers {
            return Ok(Some(Use::As(CellKind::Number(other))));
        }
        let (form, best) = &self.best[&j];
        let (cell, survey) = best.refuted.as_ref().expect("only refuted forms are kept");
        let is_class = is_target && parsed.has_few_numbers(j, FEW, self.ranks)?;
        if is_class || survey.cells > best.numbers {
            return Ok(Some(Use::As(CellKind::Word)));
        }
        let mixed = MixedCells { form: *form, text: &cell.text, wrong: survey.cells, right: best.numbers };
        let at = (&*self.paths[cell.at.0], cell.at.1);
        self.unusable.insert(j, UnusableColumn::mixed(&name, &mixed, ExampleAt::Line(at)));
        Ok(Some(Use::Skip))
    }

    /// Looks for numbers in columns of words. Returns whether to read the files again.
    fn check_words(&mut self, table: &DataTable) -> Result<bool, DataError> {
        let (mut again, columns) = (false, table.by_name());
        for (j, name) in self.layout.names.iter().enumerate() {
            let chosen = self.options.expected.is_some() || self.options.categories.contains(name);
            let Some(Cells::Words { codes, words }) = columns.get(name.as_str()).map(|column| &column.cells) else {
                continue;
            };
            // All ranks have the same words, and each has the codes of its own rows.
            if chosen || !words.iter().any(|word| is_readable(word)) {
                continue;
            }
            let mut counts = vec![0.0; words.len()];
            codes.iter().filter(|&&code| code != BLANK).for_each(|&code| counts[code as usize] += 1.0);
            self.ranks.add(&mut counts)?;
            let mut survey = FormSurvey::default();
            let named = words.iter().zip(counts).filter(|(word, _)| !is_sentinel(word.as_bytes()));
            named.for_each(|(word, count)| survey.add(word.as_bytes(), count as u64));
            if let Some(form) = first_form(survey.forms()) {
                self.layout.uses[j] = Use::As(CellKind::Number(form));
                again = true;
                continue;
            }
            let (form, right) = survey.best();
            let is_class = self.layout.target.as_ref() == Some(name) && words.len() <= FEW;
            let is_odd = |word: &String| form.read(word.as_bytes()).is_none() && !is_sentinel(word.as_bytes());
            if let Some(code) = words.iter().position(is_odd).filter(|_| 2 * right >= survey.cells && !is_class) {
                let first = codes.iter().position(|&own| own as usize == code).map(|at| self.ranks.share().row(at));
                let row = self.ranks.all(&first)?.into_iter().flatten().min().unwrap_or(0);
                let mixed = MixedCells { form, text: &words[code], wrong: survey.cells - right, right };
                self.unusable.insert(j, UnusableColumn::mixed(name, &mixed, ExampleAt::Row(row)));
            }
        }
        Ok(again)
    }
}

/// What a person should know about how the columns were read: one sentence for each way. A model knows its forms.
fn notes(
    odd: &BTreeMap<usize, OddCells>,
    dates: &[DateParts],
    table: &DataTable,
    options: &ReadOptions,
) -> Vec<String> {
    let (mut marked, mut dated) = (Vec::<(CellForm, &str, Vec<&str>)>::new(), Vec::<(&str, Vec<&str>)>::new());
    let (mut sentinels, mut with_sentinels) = (BTreeMap::<&str, u64>::new(), Vec::new());
    let columns = table.by_name();
    for (&j, found) in odd {
        let Some(column) = columns.get(table.order[j].as_str()) else { continue };
        let name = column.name.as_str();
        if let (CellForm::Marked(_), Some(example)) = (column.form, &found.example) {
            match marked.iter_mut().find(|(form, ..)| *form == column.form) {
                Some((.., names)) => names.push(name),
                None => marked.push((column.form, &example.text, vec![name])),
            }
        }
        if !found.sentinels.is_empty() {
            with_sentinels.push(name);
        }
        found.sentinels.iter().for_each(|(text, count)| *sentinels.entry(text).or_default() += count);
    }
    for DateParts { name, became } in dates {
        match dated.iter_mut().find(|(parts, _)| parts == became) {
            Some((_, names)) => names.push(name),
            None => dated.push((became, vec![name])),
        }
    }
    let are = |count: usize| if count == 1 { "is" } else { "are" };
    let mut notes = Vec::new();
    if options.expected.is_none() {
        notes.extend(marked.iter().map(|(form, text, names)| {
            let value = form.read(text.as_bytes()).unwrap_or(f64::NAN);
            format!("{} {} read as numbers such as `{text}` = {value}", listed(names), are(names.len()))
        }));
        notes.extend(dated.iter().map(|(parts, names)| {
            let what = if names.len() == 1 { "a date" } else { "dates" };
            format!("{} {} read as {what}: {parts}", listed(names), are(names.len()))
        }));
    }
    if !sentinels.is_empty() {
        let total = sentinels.values().sum::<u64>() as usize;
        let cells = |(text, count): (&&str, &u64)| format!("{} `{text}`", plural(*count as usize, "cell"));
        let cells: Vec<String> = sentinels.iter().map(cells).collect();
        let (cells, names, are) = (joined(&cells), listed(&with_sentinels), are(total));
        notes.push(format!("{cells} in {names} {are} read as {}", noun(total, "blank")));
    }
    notes
}

/// Guesses the kinds of columns from their first cells.
pub(super) struct Guessing<'a> {
    uses: &'a mut [Use],
    /// By column: the cells that are plain numbers, and the others.
    cells: Vec<(u64, Option<FormSurvey>)>,
}

impl<'a> Guessing<'a> {
    pub(super) fn new(uses: &'a mut [Use]) -> Self {
        Self { cells: vec![(0, None); uses.len()], uses }
    }

    /// Adds a cell of a column.
    pub(super) fn add(&mut self, j: usize, cell: &[u8]) {
        if !matches!(self.uses.get(j), Some(Use::As(CellKind::Number(_)))) || is_blank(cell) {
            return;
        }
        let (plain, odd) = &mut self.cells[j];
        if number(cell).is_some() {
            *plain += 1;
        } else if !is_sentinel(cell) {
            odd.get_or_insert_default().add(cell, 1);
        }
    }

    /// The form that reads the most cells is the guess, if it reads at least half of them. Most forms read plain numbers.
    pub(super) fn finish(self) {
        for (use_of, (plain, odd)) in self.uses.iter_mut().zip(self.cells) {
            let Some(odd) = odd else { continue };
            let (best, read) = odd.best();
            *use_of = Use::As(match first_form(odd.forms()) {
                Some(form) => CellKind::Number(form),
                None if 2 * (plain + read) >= plain + odd.cells => CellKind::Number(best),
                None => CellKind::Word,
            });
        }
    }
}
