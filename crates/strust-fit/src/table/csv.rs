//! CSV: a header, then one record per row. The file is streamed in blocks, which are parsed in parallel.
//!
//! The kind of each column is guessed from the first rows. If a later cell refutes a guess, the file is read again with
//! the better one.

use super::{
    BLANK, CellKind, Cells, DataTable, ExpectedColumns, NamedColumn, ReadOptions, ReadProgress,
    blocks::{TextBlock, TextBlocks, after_quote, line_breaks},
    cells::{BrokenRecord, CellSpan, Looks, is_blank, number, record},
    listed, nearest,
};
use crate::Error;
use std::{collections::HashMap, path::Path};

/// Bytes of a block for one thread.
const BLOCK: usize = 4 << 20;
/// Rows that the first guess is made from.
const FIRST: usize = 1000;
/// More different texts than this are not categories.
const MOST_WORDS: usize = 100_000;
/// A column with a smaller share of texts among its numbers has typing errors.
const TYPING_ERRORS: f64 = 0.01;

/// What to do with a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Skip,
    As(CellKind),
}

/// How the file is laid out.
struct CsvLayout {
    separator: u8,
    names: Vec<String>,
    /// Whether the first record is a header.
    header: bool,
    uses: Vec<Use>,
}

pub(super) fn read(path: &Path, options: &ReadOptions, progress: &mut ReadProgress<'_>) -> Result<DataTable, Error> {
    let mut layout = layout(path, options)?;
    loop {
        let parsed = pass(path, &layout, progress)?;
        let refuted = parsed.refuted();
        if refuted.is_empty() {
            return parsed.table(path, layout);
        }
        for (j, wrong) in refuted {
            let share = wrong.count as f64 / (parsed.rows.max(1)) as f64;
            let name = &layout.names[j];
            if options.expected.is_some() {
                let why = format!("{} in column `{name}` is not a number, but the model needs one", shown(&wrong.text));
                return Err(Error::line(path, wrong.line, why));
            }
            if share < TYPING_ERRORS && options.target.as_deref() != Some(name) {
                let why = format!(
                    "{} is not a number, but almost all cells of column `{name}` are. Fix or blank {}, or read the \
                     column as words with --category {name}, or leave it out with --drop {name}",
                    shown(&wrong.text),
                    if wrong.count == 1 { "it".into() } else { format!("the {} such cells", wrong.count) }
                );
                return Err(Error::line(path, wrong.line, why));
            }
            layout.uses[j] = Use::As(CellKind::Word);
        }
    }
}

/// A text for a message: short, and in quotes.
fn shown(text: &str) -> String {
    match text.char_indices().nth(40) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", &text[..end]),
    }
}

/// Reads the header and guesses the kinds of the columns.
fn layout(path: &Path, options: &ReadOptions) -> Result<CsvLayout, Error> {
    let empty = || Error::file(path, "the file is empty; expected a header and rows");
    let mut blocks = TextBlocks::open(path)?;
    let first = blocks.next(BLOCK)?.ok_or_else(empty)?;
    let start = start_of_data(&first.bytes);
    let line = first.bytes[start..].split(|&byte| byte == b'\n').next().unwrap_or_default();
    if line.is_empty() {
        return Err(empty());
    }
    let separator = separator_of(line);
    blocks.separate_by(separator);
    blocks.put_back(first);
    let first = blocks.next(BLOCK)?.ok_or_else(empty)?;
    let mut records = BlockRecords::new(&first, path, separator, start);
    let mut names = Vec::new();
    if let Some(cells) = records.next()? {
        let text = |cell: &CellSpan| String::from_utf8_lossy(&cell.of(&first.bytes)).trim().to_string();
        names = cells.iter().map(text).collect();
    }
    let header = is_header(&names, options);
    if header {
        check_names(path, &names)?;
    } else {
        names = names_without_header(path, names.len(), options)?;
        records = BlockRecords::new(&first, path, separator, start);
    }
    let mut layout = CsvLayout { separator, uses: uses(path, &names, options)?, names, header };
    let mut seen = 0;
    while let Some(cells) = records.next()?.filter(|_| seen < FIRST) {
        for (cell, use_of) in cells.iter().zip(&mut layout.uses) {
            let cell = cell.of(&first.bytes);
            if *use_of == Use::As(CellKind::Number) && !is_blank(&cell) && number(&cell).is_none() {
                let given = options.expected.as_ref().is_some();
                *use_of = if given { *use_of } else { Use::As(CellKind::Word) };
            }
        }
        seen += 1;
    }
    Ok(layout)
}

