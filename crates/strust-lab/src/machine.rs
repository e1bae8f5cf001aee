//! The machine an experiment runs on, for the report.

use crate::data::summary::Machine;

/// Describes this machine, with the device that networks run on.
#[must_use]
pub fn describe(jobs: usize, device: Option<String>) -> Machine {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name =
        info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim()));
    Machine {
        platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        processor: name.unwrap_or("unknown processor").into(),
        cores: cores() as u64,
        jobs: jobs as u64,
        device,
    }
}

/// Cores this process may use.
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
