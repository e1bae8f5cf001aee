//! A small convolutional network, with libtorch.

use super::{AnySetup, Assembler, ProblemEntry, Quantity, network_config::ConvnetConfig, network_effect, networks};
use crate::{Error, data::parameters::Parameters};

pub(crate) struct Problem;

impl ProblemEntry for Problem {
    type Config = ConvnetConfig;
    const TITLE: &'static str = "A small convolutional network on digits, with libtorch";
    const NETWORK: bool = true;
    const METRICS: &'static [(Quantity, &'static str)] =
        &[(Quantity::TrainLoss, "training loss"), (Quantity::TestAccuracy, "test accuracy")];

    fn is_single(_: &ConvnetConfig) -> bool {
        true
    }

    fn has_effect(parameter: &str, parameters: &Parameters) -> bool {
        network_effect::<Self>(parameter, parameters)
    }

    fn setup(c: Self::Config, _: u64, assembler: Assembler) -> Result<AnySetup, Error> {
        networks::convnet(&c, assembler)
    }
}
