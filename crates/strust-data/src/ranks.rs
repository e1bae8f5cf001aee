//! The ranks of a fit: what each of them learns about the rows of the others.
//!
//! Row i of the data is on rank i mod R. A rank knows its own rows and small summaries of all.

use crate::DataError;
use serde::{Serialize, de::DeserializeOwned};
use std::{
    cell::{RefCell, RefMut},
    sync::atomic::{AtomicBool, Ordering},
};
use strust::{
    ranks::{Group, RowShare, gather_bytes},
    saved::{Saved, fingerprint},
};

/// Numbers of a rank in one gather of a maximum. More would fill the memory if there are many ranks.
const PIECE: usize = 1 << 16;

/// The flag of work that nobody stops.
pub static NEVER: AtomicBool = AtomicBool::new(false);

/// A group that several users share. Without this trait, the lifetime of the cell would be part of every type with a
/// reference to [`Ranks`].
trait SharedGroup {
    fn get(&self) -> RefMut<'_, dyn Group + '_>;
}

impl SharedGroup for RefCell<&mut dyn Group> {
    fn get(&self) -> RefMut<'_, dyn Group + '_> {
        RefMut::map(self.borrow_mut(), |group| &mut **group)
    }
}

/// A group that the parts of a fit use in turn: the objective, and what measures between its steps.
pub struct Ranks<'a> {
    group: Box<dyn SharedGroup + 'a>,
    /// Set to stop this rank.
    interrupt: &'a AtomicBool,
    /// Why a collective failed where no error could be returned.
    failure: RefCell<Option<strust::Error>>,
}

impl<'a> Ranks<'a> {
    /// A group, and the flag that stops this rank.
    pub fn new(group: &'a mut dyn Group, interrupt: &'a AtomicBool) -> Self {
        Self { group: Box::new(RefCell::new(group)), interrupt, failure: RefCell::new(None) }
    }

    /// Whether this rank is to stop. It may leave work of its own then, but must go on to the next collective.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }
    /// An error on all ranks if one of them is to stop. All ranks ask at the same places.
    pub fn proceed(&self) -> Result<(), DataError> {
        self.complete(!self.is_interrupted())
    }
    /// An error on all ranks if the work of one of them is not complete because it was interrupted.
    pub fn complete(&self, mine: bool) -> Result<(), DataError> {
        let stops = self.any(!mine);
        self.check()?;
        if stops { Err(DataError::Interrupted) } else { Ok(()) }
    }
    /// The flag that stops this rank.
    #[must_use]
    pub fn interrupt(&self) -> &AtomicBool {
        self.interrupt
    }

    /// The rows of this rank.
    #[must_use]
    pub fn share(&self) -> RowShare {
        RowShare::of(&*self.group.get())
    }
    fn is_alone(&self) -> bool {
        self.share().is_all()
    }

    /// The values of all ranks, in the order of the ranks.
    pub fn all<T: Serialize + DeserializeOwned>(&self, mine: &T) -> Result<Vec<T>, DataError> {
        let text = serde_json::to_vec(mine).expect("summaries are plain data");
        let texts = gather_bytes(&mut { self }, &text)?;
        let value = |(rank, text): (usize, &Vec<u8>)| {
            serde_json::from_slice(text).map_err(|_| differs(vec![rank], "sent something else than the other ranks"))
        };
        texts.iter().enumerate().map(value).collect()
    }

    /// The result of this rank, if all ranks have one. Otherwise all ranks fail: those that failed with their own error.
    pub fn agree<T>(&self, mine: Result<T, DataError>) -> Result<T, DataError> {
        if self.is_alone() {
            return mine;
        }
        let stopped = matches!(mine, Err(DataError::Interrupted));
        let mut all = match self.all(&(stopped, mine.as_ref().err().map(DataError::to_string))) {
            Ok(all) => all,
            Err(lost) => return mine.and(Err(lost)),
        };
        if all.iter().any(|(stopped, _)| *stopped) {
            return Err(DataError::Interrupted);
        }
        let value = mine?;
        let failed: Vec<usize> = (0..all.len()).filter(|&rank| all[rank].1.is_some()).collect();
        let Some(&first) = failed.first() else { return Ok(value) };
        Err(differs(failed, all.swap_remove(first).1.unwrap_or_default()))
    }

