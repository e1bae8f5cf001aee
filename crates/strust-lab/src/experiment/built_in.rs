//! The experiment files that are built into the program, by name.

/// The experiments of methods on problems.
pub const EXPERIMENTS: &[(&str, &str)] = &[
    ("subspace-small", include_str!("../../experiments/subspace-small.toml")),
    ("subspace-large", include_str!("../../experiments/subspace-large.toml")),
    ("subspace-noise", include_str!("../../experiments/subspace-noise.toml")),
    ("subspace-tune", include_str!("../../experiments/subspace-tune.toml")),
    ("digits", include_str!("../../experiments/digits.toml")),
    ("cifar10", include_str!("../../experiments/cifar10.toml")),
    ("cifar10-auto", include_str!("../../experiments/cifar10-auto.toml")),
    ("cifar10-cosine-15", include_str!("../../experiments/cifar10-cosine-15.toml")),
    ("cifar10-cosine-40", include_str!("../../experiments/cifar10-cosine-40.toml")),
    ("cifar10-cosine-100", include_str!("../../experiments/cifar10-cosine-100.toml")),
    ("cifar10-interpolate", include_str!("../../experiments/cifar10-interpolate.toml")),
    ("cifar10-launch", include_str!("../../experiments/cifar10-launch.toml")),
    ("cifar10-quick", include_str!("../../experiments/cifar10-quick.toml")),
    ("cifar10-tune", include_str!("../../experiments/cifar10-tune.toml")),
    ("long-cifar10-auto", include_str!("../../experiments/long-cifar10-auto.toml")),
    ("long-cifar10-10", include_str!("../../experiments/long-cifar10-10.toml")),
    ("long-cifar10-25", include_str!("../../experiments/long-cifar10-25.toml")),
    ("long-cifar10-60", include_str!("../../experiments/long-cifar10-60.toml")),
    ("long-gpt-auto", include_str!("../../experiments/long-gpt-auto.toml")),
    ("long-gpt-6", include_str!("../../experiments/long-gpt-6.toml")),
    ("long-gpt-12", include_str!("../../experiments/long-gpt-12.toml")),
    ("long-gpt-24", include_str!("../../experiments/long-gpt-24.toml")),
];
