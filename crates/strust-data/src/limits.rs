//! How large a problem from a data file may be, and its numbers.
//!
//! A line of LIBSVM text can name any column, so a file of a few bytes could ask for all memory. These limits grow with the
//! number of entries in the file, so that real data never meet them.

pub use crate::numerics::size;

use crate::network::PIECE;

/// The most weights of a model for a file with this number of entries: 64 for each entry, and 4 million for a small file.
///
/// ```
/// use strust_data::limits;
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
/// use strust_data::limits;
/// assert_eq!(limits::dense(2), 1 << 24);
/// assert_eq!(limits::dense(1_000_000), 1_024_000_000);
/// assert_eq!(limits::dense(usize::MAX), 1 << 31);
/// ```
#[must_use]
pub fn dense(entries: usize) -> usize {
    entries.saturating_mul(1024).clamp(1 << 24, 1 << 31)
}

/// Checks the memory for training a network on a file with this number of entries: at most 16 KiB for each entry, and 1 GiB
/// for a small file. `widths` are those of the data, of the hidden layers and of the outputs; `rows` is the number of data
/// points, and a number has `size` bytes. The error says what is too large.
///
/// ```
/// use strust_data::limits;
/// assert_eq!(limits::network(&[64, 256, 10], 1797, 4, 115_008), Ok(()));
/// assert_eq!(
///     limits::network(&[2, 8000, 8000, 2], 100, 4, 200).unwrap_err(),
///     "a network of the widths 2-8000-8000-2 takes about 6.2 GiB, but 200 entries of data allow at most 1.0 GiB"
/// );
/// ```
pub fn network(widths: &[usize], rows: usize, size: usize, entries: usize) -> Result<(), String> {
    let (memory, most) = (memory_of_network(widths, rows, size), entries.saturating_mul(16 << 10).max(1 << 30));
    if memory <= most {
        return Ok(());
    }
    let widths: Vec<String> = widths.iter().map(usize::to_string).collect();
    let gibibytes = |bytes: usize| bytes as f64 / f64::from(1 << 30);
    Err(format!(
        "a network of the widths {} takes about {:.1} GiB, but {entries} entries of data allow at most {:.1} GiB",
        widths.join("-"),
        gibibytes(memory),
        gibibytes(most)
    ))
}

/// About the bytes of memory for training a network: its parameters as often as a method and its checkpoint have them, and
/// the activations of a batch.
fn memory_of_network(widths: &[usize], rows: usize, size: usize) -> usize {
    // Measured with `Auto`, the default: 22 times the parameters in experiments, with the checkpoint, and 25 times in
    // `strust fit`, with the text of the model; 2.5 times the activations, with those of the products.
    const COPIES: usize = 26;
    const SPACES: usize = 3;
    let total = |numbers: &mut dyn Iterator<Item = usize>| numbers.fold(0, usize::saturating_add);
    let layers = widths.windows(2).map(|pair| (pair[0].saturating_add(1), pair[1]));
    let parameters = total(&mut layers.clone().map(|(inputs, outputs)| inputs.saturating_mul(outputs)));
    // The inputs of each layer, and the derivatives of its outputs twice.
    let widest = layers.clone().map(|(_, outputs)| outputs).max().unwrap_or(0);
    let activations = total(&mut layers.map(|(inputs, _)| inputs)).saturating_add(widest.saturating_mul(2));
    // Larger data sets are measured in pieces.
    let activations = activations.saturating_mul(rows.min(PIECE)).saturating_mul(SPACES);
    parameters.saturating_mul(COPIES).saturating_add(activations).saturating_mul(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_network_has_all_layers_and_its_activations_and_never_overflows() {
        assert_eq!(memory_of_network(&[1, 2, 3], 1, 1), 26 * (2 * 2 + 3 * 3) + 3 * (2 + 3 + 2 * 3));
        assert_eq!(memory_of_network(&[1, 2, 3], 10_000, 8), 8 * (26 * 13 + 3 * PIECE * 11));
        assert_eq!(memory_of_network(&[usize::MAX, 2], 1, 8), usize::MAX);
        assert_eq!(memory_of_network(&[2, usize::MAX, 2], usize::MAX, 8), usize::MAX);
    }
}
