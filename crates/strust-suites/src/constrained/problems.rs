//! Every small problem from its usual start.

use super::{
    reference::ReferenceProblem,
    section,
    solve::{self, as_method},
};
use crate::{distinct, prelude::*};
use strust_lab::{
    Error,
    data::summary::{ProblemSummary, Solution, SolverVerdict},
};
use strust_problems::constrained::{ConstrainedProblem, KINDS, all_problems};

/// The method of this library for all constraints.
pub(super) const SQP: &str = "str-sqp";
/// The program that inequalities are compared with.
const SLSQP: &str = "slsqp";
/// Gradients on the horizontal axis of the figure end here.
const MOST_SHOWN: u64 = 1000;

/// Solves all of them.
pub(super) fn run(reference: &[ReferenceProblem], tick: &mut Tick) -> Result<CheckResults, Error> {
    let problems = all_problems();
    tick.expect(problems.len() as u64);
    let mut summaries = Vec::new();
    for (kind, problem) in &problems {
        let mut methods = vec![as_method(SQP, solve::str_sqp(problem, &problem.start)?.solution)];
        if *kind == KINDS[0] {
            methods.push(as_method("str-p", solve::str_p(problem)?.solution));
            methods.push(as_method("auglag", solve::aug_lag(problem)?.solution));
        }
        let others = reference.iter().filter(|other| other.name == problem.name).flat_map(|other| &other.methods);
        methods.extend(others.map(|other| as_method(&other.name, other.solution)));
        let (name, kind, title) = (problem.name.into(), Some((*kind).into()), title(problem));
        summaries.push(ProblemSummary { name, kind, title, methods, ..ProblemSummary::default() });
        tick.done()?;
    }
    let section = show(&summaries);
    Ok(CheckResults { problems: summaries, section })
}

fn title(problem: &ConstrainedProblem) -> String {
    let rows = [(problem.equalities, "equality", "equalities"), (problem.inequalities, "inequality", "inequalities")];
    let rows = rows.iter().filter(|(count, ..)| *count > 0);
    let rows = rows.map(|(count, one, many)| format!("{count} {}", if *count == 1 { one } else { many }));
    let parts: Vec<String> = std::iter::once(plural(problem.start.len(), "variable")).chain(rows).collect();
    format!("{} ({})", problem.name, parts.join(", "))
}

/// The solutions of a method on the problems of a kind; `None` where it did not run.
fn of<'a>(problems: &'a [ProblemSummary], kind: &str, method: &str) -> Vec<(&'a ProblemSummary, Option<&'a Solution>)> {
    let mine = problems.iter().filter(|problem| problem.kind.as_deref() == Some(kind));
    let solution = |problem: &'a ProblemSummary| {
        problem.methods.iter().find(|one| one.name == method).and_then(|one| one.solution.as_ref())
    };
    mine.map(|problem| (problem, solution(problem))).collect()
}

fn solved(solutions: &[(&ProblemSummary, Option<&Solution>)]) -> Vec<f64> {
    let solved = solutions.iter().filter_map(|(_, solution)| *solution).filter(|solution| solution.solved);
    solved.map(|solution| solution.gradients as f64).collect()
}

/// The names of all methods, in the order of their first problem.
fn methods(problems: &[ProblemSummary]) -> Vec<&str> {
    distinct(problems.iter().flat_map(|problem| &problem.methods).map(|method| &method.name))
}

fn show(problems: &[ProblemSummary]) -> Section {
    let names = methods(problems);
    let mut tables = vec![overview(problems, &names)];
    tables.extend(KINDS.iter().map(|kind| details(problems, &names, kind)));
    Section {
        figures: KINDS[..2].iter().map(|kind| profile(problems, &names, kind)).collect(),
        tables,
        checks: checks(problems),
        ..section(
            "problems",
            "Small problems with known solutions",
            "Problems of Hock and Schittkowski with equalities, and with inequalities and bounds, then infeasible and \
             degenerate ones. Each solver has its defaults and all of f in every step. Solved means that f is the known \
             optimum to 1e-6, relative to max(1, |f*|), and that no constraint is violated by more than 1e-6. An \
             infeasible problem is solved by the right verdict.",
        )
    }
}

