use super::Group;
use crate::Error;
use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Runs `work` on `size` threads that form a [`Group`], and returns their results in the order of the ranks.
///
/// A rank that returns, panics or does not arrive at a collective within `limit` ends the collectives of the others with
/// an error that names it.
///
/// ```
/// use std::time::Duration;
/// use strust::ranks::{Group, on_threads};
/// let sums = on_threads(3, Duration::from_secs(60), |mut rank| {
///     let mut numbers = [rank.rank() as f64, 1.0];
///     rank.sum(&mut numbers).map(|()| numbers)
/// });
/// assert_eq!(sums, [Ok([3.0, 3.0]), Ok([3.0, 3.0]), Ok([3.0, 3.0])]);
/// ```
///
/// # Panics
/// If `work` panics on a rank.
pub fn on_threads<R: Send>(size: usize, limit: Duration, work: impl Fn(ThreadRank) -> R + Sync) -> Vec<R> {
    let ranks = ThreadRank::group(size, limit);
    std::thread::scope(|scope| {
        let started: Vec<_> = ranks.into_iter().map(|rank| scope.spawn(|| work(rank))).collect();
        let ended =
            started.into_iter().map(|thread| thread.join().unwrap_or_else(|why| std::panic::resume_unwind(why)));
        ended.collect()
    })
}

/// One rank of a group of threads. It leaves the group when it is dropped.
#[derive(Debug)]
pub struct ThreadRank {
    rank: usize,
    meeting: Arc<Meeting>,
}

#[derive(Debug)]
struct Meeting {
    limit: Duration,
    gathering: Mutex<Gathering>,
    changed: Condvar,
}

/// What the ranks have brought to the current round, as the bits of numbers or as bytes.
#[derive(Debug)]
struct Gathering {
    parts: Vec<Option<Vec<u64>>>,
    has_left: Vec<bool>,
    rounds: u64,
    /// The result of the last round. Nobody can start the next one before all have taken it.
    result: Result<Arc<Vec<u64>>, Error>,
}

/// Makes the result of a round from the parts of all ranks.
type Combine = fn(&[Vec<u64>]) -> Result<Vec<u64>, Error>;

impl Meeting {
    fn gathering(&self) -> MutexGuard<'_, Gathering> {
        self.gathering.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ThreadRank {
    /// The ranks of a new group. A rank waits for the others no longer than `limit`.
    #[must_use]
    pub fn group(size: usize, limit: Duration) -> Vec<Self> {
        let (parts, has_left) = (vec![None; size], vec![false; size]);
        let gathering = Mutex::new(Gathering { parts, has_left, rounds: 0, result: Ok(Arc::default()) });
        let meeting = Arc::new(Meeting { limit, gathering, changed: Condvar::new() });
        (0..size).map(|rank| Self { rank, meeting: Arc::clone(&meeting) }).collect()
    }

    /// Brings a part, waits for those of the others, and returns the result of all parts.
    fn meet(&self, part: Vec<u64>, combine: Combine) -> Result<Arc<Vec<u64>>, Error> {
        let ends = Instant::now() + self.meeting.limit;
        let mut gathering = self.meeting.gathering();
        let round = gathering.rounds;
        gathering.parts[self.rank] = Some(part);
        if gathering.parts.iter().all(Option::is_some) {
            let parts: Vec<Vec<u64>> = gathering.parts.iter_mut().filter_map(Option::take).collect();
            gathering.result = combine(&parts).map(Arc::new);
            gathering.rounds += 1;
            self.meeting.changed.notify_all();
        }
        while gathering.rounds == round {
            let missing = |gathering: &Gathering, among: &dyn Fn(usize) -> bool| -> Vec<usize> {
                (0..gathering.parts.len()).filter(|&rank| gathering.parts[rank].is_none() && among(rank)).collect()
            };
            let left = missing(&gathering, &|rank| gathering.has_left[rank]);
            if !left.is_empty() {
                return Err(Error::Ranks { ranks: left, why: "ended while the others went on".into() });
            }
            let now = Instant::now();
            if now >= ends {
                let why = format!("did not answer within {:?}", self.meeting.limit);
                return Err(Error::Ranks { ranks: missing(&gathering, &|_| true), why });
            }
            let waited = self.meeting.changed.wait_timeout(gathering, ends - now);
            gathering = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        gathering.result.clone()
    }
}

impl Drop for ThreadRank {
    fn drop(&mut self) {
        self.meeting.gathering().has_left[self.rank] = true;
        self.meeting.changed.notify_all();
    }
}

/// All ranks must bring equally many numbers, or they are not at the same place of the program.
fn check_lengths(parts: &[Vec<u64>]) -> Result<(), Error> {
    let ranks: Vec<usize> = (0..parts.len()).filter(|&rank| parts[rank].len() != parts[0].len()).collect();
    match ranks.first() {
        None => Ok(()),
        Some(&rank) => {
            let (found, expected) = (parts[rank].len(), parts[0].len());
            Err(Error::Ranks { ranks, why: format!("brought {found} numbers where rank 0 brought {expected}") })
        }
    }
}

fn sum(parts: &[Vec<u64>]) -> Result<Vec<u64>, Error> {
    check_lengths(parts)?;
    let total =
        |i: usize| parts[1..].iter().fold(f64::from_bits(parts[0][i]), |sum, part| sum + f64::from_bits(part[i]));
    Ok((0..parts[0].len()).map(|i| total(i).to_bits()).collect())
}

fn join(parts: &[Vec<u64>]) -> Result<Vec<u64>, Error> {
    check_lengths(parts)?;
    Ok(parts.concat())
}

// Infallible, but of the same type as the two above.
#[allow(clippy::unnecessary_wraps)]
fn first(parts: &[Vec<u64>]) -> Result<Vec<u64>, Error> {
    Ok(parts[0].clone())
}

impl Group for ThreadRank {
    fn rank(&self) -> usize {
        self.rank
    }
    fn size(&self) -> usize {
        self.meeting.gathering().parts.len()
    }
    fn sum(&mut self, numbers: &mut [f64]) -> Result<(), Error> {
        let total = self.meet(numbers.iter().map(|v| v.to_bits()).collect(), sum)?;
        numbers.iter_mut().zip(total.iter()).for_each(|(slot, &v)| *slot = f64::from_bits(v));
        Ok(())
    }
    fn gather(&mut self, numbers: &[f64], all: &mut Vec<f64>) -> Result<(), Error> {
        let joined = self.meet(numbers.iter().map(|v| v.to_bits()).collect(), join)?;
        all.clear();
        all.extend(joined.iter().map(|&v| f64::from_bits(v)));
        Ok(())
    }
    fn broadcast(&mut self, bytes: &mut Vec<u8>) -> Result<(), Error> {
        let chosen = self.meet(bytes.iter().map(|&v| v.into()).collect(), first)?;
        bytes.clear();
        bytes.extend(chosen.iter().map(|&v| v as u8));
        Ok(())
    }
}
