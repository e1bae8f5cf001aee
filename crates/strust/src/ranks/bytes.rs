use super::Group;
use crate::Error;

/// The bytes of all ranks, in the order of the ranks. Their lengths may differ, and a rank may have none.
///
/// It takes two gathers: one of the lengths, and one in which every rank gives as many bytes as the longest of them, in
/// `f64` by their bits.
///
/// ```
/// use std::time::Duration;
/// use strust::ranks::{Group, gather_bytes, on_threads};
/// let all = on_threads(3, Duration::from_secs(60), |mut rank| {
///     let mine = "abc"[..rank.rank()].as_bytes();
///     gather_bytes(&mut rank, mine)
/// });
/// assert_eq!(all[0], Ok(vec![b"".to_vec(), b"a".to_vec(), b"ab".to_vec()]));
/// assert!(all[1] == all[0] && all[2] == all[0]);
/// ```
pub fn gather_bytes(group: &mut dyn Group, bytes: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    if group.size() == 1 {
        return Ok(vec![bytes.to_vec()]);
    }
    let (mut lengths, mut all) = (Vec::new(), Vec::new());
    group.gather(&[bytes.len() as f64], &mut lengths)?;
    let longest = lengths.iter().fold(0, |longest, &length| longest.max(length as usize));
    let width = longest.div_ceil(WORD);
    if width == 0 {
        return Ok(vec![Vec::new(); lengths.len()]);
    }
    let mut words = vec![0.0; width];
    for (word, part) in words.iter_mut().zip(bytes.chunks(WORD)) {
        let mut padded = [0; WORD];
        padded[..part.len()].copy_from_slice(part);
        *word = f64::from_le_bytes(padded);
    }
    group.gather(&words, &mut all)?;
    let of_rank = |(words, &length): (&[f64], &f64)| {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(length as usize);
        bytes
    };
    Ok(all.chunks_exact(width).zip(&lengths).map(of_rank).collect())
}

/// Bytes of an `f64`.
const WORD: usize = size_of::<f64>();
