//! Output for people: colors, progress, tables.

use crate::args::Shared;
use clap::ColorChoice;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{
    collections::BTreeSet,
    io::{IsTerminal, Write as _},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use strust_lab::run::{JobProgress, RunProgress};

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
    bar: ProgressBar,
}

impl Activity {
    pub fn new(shared: &Shared) -> Self {
        let hidden = shared.quiet || !std::io::stderr().is_terminal();
        let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(10) };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(style("{spinner} {msg}  {elapsed}"));
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar }
    }
    /// A bar towards a known end.
    pub fn towards(&self, what: &str, at: u64, end: u64) {
        if self.bar.length() != Some(end) {
            self.bar.set_length(end);
            self.bar.set_style(style("{msg} {bar:24} {bytes} of {total_bytes}  {eta} left"));
            self.bar.set_message(what.to_string());
        }
        self.bar.set_position(at.min(end));
    }
    /// A sentence while the end is unknown.
    pub fn say(&self, what: String) {
        if self.bar.length().is_some() {
            self.bar.unset_length();
            self.bar.set_style(style("{spinner} {msg}  {elapsed}"));
        }
        self.bar.set_message(what);
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
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
    if shared.quiet {
        Box::new(Quiet::default())
    } else if std::io::stderr().is_terminal() {
        Box::new(Bars::new(colors(shared, true)))
    } else {
        Box::new(Lines::default())
    }
}

/// The warnings shown so far: many jobs report the same warning.
#[derive(Default)]
struct Warnings(Mutex<BTreeSet<String>>);

impl Warnings {
    /// The line to print, or `None` if it was printed before.
    fn fresh(&self, warning: &str) -> Option<String> {
        let mut shown = self.0.lock().ok()?;
        shown.insert(warning.into()).then(|| format!("warning: {warning}"))
    }
}

/// Shows no progress, only warnings.
#[derive(Default)]
struct Quiet {
    warnings: Warnings,
}

impl RunProgress for Quiet {
    fn begin(&self, _: &str, _: usize) {}
    fn job<'a>(&'a self, _: &str) -> Box<dyn JobProgress + 'a> {
        Box::new(QuietJob(self))
    }
}

struct QuietJob<'a>(&'a Quiet);

impl JobProgress for QuietJob<'_> {
    fn at(&mut self, _: u64, _: u64) {}
    fn warn(&mut self, warning: &str) {
        self.0.warnings.fresh(warning).iter().for_each(|line| print_line(line));
    }
    fn end(&mut self, _: Option<&str>) {}
    fn stop(&mut self) {}
}

/// The progress of a download: a bar on a terminal, a line every two seconds otherwise, nothing with `--quiet`.
pub struct Meter {
    bar: ProgressBar,
    name: String,
    lines: bool,
    printed: Instant,
}

impl Meter {
    pub fn new(name: &str, bytes: u64, shared: &Shared) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let target = if shared.quiet || !terminal {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(10)
        };
        let bar = ProgressBar::with_draw_target(Some(bytes), target);
        let shape = if colors(shared, terminal) { "{bar:24.cyan/dim}" } else { "{bar:24}" };
        bar.set_style(style(&format!(
            "{{prefix}} {shape} {{bytes}} of {{total_bytes}}  {{bytes_per_sec}}  {{eta}} left"
        )));
        bar.set_prefix(name.to_string());
        Self { bar, name: name.into(), lines: !shared.quiet && !terminal, printed: Instant::now() }
    }
    /// Reports the number of bytes so far.
    pub fn at(&mut self, bytes: u64) {
        if self.bar.position() == 0 {
            // Bytes from an earlier download must not count for the speed.
            self.bar.set_position(bytes);
            self.bar.reset_eta();
        }
        self.bar.set_position(bytes);
        if self.lines && self.printed.elapsed() > Duration::from_secs(2) {
            let (total, left) = (self.bar.length().unwrap_or(0), self.bar.eta().as_secs());
            print_line(&format!("{}: {} of {} MB, {left} s left", self.name, bytes / 1_000_000, total / 1_000_000));
            self.printed = Instant::now();
        }
    }
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is a constant").progress_chars("━╸─")
}

/// One bar for the whole run and one for each running job, each with the remaining time.
struct Bars {
    all: MultiProgress,
    whole: ProgressBar,
    done: AtomicU64,
    style: ProgressStyle,
    warnings: Warnings,
}

