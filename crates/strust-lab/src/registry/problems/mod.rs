//! The problems, one file each.

use super::{
    entry::{Entry, config, values},
    setup::{Quantity, Setup, Visitor, metric},
};
use crate::{
    Error,
    data::{experiment::ProblemSpec, parameters::Parameters, summary::Metric},
};
use std::path::Path;
use strust::config::Config;

/// Everything about one problem.
pub(crate) trait ProblemEntry {
    /// Its parameters.
    type Config: Config;
    /// Its name in experiment files.
    const NAME: &'static str = Self::Config::NAME;
    /// One line for people.
    const TITLE: &'static str;
    /// Whether it has a constraint.
    const CONSTRAINED: bool = false;
    /// Whether libtorch runs it, on a device that the experiment chooses.
    const NETWORK: bool = false;
    /// The metrics after every epoch, with their labels, in display order. A run minimizes the first one.
    const METRICS: &'static [(Quantity, &'static str)] = &[(Quantity::Objective, "objective f(x)")];
    /// The parameters of synthetic data, which have no effect if there is a data file.
    const SYNTHETIC: &'static [&'static str] = &[];

    /// Further checks, in addition to ranges and relations.
    fn check(_config: &Self::Config) -> Result<(), String> {
        Ok(())
    }

    /// Whether it uses single precision.
    fn is_single(_config: &Self::Config) -> bool {
        false
    }

    /// Whether a parameter has an effect, so that titles and tables show it.
    fn has_effect(parameter: &str, parameters: &Parameters) -> bool {
        if text(parameters, "data").is_empty() { parameter != "data" } else { !Self::SYNTHETIC.contains(&parameter) }
    }

    /// Constructs the problem and passes it to the visitor.
    fn visit<V: Visitor>(config: Self::Config, seed: u64, visitor: V) -> Result<V::Output, Error>;
}

/// Declares the modules of a list of files, each with a [`ProblemEntry`] called `Problem`, and generates all functions
/// that look up a problem by name.
macro_rules! problems {
    ($($module:ident),* $(,)?) => {
        $(pub(crate) mod $module;)*

        /// All problems, in the order of the list.
        #[must_use]
        pub fn all() -> Vec<Entry> {
            vec![$(entry::<$module::Problem>()),*]
        }

        /// The metrics of a problem; empty for an unknown one.
        pub(crate) fn quantities(kind: &str) -> &'static [(Quantity, &'static str)] {
            match kind {
                $(<$module::Problem as ProblemEntry>::NAME => $module::Problem::METRICS,)*
                _ => &[],
            }
        }

        /// Whether libtorch runs the problem, on a device that the experiment chooses.
        #[must_use]
        pub fn is_network(problem: &ProblemSpec) -> bool {
            match problem.kind.as_str() {
                $(<$module::Problem as ProblemEntry>::NAME => $module::Problem::NETWORK,)*
                _ => false,
            }
        }

        /// Whether the problem uses single precision.
        pub(crate) fn is_single(problem: &ProblemSpec) -> bool {
            match problem.kind.as_str() {
                $(<$module::Problem as ProblemEntry>::NAME => {
                    parsed::<$module::Problem>(&problem.parameters).is_ok_and(|c| $module::Problem::is_single(&c))
                })*
                _ => false,
            }
        }

        fn has_effect(kind: &str, parameter: &str, parameters: &Parameters) -> bool {
            match kind {
                $(<$module::Problem as ProblemEntry>::NAME => $module::Problem::has_effect(parameter, parameters),)*
                _ => true,
            }
        }

        /// Constructs a problem from a seed and passes it to the visitor.
        pub(crate) fn visit<V: Visitor>(problem: &ProblemSpec, seed: u64, visitor: V) -> Result<V::Output, Error> {
            match problem.kind.as_str() {
                $(<$module::Problem as ProblemEntry>::NAME => {
                    let config = parsed::<$module::Problem>(&problem.parameters).map_err(Error::Misfit)?;
                    $module::Problem::visit(config, seed, visitor)
                })*
                kind => Err(Error::Misfit(unknown(kind))),
            }
        }
    };
}

// One line per problem, in the order of the list.
problems! {
    subspace,
    least_squares,
    logistic,
    softmax,
    factorization,
    mlp,
    cifar10,
}

fn entry<P: ProblemEntry>() -> Entry {
    Entry::new::<P::Config>(P::NAME, P::TITLE, P::CONSTRAINED, |given| Ok(values(&parsed::<P>(given)?)))
}

/// The checked configuration of some parameters.
pub(crate) fn parsed<P: ProblemEntry>(parameters: &Parameters) -> Result<P::Config, String> {
    let config = config(parameters)?;
    P::check(&config)?;
    Ok(config)
}

fn unknown(kind: &str) -> String {
    format!("there is no problem `{kind}`")
}

/// The metrics of a problem.
pub(crate) fn metrics(kind: &str) -> Vec<Metric> {
    quantities(kind).iter().map(|&(quantity, label)| metric(quantity, label)).collect()
}

/// The parameters of a problem that have an effect, with the name of a data file but not its folder.
pub(crate) fn with_effect(kind: &str, parameters: &Parameters) -> Parameters {
    let mut shown = parameters.clone();
    shown.retain(|name, _| has_effect(kind, name, parameters));
    if let Some(toml::Value::String(data)) = shown.get_mut("data") {
        // A report must not depend on the path of the file on this machine.
        *data = Path::new(data).file_name().unwrap_or_default().to_string_lossy().into_owned();
    }
    shown
}

/// A parameter that is a text; empty if it is missing.
fn text<'a>(parameters: &'a Parameters, name: &str) -> &'a str {
    parameters.get(name).and_then(toml::Value::as_str).unwrap_or_default()
}

/// Refuses synthetic data that does not fit into memory.
fn check_size(rows: u64, columns: u64) -> Result<(), Error> {
    const MOST: u64 = 1 << 31;
    if rows.saturating_mul(columns) <= MOST {
        return Ok(());
    }
    let value = format!("{rows} × {columns}");
    let allowed = format!("at most {MOST} numbers, 16 GiB");
    Err(strust::Error::OutOfRange { owner: "synthetic data", field: "size", value, allowed }.into())
}

/// Fields of a configuration that hold an enum.
macro_rules! words {
    ($($word:ident),*) => {$(
        impl strust::config::FieldValue for $word {
            fn number(&self) -> Option<f64> {
                None
            }
        }
    )*};
}
use words;