fn overview(problems: &[ProblemSummary], names: &[&str]) -> Table {
    let mut rows = Vec::new();
    for kind in KINDS {
        for name in names {
            let solutions = of(problems, kind, name);
            let tried = solutions.iter().filter(|(_, solution)| solution.is_some()).count();
            if tried == 0 {
                continue;
            }
            let gradients = solved(&solutions);
            let count = |value: f64| if gradients.is_empty() { NOTHING.into() } else { value.to_string() };
            rows.push(vec![
                kind.into(),
                (*name).into(),
                format!("{} of {tried}", gradients.len()),
                count(upper_median(&gradients)),
                count(largest(gradients.iter().copied())),
            ]);
        }
    }
    Table::new("Problems solved, and gradients on the solved ones", "kind | method | solved | median | most", rows)
}

/// The gradients of every method on every problem of a kind, with the verdict if it is not solved.
fn details(problems: &[ProblemSummary], names: &[&str], kind: &str) -> Table {
    let ran = |name: &&&str| of(problems, kind, name).iter().any(|(_, solution)| solution.is_some());
    let names: Vec<&str> = names.iter().filter(ran).copied().collect();
    let columns: Vec<_> = names.iter().map(|name| of(problems, kind, name)).collect();
    let cell = |solution: Option<&Solution>| match solution {
        None => NOTHING.into(),
        Some(s) if s.solved => s.gradients.to_string(),
        Some(s) => format!("{}: {}", s.gradients, s.verdict.word()),
    };
    let row = |i: usize| {
        let name = columns[0][i].0.name.clone();
        std::iter::once(name).chain(columns.iter().map(|column| cell(column[i].1))).collect()
    };
    Table::new(
        format!("Gradients on {kind} problems, with the verdict of a solver that did not solve it"),
        "problem",
        (0..columns.first().map_or(0, Vec::len)).map(row).collect(),
    )
    .and_columns(names.iter().map(ToString::to_string))
}

/// The share of the problems that are solved with so many gradients.
fn profile(problems: &[ProblemSummary], names: &[&str], kind: &str) -> Shown {
    let series = names.iter().enumerate().filter_map(|(color, name)| {
        let solutions = of(problems, kind, name);
        solutions.iter().any(|(_, solution)| solution.is_some()).then(|| {
            let points = shares(&solved(&solutions), solutions.len());
            Series { name: (*name).into(), color, points }
        })
    });
    Shown::new(
        format!("solved-{kind}"),
        format!("The share of the {kind} problems that a method solves with at most so many gradients."),
        Figure::new(
            format!("{kind} problems solved"),
            ("gradients", true),
            ("share of the problems", false),
            series.collect(),
        ),
    )
}

/// A staircase of the share of `all` whose count is at most x.
fn shares(counts: &[f64], all: usize) -> Vec<Point> {
    let mut counts: Vec<f64> = counts.iter().copied().filter(|count| *count <= MOST_SHOWN as f64).collect();
    counts.sort_by(f64::total_cmp);
    let mut points = vec![Point::at(1.0, 0.0)];
    for (i, count) in counts.iter().enumerate() {
        points.push(Point::at(*count, i as f64 / all as f64));
        points.push(Point::at(*count, (i + 1) as f64 / all as f64));
    }
    points.push(Point::at(MOST_SHOWN as f64, counts.len() as f64 / all as f64));
    points
}

