//! `strust diagnose`.

use crate::{
    CommandFailure,
    args::Shared,
    session::{json, print},
    show::heading,
};
use std::{fmt::Write as _, path::Path};
use strust_lab::analyze::diagnose::{Diagnosis, diagnose};

/// The maximum length of a line.
const WIDTH: usize = 100;

pub fn run(folder: &Path, shared: &Shared) -> Result<(), CommandFailure> {
    let found = diagnose(folder)?;
    if shared.json {
        return print(&json(&found)?);
    }
    print(&found.iter().map(|one| text(one, shared)).collect::<Vec<_>>().join("\n"))
}

fn text(diagnosis: &Diagnosis, shared: &Shared) -> String {
    let title = format!("{} on {}, seed {}", diagnosis.method, diagnosis.problem, diagnosis.seed);
    let mut text = format!("{}: {}\n", heading(&title, shared), diagnosis.state);
    for finding in &diagnosis.findings {
        let _ = writeln!(text, "  {}", wrapped(&finding.text, 2));
    }
    if diagnosis.advice.is_empty() {
        text.push_str("  Nothing to change.\n");
    }
    for advice in &diagnosis.advice {
        let _ = writeln!(text, "  → {}", wrapped(advice, 4));
    }
    text
}

/// Wraps the text and indents all lines but the first.
fn wrapped(text: &str, indent: usize) -> String {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split(' ') {
        if !line.is_empty() && indent + line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines.join(&format!("\n{}", " ".repeat(indent)))
}
