//! The numbers of a summary as CSV.

use crate::{
    data::summary::{CurvePoint, Summary},
    format::csv_field,
};
use std::fmt::Write as _;

/// The curves as a table: one row per problem, method and epoch.
pub(crate) fn curves(summary: &Summary) -> String {
    let keys = keys(std::slice::from_ref(summary));
    let mut text = String::new();
    heading(&keys, &mut text);
    rows(summary, &keys, "", &mut text);
    text
}

/// The curves of several runs as one table, with the name of the run first.
pub(super) fn comparison(names: &[String], summaries: &[Summary]) -> String {
    let keys = keys(summaries);
    let mut text = String::from("run,");
    heading(&keys, &mut text);
    for (name, summary) in names.iter().zip(summaries) {
        rows(summary, &keys, &format!("{},", csv_field(name)), &mut text);
    }
    text
}

/// The metrics of all problems.
fn keys(summaries: &[Summary]) -> Vec<&str> {
    let mut keys: Vec<&str> = Vec::new();
    for metric in summaries.iter().flat_map(|summary| &summary.problems).flat_map(|problem| &problem.metrics) {
        if !keys.contains(&metric.key.as_str()) {
            keys.push(&metric.key);
        }
    }
    keys
}

fn heading(keys: &[&str], text: &mut String) {
    text.push_str("problem,method,epoch,seeds,seconds_mean,seconds_std,values,gradients");
    for key in keys {
        let _ = write!(text, ",{key}_mean,{key}_std,{key}_median,{key}_lower_quartile,{key}_upper_quartile");
    }
    text.push('\n');
}

fn rows(summary: &Summary, keys: &[&str], start: &str, text: &mut String) {
    for problem in &summary.problems {
        for method in &problem.methods {
            for point in &method.curve {
                let CurvePoint { epoch, seconds, evaluations, metrics } = point;
                let _ = write!(
                    text,
                    "{start}{},{},{epoch},{},{},{},{},{}",
                    csv_field(&problem.name),
                    csv_field(&method.label),
                    method.seeds.len(),
                    seconds.mean,
                    seconds.std,
                    evaluations.values,
                    evaluations.gradients
                );
                for key in keys {
                    let _ = match metrics.get(*key) {
                        Some(s) => write!(text, ",{:e},{:e},{:e}", s.mean, s.std, s.median),
                        None => write!(text, ",,,"),
                    };
                    let _ = match metrics.get(*key).and_then(|s| s.quartiles) {
                        Some((lower, upper)) => write!(text, ",{lower:e},{upper:e}"),
                        None => write!(text, ",,"),
                    };
                }
                text.push('\n');
            }
        }
    }
}
