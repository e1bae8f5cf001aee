//! Rules for weights, as people write them: `age >= 0`, `0 <= age <= 1`, `2*age - 0.5*hours <= 3`.

use super::WeightConstraint;
use crate::{Error, transform::Encoder};
use std::{fmt::Write as _, ops::Range};
use strust_data::{
    transform::EncodedColumn,
    words::{nearest, quoted},
};

/// The names that a rule may use, each with the inputs that it stands for.
pub(crate) type InputNames = [(String, Range<usize>)];

/// The names of the columns and of the inputs of a model.
pub(crate) fn input_names(encoder: &Encoder) -> Vec<(String, Range<usize>)> {
    let mut names: Vec<_> = encoder.input_names().into_iter().enumerate().map(|(j, name)| (name, j..j + 1)).collect();
    let mut first = 0;
    for column in encoder.columns.iter().map(|column: &EncodedColumn| (&column.name, column.inputs())) {
        if column.1 > 1 {
            names.push((column.0.clone(), first..first + column.1));
        }
        first += column.1;
    }
    names
}

/// Names for inputs that have none.
pub(crate) fn numbered(inputs: usize) -> Vec<(String, Range<usize>)> {
    (0..inputs).map(|j| (format!("weight {}", j + 1), j..j + 1)).collect()
}

/// What must hold for the weights w in the units of the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WeightRule {
    /// For people.
    pub(crate) text: String,
    /// The option or the text that it comes from.
    pub(crate) source: String,
    pub(crate) kind: RuleKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RuleKind {
    /// low ≤ Σ aⱼwⱼ ≤ high, with the pairs (j, aⱼ), none of which is 0.
    Linear { terms: Vec<(usize, f64)>, low: f64, high: f64 },
    /// Σ wⱼ² = 1.
    UnitNorm,
}

impl WeightRule {
    /// The rules of a constraint.
    pub(crate) fn all(constraint: &WeightConstraint, names: &InputNames) -> Result<Vec<Self>, Error> {
        let inputs = names.iter().map(|(_, range)| range.end).max().unwrap_or(0);
        let mut rules = Vec::new();
        for text in &constraint.rules {
            rules.extend(parsed(text, names)?);
        }
        if constraint.nonnegative {
            let at_least_0 = |j: usize| Self::linear(vec![(j, 1.0)], 0.0, f64::INFINITY, "--nonnegative", names);
            rules.extend((0..inputs).map(at_least_0));
        }
        if constraint.sum_to_one {
            let terms = (0..inputs).map(|j| (j, 1.0)).collect();
            let kind = RuleKind::Linear { terms, low: 1.0, high: 1.0 };
            rules.push(Self { text: "the sum of the weights = 1".into(), source: "--sum-to-one".into(), kind });
        }
        if constraint.unit_norm {
            let text = "the norm of the weights = 1".into();
            rules.push(Self { text, source: "--unit-norm".into(), kind: RuleKind::UnitNorm });
        }
        Ok(rules)
    }

    fn linear(terms: Vec<(usize, f64)>, low: f64, high: f64, source: &str, names: &InputNames) -> Self {
        let mut sum = String::new();
        for &(j, a) in &terms {
            let factor = if a.abs().total_cmp(&1.0).is_eq() { String::new() } else { format!("{}·", a.abs()) };
            let sign = match (sum.is_empty(), a < 0.0) {
                (true, false) => "",
                (true, true) => "−",
                (false, false) => " + ",
                (false, true) => " − ",
            };
            let _ = write!(sum, "{sign}{factor}`{}`", names[j].0);
        }
        let text = match (low.is_finite(), high.is_finite()) {
            _ if low.total_cmp(&high).is_eq() => format!("{sum} = {low}"),
            (true, true) => format!("{low} ≤ {sum} ≤ {high}"),
            (true, false) => format!("{sum} ≥ {low}"),
            _ => format!("{sum} ≤ {high}"),
        };
        Self { text, source: source.into(), kind: RuleKind::Linear { terms, low, high } }
    }

    /// How far weights are from satisfying it, relative to the size of its terms if that is above 1.
    pub(crate) fn violation(&self, weights: &[f64]) -> f64 {
        match &self.kind {
            RuleKind::UnitNorm => (weights.iter().map(|w| w * w).sum::<f64>().sqrt() - 1.0).abs(),
            RuleKind::Linear { terms, low, high } => {
                let size: f64 = terms.iter().map(|&(j, a)| (a * weights[j]).abs()).sum();
                let sum: f64 = terms.iter().map(|&(j, a)| a * weights[j]).sum();
                (low - sum).max(sum - high).max(0.0) / size.max(1.0)
            }
        }
    }
}

