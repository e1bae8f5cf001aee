//! Opens the requested device or returns an error. It never uses another device without a message.

use crate::{Error, cuda::hold_off_capture};
use std::fmt;
pub use tch::Device;
use tch::{Cuda, Kind, Tensor};

/// Whether this build is linked to libtorch's CUDA library.
pub const BUILT_WITH_CUDA: bool = cfg!(libtorch_cuda);

/// The version of libtorch that this crate was built against.
pub const LIBTORCH_VERSION: &str = env!("STRUST_LIBTORCH_VERSION");

/// Opens a device by name: `cpu`, `cuda`, `cuda:1`, or `auto`. `auto` is the first GPU, or the CPU if there is no GPU.
///
/// ```
/// use strust_torch::device;
/// assert_eq!(device::open("cpu")?, tch::Device::Cpu);
/// assert!(device::open("abacus").is_err());
/// # Ok::<(), strust_torch::Error>(())
/// ```
pub fn open(name: &str) -> Result<Device, Error> {
    let device = match name {
        "cpu" => Device::Cpu,
        "cuda" => Device::Cuda(0),
        "auto" if BUILT_WITH_CUDA => Device::cuda_if_available(),
        "auto" => return open("cpu"),
        _ => match name.strip_prefix("cuda:").and_then(|index| index.parse().ok()) {
            Some(index) => Device::Cuda(index),
            None => return Err(unusable(name, "the devices are cpu, cuda, cuda:0, cuda:1, …, and auto")),
        },
    };
    report(device).map(|report| report.device)
}

/// Sets the number of threads of an operation on the CPU. The last digits of a result may depend on it.
pub fn set_threads(threads: usize) {
    tch::set_num_threads(i32::try_from(threads).unwrap_or(i32::MAX));
}

/// Multiplies two matrices on the device, checks the result and describes the device. The report of an experiment shows
/// this line.
pub fn report(device: Device) -> Result<DeviceReport, Error> {
    let name = device_name(device);
    if let Device::Cuda(index) = device {
        if !BUILT_WITH_CUDA {
            return Err(unusable(
                &name,
                "this program was built against a libtorch without CUDA; run  eval \"$(scripts/torch-env cuda)\"  and build again",
            ));
        }
        let count = Cuda::device_count();
        if count == 0 {
            return Err(unusable(
                &name,
                "no GPU can be used; check that `nvidia-smi` lists one, that its driver is recent enough for the CUDA version \
                 of this libtorch, and that CUDA_VISIBLE_DEVICES does not hide it",
            ));
        }
        if index >= count as usize {
            return Err(unusable(&name, &format!("there are {count} GPUs, counted from 0")));
        }
    }
    // A job that starts must not break the capture of another job.
    let _held = hold_off_capture();
    let sum = Tensor::f_ones([64, 64], (Kind::Float, device))
        .and_then(|ones| ones.f_matmul(&ones))
        .and_then(|product| Ok((product.f_sum(Kind::Float)?.f_double_value(&[])?, product.device())))
        .map_err(|e| unusable(&name, &e.to_string()))?;
    if sum != (262_144.0, device) {
        return Err(unusable(&name, &format!("a product of matrices of ones gave {} on {:?}", sum.0, sum.1)));
    }
    Ok(DeviceReport { device, threads: tch::get_num_threads() })
}

fn unusable(wanted: &str, why: &str) -> Error {
    Error::Device { wanted: wanted.into(), why: why.into() }
}

fn device_name(device: Device) -> String {
    match device {
        Device::Cpu => "cpu".into(),
        Device::Cuda(index) => format!("cuda:{index}"),
        other => format!("{other:?}"),
    }
}

/// The device that a test computation ran on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceReport {
    /// The device.
    pub device: Device,
    /// Threads of one operation on the CPU.
    pub threads: i32,
}

impl DeviceReport {
    /// The device's name, as accepted by [`open`].
    #[must_use]
    pub fn name(&self) -> String {
        device_name(self.device)
    }
}

impl fmt::Display for DeviceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (libtorch {LIBTORCH_VERSION}", device_name(self.device))?;
        if self.device == Device::Cpu {
            write!(f, ", {} {}", self.threads, if self.threads == 1 { "thread" } else { "threads" })?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_of_the_cpu_has_the_version_of_libtorch() {
        let report = report(Device::Cpu).unwrap();
        assert_eq!(report.name(), "cpu");
        let text = report.to_string();
        assert!(
            text.starts_with("cpu (libtorch 2.") && (text.ends_with("threads)") || text.ends_with(", 1 thread)")),
            "{text}"
        );
    }

    #[test]
    fn a_gpu_that_cannot_be_used_is_an_error_and_is_never_replaced_by_the_cpu() {
        let error = |name: &str| open(name).unwrap_err().to_string();
        assert!(error("gpu").starts_with("device `gpu` cannot be used: the devices are cpu, cuda"), "{}", error("gpu"));
        if BUILT_WITH_CUDA && Cuda::is_available() {
            assert_eq!(open("cuda").unwrap(), Device::Cuda(0));
            assert!(error("cuda:99").contains("counted from 0"));
        } else {
            assert!(error("cuda").starts_with("device `cuda:0` cannot be used: "), "{}", error("cuda"));
            assert_eq!(open("auto").unwrap(), Device::Cpu);
        }
    }
}