    /// An error that names the ranks whose value is not that of rank 0.
    pub fn same(&self, value: &impl Serialize, why: &str) -> Result<(), DataError> {
        if self.is_alone() {
            return Ok(());
        }
        let text = serde_json::to_vec(value).expect("summaries are plain data");
        let all = self.all(&fingerprint(&Saved::Bytes(text)))?;
        let ranks: Vec<usize> = (0..all.len()).filter(|&rank| all[rank] != all[0]).collect();
        if ranks.is_empty() { Ok(()) } else { Err(differs(ranks, why)) }
    }

    /// The numbers of each rank. All ranks have equally many.
    pub fn gather(&self, mine: Vec<f64>) -> Result<Vec<Vec<f64>>, DataError> {
        if self.is_alone() || mine.is_empty() {
            return Ok(vec![mine]);
        }
        let mut all = Vec::new();
        self.group.get().gather(&mine, &mut all)?;
        Ok(all.chunks_exact(mine.len()).map(<[f64]>::to_vec).collect())
    }

    /// Adds the numbers of all ranks, each at its place.
    pub fn add(&self, numbers: &mut [f64]) -> Result<(), DataError> {
        Ok(self.group.get().sum(numbers)?)
    }

    /// The largest number of all ranks, at each place. All ranks have equally many, none of them NaN.
    pub fn largest(&self, numbers: &mut [f64]) -> Result<(), DataError> {
        if self.is_alone() {
            return Ok(());
        }
        let mut all = Vec::new();
        for piece in numbers.chunks_mut(PIECE) {
            self.group.get().gather(piece, &mut all)?;
            for other in all.chunks_exact(piece.len()) {
                piece.iter_mut().zip(other).for_each(|(most, &v)| *most = most.max(v));
            }
        }
        Ok(())
    }

    /// Items of `width` numbers each, on all ranks. `owners` has the rank of each item, and every rank gives its own ones in
    /// their order.
    pub fn collect<I>(&self, owners: I, width: usize, mut mine: Vec<f64>) -> Result<Vec<f64>, DataError>
    where
        I: IntoIterator<Item = usize, IntoIter: Clone>,
    {
        if self.is_alone() {
            return Ok(mine);
        }
        let owners = owners.into_iter();
        let mut counts = vec![0_usize; self.share().size];
        owners.clone().for_each(|owner| counts[owner] += 1);
        let length = width * counts.iter().copied().max().unwrap_or(0);
        // In a gather, all ranks give equally many numbers.
        mine.resize(length, 0.0);
        let mut all = Vec::new();
        self.group.get().gather(&mine, &mut all)?;
        let mut next: Vec<usize> = (0..counts.len()).map(|rank| rank * length).collect();
        let mut items = Vec::with_capacity(width * counts.iter().sum::<usize>());
        for owner in owners {
            items.extend_from_slice(&all[next[owner]..][..width]);
            next[owner] += width;
        }
        Ok(items)
    }

    /// The sum of a number of all ranks; NaN if that fails, and [`Self::check`] returns the reason.
    #[must_use]
    pub fn total(&self, number: f64) -> f64 {
        let mut sum = [number];
        if let Err(why) = self.group.get().sum(&mut sum) {
            self.failure.borrow_mut().get_or_insert(why);
            return f64::NAN;
        }
        sum[0]
    }

    /// Whether one of the ranks stops, or cannot be asked.
    #[must_use]
    pub fn any(&self, stop: bool) -> bool {
        if self.is_alone() {
            return stop;
        }
        // NaN stops.
        self.total(f64::from(u8::from(stop))) != 0.0
    }

    /// The failure of an earlier [`Self::total`].
    pub fn check(&self) -> Result<(), DataError> {
        self.failure.borrow().clone().map_or(Ok(()), |why| Err(why.into()))
    }
}

fn differs(ranks: Vec<usize>, why: impl Into<String>) -> DataError {
    strust::Error::Ranks { ranks, why: why.into() }.into()
}

impl Group for &Ranks<'_> {
    fn rank(&self) -> usize {
        self.share().rank
    }
    fn size(&self) -> usize {
        self.share().size
    }
    fn sum(&mut self, numbers: &mut [f64]) -> Result<(), strust::Error> {
        self.group.get().sum(numbers)
    }
    fn gather(&mut self, numbers: &[f64], all: &mut Vec<f64>) -> Result<(), strust::Error> {
        self.group.get().gather(numbers, all)
    }
    fn broadcast(&mut self, bytes: &mut Vec<u8>) -> Result<(), strust::Error> {
        self.group.get().broadcast(bytes)
    }
}
