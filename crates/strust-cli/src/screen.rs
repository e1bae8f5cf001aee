//! Lines at the bottom of a terminal that change while the program works.

use std::{
    collections::BTreeMap,
    io::Write as _,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};
use terminal_size::{Height, Width, terminal_size_of};

/// The time between two pictures.
const TICK: Duration = Duration::from_millis(100);
/// The length of a bar in characters.
const LENGTH: usize = 24;

/// A line: a name, a bar if the end is known, and what `after` makes of it.
pub struct Bar {
    pub name: String,
    pub at: u64,
    pub end: Option<u64>,
    pub note: String,
    after: fn(&Self) -> String,
    begin: u64,
    since: Instant,
}

impl Bar {
    pub fn new(name: String, end: Option<u64>, after: fn(&Self) -> String) -> Self {
        Self { name, at: 0, end, note: String::new(), after, begin: 0, since: Instant::now() }
    }
    /// What is done here was done before, so it must not count for the speed.
    pub fn begin_at(&mut self, at: u64) {
        (self.begin, self.at, self.since) = (at, at, Instant::now());
    }
    pub fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }
    /// What is done in a second.
    pub fn speed(&self) -> f64 {
        (self.at - self.begin.min(self.at)) as f64 / self.elapsed().as_secs_f64().max(1e-3)
    }
    /// The time to the end at this speed, once something is done.
    pub fn left(&self) -> Option<Duration> {
        let rest = self.end?.saturating_sub(self.at) as f64;
        Duration::try_from_secs_f64(rest / self.speed()).ok()
    }
    /// The line on a terminal of this width.
    fn line(&self, width: usize, colors: bool, turn: usize) -> String {
        let (before, bar) = match self.end {
            Some(end) => {
                let full = (self.at.min(end) * LENGTH as u64 / end.max(1)) as usize;
                let (done, rest) = ("━".repeat(full), "─".repeat(LENGTH - full));
                let bar = if colors { format!("\x1b[36m{done}\x1b[0m\x1b[2m{rest}\x1b[0m") } else { done + &rest };
                (format!("{} ", self.name), bar)
            }
            None => (format!("{} {}", ["|", "/", "-", "\\"][turn % 4], self.name), String::new()),
        };
        let room = width.saturating_sub(1);
        let before: String = before.chars().take(room).collect();
        let after = (self.after)(self);
        let used = before.chars().count() + if self.end.is_some() { LENGTH } else { 0 };
        // A line that is too long would wrap, and could not be erased.
        let bar = if used > room { String::new() } else { bar };
        before + &bar + &after.chars().take(room.saturating_sub(used)).collect::<String>()
    }
}

/// A duration in two units, such as `3m 20s`.
pub fn in_words(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

/// The time that is left, as the end of a line.
pub fn left(bar: &Bar) -> String {
    bar.left().map_or(String::new(), |time| format!("  {} left", in_words(time)))
}

/// The lines and their place on the terminal.
#[derive(Default)]
struct ScreenLines {
    bars: BTreeMap<usize, Bar>,
    next: usize,
    drawn: usize,
    turn: usize,
}

impl ScreenLines {
    /// Writes `text` in place of the lines, and then the lines. A failure is ignored: the work is more important.
    fn draw(&mut self, text: &str, colors: bool) {
        let (Width(width), Height(height)) = terminal_size_of(std::io::stderr()).unwrap_or((Width(80), Height(24)));
        let up = if self.drawn > 0 { format!("\x1b[{}A\x1b[J", self.drawn) } else { String::new() };
        let bars = self.bars.values().take(usize::from(height).saturating_sub(1));
        let lines: Vec<String> = bars.map(|bar| bar.line(width.into(), colors, self.turn) + "\n").collect();
        (self.drawn, self.turn) = (lines.len(), self.turn + 1);
        let _ = std::io::stderr().write_all((up + text + &lines.concat()).as_bytes());
    }
}

/// The lines of a program. They are removed when it is dropped.
pub struct Screen {
    picture: Arc<Mutex<ScreenLines>>,
    colors: bool,
    /// Draws the lines until the sender is dropped.
    ticker: Option<(Sender<()>, JoinHandle<()>)>,
}

fn lock(picture: &Mutex<ScreenLines>) -> MutexGuard<'_, ScreenLines> {
    picture.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Screen {
    /// Nothing is drawn unless `shown`.
    pub fn new(shown: bool, colors: bool) -> Self {
        let picture = Arc::new(Mutex::new(ScreenLines::default()));
        let shared = Arc::clone(&picture);
        let ticker = shown.then(|| {
            let (sender, receiver) = channel();
            let draw = move || {
                while receiver.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                    lock(&shared).draw("", colors);
                }
            };
            (sender, std::thread::spawn(draw))
        });
        Self { picture, colors, ticker }
    }
    /// Adds a line and returns its number.
    pub fn add(&self, bar: Bar) -> usize {
        let mut picture = lock(&self.picture);
        picture.next += 1;
        let number = picture.next;
        picture.bars.insert(number, bar);
        number
    }
    /// Changes a line.
    pub fn change<T>(&self, number: usize, change: impl FnOnce(&mut Bar) -> T) -> Option<T> {
        lock(&self.picture).bars.get_mut(&number).map(change)
    }
    pub fn remove(&self, number: usize) {
        lock(&self.picture).bars.remove(&number);
    }
    /// Prints a text above the lines.
    pub fn print(&self, text: &str) {
        lock(&self.picture).draw(&format!("{text}\n"), self.colors);
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.ticker.take() {
            drop(sender);
            // A panic of the thread has lost only lines.
            let _ = thread.join();
            let mut picture = lock(&self.picture);
            picture.bars.clear();
            picture.draw("", self.colors);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_the_terminal_and_shows_how_much_is_done() {
        let mut bar = Bar::new("a name".into(), Some(48), |bar| format!(" {} of 48, and so on", bar.at));
        bar.at = 24;
        let half = format!("a name {}{} 24 of 48", "━".repeat(12), "─".repeat(12));
        assert_eq!(bar.line(80, false, 0), format!("{half}, and so on"));
        assert_eq!(bar.line(half.chars().count() + 1, false, 0), half);
        for width in 0..50 {
            assert!(bar.line(width, false, 0).chars().count() <= width.saturating_sub(1), "{width}");
        }
        bar.end = None;
        assert_eq!(bar.line(10, false, 1), "/ a name ");
    }

    #[test]
    fn the_time_left_is_that_of_the_part_done_here() {
        let mut bar = Bar::new(String::new(), Some(100), left);
        bar.begin_at(90);
        assert_eq!(bar.left(), None);
        bar.at = 95;
        bar.since =
            Instant::now().checked_sub(Duration::from_secs(1000)).expect("a time after the start of the system");
        assert_eq!(left(&bar), "  16m 40s left");
        assert_eq!([0, 59, 60, 7384].map(|s| in_words(Duration::from_secs(s))), ["0s", "59s", "1m 00s", "2h 03m"]);
    }
}