/// The rules of a text: one, or one for each category of a column.
fn parsed(text: &str, names: &InputNames) -> Result<Vec<WeightRule>, Error> {
    let mut reader = RuleReader { text, rest: text, names };
    let mut sides = vec![reader.sum()?];
    let mut relations = Vec::new();
    while let Some(relation) = reader.relation() {
        relations.push(relation);
        sides.push(reader.sum()?);
    }
    if !reader.rest.is_empty() || relations.is_empty() {
        return reader.wrong(&format!("there must be <=, >= or = before {}", quoted(reader.rest)));
    }
    let (infinity, wrong) = (f64::INFINITY, |why: &str| reader.wrong(why));
    let (sum, low, high) = match (&sides[..], &relations[..]) {
        ([left, right], [relation]) => {
            let sum = left.minus(right);
            // Not −0.
            let limit = 0.0 - sum.constant;
            match relation {
                RuleRelation::AtMost => (sum, -infinity, limit),
                RuleRelation::AtLeast => (sum, limit, infinity),
                RuleRelation::Equal => (sum, limit, limit),
            }
        }
        ([first, middle, last], [one, other]) if one == other && *one != RuleRelation::Equal => {
            if !(first.terms.is_empty() && last.terms.is_empty()) {
                return wrong("between two bounds there may be names only in the middle");
            }
            let ends = [first.constant - middle.constant, last.constant - middle.constant];
            let [low, high] = if *one == RuleRelation::AtMost { ends } else { [ends[1], ends[0]] };
            if low > high {
                return wrong(&format!("nothing is between {low} and {high}"));
            }
            (middle.clone(), low, high)
        }
        _ => return wrong("it must have one relation, or two bounds such as 0 <= age <= 1"),
    };
    let one = |terms: Vec<(usize, f64)>| WeightRule::linear(terms, low, high, text, names);
    let terms: Vec<(usize, f64)> = sum.terms.into_iter().filter(|(_, a)| *a != 0.0).collect();
    match &terms[..] {
        [] => wrong("it names no column"),
        [(name, a)] => Ok(names[*name].1.clone().map(|j| one(vec![(j, *a)])).collect()),
        _ => match terms.iter().map(|(name, _)| &names[*name]).find(|(_, inputs)| inputs.len() > 1) {
            Some((column, inputs)) => {
                let example = &names[inputs.start].0;
                wrong(&format!("`{column}` has {} inputs: name one of them, such as `{example}`", inputs.len()))
            }
            None => Ok(vec![one(terms.iter().map(|(name, a)| (names[*name].1.start, *a)).collect())]),
        },
    }
}

/// A sum of named weights with factors, and a number.
#[derive(Debug, Clone, Default)]
struct NamedSum {
    /// The position of a name, and its factor.
    terms: Vec<(usize, f64)>,
    constant: f64,
}

impl NamedSum {
    fn add(&mut self, name: usize, factor: f64) {
        match self.terms.iter_mut().find(|(known, _)| *known == name) {
            Some((_, a)) => *a += factor,
            None => self.terms.push((name, factor)),
        }
    }
    fn minus(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        other.terms.iter().for_each(|&(name, a)| sum.add(name, -a));
        sum.constant -= other.constant;
        sum
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum RuleRelation {
    AtMost,
    AtLeast,
    Equal,
}

const RELATIONS: [(&str, RuleRelation); 6] = [
    ("<=", RuleRelation::AtMost),
    ("≤", RuleRelation::AtMost),
    (">=", RuleRelation::AtLeast),
    ("≥", RuleRelation::AtLeast),
    ("==", RuleRelation::Equal),
    ("=", RuleRelation::Equal),
];

/// Reads a rule from left to right.
struct RuleReader<'a> {
    text: &'a str,
    rest: &'a str,
    names: &'a InputNames,
}

impl RuleReader<'_> {
    fn wrong<T>(&self, why: &str) -> Result<T, Error> {
        Err(Error::Option(format!("the constraint {}: {why}", quoted(self.text))))
    }

    /// Removes a word from the front, if it is there.
    fn takes(&mut self, word: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(word);
        rest.map(|rest| self.rest = rest.trim_start()).is_some()
    }

    fn relation(&mut self) -> Option<RuleRelation> {
        RELATIONS.iter().find(|(word, _)| self.takes(word)).map(|(_, relation)| *relation)
    }

    fn sum(&mut self) -> Result<NamedSum, Error> {
        let mut sum = NamedSum::default();
        let mut sign = 1.0;
        loop {
            while self.takes("-") || self.takes("−") {
                sign = -sign;
            }
            let factor = self.number();
            let name = match factor {
                Some(_) if !(self.takes("*") || self.takes("·")) => None,
                _ => Some(self.name()?),
            };
            let size = sign * factor.unwrap_or(1.0);
            match name {
                Some(name) => sum.add(name, size),
                None => sum.constant += size,
            }
            sign = match () {
                () if self.takes("+") => 1.0,
                () if self.takes("-") || self.takes("−") => -1.0,
                () => return Ok(sum),
            };
        }
    }

    /// A number, unless a longer name starts here.
    fn number(&mut self) -> Option<f64> {
        let digits = |text: &str| text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        let rest = self.rest;
        let mut end = digits(rest);
        if let Some(exponent) = rest[end..].strip_prefix(['e', 'E']).filter(|_| end > 0) {
            let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            let start = rest.len() - exponent.len();
            end = if digits(exponent) > 0 { start + digits(exponent) } else { end };
        }
        let value = rest[..end].parse().ok().filter(|value: &f64| value.is_finite())?;
        if self.known().is_some_and(|name| self.names[name].0.len() > end) {
            return None;
        }
        self.rest = rest[end..].trim_start();
        Some(value)
    }

