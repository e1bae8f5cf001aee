//! Rows to learn from and rows to hold out.

use crate::task::Targets;
use rand_core::Rng;
use strust::sample::generator;

/// The stream of the random numbers of a split. Samplers use the streams at both ends of the range.
const SPLIT: u64 = (1 << 62) + 40;

/// Draws a share of the rows at random: of each class the same share, rounded to whole rows. Both parts keep the order
/// of the rows, and each class keeps a row to learn from.
#[must_use]
pub fn split(targets: &Targets, rows: &[usize], share: f64, seed: u64, stream: u64) -> (Vec<usize>, Vec<usize>) {
    let mut rng = generator(seed, SPLIT + stream);
    // The rows of each class; all rows for a regression.
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for &i in rows {
        let class = if let Targets::Classes(classes) = targets { classes[i] as usize } else { 0 };
        groups.resize_with(groups.len().max(class + 1), Vec::new);
        groups[class].push(i);
    }
    let mut held = vec![false; targets.len()];
    for mut group in groups {
        let take = ((share * group.len() as f64).round() as usize).min(group.len().saturating_sub(1));
        draw(&mut group, take, &mut rng);
        group[..take].iter().for_each(|&i| held[i] = true);
    }
    rows.iter().partition(|&&i| !held[i])
}

/// Moves this many entries, drawn at random, to the front.
pub(crate) fn draw(entries: &mut [usize], count: usize, rng: &mut impl Rng) {
    for k in 0..count {
        // A number below n from 64 random bits.
        let n = entries.len() - k;
        entries.swap(k, k + ((u128::from(rng.next_u64()) * n as u128) >> 64) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_gives_its_share_and_the_seed_decides() {
        let targets = Targets::Classes((0..100).map(|i| u32::from(i % 10 == 0)).collect());
        let rows: Vec<usize> = (0..100).collect();
        let (train, test) = split(&targets, &rows, 0.2, 1, 0);
        assert_eq!((train.len(), test.len()), (80, 20));
        assert_eq!(test.iter().filter(|&&i| i % 10 == 0).count(), 2);
        assert!(test.is_sorted() && train.is_sorted());
        assert_eq!(split(&targets, &rows, 0.2, 1, 0).1, test);
        assert_ne!(split(&targets, &rows, 0.2, 2, 0).1, test);
        assert_ne!(split(&targets, &rows, 0.2, 1, 1).1, test);
    }

    #[test]
    fn a_class_with_one_row_keeps_it() {
        let (train, test) = split(&Targets::Classes(vec![0, 1, 1]), &[0, 1, 2], 0.9, 0, 0);
        assert_eq!((train.len(), test.len()), (2, 1));
        assert!(train.contains(&0));
    }
}
