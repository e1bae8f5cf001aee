//! ResNet-20 on CIFAR-10, with libtorch.

use super::{AnySetup, Assembler, ProblemEntry, Quantity, network_config::Cifar10Config, networks, text};
use crate::{Error, data::parameters::Parameters};

pub(crate) struct Problem;

impl ProblemEntry for Problem {
    type Config = Cifar10Config;
    const TITLE: &'static str = "ResNet-20 on CIFAR-10, with libtorch";
    const NETWORK: bool = true;
    const NEEDS_DATA: bool = true;
    const METRICS: &'static [(Quantity, &'static str)] =
        &[(Quantity::TrainLoss, "training loss"), (Quantity::TestAccuracy, "test accuracy")];

    fn is_single(_: &Cifar10Config) -> bool {
        true
    }

    fn has_effect(parameter: &str, parameters: &Parameters) -> bool {
        let (data, device) = (text(parameters, "data"), text(parameters, "device"));
        match parameter {
            // The machine's description names the device and the number of threads.
            "device" | "threads" => data.is_empty(),
            "train_images" | "test_images" => parameters[parameter].as_integer() != Some(0),
            "precision" | "launch" => device != "cpu",
            "data" if data.is_empty() => false,
            // CIFAR-10 is the same in every folder.
            "data" | "checksums" => data.is_empty() || text(parameters, "checksums") != "official",
            _ => true,
        }
    }

    fn setup(c: Self::Config, _: u64, assembler: Assembler) -> Result<AnySetup, Error> {
        networks::cifar10(&c, assembler)
    }
}
