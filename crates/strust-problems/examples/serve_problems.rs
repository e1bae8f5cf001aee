//! Serves problems to other programs, line by line, so that all programs minimize the same functions.
//!
//! Without arguments: the small constrained problems. The first line of the output lists them as JSON. Then every line
//! `NAME x₁ x₂ …` of the input is answered by one line of JSON with f, its gradient, the rows c and their Jacobian.
//! Infinite bounds are null.
//!
//! ```console
//! $ echo "hs006 -1.2 1" | cargo run -q -p strust-problems --example serve_problems | tail -1
//! {"c":[-4.3999999999999995],"f":4.840000000000001,"g":[-4.4,0.0],"jacobian":[[24.0,10.0]]}
//! ```
//!
//! With `second-order [FOLDER]`: the problems without constraints. The answer to `NAME x₁ x₂ …` has f and its gradient, and
//! that to `NAME x₁ x₂ … v₁ v₂ …` the product of the Hessian with v. The larger problems, with the data sets a9a and
//! mushrooms of the folder, come with their data instead, and with f and its gradient at their start.

use faer::Mat;
use serde_json::{Value, json};
use std::{
    error::Error,
    io::{BufRead, Write, stdin, stdout},
    path::Path,
};
use strust::{
    objective::{Objective, ProductKind, full_value_and_gradient},
    sample::Sample,
    vector::Vector,
};
use strust_data::read_labeled;
use strust_problems::{
    Features, Labeled, Problem,
    constrained::{self, ConstrainedProblem},
    digits, second_order,
    unconstrained::{self, UnconstrainedProblem},
};

/// What is known about a constrained problem.
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

/// A line of the input: the name of a problem and numbers.
fn parsed(line: &str) -> Result<(&str, Vec<f64>), String> {
    let mut words = line.split_whitespace();
    let name = words.next().ok_or("the line is empty")?;
    let numbers = words.map(str::parse).collect::<Result<_, _>>().map_err(|e| format!("{line:?}: {e}"))?;
    Ok((name, numbers))
}

fn constrained_answer(problems: &[(&str, ConstrainedProblem)], line: &str) -> Result<Value, String> {
    let (name, x) = parsed(line)?;
    let known = problems.iter().find(|(_, problem)| problem.name == name);
    let (_, problem) = known.ok_or(format!("no problem {name:?}"))?;
    let d = problem.start.len();
    if x.len() != d {
        return Err(format!("{name} has {d} variables, not {}", x.len()));
    }
    let (f, g) = (problem.value(&x), problem.gradient(&x));
    Ok(json!({ "f": f, "g": g, "c": problem.rows(&x), "jacobian": problem.jacobian(&x) }))
}

fn unconstrained_answer(problems: &mut [UnconstrainedProblem], line: &str) -> Result<Value, String> {
    let (name, mut x) = parsed(line)?;
    let problem = problems.iter_mut().find(|p| p.name == name).ok_or(format!("no problem {name:?}"))?;
    let d = problem.start.len();
    if x.len() != d && x.len() != 2 * d {
        return Err(format!("{name} has {d} variables, not {}", x.len()));
    }
    let v = x.split_off(d);
    let mut out = x.zeros_like();
    if v.is_empty() {
        let f = full_value_and_gradient(problem, &x, &mut out);
        return Ok(json!({ "f": f, "g": out }));
    }
    problem.curvature_product(ProductKind::Hessian, &x, &Sample::range(0..1), &v, &mut out);
    Ok(json!({ "product": out }))
}

/// A larger problem with its data, its start, and f and its gradient there. Matrices are lists of columns.
fn with_data<P: Problem>(name: &str, kind: &str, mut problem: P, data: Value) -> Value {
    let start = problem.start(0);
    let mut gradient = start.zeros_like();
    let f = full_value_and_gradient(&mut problem, &start, &mut gradient);
    let mut value =
        json!({ "name": name, "kind": kind, "start": start.components(), "f": f, "g": gradient.components() });
    value["data"] = data;
    value
}

fn columns(matrix: &Mat<f64>) -> Vec<&[f64]> {
    (0..matrix.ncols()).map(|j| matrix.col_as_slice(j)).collect()
}

/// The rows as lists of column indices and values.
fn sparse(data: &Labeled) -> Value {
    let Features::Sparse(rows) = &data.features else { return Value::Null };
    let (indices, values): (Vec<_>, Vec<_>) = (0..rows.rows()).map(|i| rows.row(i)).unzip();
    json!({ "columns": rows.columns(), "indices": indices, "values": values, "labels": data.labels,
        "regularization": second_order::REGULARIZATION })
}

fn larger_problems(folder: Option<&Path>) -> Result<Vec<Value>, Box<dyn Error>> {
    let mut all = Vec::new();
    for (name, condition) in second_order::CONDITIONS {
        let problem = second_order::conditioned_least_squares(condition)?;
        let (rows, targets) = problem.data();
        let data = json!({ "rows": columns(rows), "targets": targets });
        all.push(with_data(name, "least-squares", problem, data));
    }
    let problem = second_order::low_rank_factorization()?;
    let data = json!({ "rows": columns(problem.data()) });
    all.push(with_data("factorization", "factorization", problem, data));
    let (train, _) = digits::load()?;
    let digits = json!({ "columns": columns(train.features()), "labels": train.labels(),
        "regularization": second_order::REGULARIZATION });
    all.push(with_data("softmax-digits", "softmax", second_order::softmax_on_digits()?, digits.clone()));
    all.push(with_data("mlp-digits", "mlp", second_order::mlp_on_digits()?, digits));
    for name in ["a9a", "mushrooms"].into_iter().filter(|_| folder.is_some()) {
        let file = folder.unwrap_or(Path::new(".")).join(format!("{name}.xz"));
        let labeled = read_labeled(&file)?;
        let data = sparse(&labeled);
        all.push(with_data(
            &format!("logistic-{name}"),
            "logistic",
            second_order::regularized_logistic(labeled)?,
            data,
        ));
    }
    Ok(all)
}

/// Prints the list, then answers line by line.
fn serve(list: &[Value], mut answer: impl FnMut(&str) -> Result<Value, String>) -> Result<(), Box<dyn Error>> {
    let mut out = stdout().lock();
    writeln!(out, "{}", json!(list))?;
    out.flush()?;
    for line in stdin().lock().lines() {
        writeln!(out, "{}", answer(&line?)?)?;
        out.flush()?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            let problems = constrained::all_problems();
            let list: Vec<Value> = problems.iter().map(description).collect();
            serve(&list, |line| constrained_answer(&problems, line))
        }
        ["second-order", ref folder @ ..] if folder.len() <= 1 => {
            let mut problems = unconstrained::all_problems();
            let small = |p: &UnconstrainedProblem| json!({ "name": p.name, "kind": "squares", "start": p.start, "minima": p.minima });
            let mut list: Vec<Value> = problems.iter().map(small).collect();
            list.extend(larger_problems(folder.first().map(Path::new))?);
            serve(&list, |line| unconstrained_answer(&mut problems, line))
        }
        _ => Err("the arguments are none, or `second-order` and the folder of the data sets".into()),
    }
}
