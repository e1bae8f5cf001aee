//! A small convolutional network, with libtorch.

use super::{
    ProblemEntry, Quantity, Visitor,
    cifar10::{NetworkPrecision, StepLaunch},
    network_effect,
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

    fn visit<V: Visitor>(c: Self::Config, seed: u64, visitor: V) -> Result<V::Output, Error> {
        Self::visit_scaled(c, 1.0, seed, visitor)
    }

    fn visit_scaled<V: Visitor>(c: Self::Config, scale: f64, _: u64, visitor: V) -> Result<V::Output, Error> {
        #[cfg(feature = "torch")]
        return with_torch::visit(&c, scale, visitor);
        #[cfg(not(feature = "torch"))]
        {
            let _ = (c, scale, visitor);
            Err(Error::Network(crate::device::WITHOUT_TORCH.into()))
        }
    }
}

#[cfg(feature = "torch")]
mod with_torch {
    use super::{super::cifar10::network, ConvnetConfig, Switch};
    use crate::{Error, device::network_error, registry::Visitor};
    use strust_data::{digits, images};
    use strust_torch::{ImageClassification, device::Device};

    pub fn visit<V: Visitor>(c: &ConvnetConfig, scale: f64, visitor: V) -> Result<V::Output, Error> {
        network::on_device(&c.device, c.threads, c.precision, |device| {
            network::visit_images(problem(c, device)?.scaled(scale), c.precision, c.launch, visitor)
        })
    }

    fn problem(c: &ConvnetConfig, device: Device) -> Result<ImageClassification, Error> {
        let set =
            if c.data.is_empty() { digits::images()? } else { images::mnist(&crate::data::paths::path_of(&c.data))? };
        let (train, test) = (network::bytes(&set.train), network::bytes(&set.test));
        ImageClassification::convnet(&train, Some(&test), set.classes.len(), c.batch_norm == Switch::On, device)
            .map_err(network_error)
    }
}
