//! STR-SQP on the equality problems in other units.

use super::section;
use crate::{prelude::*, sqp::str_sqp};
use strust::prelude::*;
use strust_lab::Error;
use strust_problems::constrained::{ConstrainedProblem, Units, equality_problems};

/// The gradients may change by this share: other units are rounded differently.
const CHANGE: f64 = 0.05;
/// Problems that must be solved if the units of the coordinates are spread over three decades.
const SOLVED: f64 = 19.0;

const PLAIN: Units = Units { f: 1.0, c: 1.0, x: 1.0, decades: 0.0 };

/// The units, with a name for people.
const ALL: [(&str, Units); 8] = [
    ("as it is", PLAIN),
    ("f × 1e6", Units { f: 1e6, ..PLAIN }),
    ("f × 1e-6", Units { f: 1e-6, ..PLAIN }),
    ("c × 1e3", Units { c: 1e3, ..PLAIN }),
    ("c × 1e-3", Units { c: 1e-3, ..PLAIN }),
    ("x × 1e3", Units { x: 1e3, ..PLAIN }),
    ("x × 1e-3", Units { x: 1e-3, ..PLAIN }),
    ("coordinates over three decades", Units { decades: 3.0, ..PLAIN }),
];

/// Whether the problem was solved, and the gradients.
fn solve(problem: &ConstrainedProblem, units: Units) -> Result<(bool, f64), Error> {
    let other = problem.in_units(units);
    let (f, constraint) = (&mut other.objective(), &mut other.constraint());
    let start = units.scaled(&problem.start);
    let report = str_sqp(f, constraint, StrSqpConfig::default(), None, super::solve::SQP_STEPS, start)?;
    let x = units.plain(report.point());
    Ok((super::solve::is_solved(problem, &x), report.evaluations.gradients as f64))
}

/// Runs all equality problems in all units.
pub(super) fn run(tick: &mut Tick) -> Result<CheckResults, Error> {
    let problems = equality_problems();
    tick.expect((ALL.len() * problems.len()) as u64);
    let mut results: Vec<Vec<(bool, f64)>> = Vec::new();
    for (_, units) in ALL {
        let mut row = Vec::new();
        for problem in &problems {
            row.push(solve(problem, units)?);
            tick.done()?;
        }
        results.push(row);
    }
    let names: Vec<&str> = problems.iter().map(|problem| problem.name).collect();
    Ok(CheckResults { problems: Vec::new(), section: show(&names, &results) })
}

/// The sum of the gradients.
fn total(row: &[(bool, f64)]) -> f64 {
    row.iter().map(|(_, gradients)| gradients).sum()
}

fn show(names: &[&str], results: &[Vec<(bool, f64)>]) -> Section {
    let plain = &results[0];
    let solved = |row: &[(bool, f64)]| row.iter().filter(|(solved, _)| *solved).count();
    let change = |row: &[(bool, f64)]| (total(row) / total(plain) - 1.0).abs();
    let changed = |row: &[(bool, f64)]| -> Vec<String> {
        let counts = names.iter().zip(row).zip(plain).map(|((name, now), before)| (name, now.1, before.1));
        let counts = counts.filter(|(_, now, before)| (now / before - 1.0).abs() > CHANGE);
        counts.map(|(name, now, before)| format!("{name} {before} → {now}")).collect()
    };
    let row = |((name, _), row): (&(&str, Units), &Vec<(bool, f64)>)| {
        let changed = changed(row);
        vec![
            (*name).to_string(),
            format!("{} of {}", solved(row), row.len()),
            upper_median(&row.iter().map(|(_, gradients)| *gradients).collect::<Vec<_>>()).to_string(),
            total(row).to_string(),
            format!("{} %", fixed(100.0 * (total(row) / total(plain) - 1.0), 1)),
            if changed.is_empty() { NOTHING.into() } else { changed.join(", ") },
        ]
    };
    let (scaled, decades) = results[1..].split_at(ALL.len() - 2);
    Section {
        tables: vec![Table::new(
            format!(
                "The {} equality problems in other units; the last column has the gradients of problems where they \
                 change by more than 5 %",
                names.len()
            ),
            "units | solved | median gradients | gradients in all | change | changed by > 5 %",
            ALL.iter().zip(results).map(row).collect(),
        )],
        checks: vec![
            Check::at_most(
                "change of the gradients in all with f × 1e±6, c × 1e±3, x × 1e±3",
                largest(scaled.iter().map(|row| change(row))),
                CHANGE,
                "the largest of the six; the gradients of all problems are added",
            ),
            Check::at_least(
                "problems solved with f × 1e±6, c × 1e±3, x × 1e±3",
                scaled.iter().map(|row| solved(row)).min().unwrap_or(0) as f64,
                names.len() as f64,
                "the least of the six",
            ),
            Check::at_least(
                "problems solved with coordinates over three decades",
                solved(&decades[0]) as f64,
                SOLVED.min(names.len() as f64),
                "the factors of the coordinates are spread evenly over three decades",
            ),
        ],
        ..section(
            "units",
            "Other units",
            "STR-SQP with its default on the equality problems, where f, c or x is multiplied by a factor. Powers of two \
             change not even the rounding; these factors do, so a run on a flat function may need more steps or fewer.",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_change_is_that_of_all_gradients_and_the_table_names_the_problems() {
        let mut results = vec![vec![(true, 10.0), (true, 30.0)]; ALL.len()];
        results[3] = vec![(true, 10.0), (false, 34.0)];
        let section = show(&["a", "b"], &results);
        let found: Vec<_> = section.checks.iter().map(|check| (check.measured, check.holds)).collect();
        assert!((found[0].0 - 0.1).abs() < 1e-12 && !found[0].1, "{found:?}");
        assert_eq!(found[1..], [(1.0, false), (2.0, true)]);
        assert_eq!(section.tables[0].rows[3], ["c × 1e3", "1 of 2", "34", "44", "10.0 %", "b 30 → 34"]);
        assert_eq!(section.tables[0].rows[1][5], NOTHING);
    }
}
