//! Rows to learn from and rows to hold out.

use crate::task::Targets;
use rand_core::Rng;
use strust::sample::generator;

/// The stream of the random numbers of a split. Samplers use the streams at both ends of the range.
const SPLIT: u64 = (1 << 62) + 40;
/// The last of its streams, that of [`folds`].
const FOLDS: u64 = 9;

/// Draws a share of the rows at random: of each class the same share, rounded to whole rows. Both parts keep the order
/// of the rows, and each class keeps a row to learn from.
#[must_use]
pub fn split(targets: &Targets, rows: &[usize], share: f64, seed: u64, stream: u64) -> (Vec<usize>, Vec<usize>) {
    let mut rng = generator(seed, SPLIT + stream);
    let mut held = vec![false; targets.len()];
    for mut group in groups(targets, rows) {
        let take = ((share * group.len() as f64).round() as usize).min(group.len().saturating_sub(1));
        draw(&mut group, take, &mut rng);
        group[..take].iter().for_each(|&i| held[i] = true);
    }
    rows.iter().partition(|&&i| !held[i])
}

/// Deals the rows into parts of equal size at random, of each class the same share. Each part keeps the order of the rows.
#[must_use]
pub fn folds(targets: &Targets, rows: &[usize], count: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut rng = generator(seed, SPLIT + FOLDS);
    let mut folds = vec![Vec::new(); count];
    let mut next = 0;
    for mut group in groups(targets, rows) {
        let all = group.len();
        draw(&mut group, all, &mut rng);
        for i in group {
            folds[next % count].push(i);
            next += 1;
        }
    }
    for fold in &mut folds {
        fold.sort_unstable();
    }
    folds
}

/// The rows of each class; all rows for a regression.
fn groups(targets: &Targets, rows: &[usize]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for &i in rows {
        let class = if let Targets::Classes(classes) = targets { classes[i] as usize } else { 0 };
        groups.resize_with(groups.len().max(class + 1), Vec::new);
        groups[class].push(i);
    }
    groups
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
    fn folds_have_equal_sizes_and_the_same_share_of_each_class() {
        let targets = Targets::Classes((0..103).map(|i| u32::from(i % 10 == 0)).collect());
        let rows: Vec<usize> = (0..103).collect();
        let dealt = folds(&targets, &rows, 5, 1);
        assert!(dealt.iter().all(|fold| (20..=21).contains(&fold.len()) && fold.is_sorted()));
        assert!(dealt.iter().all(|fold| (2..=3).contains(&fold.iter().filter(|&&i| i % 10 == 0).count())));
        let mut all = dealt.concat();
        all.sort_unstable();
        assert_eq!(all, rows);
        assert_ne!(folds(&targets, &rows, 5, 2), dealt);
    }

    #[test]
    fn a_class_with_one_row_keeps_it() {
        let (train, test) = split(&Targets::Classes(vec![0, 1, 1]), &[0, 1, 2], 0.9, 0, 0);
        assert_eq!((train.len(), test.len()), (2, 1));
        assert!(train.contains(&0));
    }
}