fn checks(problems: &[ProblemSummary]) -> Vec<Check> {
    let missed = |solutions: &[(&ProblemSummary, Option<&Solution>)]| {
        let missed = solutions.iter().filter(|(_, solution)| solution.is_some_and(|solution| !solution.solved));
        let names: Vec<&str> = missed.map(|(problem, _)| problem.name.as_str()).collect();
        if names.is_empty() { "all are solved".into() } else { format!("not solved: {}", names.join(", ")) }
    };
    let all_gradients = |solutions: &[(&ProblemSummary, Option<&Solution>)]| -> Vec<f64> {
        solutions.iter().filter_map(|(_, solution)| solution.map(|one| one.gradients as f64)).collect()
    };
    let equality = of(problems, KINDS[0], SQP);
    let counts = all_gradients(&equality);
    let infeasible = of(problems, KINDS[2], SQP);
    let wrong: Vec<&str> = problems
        .iter()
        .filter(|problem| problem.kind.as_deref() != Some(KINDS[2]))
        .filter(|problem| {
            let mine = problem.methods.iter().find(|method| method.name == SQP).and_then(|one| one.solution);
            mine.is_some_and(|solution| solution.verdict == SolverVerdict::Infeasible)
        })
        .map(|problem| problem.name.as_str())
        .collect();
    let mut checks = vec![
        Check::at_least(
            "equality problems solved",
            solved(&equality).len() as f64,
            equality.len() as f64,
            missed(&equality),
        ),
        Check::at_most("equality problems: median of the gradients", upper_median(&counts), 12.0, "over all of them"),
        Check::at_most("equality problems: most gradients", largest(counts.iter().copied()), 60.0, "over all of them"),
        Check::at_least(
            "infeasible problems with the right verdict",
            solved(&infeasible).len() as f64,
            infeasible.len() as f64,
            "the verdict names only rows that contradict each other",
        ),
        Check::at_most(
            "infeasible problems: most gradients",
            largest(all_gradients(&infeasible)),
            30.0,
            "until the verdict",
        ),
        Check::at_most(
            "feasible problems with the verdict infeasible",
            wrong.len() as f64,
            0.0,
            if wrong.is_empty() { "no verdict is wrong".into() } else { wrong.join(", ") },
        ),
    ];
    let theirs = of(problems, KINDS[1], SLSQP);
    if theirs.iter().any(|(_, solution)| solution.is_some()) {
        let mine = of(problems, KINDS[1], SQP);
        checks.push(Check::at_least(
            "inequality problems solved, beside SLSQP",
            solved(&mine).len() as f64,
            solved(&theirs).len() as f64,
            format!("{SQP}: {}; {SLSQP}: {}", missed(&mine), missed(&theirs)),
        ));
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(name: &str, kind: &str, results: &[(&str, bool, SolverVerdict, u64)]) -> ProblemSummary {
        let method = |&(name, solved, verdict, gradients): &(&str, bool, SolverVerdict, u64)| {
            let solution =
                Solution { solved, verdict, gradients, objective_error: None, constraint_norm: None, kkt: None };
            as_method(name, solution)
        };
        let methods = results.iter().map(method).collect();
        ProblemSummary { name: name.into(), kind: Some(kind.into()), title: name.into(), methods, ..Default::default() }
    }

    #[test]
    fn checks_count_solved_problems_gradients_and_wrong_verdicts() {
        use SolverVerdict::{Converged, Infeasible, Stalled};
        let problems = [
            problem("a", "equality", &[(SQP, true, Converged, 4), ("str-p", false, Stalled, 900)]),
            problem("b", "equality", &[(SQP, true, Converged, 70)]),
            problem("c", "equality", &[(SQP, false, Infeasible, 9)]),
            problem("d", "inequality", &[(SQP, false, Converged, 7), (SLSQP, true, Converged, 8)]),
            problem("e", "infeasible", &[(SQP, true, Infeasible, 31)]),
        ];
        let checks = checks(&problems);
        let found: Vec<_> = checks.iter().map(|check| (check.measured, check.bound, check.holds)).collect();
        let expected = [
            (2.0, 3.0, false),
            (9.0, 12.0, true),
            (70.0, 60.0, false),
            (1.0, 1.0, true),
            (31.0, 30.0, false),
            (1.0, 0.0, false),
            (0.0, 1.0, false),
        ];
        assert_eq!(found, expected, "{checks:#?}");
        assert_eq!((checks[0].why.as_str(), checks[5].why.as_str()), ("not solved: c", "c"));
        let table = overview(&problems, &methods(&problems));
        assert_eq!(table.rows[0], ["equality", SQP, "2 of 3", "70", "70"]);
        assert_eq!(table.rows[1], ["equality", "str-p", "0 of 1", NOTHING, NOTHING]);
        let details = details(&problems, &methods(&problems), "equality");
        assert_eq!(details.rows[0], ["a", "4", "900: stalled"]);
        assert_eq!(details.rows[2], ["c", "9: infeasible", NOTHING]);
    }

    #[test]
    fn a_profile_rises_by_one_problem_at_each_count() {
        let points: Vec<_> = shares(&[8.0, 2.0, 5000.0], 4).iter().map(|p| (p.x, p.y)).collect();
        let expected = [(1.0, 0.0), (2.0, 0.0), (2.0, 0.25), (8.0, 0.25), (8.0, 0.5), (1000.0, 0.5)];
        assert_eq!(points, expected);
    }
}
