//! Devices of libtorch.

use super::gpu_failure;
use crate::Error;

/// Whether this program was built with libtorch.
pub const HAS_TORCH: bool = true;

/// Opens a device and returns its name and its description.
pub(crate) fn open(name: &str, threads: usize) -> Result<(String, String), Error> {
    strust_torch::device::set_threads(threads);
    let device = strust_torch::device::open(name).and_then(strust_torch::device::report).map_err(network_error)?;
    Ok((device.name(), device.to_string()))
}

/// The warnings about networks on a GPU since the last call: missing kernels and steps that cannot be captured.
pub(crate) fn take_warnings() -> Vec<String> {
    strust_torch::cuda::take_warnings()
}

/// Converts an error of a network. GPU failures get a message for the user.
#[allow(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(crate) fn network_error(error: strust_torch::Error) -> Error {
    match error {
        strust_torch::Error::Method(error) => Error::Method(error),
        error => Error::Network(gpu_failure(&error.to_string()).unwrap_or_else(|| error.to_string())),
    }
}

/// Ends the process at once, with this exit code. The exit handlers of libtorch do not run: they can hang.
pub fn leave(code: u8) -> ! {
    strust_torch::leave(code)
}
