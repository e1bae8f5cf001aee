//! Serves the small constrained problems to other programs, line by line.
//!
//! The first line of the output lists all problems as JSON. Then every line `NAME x₁ x₂ …` of the input is answered by
//! one line of JSON with f, its gradient, the rows c and their Jacobian. Infinite bounds are null.
//!
//! ```console
//! $ echo "hs006 -1.2 1" | cargo run -q -p strust-problems --example serve_problems | tail -1
//! {"c":[-4.3999999999999995],"f":4.840000000000001,"g":[-4.4,0.0],"jacobian":[[24.0,10.0]]}
//! ```

use serde_json::{Value, json};
use std::io::{BufRead, Write, stdin, stdout};
use strust_problems::constrained::{ConstrainedProblem, all_problems};

/// What is known about a problem.
fn description((kind, problem): &(&str, ConstrainedProblem)) -> Value {
    json!({
        "name": problem.name,
        "kind": kind,
        "start": problem.start,
        "lower": problem.lower,
        "upper": problem.upper,
        "equalities": problem.equalities,
        "inequalities": problem.inequalities,
        "values": problem.solutions.iter().map(|known| known.value).collect::<Vec<_>>(),
    })
}

/// The answer to a line of the input.
fn answer(problems: &[(&str, ConstrainedProblem)], line: &str) -> Result<Value, String> {
    let mut words = line.split_whitespace();
    let name = words.next().ok_or("the line is empty")?;
    let known = problems.iter().find(|(_, problem)| problem.name == name);
    let (_, problem) = known.ok_or(format!("no problem {name:?}"))?;
    let x: Vec<f64> = words.map(str::parse).collect::<Result<_, _>>().map_err(|e| format!("{line:?}: {e}"))?;
    let d = problem.start.len();
    if x.len() != d {
        return Err(format!("{name} has {d} variables, not {}", x.len()));
    }
    let (f, g) = (problem.value(&x), problem.gradient(&x));
    Ok(json!({ "f": f, "g": g, "c": problem.rows(&x), "jacobian": problem.jacobian(&x) }))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let problems = all_problems();
    let mut out = stdout().lock();
    writeln!(out, "{}", Value::from(problems.iter().map(description).collect::<Vec<_>>()))?;
    out.flush()?;
    for line in stdin().lock().lines() {
        writeln!(out, "{}", answer(&problems, &line?)?)?;
        out.flush()?;
    }
    Ok(())
}
