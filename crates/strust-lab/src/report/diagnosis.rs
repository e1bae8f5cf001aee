//! The diagnosis of every method, in plain words.

use crate::diagnose::Diagnosis;
use crate::figure::escape;
use crate::summary::Summary;

/// The section on the runs themselves; nothing if there is none.
pub(super) fn section(summary: &Summary, level: usize) -> String {
    if summary.diagnoses.is_empty() {
        return String::new();
    }
    let many = summary.problems.len() > 1;
    let parts: String = summary.diagnoses.iter().map(|diagnosis| one(diagnosis, many, level + 1)).collect();
    format!(
        "<section class=\"diagnosis\">\n<h{level}>Diagnosis</h{level}>\n<p class=\"explain\">The first seed of every method, from its records and its last \
         checkpoint; <code>strust diagnose</code> says the same of any job, also while it runs.</p>\n{parts}</section>\n"
    )
}

fn one(diagnosis: &Diagnosis, many: bool, level: usize) -> String {
    let on = if many { format!(" on {}", escape(&diagnosis.problem)) } else { String::new() };
    let finding = |finding: &crate::diagnose::Finding| {
        format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escape(&finding.about), escape(&finding.text))
    };
    let advice: String = diagnosis.advice.iter().map(|text| format!("<li>{}</li>\n", escape(text))).collect();
    let advice =
        if advice.is_empty() { String::new() } else { format!("<p>What to change:</p>\n<ul>\n{advice}</ul>\n") };
    format!(
        "<h{level}>{}{on} <span class=\"quiet\">seed {}, {}</span></h{level}>\n<dl>\n{}</dl>\n{advice}",
        escape(&diagnosis.method),
        diagnosis.seed,
        escape(&diagnosis.state),
        diagnosis.findings.iter().map(finding).collect::<String>()
    )
}