/// The position after comments and blank lines at the top.
fn start_of_data(bytes: &[u8]) -> usize {
    let mut start = 0;
    while start < bytes.len() {
        let end = bytes[start..].iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |at| start + at + 1);
        let line = bytes[start..end].trim_ascii();
        if !line.is_empty() && line[0] != b'#' {
            break;
        }
        start = end;
    }
    start
}

/// A comma, unless the first line has none and has semicolons or tabs.
fn separator_of(line: &[u8]) -> u8 {
    let has = |byte: &u8| line.contains(byte);
    [b',', b'\t', b';'].into_iter().find(has).unwrap_or(b',')
}

/// The first line is a header if it names the target or a column of the model, or if none of its fields is a number.
fn is_header(first: &[String], options: &ReadOptions) -> bool {
    let named = |name: &String| {
        number(name.as_bytes()).is_none()
            && (options.target.as_ref() == Some(name)
                || options.expected.as_ref().is_some_and(|expected| expected.order.contains(name)))
    };
    first.iter().any(named)
        || first.iter().all(|field| number(field.as_bytes()).is_none() && !is_blank(field.as_bytes()))
}

fn check_names(path: &Path, names: &[String]) -> Result<(), Error> {
    for (j, name) in names.iter().enumerate() {
        if name.is_empty() {
            return Err(Error::line(path, 1, format!("column {} has no name", j + 1)));
        }
        if names[..j].contains(name) {
            return Err(Error::line(path, 1, format!("two columns are named `{name}`: rename one of them")));
        }
    }
    Ok(())
}

fn names_without_header(path: &Path, width: usize, options: &ReadOptions) -> Result<Vec<String>, Error> {
    let Some(ExpectedColumns { order, .. }) = &options.expected else {
        return Ok((1..=width).map(|j| format!("column{j}")).collect());
    };
    let without_target = || order.iter().filter(|name| options.target.as_ref() != Some(name)).cloned().collect();
    match order.len() {
        all if all == width => Ok(order.clone()),
        all if all == width + 1 => Ok(without_target()),
        all => Err(Error::file(
            path,
            format!(
                "{width} columns without a header, but the model was made from {all}: add a header with the names {}",
                listed(order)
            ),
        )),
    }
}

fn uses(path: &Path, names: &[String], options: &ReadOptions) -> Result<Vec<Use>, Error> {
    for (option, columns) in [("--drop", &options.drop), ("--category", &options.categories)] {
        if let Some(missing) = columns.iter().find(|column| !names.contains(column)) {
            let hint = nearest(missing, names).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
            return Err(Error::file(path, format!("there is no column `{missing}` for {option}{hint}")));
        }
    }
    let use_of = |name: &String| match &options.expected {
        Some(expected) => expected.kinds.get(name).map_or(Use::Skip, |&kind| Use::As(kind)),
        None if options.drop.contains(name) => Use::Skip,
        None if options.categories.contains(name) => Use::As(CellKind::Word),
        None => Use::As(CellKind::Number),
    };
    Ok(names.iter().map(use_of).collect())
}

/// The records of a block, with the line of the last one.
struct BlockRecords<'a> {
    block: &'a TextBlock,
    path: &'a Path,
    separator: u8,
    at: usize,
    cells: Vec<CellSpan>,
}

impl<'a> BlockRecords<'a> {
    fn new(block: &'a TextBlock, path: &'a Path, separator: u8, at: usize) -> Self {
        Self { block, path, separator, at, cells: Vec::new() }
    }

    /// The fields of the next record; blank lines are skipped.
    fn next(&mut self) -> Result<Option<&[CellSpan]>, Error> {
        let bytes = &self.block.bytes;
        while self.at < bytes.len() {
            let start = self.at;
            match record(bytes, start, self.separator, &mut self.cells) {
                Ok(end) => self.at = end,
                Err(broken) => {
                    let line = self.line_of(start);
                    return Err(match broken {
                        BrokenRecord::AfterQuote => after_quote(self.path, line),
                        BrokenRecord::Unclosed => Error::line(self.path, line, "a quote is not closed"),
                    });
                }
            }
            if self.cells.len() > 1 || !self.cells[0].of(bytes).is_empty() {
                return Ok(Some(&self.cells));
            }
        }
        Ok(None)
    }

