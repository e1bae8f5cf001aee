//! The pool of threads: it takes items in order and runs them in parallel.

pub(crate) use super::items::{FirstError, Halt, locked};
use super::{
    Options,
    items::Queue,
    orders::Pool,
    progress::{JobEvent, RunProgress},
    spread::SpreadPool,
};
use crate::{
    Error,
    device::{gpu_failure, take_warnings},
};
use std::{
    any::Any,
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};
use strust::ranks::Group;

/// Runs every item, as many in parallel as the options allow, on all ranks. The first error stops all of them and is
/// returned. `pool` describes the items to other ranks, which run them as `run` does.
pub(crate) fn run_all<T: Sync>(
    items: &[T],
    pool: impl FnOnce() -> Pool,
    options: &Options,
    run: impl Fn(&T, Halt) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let queue = Queue::new(items.len());
    let (error, interrupt) = (FirstError::default(), options.interrupt);
    let halt = error.halt(interrupt);
    let threads = options.jobs.clamp(1, items.len().max(1));
    let busy = AtomicUsize::new(threads);
    let worker = || {
        while let Some(item) = queue.take().filter(|_| !halt.requested()) {
            if let Err(why) = caught(|| run(&items[item], halt)) {
                error.put(why);
            }
        }
        busy.fetch_sub(1, Ordering::Release);
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(worker);
        }
        if options.team.size() > 1 {
            let spread = SpreadPool { queue: &queue, busy: &busy, interrupt, error: &error };
            spread.run(pool(), options).unwrap_or_else(|why| error.put(why));
        }
    });
    match error.into_inner() {
        Some(error) => Err(error),
        None if interrupt.load(Ordering::Relaxed) => Err(Error::Interrupted),
        None => Ok(()),
    }
}

/// Turns a panic into an error, so that the other jobs can save their state.
pub(crate) fn caught<T>(run: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    std::panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let why = panic_text(&*panic).unwrap_or("no reason given");
        if let Some(why) = gpu_failure(why) {
            return Err(Error::Network(why));
        }
        Err(Error::Problem {
            problem: "internal".into(),
            why: format!("this is an error in strust, please report it: {why}"),
        })
    })
}

/// The text of a panic, if it has one.
#[must_use]
pub fn panic_text(payload: &(dyn Any + Send)) -> Option<&str> {
    payload.downcast_ref::<String>().map(String::as_str).or_else(|| payload.downcast_ref::<&str>().copied())
}

/// Limits the rate of progress updates: a step may take only microseconds.
pub(crate) struct Pace<'a> {
    progress: &'a dyn RunProgress,
    job: &'a str,
    shown: Instant,
}

impl<'a> Pace<'a> {
    const EVERY: Duration = Duration::from_millis(50);

    /// A job starts.
    pub fn new(progress: &'a dyn RunProgress, job: &'a str) -> Self {
        progress.show(job, &JobEvent::Start);
        Self { progress, job, shown: Instant::now() }
    }
    /// Shows a step, unless another one was shown a moment before.
    pub fn at(&mut self, step: u64, last: u64) {
        if self.shown.elapsed() > Self::EVERY {
            self.now(step, last);
        }
    }
    /// Shows a step.
    pub fn now(&mut self, step: u64, last: u64) {
        self.show(&JobEvent::At(step, last));
        self.shown = Instant::now();
    }
    pub fn show(&self, event: &JobEvent) {
        self.progress.show(self.job, event);
    }
    /// Shows the warnings of the device since the last call.
    pub fn warn(&self) {
        for warning in take_warnings() {
            self.show(&JobEvent::Warning(warning));
        }
    }
}

/// The progress of an item of the pool, and whether it must stop.
pub struct Tick<'a> {
    pub(crate) pace: Pace<'a>,
    halt: Halt<'a>,
    at: u64,
    last: u64,
}

impl<'a> Tick<'a> {
    pub(crate) fn new(progress: &'a dyn RunProgress, job: &'a str, halt: Halt<'a>) -> Self {
        Self { pace: Pace::new(progress, job), halt, at: 0, last: 1 }
    }
    /// Sets the number of units of work.
    pub fn expect(&mut self, last: u64) {
        self.last = last.max(1);
    }
    /// Counts one unit as done. It fails if the item must stop.
    pub fn done(&mut self) -> Result<(), Error> {
        self.at += 1;
        if self.halt.requested() {
            return Err(Error::Interrupted);
        }
        self.pace.at(self.at.min(self.last), self.last);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team::Team;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_gpu_panic_is_not_reported_as_an_error_in_strust() {
        let of = |text: &str| {
            let text = text.to_string();
            caught::<()>(|| std::panic::panic_any(text)).unwrap_err()
        };
        let full = of("called `Result::unwrap()` on an `Err` value: Torch(\"CUDA out of memory. Tried to allocate\")");
        assert!(matches!(&full, Error::Network(why) if why.contains("`strust resume`")), "{full}");
        assert!(of("index out of bounds").to_string().contains("please report it: index out of bounds"));
    }

    #[test]
    fn a_real_error_is_preferred_to_the_interruption_it_caused() {
        let interrupt = AtomicBool::new(false);
        let options = Options {
            jobs: 2,
            save_every: Duration::MAX,
            interrupt: &interrupt,
            progress: &super::super::Silent,
            team: &Team::alone(),
        };
        let nobody = || unreachable!("there is no other rank");
        let error = run_all(&[0, 1], nobody, &options, |&item, halt| {
            if item == 1 {
                return Err(Error::Network("the disk is full".into()));
            }
            while !halt.requested() {
                std::thread::yield_now();
            }
            Err(Error::Interrupted)
        });
        assert!(matches!(error, Err(Error::Network(_))), "{error:?}");
        interrupt.store(true, Ordering::Relaxed);
        let ran = AtomicUsize::new(0);
        let outcome = run_all(&[0, 1], nobody, &options, |_, _| {
            ran.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        assert!(matches!(outcome, Err(Error::Interrupted)) && ran.load(Ordering::Relaxed) == 0);
    }
}
