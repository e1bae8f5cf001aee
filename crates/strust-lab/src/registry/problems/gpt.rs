//! A small transformer over the characters of a text, with libtorch.

use super::{ProblemEntry, Quantity, AnySetup, Assembler, cifar10::NetworkPrecision, network_effect, networks};
use crate::{Error, data::parameters::Parameters};

strust::config! {
    /// A transformer that predicts the next character of a text.
    pub struct GptConfig for "gpt" {
        /// Number of layers.
        pub layers: u64 = 2, Whole(Range::closed(1.0, 1024.0));
        /// Width of the residual stream.
        pub width: u64 = 64, Whole(Range::closed(1.0, 65536.0));
        /// Attention heads per layer; they divide the width.
        pub heads: u64 = 4, Whole(Range::closed(1.0, 65536.0));
        /// Largest number of characters that a prediction uses. A term is a window of one character more; windows do not overlap.
        pub context: u64 = 64, Whole(Range::closed(1.0, 65536.0));
        /// A text file in UTF-8; its last tenth becomes the test set. If empty, a built-in English text is used.
        pub data: String = String::new(), Text("a text file, or empty");
        /// The device of the network: cpu, cuda, cuda:1 and so on; auto is the first GPU, otherwise the CPU.
        pub device: String = "auto".into(), Text("cpu, cuda, cuda:N or auto");
        /// Precision of products on a GPU: single; tf32, with factors rounded to ten bits; bf16, with the network in bfloat16 and the loss in single. The CPU always uses single.
        pub precision: NetworkPrecision = NetworkPrecision::Tf32, OneOf(&["single", "tf32", "bf16"]);
        /// Threads per operation on the CPU. The last digits of the results depend on it, so the experiment sets it. Other cores run other jobs.
        pub threads: u64 = 1, Whole(Range::closed(1.0, 1024.0));
    }
}

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
