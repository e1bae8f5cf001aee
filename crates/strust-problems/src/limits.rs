//! How large a problem from a data file may be.
//!
//! A line of LIBSVM text can name any column, so a file of a few bytes could ask for all memory. These limits grow with the
//! number of entries in the file, so that real data never meet them.

/// The most weights of a model for a file with this number of entries: 64 for each entry, and 4 million for a small file.
///
/// ```
/// use strust_problems::limits;
/// assert_eq!(limits::weights(2), 1 << 22);
/// assert_eq!(limits::weights(10_000_000), 640_000_000);
/// ```
#[must_use]
pub fn weights(entries: usize) -> usize {
    entries.saturating_mul(64).max(1 << 22)
}

/// The most numbers of a dense matrix for a file with this number of entries: 1024 for each entry, 16 million for a small
/// file, and never more than 2³¹, 16 GiB.
///
/// ```
/// use strust_problems::limits;
/// assert_eq!(limits::dense(2), 1 << 24);
/// assert_eq!(limits::dense(1_000_000), 1_024_000_000);
/// assert_eq!(limits::dense(usize::MAX), 1 << 31);
/// ```
#[must_use]
pub fn dense(entries: usize) -> usize {
    entries.saturating_mul(1024).clamp(1 << 24, 1 << 31)
}