    /// The line of a position. Lines are counted only for messages.
    fn line_of(&self, at: usize) -> u64 {
        self.block.line + line_breaks(&self.block.bytes[..at])
    }

    /// The line of the last record.
    fn last_line(&self) -> u64 {
        let end = self.at.min(self.block.bytes.len());
        let breaks = usize::from(end > 0 && self.block.bytes[end - 1] == b'\n');
        self.line_of(end - breaks)
    }
}

/// The cells that refute a guess.
#[derive(Debug, Clone)]
struct Refuted {
    line: u64,
    text: String,
    count: u64,
}

/// The columns of a block, or of the blocks so far.
struct Parsed {
    rows: usize,
    columns: Vec<ParsedColumn>,
}

enum ParsedColumn {
    Skipped,
    Numbers(Vec<f64>, Option<Refuted>),
    Words { codes: Vec<u32>, words: Vec<String>, index: HashMap<String, u32> },
    TooManyWords,
}

/// Reads the whole file.
fn pass(path: &Path, layout: &CsvLayout, progress: &mut ReadProgress<'_>) -> Result<Parsed, Error> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(16);
    let mut blocks = TextBlocks::open(path)?;
    blocks.separate_by(layout.separator);
    let mut all = Parsed::new(layout);
    let (mut bytes, mut first) = (0, true);
    loop {
        let mut round = Vec::with_capacity(threads);
        while round.len() < threads
            && let Some(block) = blocks.next(BLOCK)?
        {
            let start = if first { start_of_data(&block.bytes) } else { 0 };
            round.push((block, start, std::mem::take(&mut first)));
        }
        if round.is_empty() {
            return Ok(all);
        }
        let parsed: Vec<_> = std::thread::scope(|scope| {
            let parse = |(block, start, first): &'_ (TextBlock, usize, bool)| {
                parse(block, path, layout, *start, *first && layout.header)
            };
            let workers: Vec<_> = round.iter().map(|part| scope.spawn(move || parse(part))).collect();
            workers.into_iter().map(|worker| worker.join().expect("parsing never panics")).collect()
        });
        for part in parsed {
            all.append(part?);
        }
        bytes += round.iter().map(|(block, ..)| block.bytes.len() as u64).sum::<u64>();
        progress.check(bytes)?;
    }
}

fn parse(block: &TextBlock, path: &Path, layout: &CsvLayout, start: usize, header: bool) -> Result<Parsed, Error> {
    let mut records = BlockRecords::new(block, path, layout.separator, start);
    let mut parsed = Parsed::new(layout);
    if header {
        records.next()?;
    }
    loop {
        let found = match records.next()? {
            None => return Ok(parsed),
            Some(cells) => cells.len(),
        };
        if found != layout.names.len() {
            let why = format!(
                "{found} fields, but the first line has {}: is a comma or a quote missing or too many?",
                layout.names.len()
            );
            return Err(Error::line(path, records.last_line(), why));
        }
        for j in 0..found {
            if let Err(why) = parsed.columns[j].push(&records.cells[j].of(&block.bytes), || records.last_line()) {
                let why = format!("column `{}`: {why}", layout.names[j]);
                return Err(Error::line(path, records.last_line(), why));
            }
        }
        parsed.rows += 1;
    }
}

impl ParsedColumn {
    fn new(use_of: Use) -> Self {
        match use_of {
            Use::Skip => Self::Skipped,
            Use::As(CellKind::Number) => Self::Numbers(Vec::new(), None),
            Use::As(CellKind::Word) => Self::Words { codes: Vec::new(), words: Vec::new(), index: HashMap::new() },
        }
    }

