//! A small convolutional network, with libtorch.

pub(super) use super::network_config::ConvnetConfig;
use super::{AnySetup, Assembler, Metrics, ProblemEntry, Quantity, networks};
use crate::Error;

impl ProblemEntry for ConvnetConfig {
    const TITLE: &'static str = "A small convolutional network on digits, with libtorch";
    const NETWORK: bool = true;
    const METRICS: Metrics = &[(Quantity::TrainLoss, "training loss"), (Quantity::TestAccuracy, "test accuracy")];

    fn setup(c: Self, _: u64, assembler: Assembler) -> Result<AnySetup, Error> {
        networks::convnet(&c, assembler)
    }
}
