//! A small transformer over the characters of a text, with libtorch.

pub(super) use super::network_config::GptConfig;
use super::{AnySetup, Assembler, Metrics, ProblemEntry, Quantity, networks};
use crate::Error;

impl ProblemEntry for GptConfig {
    const TITLE: &'static str = "A small transformer over the characters of a text, with libtorch";
    const NETWORK: bool = true;
    const METRICS: Metrics = &[
        (Quantity::TrainLoss, "training loss, nats per character"),
        (Quantity::TestLoss, "test loss, nats per character"),
    ];

    fn check_more(c: &Self) -> Result<(), String> {
        if c.width.is_multiple_of(c.heads) {
            return Ok(());
        }
        Err(format!("gpt: `heads` is {}, but must divide `width`, which is {}", c.heads, c.width))
    }

    fn setup(c: Self, _: u64, assembler: Assembler) -> Result<AnySetup, Error> {
        networks::gpt(&c, assembler)
    }
}
