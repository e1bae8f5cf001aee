//! CSV: a header, then one record per row. Files are streamed in blocks, which are parsed in parallel.
//!
//! A line that starts with `#` is a comment at the top of the file, if the first column holds numbers, and if it has not as
//! many fields as there are columns.

use super::{
    CellKind, DataTable, ExpectedColumns, ReadOptions, ReadProgress,
    blocks::{TextBlock, TextBlocks, after_quote, line_breaks},
    cells::{BrokenRecord, CellSpan, is_blank, number, record},
    columns::{self, ColumnLayout, FIRST, Guessing},
    listed,
    parsed::{Parsed, Use},
};
use crate::{DataError, ranks::Ranks, words::plural};
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};
use strust::ranks::RowShare;

/// Bytes of a block for one thread.
const BLOCK: usize = 4 << 20;

/// How one file is laid out.
#[derive(Clone)]
struct CsvFile {
    path: PathBuf,
    separator: u8,
    /// Whether the first record is a header.
    header: bool,
    /// Whether the first column has a number.
    starts_with_numbers: bool,
}

pub(super) fn read(
    paths: &[PathBuf],
    options: &ReadOptions,
    progress: &mut ReadProgress<'_>,
    ranks: &Ranks<'_>,
) -> Result<DataTable, DataError> {
    let (layout, files) = ranks.agree(layout(paths, options, progress))?;
    columns::read(paths, layout, options, ranks, |layout| pass(layout, &files, progress, ranks.share()))
}

/// The layout of all files, which must have the same columns.
fn layout(
    paths: &[PathBuf],
    options: &ReadOptions,
    progress: &mut ReadProgress<'_>,
) -> Result<(ColumnLayout, Vec<CsvFile>), DataError> {
    let (mut all, first) = layout_of(&paths[0], options)?;
    let mut files = vec![first];
    for path in &paths[1..] {
        progress.check(0)?;
        let (other, file) = layout_of(path, options)?;
        if other.names != all.names {
            let (found, expected) = (listed(&other.names), listed(&all.names));
            let why = format!("the columns are {found}, but {} has {expected}", paths[0].display());
            return Err(DataError::file(path, why));
        }
        files.push(file);
        // A column of words in one file is one in all.
        for (use_of, also) in all.uses.iter_mut().zip(other.uses) {
            *use_of = if also == Use::As(CellKind::Word) { also } else { *use_of };
        }
    }
    Ok((all, files))
}

/// Reads the header and guesses the kinds of the columns.
fn layout_of(path: &Path, options: &ReadOptions) -> Result<(ColumnLayout, CsvFile), DataError> {
    let empty = || DataError::file(path, "the file is empty; expected a header and rows");
    let first = TextBlocks::open(path, b',')?.next(BLOCK)?.ok_or_else(empty)?;
    let start = start_of_data(&first.bytes);
    let line = first.bytes[start..].split(|&byte| byte == b'\n').next().unwrap_or_default();
    if line.is_empty() {
        return Err(empty());
    }
    let separator = separator_of(line);
    let first = TextBlocks::open(path, separator)?.next(BLOCK)?.ok_or_else(empty)?;
    let mut records = BlockRecords::new(&first, path, separator, start);
    let texts = |cells: Option<&[CellSpan]>| -> Vec<String> {
        let text = |cell: &CellSpan| String::from_utf8_lossy(&cell.of(&first.bytes)).trim().to_string();
        cells.unwrap_or_default().iter().map(text).collect()
    };
    let mut names = texts(records.next()?);
    let after = records.at;
    let header = is_header(&names, &texts(records.next()?), options);
    let start = if header {
        // The first column of a spreadsheet often has no name.
        names.iter_mut().enumerate().filter(|(_, name)| name.is_empty()).for_each(|(j, name)| *name = column_name(j));
        check_names(path, &names)?;
        after
    } else {
        names = names_without_header(path, names.len(), options)?;
        start
    };
    let mut layout = ColumnLayout::new(path, names, options)?;
    let records = |comments| BlockRecords { comments, ..BlockRecords::new(&first, path, separator, start) };
    let starts_with_numbers = records(None).starts_with_number()?;
    let file = CsvFile { path: path.into(), separator, header, starts_with_numbers };
    let comments = file.comments(&layout);
    let mut records = records(Some(comments));
    let mut guessing = Guessing::new(&mut layout.uses);
    for _ in 0..FIRST {
        let Some(cells) = records.next()?.filter(|_| options.expected.is_none()) else { break };
        cells.iter().enumerate().for_each(|(j, cell)| guessing.add(j, &cell.of(&first.bytes)));
    }
    guessing.finish();
    Ok((layout, file))
}

