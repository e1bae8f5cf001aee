//! Devices without libtorch: there are none.

use super::WITHOUT_TORCH;
use crate::Error;

/// Whether this program was built with libtorch.
pub const HAS_TORCH: bool = false;

/// Fails with build instructions.
pub(crate) fn open(_name: &str, _threads: usize) -> Result<(String, String), Error> {
    Err(Error::Network(WITHOUT_TORCH.into()))
}

/// Without libtorch there are no warnings.
pub(crate) fn take_warnings() -> Vec<String> {
    Vec::new()
}

/// Ends the process at once, with this exit code.
pub fn leave(code: u8) -> ! {
    std::process::exit(code.into())
}
