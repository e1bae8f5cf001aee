//! `strust diagnose`.

use crate::{
    CommandResult,
    args::Shared,
    session::{print, print_json},
    show::heading,
};
use std::{fmt::Write as _, path::Path};
use strust_lab::analyze::diagnose::{Diagnosis, diagnose};

/// The maximum length of a line.
const WIDTH: usize = 100;

pub fn run(folder: &Path, shared: &Shared) -> CommandResult {
    let found = diagnose(folder)?;
    if shared.json {
        return print_json(&found);
    }
    // With several methods, first one line each.
    let lines: String = if found.len() > 1 { found.iter().map(line).collect::<String>() + "\n" } else { String::new() };
    print(&(lines + &found.iter().map(|one| text(one, shared)).collect::<Vec<_>>().join("\n")))
}

/// The job.
fn title(diagnosis: &Diagnosis) -> String {
    format!("{} on {}, seed {}", diagnosis.method, diagnosis.problem, diagnosis.seed)
}

/// The verdict, or that there is none yet.
fn verdict(diagnosis: &Diagnosis) -> String {
    diagnosis.verdict.map_or_else(|| "no verdict yet".into(), |verdict| verdict.to_string())
}

fn line(diagnosis: &Diagnosis) -> String {
    format!("{:<16} {}\n", verdict(diagnosis), title(diagnosis))
}

fn text(diagnosis: &Diagnosis, shared: &Shared) -> String {
    let mut text = format!("{}: {}\n", heading(&title(diagnosis), shared), verdict(diagnosis));
    if diagnosis.why.is_empty() {
        let _ = writeln!(text, "  {}.", diagnosis.state);
    } else {
        let _ = writeln!(text, "  {}", wrapped(&format!("{}; {}.", diagnosis.state, diagnosis.why), 2));
    }
    for finding in &diagnosis.findings {
        let _ = writeln!(text, "  - {}", wrapped(&finding.text, 4));
    }
    if let Some(remedy) = &diagnosis.remedy {
        let _ = writeln!(text, "  → {}", wrapped(&format!("Set {}: {}.", remedy.set.join(" and "), remedy.reason), 4));
        let _ = writeln!(text, "    {}", wrapped(&format!("Expected: {}.", remedy.effect), 4));
        let _ = writeln!(text, "    $ {}", remedy.command);
    }
    if let Some(outlook) = diagnosis.outlook() {
        let _ = writeln!(text, "  {outlook}");
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