/// The length of a job on the bar of the whole run, so that this bar moves while jobs run.
const PART: u64 = 1000;

impl Bars {
    fn new(colors: bool) -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        let bar = if colors { "{bar:24.cyan/dim}" } else { "{bar:24}" };
        let whole = all.add(ProgressBar::new(0));
        whole.set_style(style(&format!("{{prefix:<28!}} {bar} {{msg}}  {{elapsed}}  {{eta}} left")));
        Self {
            all,
            whole,
            done: AtomicU64::new(0),
            style: style(&format!("  {{prefix:<26!}} {bar} {{percent:>3}} %  {{eta}} left")),
            warnings: Warnings::default(),
        }
    }
}

impl RunProgress for Bars {
    fn begin(&self, stage: &str, jobs: usize) {
        self.whole.reset();
        self.done.store(0, Ordering::Relaxed);
        self.whole.set_prefix(stage.to_string());
        self.whole.set_length(jobs as u64 * PART);
        self.whole.set_message(format!("0/{jobs} jobs"));
        self.whole.enable_steady_tick(Duration::from_millis(200));
    }
    fn job<'a>(&'a self, name: &str) -> Box<dyn JobProgress + 'a> {
        let bar = self.all.add(ProgressBar::new(PART));
        bar.set_style(self.style.clone());
        bar.set_prefix(shortened(name, 26));
        Box::new(JobBar { all: self, bar, name: name.into() })
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.whole.finish_and_clear();
        let _ = self.all.clear();
    }
}

struct JobBar<'a> {
    all: &'a Bars,
    bar: ProgressBar,
    name: String,
}

impl JobBar<'_> {
    fn move_to(&self, part: u64) {
        let before = self.bar.position();
        self.bar.set_position(part);
        self.all.whole.inc(part.saturating_sub(before));
    }
}

impl JobProgress for JobBar<'_> {
    fn at(&mut self, step: u64, last: u64) {
        self.move_to(step * PART / last.max(1));
    }
    fn warn(&mut self, warning: &str) {
        if let Some(line) = self.all.warnings.fresh(warning) {
            let _ = self.all.all.println(harmless(&line));
        }
    }
    fn end(&mut self, error: Option<&str>) {
        if let Some(error) = error {
            let _ = self.all.all.println(harmless(&format!("{}: {error}", self.name)));
        } else {
            self.move_to(PART);
        }
        self.bar.finish_and_clear();
        let (done, whole) = (self.all.done.fetch_add(1, Ordering::Relaxed) + 1, &self.all.whole);
        whole.set_message(format!("{done}/{} jobs", whole.length().unwrap_or(0) / PART));
    }
    fn stop(&mut self) {
        self.bar.finish_and_clear();
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

/// A line for finished jobs, at most two per second.
#[derive(Default)]
struct Lines {
    stage: Mutex<Stage>,
    warnings: Warnings,
}

#[derive(Default)]
struct Stage {
    name: String,
    jobs: usize,
    done: usize,
    printed: Option<Instant>,
}

impl RunProgress for Lines {
    fn begin(&self, stage: &str, jobs: usize) {
        if let Ok(mut now) = self.stage.lock() {
            *now = Stage { name: stage.into(), jobs, done: 0, printed: None };
        }
        print_line(&format!("{stage}: {jobs} {}", if jobs == 1 { "job" } else { "jobs" }));
    }
    fn job<'a>(&'a self, name: &str) -> Box<dyn JobProgress + 'a> {
        Box::new(JobLine { lines: self, name: name.into() })
    }
}

struct JobLine<'a> {
    lines: &'a Lines,
    name: String,
}

impl JobProgress for JobLine<'_> {
    fn at(&mut self, _: u64, _: u64) {}
    fn warn(&mut self, warning: &str) {
        self.lines.warnings.fresh(warning).iter().for_each(|line| print_line(line));
    }
    fn end(&mut self, error: Option<&str>) {
        if let Some(error) = error {
            print_line(&format!("{}: {error}", self.name));
        }
        let Ok(mut stage) = self.lines.stage.lock() else { return };
        stage.done += 1;
        let due = stage.printed.is_none_or(|printed| printed.elapsed() > Duration::from_millis(500));
        if due || stage.done == stage.jobs {
            print_line(&format!("{}: {} of {} done ({})", stage.name, stage.done, stage.jobs, self.name));
            stage.printed = Some(Instant::now());
        }
    }
    fn stop(&mut self) {}
}
