//! Two classes and several groups, with bounds between the groups.

use super::{
    AnySetup, Assembler, Metrics, Names, ProblemEntry, Quantity, check_size, from_file::FileSize, number, text,
};
use crate::{
    Error,
    data::{parameters::Parameters, paths::path_of},
    registry::entry::field_words,
};
use serde::{Deserialize, Serialize};
use strust_problems::grouped::{Compared, GroupRule, Grouped, GroupedFile, GroupedRows};

strust::config! {
    /// Bounds between groups.
    pub struct GroupsConfig for "groups" {
        /// Number of synthetic points, if there is no data file. They have 10 features.
        pub n: u64 = 6000, Whole(Range::closed(20.0, 1e7));
        /// Share of the synthetic points in the first group; the second one has the others.
        pub share: f64 = 0.4, Number(Range::from_to(0.01, 0.99));
        /// Number of hidden units of a network; 0 is logistic regression.
        pub hidden: u64 = 0, Whole(Range::closed(0.0, 1e5));
        /// What is compared between groups: the mean score; opportunity, the mean score of the positive rows; the loss, a mean probability of the wrong class; or the ratio of the mean scores.
        pub compare: ComparedWord = ComparedWord::Score, OneOf(&["score", "opportunity", "loss", "ratio"]);
        /// The largest difference, or the smallest ratio.
        pub bound: f64 = 0.02, Number(Range::from_to(0.0, 1.0));
        /// A file with a header: .csv, also .gz and .xz. Every third row is held out, to measure the accuracy.
        pub data: String = String::new(), Text("a file, or empty");
        /// The column of the classes in the file.
        pub label: String = String::new(), Text("a column's name, or empty");
        /// The word of the positive class.
        pub positive: String = String::new(), Text("a word, or empty");
        /// The column of the groups. It is a feature, too.
        pub column: String = String::new(), Text("a column's name, or empty");
        /// The groups: words of the column, `<=25` for numbers up to one, or `rest`, with commas between them.
        pub groups: String = String::new(), Text("words with commas, or empty");
    }
}

/// [`Compared`] as a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ComparedWord {
    /// See [`Compared::Score`].
    Score,
    /// See [`Compared::Opportunity`].
    Opportunity,
    /// See [`Compared::Loss`].
    Loss,
    /// See [`Compared::Ratio`].
    Ratio,
}

field_words!(ComparedWord);

impl From<ComparedWord> for Compared {
    fn from(word: ComparedWord) -> Self {
        match word {
            ComparedWord::Score => Self::Score,
            ComparedWord::Opportunity => Self::Opportunity,
            ComparedWord::Loss => Self::Loss,
            ComparedWord::Ratio => Self::Ratio,
        }
    }
}

const OBJECTIVE: (Quantity, &str) = (Quantity::Objective, "objective f(x)");
const ERROR: (Quantity, &str) = (Quantity::ObjectiveError, "objective error |f(x) − f*|");
const VIOLATION: (Quantity, &str) = (Quantity::ConstraintNorm, "violation of the bounds ‖c(x)‖");
const TEST: (Quantity, &str) = (Quantity::TestAccuracy, "test accuracy");

impl ProblemEntry for GroupsConfig {
    const TITLE: &'static str = "Two classes and bounds between groups of rows, synthetic or from a file";
    const CONSTRAINED: bool = true;
    const METHOD: &'static str = "in-expectation";
    const METRICS: Metrics = &[ERROR, VIOLATION];
    const OPTIONAL: Names = &["hidden", "label", "positive", "column", "groups"];
    const SYNTHETIC: Names = &["n", "share"];

    fn check_more(c: &Self) -> Result<(), String> {
        let of_file = [("label", &c.label), ("positive", &c.positive), ("column", &c.column), ("groups", &c.groups)];
        match of_file.iter().find(|(_, value)| value.is_empty() != c.data.is_empty()) {
            Some((name, _)) if c.data.is_empty() => Err(format!("`{name}` belongs to a file: give it as `data`")),
            Some((name, _)) => Err(format!("`data` needs `{name}`, too")),
            None if !c.data.is_empty() && GroupRule::list(&c.groups).len() < 2 => {
                Err("`groups` must name at least two groups, such as \"Female, Male\"".into())
            }
            None => Ok(()),
        }
    }

    fn metrics(parameters: &Parameters) -> Metrics {
        match (number(parameters, "hidden") > 0.0, text(parameters, "data").is_empty()) {
            (false, true) => Self::METRICS,
            (false, false) => &[ERROR, VIOLATION, TEST],
            (true, true) => &[OBJECTIVE, VIOLATION],
            (true, false) => &[OBJECTIVE, VIOLATION, TEST],
        }
    }

    fn setup(c: Self, seed: u64, assembler: Assembler) -> Result<AnySetup, Error> {
        let model = |rows| Grouped::new(rows, c.hidden as usize, c.compare.into(), c.bound);
        if c.data.is_empty() {
            check_size(c.n, 11)?;
            let groups = [(c.share, 1.0), (1.0 - c.share, 1.0)];
            return Ok(assembler.finish(model(GroupedRows::made(c.n as usize, &groups, seed))?));
        }
        let groups = GroupRule::list(&c.groups);
        let file = GroupedFile { target: &c.label, positive: &c.positive, column: &c.column, groups: &groups };
        let (rows, test) = GroupedRows::read(&file, &path_of(&c.data), None)?;
        let widths = [rows.inputs(), c.hidden as usize, 1];
        FileSize::of_matrix(&c.data, rows.len(), rows.inputs()).check_network(&widths, size_of::<f64>())?;
        Ok(assembler.finish(model(rows)?.with_test(test)))
    }
}
