//! A small transformer over the characters of a text, with libtorch.

use super::{AnySetup, Assembler, ProblemEntry, Quantity, network_config::GptConfig, network_effect, networks};
use crate::{Error, data::parameters::Parameters};

pub(crate) struct Problem;

impl ProblemEntry for Problem {
    type Config = GptConfig;
    const TITLE: &'static str = "A small transformer over the characters of a text, with libtorch";
    const NETWORK: bool = true;
    const METRICS: &'static [(Quantity, &'static str)] = &[
        (Quantity::TrainLoss, "training loss, nats per character"),
        (Quantity::TestLoss, "test loss, nats per character"),
    ];

    fn check(c: &GptConfig) -> Result<(), String> {
        if c.width.is_multiple_of(c.heads) {
            return Ok(());
        }
        Err(format!("gpt: `heads` is {}, but must divide `width`, which is {}", c.heads, c.width))
    }

    fn is_single(_: &GptConfig) -> bool {
        true
    }

    fn has_effect(parameter: &str, parameters: &Parameters) -> bool {
        network_effect::<Self>(parameter, parameters)
    }

    fn setup(c: Self::Config, _: u64, assembler: Assembler) -> Result<AnySetup, Error> {
        networks::gpt(&c, assembler)
    }
}