impl CsvFile {
    /// What tells the comments of the file.
    fn comments(&self, layout: &ColumnLayout) -> Comments {
        let all = self.starts_with_numbers && layout.uses.first() != Some(&Use::As(CellKind::Word));
        Comments { columns: layout.names.len(), all }
    }
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
fn is_header(first: &[String], second: &[String], options: &ReadOptions) -> bool {
    let expected: HashSet<&String> = options.expected.iter().flat_map(|expected| &expected.order).collect();
    let named = |name: &String| {
        number(name.as_bytes()).is_none() && (options.target.as_ref() == Some(name) || expected.contains(name))
    };
    let is_number = |field: &String| number(field.as_bytes()).is_some();
    // A column may have no name, or one that looks like a blank cell, such as `Na`. Then numbers must follow.
    let is_odd = |field: &String| !field.is_empty() && is_blank(field.as_bytes());
    let names = !first.iter().any(|field| is_number(field) || field == "?") && !first.iter().all(String::is_empty);
    first.iter().any(named) || names && (!first.iter().any(is_odd) || second.iter().any(is_number))
}

fn check_names(path: &Path, names: &[String]) -> Result<(), DataError> {
    let mut seen = HashSet::with_capacity(names.len());
    for name in names {
        if !seen.insert(name) {
            return Err(DataError::line(path, 1, format!("two columns are named `{name}`: rename one of them")));
        }
    }
    Ok(())
}

fn names_without_header(path: &Path, width: usize, options: &ReadOptions) -> Result<Vec<String>, DataError> {
    let Some(ExpectedColumns { order, .. }) = &options.expected else {
        return Ok((0..width).map(column_name).collect());
    };
    let without_target = || order.iter().filter(|name| options.target.as_ref() != Some(name)).cloned().collect();
    match order.len() {
        all if all == width => Ok(order.clone()),
        all if all == width + 1 => Ok(without_target()),
        all => Err(DataError::file(
            path,
            format!(
                "{} without a header, but the model was made from {all}: add a header with the names {}",
                plural(width, "column"),
                listed(order)
            ),
        )),
    }
}

/// The name of a column without one.
fn column_name(position: usize) -> String {
    format!("column{}", position + 1)
}

/// What tells a comment from a row that starts with `#`.
#[derive(Clone, Copy)]
struct Comments {
    /// A line with another number of fields is a comment.
    columns: usize,
    /// Every such line is one.
    all: bool,
}

/// The records of a block, with the line of the last one.
struct BlockRecords<'a> {
    block: &'a TextBlock,
    path: &'a Path,
    separator: u8,
    at: usize,
    cells: Vec<CellSpan>,
    comments: Option<Comments>,
}

impl<'a> BlockRecords<'a> {
    fn new(block: &'a TextBlock, path: &'a Path, separator: u8, at: usize) -> Self {
        Self { block, path, separator, at, cells: Vec::new(), comments: None }
    }

