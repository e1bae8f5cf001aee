//! Output for people: colors, progress, tables.

use crate::{
    args::Shared,
    screen::{Bar, Screen, in_words, left},
};
use clap::ColorChoice;
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{IsTerminal, Write as _},
    sync::Mutex,
    time::{Duration, Instant},
};
use strust_lab::{
    format::plural,
    run::{JobEvent, RunProgress},
};

/// Prints an error, even with `--quiet`.
pub fn error(why: &str, shared: &Shared) {
    if colors(shared, std::io::stderr().is_terminal()) {
        print_line(&format!("\x1b[1;31merror:\x1b[0m {why}"));
    } else {
        print_line(&format!("error: {why}"));
    }
}

/// Prints a line to standard error. A failure is ignored: the run is more important than its messages.
fn print_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", harmless(line));
}

/// The sequences by which this program itself changes the look of text.
const OWN_SEQUENCES: [&str; 3] = ["\x1b[0m", "\x1b[1m", "\x1b[1;31m"];

/// A text that a terminal only shows. Names and titles may come from files of others, and a terminal obeys control
/// characters: each becomes the replacement character. Characters that reverse the direction of text do, too.
pub fn harmless(text: &str) -> String {
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(c) = rest.chars().next() {
        let own = OWN_SEQUENCES.iter().find(|sequence| rest.starts_with(**sequence));
        let (part, length) = match (own, c) {
            (Some(own), _) => (*own, own.len()),
            (None, '\n' | '\t') => (&rest[..1], 1),
            (None, '\r') if rest.starts_with("\r\n") => ("\r", 1),
            (None, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => ("\u{fffd}", c.len_utf8()),
            (None, c) if c.is_control() => ("\u{fffd}", c.len_utf8()),
            (None, c) => (&rest[..c.len_utf8()], c.len_utf8()),
        };
        shown.push_str(part);
        rest = &rest[length..];
    }
    shown
}

fn colors(shared: &Shared, terminal: bool) -> bool {
    match shared.color {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            terminal
                && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                && std::env::var_os("TERM").is_none_or(|value| value != "dumb")
        }
    }
}

/// Makes a heading bold if standard output has colors.
pub fn heading(text: &str, shared: &Shared) -> String {
    if colors(shared, std::io::stdout().is_terminal()) { format!("\x1b[1m{text}\x1b[0m") } else { text.into() }
}

/// Prints a warning, even with `--quiet`.
pub fn warning(text: &str) {
    print_line(&format!("warning: {text}"));
}

/// What the program is doing now, in one line that changes; nothing with `--quiet` or without a terminal.
pub struct Activity {
    screen: Screen,
    line: usize,
}

impl Activity {
    pub fn new(shared: &Shared) -> Self {
        let screen = Screen::new(!shared.quiet && std::io::stderr().is_terminal(), false);
        let line = screen.add(Bar::new(String::new(), None, |bar| match bar.end {
            Some(_) => format!(" {}{}", bytes_so_far(bar), left(bar)),
            None => format!("  {}", in_words(bar.elapsed())),
        }));
        Self { screen, line }
    }
    /// A bar towards a known end.
    pub fn towards(&self, what: &str, at: u64, end: u64) {
        self.screen.change(self.line, |bar| {
            if bar.end != Some(end) {
                (bar.name, bar.end) = (harmless(what), Some(end));
                bar.begin_at(0);
            }
            bar.at = at.min(end);
        });
    }
    /// A sentence while the end is unknown.
    pub fn say(&self, what: &str) {
        self.screen.change(self.line, |bar| (bar.name, bar.end) = (harmless(what), None));
    }
}

fn bytes_so_far(bar: &Bar) -> String {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    format!("{:.1} of {:.1} MB", megabytes(bar.at), megabytes(bar.end.unwrap_or(0)))
}

/// Aligns columns of numbers: the first to the left, the others to the right.
pub fn table(rows: &[Vec<String>]) -> String {
    aligned(rows, |j| j > 0)
}

/// Aligns columns of text to the left.
pub fn columns(rows: &[Vec<String>]) -> String {
    aligned(rows, |_| false)
}

