//! One run on several threads or machines: every rank evaluates its share of each sample, and the sums are added.
//!
//! | to | use |
//! |---|---|
//! | share out the samples of an objective | [`Sharded::new`] |
//! | give each rank a part of the terms only | [`Sharded::dealt`], [`RowShare`] |
//! | run without others | [`Alone`] |
//! | run on the threads of this process | [`on_threads`] |
//! | run on many machines | the crate `strust-mpi` |
//! | collect small values of all ranks | [`gather_bytes`] |
//! | see what a slow network would do | [`Delayed`] |
//! | run over something else | implement [`Group`] |
//!
//! All ranks make the same run: the same start, seed, method and stopping rule. The k-th sample is a function of
//! (seed, k), so they share out its terms without a message. After the sum every rank has the same bits, so every method
//! takes the same decision on every rank, and nothing but [`Sharded`] knows of the others.
//!
//! ```
//! use std::time::Duration;
//! use strust::{prelude::*, ranks::{on_threads, Sharded}};
//!
//! let y = [1.0, 3.0, 5.0, 7.0]; // the line through (0,1), (1,3), (2,5), (3,7)
//! let points = on_threads(3, Duration::from_secs(60), |rank| {
//!     let line = from_terms(4, |i, x: &Vec<f64>, g| {
//!         let r = x[0] + x[1] * i as f64 - y[i];
//!         g[0] += 2.0 * r;
//!         g[1] += 2.0 * r * i as f64;
//!         r * r
//!     });
//!     let report = minimize(&mut Sharded::new(line, rank)).full_batch().stop(Stop::gradient_norm(1e-8)).start(vec![0.0; 2])?;
//!     Ok(report.state.into_point())
//! });
//! let points: Vec<Vec<f64>> = points.into_iter().collect::<Result<_, Error>>()?;
//! assert!((points[0][1] - 2.0).abs() < 1e-6);
//! assert!(points[1] == points[0] && points[2] == points[0]); // the same bits on every rank
//! # Ok::<(), strust::Error>(())
//! ```

mod bytes;
mod delayed;
mod sharded;
mod share;
mod slices;
mod threads;

pub use bytes::gather_bytes;
pub use delayed::Delayed;
pub use sharded::{Reduction, Sharded, Traffic};
pub use share::RowShare;
pub use threads::{ThreadRank, on_threads};

use crate::Error;
use std::cell::RefCell;

/// Gives a slice to a sum: the numbers of this rank, and the place for those of all.
pub type GiveSlice<'g, 'a> = dyn FnMut(&'a [f64], &'a mut [f64]) + 'g;

/// The work of [`Group::sum_in_slices`]: it computes numbers and gives them, one slice after another.
pub type InSlices<'w, 'a> = dyn FnMut(&mut GiveSlice<'_, 'a>) + 'w;

/// The ranks of a run, seen from one of them. All ranks call the same functions in the same order.
///
/// A function that fails returns [`Error::Ranks`], or ends the process with a message. It never waits forever.
pub trait Group {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;
    /// The number of ranks.
    fn size(&self) -> usize;
    /// Adds the numbers of all ranks, each at its place. Every rank receives the same bits, and the same numbers of the
    /// same ranks always have the same sum. NaN on one rank is NaN on all.
    fn sum(&mut self, numbers: &mut [f64]) -> Result<(), Error>;
    /// Adds numbers that become ready one slice after another. `work` calls its argument with each slice: the numbers of this
    /// rank, and the place for those of all, which is filled when the function returns. A network may carry the first slices
    /// while `work` computes the next ones; by default each slice is summed at once. All ranks give slices of the same lengths
    /// in the same order.
    ///
    /// ```
    /// use strust::ranks::{Alone, Group};
    /// let (mine, mut all) = ([1.0, 2.0, 3.0], [0.0; 3]);
    /// let (first, second) = all.split_at_mut(1);
    /// let mut places = [Some(first), Some(second)];
    /// Alone.sum_in_slices(&mut |give| {
    ///     places[1].take().into_iter().for_each(|place| give(&mine[1..], place));
    ///     places[0].take().into_iter().for_each(|place| give(&mine[..1], place));
    /// })?;
    /// assert_eq!(all, mine);
    /// # Ok::<(), strust::Error>(())
    /// ```
    fn sum_in_slices(&mut self, work: &mut InSlices<'_, '_>) -> Result<(), Error> {
        let mut result = Ok(());
        work(&mut |mine, all| {
            all.copy_from_slice(mine);
            if result.is_ok() {
                result = self.sum(all);
            }
        });
        result
    }
    /// Overwrites `all` by the numbers of all ranks, bit for bit, in the order of the ranks. All have equally many.
    fn gather(&mut self, numbers: &[f64], all: &mut Vec<f64>) -> Result<(), Error>;
    /// Overwrites `bytes` by those of rank 0, which may be of another length.
    fn broadcast(&mut self, bytes: &mut Vec<u8>) -> Result<(), Error>;
}

impl<G: Group + ?Sized> Group for &mut G {
    fn rank(&self) -> usize {
        (**self).rank()
    }
    fn size(&self) -> usize {
        (**self).size()
    }
    fn sum(&mut self, numbers: &mut [f64]) -> Result<(), Error> {
        (**self).sum(numbers)
    }
    fn sum_in_slices(&mut self, work: &mut InSlices<'_, '_>) -> Result<(), Error> {
        (**self).sum_in_slices(work)
    }
    fn gather(&mut self, numbers: &[f64], all: &mut Vec<f64>) -> Result<(), Error> {
        (**self).gather(numbers, all)
    }
    fn broadcast(&mut self, bytes: &mut Vec<u8>) -> Result<(), Error> {
        (**self).broadcast(bytes)
    }
}

/// A group that several objectives share, such as a loss and a score, one collective after the other.
impl<G: Group + ?Sized> Group for &RefCell<G> {
    fn rank(&self) -> usize {
        self.borrow().rank()
    }
    fn size(&self) -> usize {
        self.borrow().size()
    }
    fn sum(&mut self, numbers: &mut [f64]) -> Result<(), Error> {
        self.borrow_mut().sum(numbers)
    }
    fn sum_in_slices(&mut self, work: &mut InSlices<'_, '_>) -> Result<(), Error> {
        self.borrow_mut().sum_in_slices(work)
    }
    fn gather(&mut self, numbers: &[f64], all: &mut Vec<f64>) -> Result<(), Error> {
        self.borrow_mut().gather(numbers, all)
    }
    fn broadcast(&mut self, bytes: &mut Vec<u8>) -> Result<(), Error> {
        self.borrow_mut().broadcast(bytes)
    }
}

/// A group of one rank. Nothing is sent.
///
/// ```
/// use strust::ranks::{Alone, Group};
/// let mut numbers = [1.0, 2.0];
/// Alone.sum(&mut numbers)?;
/// assert_eq!((Alone.rank(), Alone.size(), numbers), (0, 1, [1.0, 2.0]));
/// # Ok::<(), strust::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Alone;

impl Group for Alone {
    fn rank(&self) -> usize {
        0
    }
    fn size(&self) -> usize {
        1
    }
    fn sum(&mut self, _numbers: &mut [f64]) -> Result<(), Error> {
        Ok(())
    }
    fn gather(&mut self, numbers: &[f64], all: &mut Vec<f64>) -> Result<(), Error> {
        all.clear();
        all.extend_from_slice(numbers);
        Ok(())
    }
    fn broadcast(&mut self, _bytes: &mut Vec<u8>) -> Result<(), Error> {
        Ok(())
    }
}
