//! A small convolutional network, with libtorch.

use super::{
    AnySetup, Assembler, ProblemEntry, Quantity,
    cifar10::{NetworkPrecision, StepLaunch},
    network_effect, networks,
};
use crate::{Error, data::parameters::Parameters, registry::entry::Switch};

strust::config! {
    /// A small convolutional network.
    pub struct ConvnetConfig for "convnet" {
        /// A folder with the four files of MNIST or Fashion-MNIST. If empty, the built-in UCI digits are used.
        pub data: String = String::new(), Text("a folder, or empty");
        /// Whether each convolution has batch normalization: off or on.
        pub batch_norm: Switch = Switch::Off, OneOf(&["off", "on"]);
        /// The device of the network: cpu, cuda, cuda:1 and so on; auto is the first GPU, otherwise the CPU.
        pub device: String = "auto".into(), Text("cpu, cuda, cuda:N or auto");
        /// Precision of convolutions and products on a GPU: single; tf32, with factors rounded to ten bits; bf16, with the network in bfloat16 and the loss in single. The CPU always uses single.
        pub precision: NetworkPrecision = NetworkPrecision::Tf32, OneOf(&["single", "tf32", "bf16"]);
        /// How SGD, Adam and STR run a step on a GPU: graph, captured once and replayed; eager, operation by operation.
        pub launch: StepLaunch = StepLaunch::Graph, OneOf(&["graph", "eager"]);
        /// Threads per operation on the CPU. The last digits of the results depend on it, so the experiment sets it. Other cores run other jobs.
        pub threads: u64 = 1, Whole(Range::closed(1.0, 1024.0));
    }
}

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
