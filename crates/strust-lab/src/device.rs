//! The devices that networks run on, and messages for their failures.

#[cfg_attr(feature = "torch", path = "device/with_torch.rs")]
#[cfg_attr(not(feature = "torch"), path = "device/without_torch.rs")]
pub(crate) mod torch;

pub use torch::{HAS_TORCH, leave};
pub(crate) use torch::{open, take_warnings};

/// The message of a program that was built without libtorch.
pub const WITHOUT_TORCH: &str = "this needs libtorch, and this program was built without it. In the source folder, run:
  eval \"$(scripts/torch-env)\"
  cargo install --path crates/strust-cli --features torch";

/// The message if the images are missing.
pub const WITHOUT_DATA: &str = "the images are missing: download them with `strust data cifar10 --to DIR`, then add `--data DIR`, or \
                                `data = \"DIR\"` in the experiment file";

/// The message for the user if `text`, from an error or a panic, reports a failure of the GPU.
///
/// libtorch throws an exception; tch panics with its text, which includes the stack.
#[must_use]
pub fn gpu_failure(text: &str) -> Option<String> {
    let signs =
        ["CUDA out of memory", "CUDA error", "CUDA driver error", "cuDNN error", "CUBLAS_STATUS", "CUDNN_STATUS"];
    let begin = signs.iter().filter_map(|sign| text.find(sign)).min()?;
    let what = text[begin..].split(['\n', '"']).next().unwrap_or_default();
    let what = what.split("\\n").next().unwrap_or_default().trim_end_matches('.');
    let saved = "All saved results are valid";
    Some(if ["out of memory", "ALLOC_FAILED"].iter().any(|sign| what.contains(sign)) {
        format!(
            "the GPU's memory is full: {what}. {saved}: run fewer jobs in parallel (--jobs 1), or free memory \
             that other programs use (see nvidia-smi), then continue with `strust resume`. A smaller `batch` in the experiment needs less memory"
        )
    } else {
        format!("the GPU failed: {what}. {saved}: when the GPU works again (nvidia-smi), continue with `strust resume`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of a panic of tch.
    #[test]
    fn a_gpu_failure_gets_a_message_for_the_user() {
        let message =
            |text: &str| gpu_failure(&format!("called `Result::unwrap()` on an `Err` value: Torch({text:?})"));
        let full =
            message("CUDA out of memory. Tried to allocate 2.00 MiB.\nException raised from malloc (frames)").unwrap();
        assert!(
            full.starts_with("the GPU's memory is full: CUDA out of memory. Tried to allocate 2.00 MiB. All saved"),
            "{full}"
        );
        assert!(full.contains("--jobs 1") && full.contains("strust resume") && !full.contains("frames"));
        let lost =
            message("CUDA error: unspecified launch failure\nCUDA kernel errors might be reported later").unwrap();
        assert!(lost.starts_with("the GPU failed: CUDA error: unspecified launch failure. All saved"), "{lost}");
        assert!(message("cuDNN error: CUDNN_STATUS_ALLOC_FAILED").unwrap().contains("memory is full"));
        assert_eq!(message("The size of tensor a (3) must match"), None);
    }
}
