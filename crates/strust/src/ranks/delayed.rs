use super::{Group, InSlices};
use crate::Error;
use std::{
    thread::sleep,
    time::{Duration, Instant},
};

/// A group whose collectives take longer: each waits first. It shows what a run would do on a slow network.
///
/// ```
/// use std::time::{Duration, Instant};
/// use strust::ranks::{Alone, Delayed, Group};
/// let (mut slow, began) = (Delayed::new(Alone, Duration::from_millis(5)), Instant::now());
/// slow.sum(&mut [1.0])?;
/// assert!(began.elapsed() >= Duration::from_millis(5));
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Delayed<G> {
    group: G,
    delay: Duration,
}

impl<G: Group> Delayed<G> {
    /// Adds `delay` to every collective of `group`.
    pub fn new(group: G, delay: Duration) -> Self {
        Self { group, delay }
    }
}

impl<G: Group> Group for Delayed<G> {
    fn rank(&self) -> usize {
        self.group.rank()
    }
    fn size(&self) -> usize {
        self.group.size()
    }
    fn sum(&mut self, numbers: &mut [f64]) -> Result<(), Error> {
        sleep(self.delay);
        self.group.sum(numbers)
    }
    /// The delay of a slice passes while the next ones are computed.
    fn sum_in_slices(&mut self, work: &mut InSlices<'_, '_>) -> Result<(), Error> {
        let mut given = Instant::now();
        self.group.sum_in_slices(&mut |give| {
            work(&mut |mine, all| {
                given = Instant::now();
                give(mine, all);
            });
        })?;
        sleep(self.delay.saturating_sub(given.elapsed()));
        Ok(())
    }
    fn gather(&mut self, numbers: &[f64], all: &mut Vec<f64>) -> Result<(), Error> {
        sleep(self.delay);
        self.group.gather(numbers, all)
    }
    fn broadcast(&mut self, bytes: &mut Vec<u8>) -> Result<(), Error> {
        sleep(self.delay);
        self.group.broadcast(bytes)
    }
}
