//! Predictions as text: CSV, or one JSON object per line.

use crate::{CommandResult, args::PredictArgs, fit::ending, usage};
use std::fmt::Write as _;
use strust_fit::{FittedModel, assess::Prediction};
use strust_lab::format::csv_field;

/// How predictions are written.
pub struct PredictionFormat<'a> {
    /// The classes of the model; none for a regression.
    pub classes: &'a [String],
    /// JSON lines instead of CSV.
    pub json: bool,
    /// The columns that are copied, in front of the prediction.
    keep: &'a [String],
    /// Whether the prediction itself is written.
    predicted: bool,
    /// The first class whose probability is written.
    first: usize,
}

impl<'a> PredictionFormat<'a> {
    /// The format that the user chose.
    pub fn of(args: &'a PredictArgs, model: &'a FittedModel) -> CommandResult<Self> {
        let classes = model.about.task.class_names().unwrap_or_default();
        if args.proba && classes.is_empty() {
            return usage(format!(
                "--proba is for models of classes, but this one predicts the number `{}`",
                model.about.target
            ));
        }
        let json = args.jsonl || args.out.as_ref().is_some_and(|out| ending(out) == "jsonl");
        // Of two classes, the probability of the second says all.
        let first = usize::from(args.proba && classes.len() == 2);
        let format = Self { classes, json, keep: &args.keep, predicted: !args.proba, first };
        let mut seen = Vec::new();
        for name in format.names() {
            if seen.contains(&name) {
                return usage(format!("--keep {name}: the output would have two columns of this name"));
            }
            seen.push(name);
        }
        Ok(format)
    }

    /// The names of the columns, in order.
    fn names(&self) -> Vec<String> {
        let probabilities: Vec<String> = match (self.json, self.classes) {
            (true, [_, ..]) => vec!["probabilities".into()],
            (_, classes) => classes.iter().skip(self.first).map(|class| format!("p({class})")).collect(),
        };
        let predicted = self.predicted.then(|| "prediction".to_string());
        self.keep.iter().cloned().chain(predicted).chain(probabilities).collect()
    }

    /// The first line.
    pub fn header(&self) -> String {
        if self.json { String::new() } else { line(self.names().iter().map(|name| csv_field(name))) }
    }

    /// Adds the line of a row, with the texts of its columns that are copied.
    pub fn write(&self, kept: impl Iterator<Item = String>, prediction: &Prediction, text: &mut String) {
        let (value, probabilities) = match prediction {
            Prediction::Number(value) => (value.to_string(), &[][..]),
            Prediction::Class(class, probabilities) => (self.classes[*class].clone(), &probabilities[self.first..]),
        };
        let probabilities = probabilities.iter().map(|p| format!("{p:.6}"));
        let predicted = self.predicted.then_some(value);
        if !self.json {
            let texts = kept.chain(predicted).map(|text| csv_field(&text));
            return text.push_str(&line(texts.chain(probabilities)));
        }
        let is_number = |text: &str| serde_json::from_str::<serde_json::Number>(text).is_ok();
        // A number stays one, with all of its digits; a code such as 01 is a text.
        let value = |text: &str| if is_number(text) { text.to_string() } else { quoted(text) };
        let mut fields: Vec<String> =
            self.keep.iter().zip(kept).map(|(name, text)| format!("{}:{}", quoted(name), value(&text))).collect();
        fields.extend(predicted.map(|text| {
            // A class is a text, whatever it looks like.
            format!("\"prediction\":{}", if self.classes.is_empty() { value(&text) } else { quoted(&text) })
        }));
        if !self.classes.is_empty() {
            let pairs = self.classes[self.first..].iter().zip(probabilities);
            let pairs: Vec<String> = pairs.map(|(class, p)| format!("{}:{p}", quoted(class))).collect();
            fields.push(format!("\"probabilities\":{{{}}}", pairs.join(",")));
        }
        let _ = writeln!(text, "{{{}}}", fields.join(","));
    }
}

fn line<S: AsRef<str>>(fields: impl Iterator<Item = S>) -> String {
    let mut text = String::new();
    for (i, field) in fields.enumerate() {
        text.push_str(if i > 0 { "," } else { "" });
        text.push_str(field.as_ref());
    }
    text.push('\n');
    text
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