    /// Whether the first cell of one of the first records is a number.
    fn starts_with_number(&mut self) -> Result<bool, DataError> {
        for _ in 0..FIRST {
            let block = self.block;
            let Some(cells) = self.next()? else { return Ok(false) };
            if number(&cells[0].of(&block.bytes)).is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The fields of the next record; blank lines and comments are skipped.
    fn next(&mut self) -> Result<Option<&[CellSpan]>, DataError> {
        let bytes = &self.block.bytes;
        while self.at < bytes.len() {
            let start = self.at;
            match record(bytes, start, self.separator, &mut self.cells) {
                Ok(end) => self.at = end,
                Err(broken) => {
                    let line = self.line_of(start);
                    return Err(match broken {
                        BrokenRecord::AfterQuote => after_quote(self.path, line),
                        BrokenRecord::Unclosed => DataError::line(self.path, line, "a quote is not closed"),
                    });
                }
            }
            let is_comment = |comments: Comments| {
                bytes[start..].trim_ascii_start().starts_with(b"#")
                    && (comments.all || self.cells.len() != comments.columns)
            };
            if (self.cells.len() > 1 || !self.cells[0].of(bytes).is_empty()) && !self.comments.is_some_and(is_comment) {
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

/// Reads all files, and keeps the rows of a share.
fn pass(
    layout: &ColumnLayout,
    files: &[CsvFile],
    progress: &mut ReadProgress<'_>,
    share: RowShare,
) -> Result<Parsed, DataError> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(16);
    let mut all = Parsed::new(&layout.uses);
    let mut bytes = 0;
    for (number, file) in files.iter().enumerate() {
        let mut blocks = TextBlocks::open(&file.path, file.separator)?;
        let mut first = true;
        loop {
            let mut round = Vec::with_capacity(threads);
            while round.len() < threads
                && let Some(block) = blocks.next(BLOCK)?
            {
                let start = if first { start_of_data(&block.bytes) } else { 0 };
                let header = std::mem::take(&mut first) && file.header;
                round.push(CsvBlock { block, file, number, start, header, layout });
            }
            if round.is_empty() {
                break;
            }
            for part in parsed(&round, share.after(all.rows)) {
                all.append(part?);
            }
            bytes += round.iter().map(|part| part.block.bytes.len() as u64).sum::<u64>();
            progress.check(bytes)?;
        }
    }
    Ok(all)
}

/// Parses some blocks in parallel. `share` has the rows of the first of them that are kept.
fn parsed(round: &[CsvBlock<'_>], share: RowShare) -> Vec<Result<Parsed, DataError>> {
    if share.is_all() {
        return in_parallel(round, |part| part.parse(share));
    }
    // To know which rows to keep, count those of the blocks before.
    let (mut shares, mut before) = (Vec::with_capacity(round.len()), 0);
    for count in in_parallel(round, CsvBlock::count) {
        match count {
            Ok(count) => {
                shares.push(share.after(before));
                before += count;
            }
            Err(why) => return vec![Err(why)],
        }
    }
    let parts: Vec<_> = round.iter().zip(shares).collect();
    in_parallel(&parts, |(part, share)| part.parse(*share))
}

fn in_parallel<T: Sync, R: Send>(parts: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let work = &work;
        let workers: Vec<_> = parts.iter().map(|part| scope.spawn(move || work(part))).collect();
        workers.into_iter().map(|worker| worker.join().expect("parsing never panics")).collect()
    })
}

/// A block of a file, from the byte `start`.
struct CsvBlock<'a> {
    block: TextBlock,
    file: &'a CsvFile,
    /// The number of the file.
    number: usize,
    start: usize,
    /// Whether the first record is a header.
    header: bool,
    layout: &'a ColumnLayout,
}

impl CsvBlock<'_> {
    fn records(&self) -> Result<BlockRecords<'_>, DataError> {
        let mut records = BlockRecords::new(&self.block, &self.file.path, self.file.separator, self.start);
        if self.header {
            records.next()?;
        }
        records.comments = Some(self.file.comments(self.layout));
        Ok(records)
    }

    /// The number of rows.
    fn count(&self) -> Result<usize, DataError> {
        let (mut records, mut rows) = (self.records()?, 0);
        while records.next()?.is_some() {
            rows += 1;
        }
        Ok(rows)
    }

    /// The columns of the rows of a share. The fields of the other rows are only counted.
    fn parse(&self, share: RowShare) -> Result<Parsed, DataError> {
        let (path, names) = (&self.file.path, &self.layout.names);
        let mut records = self.records()?;
        let mut parsed = Parsed::new(&self.layout.uses);
        loop {
            let found = match records.next()? {
                None => return Ok(parsed),
                Some(cells) => cells.len(),
            };
            if found != names.len() {
                let why = format!(
                    "{}, but the first line has {}: is a comma or a quote missing or too many?",
                    plural(found, "field"),
                    names.len()
                );
                return Err(DataError::line(path, records.last_line(), why));
            }
            parsed.rows += 1;
            if !share.owns(parsed.rows - 1) {
                continue;
            }
            for ((name, cell), column) in names.iter().zip(&records.cells).zip(&mut parsed.columns) {
                let at = || (self.number, records.last_line());
                if let Err(why) = column.push(&cell.of(&self.block.bytes), at) {
                    return Err(DataError::line(path, records.last_line(), format!("column `{name}`: {why}")));
                }
            }
        }
    }
}
