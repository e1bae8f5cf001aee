//! The devices that networks run on, and what their failures mean to the user.

use crate::Error;

/// What a program that was built without libtorch prints.
pub const WITHOUT_TORCH: &str =
    "this needs libtorch, and this program was built without it. In the folder of its source:
  eval \"$(scripts/torch-env)\"
  cargo install --path crates/strust-cli --features torch";

/// What to do without images.
pub const WITHOUT_DATA: &str = "there are no images: get them with `strust data cifar10 --to DIR`, then give `--data DIR`, or \
                                `data = \"DIR\"` in the experiment file";

/// What a failure of the GPU in the middle of a run means to the user, if `text`, of an error or a panic, reports one.
///
/// libtorch throws; tch panics with the text of the exception, stack included.
#[must_use]
pub fn gpu_failure(text: &str) -> Option<String> {
    let signs =
        ["CUDA out of memory", "CUDA error", "CUDA driver error", "cuDNN error", "CUBLAS_STATUS", "CUDNN_STATUS"];
    let begin = signs.iter().filter_map(|sign| text.find(sign)).min()?;
    let what = text[begin..].split(['\n', '"']).next().unwrap_or_default();
    let what = what.split("\\n").next().unwrap_or_default().trim_end_matches('.');
    let saved = "What was saved is whole";
    Some(if ["out of memory", "ALLOC_FAILED"].iter().any(|sign| what.contains(sign)) {
        format!(
            "the GPU's memory is full: {what}. {saved}: run fewer jobs in parallel (--jobs 1), or see what else \
             uses the GPU (nvidia-smi), then continue with `strust resume`. A smaller `batch` in the experiment needs less"
        )
    } else {
        format!("the GPU failed: {what}. {saved}: when the GPU works again (nvidia-smi), continue with `strust resume`")
    })
}

/// Opens a device: its name, and its description.
#[cfg(feature = "torch")]
pub(crate) fn open(name: &str, threads: usize) -> Result<(String, String), Error> {
    strust_torch::device::set_threads(threads);
    let device = strust_torch::device::open(name).and_then(strust_torch::device::report).map_err(network_error)?;
    Ok((device.name(), device.to_string()))
}

/// Opens a device: its name, and its description.
#[cfg(not(feature = "torch"))]
pub(crate) fn open(_name: &str, _threads: usize) -> Result<(String, String), Error> {
    Err(Error::Network(WITHOUT_TORCH.into()))
}

/// What the user should know about how networks run on a GPU, since the last call: kernels that are missing, steps that
/// cannot be captured.
#[cfg(feature = "torch")]
pub(crate) fn take_warnings() -> Vec<String> {
    strust_torch::cuda::take_warnings()
}

/// Without libtorch there are no warnings.
#[cfg(not(feature = "torch"))]
pub(crate) fn take_warnings() -> Vec<String> {
    Vec::new()
}

/// An error of a network, in the user's terms.
#[cfg(feature = "torch")]
#[allow(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(crate) fn network_error(error: strust_torch::Error) -> Error {
    match error {
        strust_torch::Error::Method(error) => Error::Method(error),
        error => Error::Network(gpu_failure(&error.to_string()).unwrap_or_else(|| error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As tch panics.
    #[test]
    fn a_failure_of_the_gpu_is_reported_in_plain_words() {
        let told = |text: &str| gpu_failure(&format!("called `Result::unwrap()` on an `Err` value: Torch({text:?})"));
        let full =
            told("CUDA out of memory. Tried to allocate 2.00 MiB.\nException raised from malloc (frames)").unwrap();
        assert!(
            full.starts_with("the GPU's memory is full: CUDA out of memory. Tried to allocate 2.00 MiB. What"),
            "{full}"
        );
        assert!(full.contains("--jobs 1") && full.contains("strust resume") && !full.contains("frames"));
        let lost = told("CUDA error: unspecified launch failure\nCUDA kernel errors might be reported later").unwrap();
        assert!(lost.starts_with("the GPU failed: CUDA error: unspecified launch failure. What was saved"), "{lost}");
        assert!(told("cuDNN error: CUDNN_STATUS_ALLOC_FAILED").unwrap().contains("memory is full"));
        assert_eq!(told("The size of tensor a (3) must match"), None);
    }
}
