//! The ranks that a program runs on. Rank 0 leads: it makes plans, writes results and tells the others what to do.

use crate::{Error, data::checksum};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};
use strust::ranks::{Alone, Group, InSlices, Reduction, gather_bytes};

/// All ranks of the program, seen from this one. A clone is another handle of the same rank.
#[derive(Clone)]
pub struct Team {
    group: Rc<RefCell<dyn Group>>,
    /// Whether the others wait in a collective that this rank will not join.
    broken: Rc<Cell<bool>>,
}

impl Team {
    /// A program without other ranks.
    #[must_use]
    pub fn alone() -> Self {
        Self::new(Alone)
    }
    /// The ranks of a group.
    pub fn new(group: impl Group + 'static) -> Self {
        Self { group: Rc::new(RefCell::new(group)), broken: Rc::default() }
    }
    /// Whether this rank makes plans and writes results.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.rank() == 0
    }
    /// Whether the ranks can no longer talk to each other, because one of them left the work that they do together.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.broken.get()
    }
    pub(crate) fn set_broken(&self) {
        self.broken.set(true);
    }

    /// Gives a value of rank 0 to all; the others pass `None`.
    pub(crate) fn of_leader<T: Serialize + DeserializeOwned>(&self, value: Option<T>) -> Result<T, Error> {
        let mut bytes = value.map_or_else(Vec::new, |value| json(&value));
        self.group.borrow_mut().broadcast(&mut bytes)?;
        parsed(&bytes)
    }
    /// The values of all ranks, in their order.
    pub(crate) fn of_all<T: Serialize + DeserializeOwned>(&self, value: &T) -> Result<Vec<T>, Error> {
        let all = gather_bytes(&mut *self.group.borrow_mut(), &json(value))?;
        all.iter().map(|bytes| parsed(bytes)).collect()
    }
    /// Checks that all ranks run the same program: the version and the file.
    pub fn check_program(&self) -> Result<(), Error> {
        let file = std::env::current_exe().and_then(std::fs::read);
        let mine = (env!("CARGO_PKG_VERSION").to_string(), file.map_or(0, |bytes| checksum(&bytes)));
        let all = self.of_all(&mine)?;
        let others: Vec<String> =
            (0..all.len()).filter(|&rank| all[rank] != all[0]).map(|rank| rank.to_string()).collect();
        if others.is_empty() {
            return Ok(());
        }
        let why = "runs another program than rank 0: start the same file of the same version on all ranks";
        Err(Error::Ranks(format!("rank {}: {why}", others.join(", "))))
    }
    /// A result that is an error on every rank if it is one on any rank. The error names the ranks.
    pub fn agreed<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        if self.size() == 1 {
            return result;
        }
        let failures = self.of_all(&result.as_ref().err().map(ToString::to_string))?;
        let named =
            failures.iter().enumerate().filter_map(|(rank, why)| Some(format!("rank {rank}: {}", why.as_ref()?)));
        match named.collect::<Vec<_>>() {
            none if none.is_empty() => result,
            some => Err(Error::Ranks(some.join("\n"))),
        }
    }
}

fn json<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("messages are plain data")
}

fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    let differ =
        |e| Error::Ranks(format!("the ranks do not understand each other: start the same program on all: {e}"));
    serde_json::from_slice(bytes).map_err(differ)
}

impl Group for Team {
    fn rank(&self) -> usize {
        self.group.borrow().rank()
    }
    fn size(&self) -> usize {
        self.group.borrow().size()
    }
    fn sum(&mut self, numbers: &mut [f64]) -> Result<(), strust::Error> {
        self.group.borrow_mut().sum(numbers)
    }
    fn sum_in_slices(&mut self, work: &mut InSlices<'_, '_>) -> Result<(), strust::Error> {
        self.group.borrow_mut().sum_in_slices(work)
    }
    fn gather(&mut self, numbers: &[f64], all: &mut Vec<f64>) -> Result<(), strust::Error> {
        self.group.borrow_mut().gather(numbers, all)
    }
    fn broadcast(&mut self, bytes: &mut Vec<u8>) -> Result<(), strust::Error> {
        self.group.borrow_mut().broadcast(bytes)
    }
}

/// How the samples of a job are shared out.
#[derive(Clone)]
pub(crate) struct Sharing {
    /// The ranks that share them.
    pub team: Team,
    /// How their sums are added.
    pub reduction: Reduction,
}

impl Sharing {
    /// Not shared; with a block, the sums are added in the order that they have on ranks.
    pub fn alone(block: Option<u64>) -> Self {
        Self::among(Team::alone(), block)
    }
    pub fn among(team: Team, block: Option<u64>) -> Self {
        let in_order = |block: u64| Reduction::FixedOrder { block: usize::try_from(block).unwrap_or(usize::MAX) };
        Self { team, reduction: block.map_or(Reduction::Fast, in_order) }
    }
}