    /// The longest known name at the front.
    fn known(&self) -> Option<usize> {
        let is_here = |name: &str| {
            let after = self.rest.strip_prefix(name).filter(|_| !name.is_empty())?;
            let word = |c: char| c.is_alphanumeric() || c == '_';
            let ends = !(name.ends_with(word) && after.starts_with(word));
            ends.then_some(name.len())
        };
        let found = self.names.iter().enumerate().filter_map(|(k, (name, _))| Some((is_here(name)?, k)));
        found.max_by_key(|(length, k)| (*length, std::cmp::Reverse(*k))).map(|(_, k)| k)
    }

    fn name(&mut self) -> Result<usize, Error> {
        if let Some(quote) = self.rest.chars().next().filter(|c| ['`', '"', '\''].contains(c)) {
            let inside = &self.rest[1..];
            let Some(end) = inside.find(quote) else { return self.wrong(&format!("a {quote} is not closed")) };
            let (name, rest) = (&inside[..end], inside[end + 1..].trim_start());
            let Some(known) = self.names.iter().position(|(known, _)| known == name) else {
                return self.unknown(name);
            };
            self.rest = rest;
            return Ok(known);
        }
        let Some(known) = self.known() else {
            let end = self.rest.find(['<', '>', '=', '≤', '≥', '+', '*']).unwrap_or(self.rest.len());
            return self.unknown(self.rest[..end].trim());
        };
        self.rest = self.rest[self.names[known].0.len()..].trim_start();
        Ok(known)
    }

    fn unknown<T>(&self, name: &str) -> Result<T, Error> {
        if name.is_empty() {
            return self.wrong(&format!("there must be a column or a number before {}", quoted(self.rest)));
        }
        let hint = match nearest(name, self.names.iter().map(|(known, _)| known.as_str())) {
            Some(known) => format!("; did you mean `{known}`?"),
            None => ": use the name of a column, or of an input as `strust inspect` shows it".into(),
        };
        self.wrong(&format!("the model has no input `{name}`{hint}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<(String, Range<usize>)> {
        let inputs = ["age", "net income", "a-b", "city = Oslo", "city = Rome"];
        let named = inputs.iter().enumerate().map(|(j, name)| (name.to_string(), j..j + 1));
        named.chain([("city".to_string(), 3..5)]).collect()
    }
    fn texts(text: &str) -> Vec<String> {
        parsed(text, &names()).unwrap().into_iter().map(|rule| rule.text).collect()
    }

    #[test]
    fn rules_are_read_as_people_write_them() {
        for (text, expected) in [
            ("age>=0", "`age` ≥ 0"),
            ("age ≤ 2.5e0", "`age` ≤ 2.5"),
            ("0<=age<=1", "0 ≤ `age` ≤ 1"),
            ("1 >= age >= -1", "-1 ≤ `age` ≤ 1"),
            ("net income = 2", "`net income` = 2"),
            ("`net income` == 2", "`net income` = 2"),
            ("a-b - age <= 3", "`a-b` − `age` ≤ 3"),
            ("2*age - 0.5*net income <= 3", "2·`age` − 0.5·`net income` ≤ 3"),
            ("age <= net income + 1", "`age` − `net income` ≤ 1"),
            ("city = Rome>=0", "`city = Rome` ≥ 0"),
            ("'city = Rome' - 'city = Oslo' = 0", "`city = Rome` − `city = Oslo` = 0"),
            ("age + age <= 1", "2·`age` ≤ 1"),
        ] {
            assert_eq!(texts(text), [expected], "{text}");
        }
        assert_eq!(texts("city>=0"), ["`city = Oslo` ≥ 0", "`city = Rome` ≥ 0"]);
    }

    #[test]
    fn a_rule_that_cannot_be_read_is_an_error_that_says_why() {
        for (text, why) in [
            ("aeg>=0", "the model has no input `aeg`; did you mean `age`?"),
            ("`wage>=0", "a ` is not closed"),
            (
                "population>=0",
                "the model has no input `population`: use the name of a column, or of an input as `strust inspect` shows it",
            ),
            ("age", "there must be <=, >= or = before \"\""),
            ("age < 1", "there must be <=, >= or = before \"< 1\""),
            ("age >=", "there must be a column or a number before \"\""),
            ("1 <= 2", "it names no column"),
            ("age <= age", "it names no column"),
            ("age + city <= 1", "`city` has 2 inputs: name one of them, such as `city = Oslo`"),
            ("age <= 1 <= net income", "between two bounds there may be names only in the middle"),
            ("1 <= age <= 0", "nothing is between 1 and 0"),
            ("0 <= age >= 1", "it must have one relation, or two bounds such as 0 <= age <= 1"),
        ] {
            let found = parsed(text, &names()).unwrap_err().to_string();
            assert_eq!(found, format!("the constraint {text:?}: {why}"));
        }
    }
}
