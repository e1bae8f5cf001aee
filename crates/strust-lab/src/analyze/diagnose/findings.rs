//! Collects findings.

use super::Finding;

/// The findings so far.
#[derive(Default)]
pub(super) struct Sentences {
    pub all: Vec<Finding>,
}

impl Sentences {
    /// Adds a sentence with its numbers; those that are not finite are left out.
    pub fn find(&mut self, about: &str, text: String, numbers: &[(&str, f64)]) {
        let numbers = numbers.iter().filter(|(_, value)| value.is_finite());
        let numbers = numbers.map(|(name, value)| ((*name).to_string(), *value)).collect();
        self.all.push(Finding { about: about.into(), text, numbers });
    }
}
