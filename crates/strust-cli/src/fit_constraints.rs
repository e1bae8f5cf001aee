//! What the constraints of a fit do, in words.

use strust_fit::constrain::ConstraintEffect;
use strust_lab::{
    data::section::{Section, Table},
    format::plain_number,
};

/// Constraints that are shown at most.
const MOST: usize = 10;

/// Sentences about the active constraints, those that cost the most first.
pub fn lines(effects: &[ConstraintEffect]) -> Vec<String> {
    let active = ordered(effects);
    if active.is_empty() && !effects.is_empty() {
        return vec!["none is active: the fit without them is the same".into()];
    }
    let sentence = |effect: &&ConstraintEffect| match effect.cost {
        Some(cost) => format!("{} is active: without it the loss would be {}", effect.text, lower(cost)),
        None => format!("{} is active", effect.text),
    };
    let mut lines: Vec<String> = active.iter().take(MOST).map(sentence).collect();
    if active.len() > MOST {
        lines.push(format!("{} more are active; --json lists them", active.len() - MOST));
    }
    lines
}

/// The active ones, by their cost.
fn ordered(effects: &[ConstraintEffect]) -> Vec<&ConstraintEffect> {
    let mut active: Vec<_> = effects.iter().filter(|effect| effect.active).collect();
    active.sort_by(|a, b| b.cost.unwrap_or(-1.0).total_cmp(&a.cost.unwrap_or(-1.0)));
    active
}

fn lower(cost: f64) -> String {
    match 100.0 * cost {
        percent if percent < 0.05 => "the same to 0.1 %".into(),
        percent if percent < 10.0 => format!("{percent:.1} % lower"),
        percent => format!("{percent:.0} % lower"),
    }
}

/// The part of the report about the constraints; `None` without them.
pub fn section(effects: &[ConstraintEffect]) -> Option<Section> {
    let row = |effect: &ConstraintEffect| {
        let cost = effect.cost.map_or_else(|| "not computed".into(), lower);
        vec![
            // The page has no backquotes.
            effect.text.replace('`', ""),
            if effect.active { "yes" } else { "no" }.into(),
            if effect.active { cost } else { "the same".into() },
            plain_number(effect.multiplier),
        ]
    };
    let description = "A constraint is active if it holds with equality. The loss without it is that of another fit. The \
                       multiplier is the slope of the loss: by how much it falls at first for each unit by which the \
                       constraint is relaxed.";
    let header = "constraint | active | the loss without it | multiplier";
    let table = Table::new("The constraints in the units of the file.", header, effects.iter().map(row).collect());
    let section = Section { tables: vec![table], ..Section::new("", "What the constraints do", description) };
    (!effects.is_empty()).then_some(section)
}
