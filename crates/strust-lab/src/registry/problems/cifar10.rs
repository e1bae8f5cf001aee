//! ResNet-20 on CIFAR-10, by libtorch.

#[cfg(feature = "torch")]
pub(crate) mod network;

use super::{ProblemEntry, Quantity, Visitor, text, words};
use crate::{Error, data::parameters::Parameters};
use serde::{Deserialize, Serialize};

strust::config! {
    /// ResNet-20 on CIFAR-10.
    pub struct Cifar10Config for "cifar10" {
        /// The folder with the binary files, or cifar-10-binary.tar.gz itself; `strust data cifar10` gets it. Required.
        pub data: String = String::new(), Text("a folder or a file");
        /// Training images, the first ones of the data; 0 is all.
        pub train_images: u64 = 0, Whole(Range::closed(0.0, 1e7));
        /// Test images, the first ones of the data; 0 is all.
        pub test_images: u64 = 0, Whole(Range::closed(0.0, 1e7));
        /// Whether training images are cropped and mirrored at random: on or off.
        pub augment: Switch = Switch::On, OneOf(&["on", "off"]);
        /// Whether the files must be those of CIFAR-10; none is for images of your own in the same format.
        pub checksums: ImageFiles = ImageFiles::Official, OneOf(&["official", "none"]);
        /// Where the network runs: cpu, cuda, cuda:1 and so on; auto is the first GPU, or else the CPU.
        pub device: String = "auto".into(), Text("cpu, cuda, cuda:N or auto");
        /// Arithmetic of convolutions and products on a GPU: single; tf32, whose factors are rounded to ten bits; bf16, the network in bfloat16 and the loss, from which STR's ratio comes, in single. On the CPU it is single.
        pub precision: NetworkPrecision = NetworkPrecision::Tf32, OneOf(&["single", "tf32", "bf16"]);
        /// How SGD, Adam and STR give a step to a GPU: graph, captured once and replayed; eager, operation by operation.
        pub launch: StepLaunch = StepLaunch::Graph, OneOf(&["graph", "eager"]);
        /// Threads of an operation on the CPU. The last digits depend on it, so it belongs to the experiment and not to the machine; other cores serve other jobs.
        pub threads: u64 = 1, Whole(Range::closed(1.0, 1024.0));
    }
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

/// Arithmetic of a [`Cifar10Config`] on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkPrecision {
    /// Single precision.
    Single,
    /// Single precision with the factors of products rounded to TF32.
    Tf32,
    /// bfloat16 in the network, single precision in its parameters and its loss.
    Bf16,
}

/// How a step of a [`Cifar10Config`] is given to a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepLaunch {
    /// As one CUDA graph.
    Graph,
    /// Operation by operation.
    Eager,
}

/// Which files a [`Cifar10Config`] takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageFiles {
    /// Those of CIFAR-10, by their checksums.
    Official,
    /// Any of the same format.
    None,
}

words!(Switch, NetworkPrecision, StepLaunch, ImageFiles);

pub(crate) struct Problem;

impl ProblemEntry for Problem {
    type Config = Cifar10Config;
    const TITLE: &'static str = "ResNet-20 on CIFAR-10, by libtorch";
    const NETWORK: bool = true;
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

    fn visit<V: Visitor>(c: Self::Config, _: u64, visitor: V) -> Result<V::Output, Error> {
        #[cfg(feature = "torch")]
        return network::visit(&c, visitor);
        #[cfg(not(feature = "torch"))]
        {
            let _ = visitor;
            Err(Error::Network(format!("{}: {}", c.data, crate::device::WITHOUT_TORCH)))
        }
    }
}
