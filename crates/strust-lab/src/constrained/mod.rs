//! Problems with constraints: small ones with known solutions, and tasks with data.
//!
//! ```text
//! strust_problems::constrained  → Part (checks/NAME.json)      ┐
//! experiments/constrained.toml  → grid searches → runs         ┼ Summary → report.html
//! reference file                → results of other programs    ┘
//! ```
//!
//! A part depends only on the settings. It is written when it is finished, so a stopped run resumes with the next part.
//! Jobs on tasks with data are those of experiments.

mod kkt;
mod noise;
mod parts;
mod problems;
mod reference;
mod results;
mod run;
mod settings;
mod solve;
mod starts;
mod tasks;
mod units;

pub use reference::{ReferenceFile, ReferenceProblem, ReferenceResult};
pub(crate) use run::run_part;
pub use run::{ConstrainedPlan, load_summary, publish, resume, start};
pub use settings::ConstrainedSettings;
