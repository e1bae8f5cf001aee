//! The parameters of the networks, and what they predict.

use crate::registry::entry::{Switch, field_words};
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
        /// What is recognized: objects; or objects-and-rotations, where every image is turned by a fixed multiple of 90 degrees and each object with each rotation is a class of its own; these images are not mirrored.
        pub classes: ImageClasses = ImageClasses::Objects, OneOf(&["objects", "objects-and-rotations"]);
        /// Factor on the number of channels of ResNet-20.
        pub width: u64 = 1, Whole(Range::closed(1.0, 64.0));
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

/// The classes of a [`Cifar10Config`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageClasses {
    /// The ten objects.
    Objects,
    /// Each object in four rotations.
    ObjectsAndRotations,
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

field_words!(NetworkPrecision, StepLaunch, ImageClasses, ImageFiles);

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
        /// How SGD, Adam, STR and Auto run a step on a GPU: graph, captured once and replayed; eager, operation by operation.
        pub launch: StepLaunch = StepLaunch::Graph, OneOf(&["graph", "eager"]);
        /// Threads per operation on the CPU. The last digits of the results depend on it, so the experiment sets it. Other cores run other jobs.
        pub threads: u64 = 1, Whole(Range::closed(1.0, 1024.0));
    }
}

/// What a network predicts for test images.
pub(crate) struct Predictions {
    /// The device that it ran on.
    pub device: String,
    /// The names of the classes.
    pub classes: Vec<String>,
    pub labels: Vec<u8>,
    pub predicted: Vec<u8>,
}
