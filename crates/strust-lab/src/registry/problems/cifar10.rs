//! ResNet-20 on CIFAR-10, with libtorch.

pub(super) use super::network_config::Cifar10Config;
use super::{AnySetup, Assembler, Metrics, ProblemEntry, Quantity, networks, text};
use crate::{Error, data::parameters::Parameters};

impl ProblemEntry for Cifar10Config {
    const TITLE: &'static str = "ResNet-20 on CIFAR-10, with libtorch";
    const NETWORK: bool = true;
    const NEEDS_DATA: bool = true;
    const METRICS: Metrics = &[(Quantity::TrainLoss, "training loss"), (Quantity::TestAccuracy, "test accuracy")];

    fn has_effect(parameter: &str, parameters: &Parameters) -> bool {
        let (data, device) = (text(parameters, "data"), text(parameters, "device"));
        match parameter {
            // The machine's description names the device and the number of threads.
            "device" | "threads" => data.is_empty(),
            "classes" => text(parameters, parameter) != "objects",
            "width" => parameters[parameter].as_integer() != Some(1),
            "train_images" | "test_images" => parameters[parameter].as_integer() != Some(0),
            "precision" | "launch" => device != "cpu",
            "data" if data.is_empty() => false,
            // CIFAR-10 is the same in every folder.
            "data" | "checksums" => data.is_empty() || text(parameters, "checksums") != "official",
            _ => true,
        }
    }

    fn setup(c: Self, _: u64, assembler: Assembler) -> Result<AnySetup, Error> {
        networks::cifar10(&c, assembler)
    }
}
