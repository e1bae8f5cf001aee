//! ResNet-20 on CIFAR-10, with libtorch.

use super::{ProblemEntry, AnySetup, Assembler, Quantity, networks, text, words};
use crate::{Error, data::parameters::Parameters, registry::entry::Switch};
use serde::{Deserialize, Serialize};

strust::config! {
    /// ResNet-20 on CIFAR-10.
    pub struct Cifar10Config for "cifar10" {
        /// The folder with the binary files, or the file cifar-10-binary.tar.gz; `strust data cifar10` downloads it. Required.
        pub data: String = String::new(), Text("a folder or a file");
        /// Number of training images, from the start of the data; 0 is all.
        pub train_images: u64 = 0, Whole(Range::closed(0.0, 1e7));
        /// Number of test images, from the start of the data; 0 is all.
        pub test_images: u64 = 0, Whole(Range::closed(0.0, 1e7));
        /// Whether training images are cropped and mirrored at random: on or off.
        pub augment: Switch = Switch::On, OneOf(&["on", "off"]);
        /// Whether the files must be the original CIFAR-10; none allows your own images in the same format.
        pub checksums: ImageFiles = ImageFiles::Official, OneOf(&["official", "none"]);
        /// The device of the network: cpu, cuda, cuda:1 and so on; auto is the first GPU, otherwise the CPU.
        pub device: String = "auto".into(), Text("cpu, cuda, cuda:N or auto");
        /// Precision of convolutions and products on a GPU: single; tf32, with factors rounded to ten bits; bf16, with the network in bfloat16 and the loss, which STR's ratio uses, in single. The CPU always uses single.
        pub precision: NetworkPrecision = NetworkPrecision::Tf32, OneOf(&["single", "tf32", "bf16"]);
        /// How SGD, Adam and STR run a step on a GPU: graph, captured once and replayed; eager, operation by operation.
        pub launch: StepLaunch = StepLaunch::Graph, OneOf(&["graph", "eager"]);
        /// Threads per operation on the CPU. The last digits of the results depend on it, so the experiment sets it. Other cores run other jobs.
        pub threads: u64 = 1, Whole(Range::closed(1.0, 1024.0));
    }
}

/// The precision of a [`Cifar10Config`] on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkPrecision {
    /// Single precision.
    Single,
    /// Single precision, with factors of products rounded to TF32.
    Tf32,
    /// bfloat16 in the network, single precision for its parameters and its loss.
    Bf16,
}

/// How a step of a [`Cifar10Config`] runs on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepLaunch {
    /// As one CUDA graph.
    Graph,
    /// Operation by operation.
    Eager,
}

/// Which files a [`Cifar10Config`] accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageFiles {
    /// The original files of CIFAR-10, checked by their checksums.
    Official,
    /// Any files of the same format.
    None,
}

words!(NetworkPrecision, StepLaunch, ImageFiles);

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