    #[inline]
    fn push(&mut self, cell: &[u8], line: impl Fn() -> u64) -> Result<(), String> {
        match self {
            Self::Skipped | Self::TooManyWords => {}
            Self::Numbers(values, refuted) => match number(cell) {
                Some(value) if value.is_finite() => values.push(value),
                _ if is_blank(cell) => values.push(f64::NAN),
                Some(_) => {
                    let text = shown(&String::from_utf8_lossy(cell));
                    return Err(format!("{text} is not a finite number: remove the row or blank the cell"));
                }
                None => {
                    values.push(f64::NAN);
                    let text = || String::from_utf8_lossy(cell).into_owned();
                    refuted.get_or_insert_with(|| Refuted { line: line(), text: text(), count: 0 }).count += 1;
                }
            },
            Self::Words { codes, words, index } => {
                if is_blank(cell) {
                    codes.push(BLANK);
                    return Ok(());
                }
                let text = std::str::from_utf8(cell)
                    .map_err(|_| "the text is not UTF-8: save the file in this encoding".to_string())?;
                codes.push(code_of(text, words, index));
                if words.len() > MOST_WORDS {
                    *self = Self::TooManyWords;
                }
            }
        }
        Ok(())
    }

    fn append(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::Numbers(values, refuted), Self::Numbers(more, also)) => {
                values.extend(more);
                match (&mut *refuted, also) {
                    (Some(refuted), Some(also)) => refuted.count += also.count,
                    (None, also) => *refuted = also,
                    (Some(_), None) => {}
                }
            }
            (Self::Words { codes, words, index }, Self::Words { codes: more, words: new, .. }) => {
                let map: Vec<u32> = new.iter().map(|word| code_of(word, words, index)).collect();
                codes.extend(more.iter().map(|&code| if code == BLANK { BLANK } else { map[code as usize] }));
                if words.len() > MOST_WORDS {
                    *self = Self::TooManyWords;
                }
            }
            (_, Self::TooManyWords) => *self = Self::TooManyWords,
            _ => {}
        }
    }
}

/// The code of a word, a new one if it was not seen before.
fn code_of(word: &str, words: &mut Vec<String>, index: &mut HashMap<String, u32>) -> u32 {
    if let Some(&code) = index.get(word) {
        return code;
    }
    let code = words.len() as u32;
    words.push(word.into());
    index.insert(word.into(), code);
    code
}

impl Parsed {
    fn new(layout: &CsvLayout) -> Self {
        Self { rows: 0, columns: layout.uses.iter().map(|&use_of| ParsedColumn::new(use_of)).collect() }
    }

    fn append(&mut self, other: Self) {
        self.rows += other.rows;
        self.columns.iter_mut().zip(other.columns).for_each(|(column, more)| column.append(more));
    }

    fn refuted(&self) -> Vec<(usize, Refuted)> {
        let refuted = |(j, column): (usize, &ParsedColumn)| match column {
            ParsedColumn::Numbers(_, Some(refuted)) => Some((j, refuted.clone())),
            _ => None,
        };
        self.columns.iter().enumerate().filter_map(refuted).collect()
    }

    fn table(self, path: &Path, layout: CsvLayout) -> Result<DataTable, Error> {
        if self.rows == 0 {
            return Err(Error::file(path, "the file has a header but no rows"));
        }
        let mut columns = Vec::new();
        for (name, column) in layout.names.iter().zip(self.columns) {
            let cells = match column {
                ParsedColumn::Skipped => continue,
                ParsedColumn::Numbers(values, _) => Cells::Numbers(values),
                ParsedColumn::TooManyWords => Cells::Texts,
                ParsedColumn::Words { codes, words, .. } => {
                    check_words(path, name, &words)?;
                    Cells::Words { codes, words }
                }
            };
            columns.push(NamedColumn { name: name.clone(), cells });
        }
        let (rows, order) = (self.rows, layout.names);
        Ok(DataTable { path: path.into(), rows, columns, order, sparse: None, fingerprint: String::new() })
    }
}

/// Dates and numbers with signs are not categories: each word would be one of its own.
fn check_words(path: &Path, name: &str, words: &[String]) -> Result<(), Error> {
    let share = |looks: Looks| {
        let alike = words.iter().filter(|word| Looks::of(word) == Some(looks));
        alike.count() as f64 > 0.9 * words.len() as f64
    };
    let example = words.first().map(|word| shown(word)).unwrap_or_default();
    if share(Looks::Date) {
        let why = format!(
            "column `{name}` holds dates, such as {example}. Turn them into numbers first (days since a fixed day, the \
             year, the month), or leave the column out with --drop {name}"
        );
        return Err(Error::file(path, why));
    }
    if share(Looks::MarkedNumber) {
        let why = format!(
            "column `{name}` holds numbers with signs, such as {example}. Write them with a decimal point and nothing \
             else, or leave the column out with --drop {name}"
        );
        return Err(Error::file(path, why));
    }
    Ok(())
}
