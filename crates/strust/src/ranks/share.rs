use super::Group;

/// The rows of a rank if rows are dealt out like cards: row i is the row ⌊i/R⌋ of rank i mod R. By default all rows.
///
/// ```
/// use strust::ranks::RowShare;
/// let second = RowShare { rank: 1, size: 3 }; // has the rows 1, 4, 7, …
/// assert_eq!((second.owns(4), second.row(1), second.count(8)), (true, 4, 3));
/// assert!(RowShare::default().owns(5));
/// // After another file of 2 rows, it has the row 2 of this file: row 4 of both.
/// assert_eq!(second.after(2), RowShare { rank: 2, size: 3 });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowShare {
    /// The number of the rank, from 0.
    pub rank: usize,
    /// The number R of ranks, at least 1.
    pub size: usize,
}

impl Default for RowShare {
    fn default() -> Self {
        Self { rank: 0, size: 1 }
    }
}

impl RowShare {
    /// The share of a rank of a group.
    pub fn of(group: &dyn Group) -> Self {
        Self { rank: group.rank(), size: group.size() }
    }
    /// Whether the rank has all rows.
    #[must_use]
    pub fn is_all(self) -> bool {
        self.size == 1
    }
    /// The rank that has row i.
    #[must_use]
    pub fn owner(self, i: usize) -> usize {
        i % self.size
    }
    /// Whether this rank has row i.
    #[must_use]
    pub fn owns(self, i: usize) -> bool {
        self.owner(i) == self.rank
    }
    /// The place of row i on its rank.
    #[must_use]
    pub fn place(self, i: usize) -> usize {
        i / self.size
    }
    /// The row at a place of this rank.
    #[must_use]
    pub fn row(self, place: usize) -> usize {
        place * self.size + self.rank
    }
    /// How many of n rows this rank has.
    #[must_use]
    pub fn count(self, n: usize) -> usize {
        (n + self.size - 1 - self.rank) / self.size
    }
    /// The places of those of the given rows that this rank has.
    #[must_use]
    pub fn places(self, rows: &[usize]) -> Vec<usize> {
        rows.iter().filter(|&&i| self.owns(i)).map(|&i| self.place(i)).collect()
    }
    /// The share of the rows that follow the first `rows` rows.
    #[must_use]
    pub fn after(self, rows: usize) -> Self {
        Self { rank: (self.rank + self.size - rows % self.size) % self.size, ..self }
    }
}