fn aligned(rows: &[Vec<String>], to_the_right: impl Fn(usize) -> bool) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |j: usize| rows.iter().filter_map(|row| row.get(j)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(j, (cell, &width))| {
            let padding = " ".repeat(width - cell.chars().count());
            if to_the_right(j) { format!("{padding}{cell}") } else { format!("{cell}{padding}") }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Progress bars on a terminal, plain lines otherwise, only warnings with `--quiet`.
pub fn progress(shared: &Shared) -> Box<dyn RunProgress> {
    if !shared.quiet && std::io::stderr().is_terminal() {
        Box::new(Bars { screen: Screen::new(true, colors(shared, true)), stage: Mutex::default() })
    } else {
        Box::new(Lines { quiet: shared.quiet, stage: Mutex::default() })
    }
}

/// A stage of a run.
#[derive(Default)]
struct Stage {
    name: String,
    jobs: usize,
    done: usize,
    /// The warnings shown so far, in all stages: many jobs report the same warning.
    warnings: BTreeSet<String>,
    /// When its last line was printed.
    printed: Option<Instant>,
    /// The bar of the stage, and those of its running jobs.
    bar: usize,
    bars: BTreeMap<String, usize>,
}

impl Stage {
    fn begin(&mut self, name: &str, jobs: usize) {
        (self.name, self.jobs, self.done, self.printed) = (name.into(), jobs, 0, None);
    }
    /// The line of a warning, or `None` if it was shown before.
    fn fresh(&mut self, warning: &str) -> Option<String> {
        self.warnings.insert(warning.into()).then(|| format!("warning: {warning}"))
    }
}

/// The progress of a download: a bar on a terminal, a line every two seconds otherwise, nothing with `--quiet`.
pub struct Meter {
    screen: Screen,
    line: usize,
    name: String,
    lines: bool,
    printed: Instant,
}

impl Meter {
    pub fn new(name: &str, bytes: u64, shared: &Shared) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let screen = Screen::new(!shared.quiet && terminal, colors(shared, terminal));
        let line = screen.add(Bar::new(name.into(), Some(bytes), |bar| {
            format!(" {}  {:.1} MB/s{}", bytes_so_far(bar), bar.speed() / 1e6, left(bar))
        }));
        Self { screen, line, name: name.into(), lines: !shared.quiet && !terminal, printed: Instant::now() }
    }
    /// Reports the number of bytes so far.
    pub fn at(&mut self, bytes: u64) {
        let due = self.lines && self.printed.elapsed() > Duration::from_secs(2);
        let line = self.screen.change(self.line, |bar| {
            if bar.at == 0 {
                bar.begin_at(bytes);
            }
            bar.at = bytes;
            let (total, left) = (bar.end.unwrap_or(0), bar.left().map_or(0, |time| time.as_secs()));
            format!("{}: {} of {} MB, {left} s left", self.name, bytes / 1_000_000, total / 1_000_000)
        });
        if let (true, Some(line)) = (due, line) {
            print_line(&line);
            self.printed = Instant::now();
        }
    }
}

/// One bar for the stage and one for each running job, each with the remaining time.
struct Bars {
    screen: Screen,
    stage: Mutex<Stage>,
}

/// The length of a job on the bar of its stage, so that this bar moves while jobs run.
const PART: u64 = 1000;

impl Bars {
    fn move_to(&self, stage: &Stage, job: &str, part: u64) {
        let Some(&line) = stage.bars.get(job) else { return };
        let moved = self.screen.change(line, |bar| part.saturating_sub(std::mem::replace(&mut bar.at, part)));
        self.screen.change(stage.bar, |bar| bar.at += moved.unwrap_or(0));
    }
    fn remove(&self, stage: &mut Stage, job: &str) {
        stage.bars.remove(job).into_iter().for_each(|line| self.screen.remove(line));
    }
}

impl RunProgress for Bars {
    fn begin(&self, name: &str, jobs: usize) {
        let Ok(mut stage) = self.stage.lock() else { return };
        stage.begin(name, jobs);
        self.screen.remove(stage.bar);
        let name = format!("{:<28}", shortened(&harmless(name), 28));
        let mut bar = Bar::new(name, Some(jobs as u64 * PART), |bar| {
            format!(" {}  {}{}", bar.note, in_words(bar.elapsed()), left(bar))
        });
        bar.note = format!("0/{jobs} jobs");
        stage.bar = self.screen.add(bar);
    }
    fn show(&self, job: &str, event: &JobEvent) {
        let Ok(mut stage) = self.stage.lock() else { return };
        match event {
            JobEvent::Start => {
                let shown = format!("  {:<26}", shortened(&harmless(job), 26));
                let percent = |bar: &Bar| format!(" {:>3} %{}", bar.at * 100 / PART, left(bar));
                stage.bars.insert(job.into(), self.screen.add(Bar::new(shown, Some(PART), percent)));
            }
            JobEvent::At(step, last) => self.move_to(&stage, job, step * PART / last.max(&1)),
            JobEvent::Warning(warning) => {
                stage.fresh(warning).iter().for_each(|line| self.screen.print(&harmless(line)));
            }
            JobEvent::End(error) => {
                match error {
                    Some(error) => self.screen.print(&harmless(&format!("{job}: {error}"))),
                    None => self.move_to(&stage, job, PART),
                }
                self.remove(&mut stage, job);
                stage.done += 1;
                let note = format!("{}/{} jobs", stage.done, stage.jobs);
                self.screen.change(stage.bar, |bar| bar.note = note);
            }
            JobEvent::Stop => self.remove(&mut stage, job),
        }
    }
}

/// Shortens a name to `most` characters. It keeps the start and the end, because the end is the seed.
fn shortened(name: &str, most: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= most {
        return name.into();
    }
    let head = (most - 1) / 2;
    let tail = most - 1 - head;
    letters[..head].iter().chain(&['…']).chain(&letters[letters.len() - tail..]).collect()
}

/// A line for finished jobs, at most two per second; only warnings if it is quiet.
struct Lines {
    quiet: bool,
    stage: Mutex<Stage>,
}

impl RunProgress for Lines {
    fn begin(&self, name: &str, jobs: usize) {
        if let Ok(mut stage) = self.stage.lock() {
            stage.begin(name, jobs);
        }
        if !self.quiet {
            print_line(&format!("{name}: {}", plural(jobs, "job")));
        }
    }
    fn show(&self, job: &str, event: &JobEvent) {
        let Ok(mut stage) = self.stage.lock() else { return };
        match event {
            JobEvent::Warning(warning) => stage.fresh(warning).iter().for_each(|line| print_line(line)),
            JobEvent::End(error) if !self.quiet => {
                if let Some(error) = error {
                    print_line(&format!("{job}: {error}"));
                }
                stage.done += 1;
                let due = stage.printed.is_none_or(|printed| printed.elapsed() > Duration::from_millis(500));
                if due || stage.done == stage.jobs {
                    print_line(&format!("{}: {} of {} done ({job})", stage.name, stage.done, stage.jobs));
                    stage.printed = Some(Instant::now());
                }
            }
            _ => {}
        }
    }
}
