//! The networks of an experiment: their data, their devices and their precision.

use crate::{
    Error,
    data::{
        experiment::{Experiment, ProblemSpec},
        paths::text_of,
    },
    device,
    io::data_file::{self, checksum_of},
    registry::problems::{is_network, needs_data},
};
use std::path::{Path, PathBuf};

impl Experiment {
    fn networks(&self) -> impl Iterator<Item = &ProblemSpec> {
        self.problems.iter().filter(|p| is_network(p))
    }

    /// Whether libtorch runs one of its problems.
    #[must_use]
    pub fn has_network(&self) -> bool {
        self.networks().next().is_some()
    }

    /// Whether one of its networks is on a GPU. The devices must be open.
    #[must_use]
    pub fn on_gpu(&self) -> bool {
        self.networks().any(|p| text(p, "device").is_some_and(|device| device.starts_with("cuda")))
    }

    /// Whether one of its problems cannot run without data.
    #[must_use]
    pub fn needs_data(&self) -> bool {
        self.problems.iter().any(needs_data)
    }

    /// The data files and folders of its problems.
    pub fn data_paths(&self) -> impl Iterator<Item = PathBuf> {
        self.problems.iter().filter_map(|problem| data_file::path(&problem.parameters))
    }

    /// Sets the data of the networks that have none built in: a folder or a file.
    pub fn set_data(&mut self, data: &Path) -> Result<(), Error> {
        let missing = "there is no such file or folder; `strust data cifar10 --to DIR` downloads CIFAR-10";
        let data = data.canonicalize().map_err(|_| Error::saved(data, missing))?;
        set_data(self.problems.iter_mut().filter(|p| needs_data(p)), &data)
    }

    /// Sets the data of all its problems: a folder or a file that exists.
    pub fn set_data_of_all(&mut self, data: &Path) -> Result<(), Error> {
        let data = data.canonicalize().map_err(Error::io("open", data))?;
        set_data(self.problems.iter_mut(), &data)
    }

    /// Sets a parameter of its networks, such as `device`.
    pub fn set_of_networks(&mut self, parameter: &str, value: impl Into<toml::Value>) {
        let value = value.into();
        for problem in self.problems.iter_mut().filter(|p| is_network(p)) {
            problem.parameters.insert(parameter.into(), value.clone());
        }
    }

    /// Opens the devices of its networks and writes their names into the experiment. Returns their
    /// descriptions for the report; `None` without networks.
    pub fn open_devices(&mut self) -> Result<Option<String>, Error> {
        let mut devices: Vec<String> = Vec::new();
        self.check_precision()?;
        for problem in self.problems.iter_mut().filter(|p| is_network(p)) {
            let threads = problem.parameters.get("threads").and_then(toml::Value::as_integer).unwrap_or(1);
            let (name, device) = device::open(text(problem, "device").unwrap_or("auto"), threads as usize)?;
            problem.parameters.insert("device".into(), name.into());
            if !devices.contains(&device) {
                devices.push(device);
            }
        }
        Ok((!devices.is_empty()).then(|| devices.join(" and ")))
    }

    /// All networks must use the same precision: libtorch has one switch for the whole program, and jobs run in parallel.
    fn check_precision(&self) -> Result<(), Error> {
        let single: Vec<bool> = self.networks().map(|p| text(p, "precision") == Some("single")).collect();
        if single.iter().any(|&s| s != single[0]) {
            let why = "all networks in one experiment must use the same precision: `precision` is single for all of \
                       them or for none; make two experiments";
            return Err(Error::Network(why.into()));
        }
        Ok(())
    }
}

fn set_data<'a>(problems: impl Iterator<Item = &'a mut ProblemSpec>, data: &Path) -> Result<(), Error> {
    let sum = checksum_of(data)?;
    for problem in problems {
        problem.parameters.insert("data".into(), text_of(data).into());
        problem.checksum = Some(sum.clone());
    }
    Ok(())
}

fn text<'a>(problem: &'a ProblemSpec, parameter: &str) -> Option<&'a str> {
    problem.parameters.get(parameter).and_then(toml::Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_of_different_precision_are_refused() {
        let experiment = |precisions: [&str; 2]| {
            let problem = |p: &str| format!("[[problem]]\nkind = \"cifar10\"\nname = \"{p}\"\nprecision = \"{p}\"\n");
            let text = format!(
                "name = \"two\"\nepochs = 1\nbatch = 2\nseeds = 1\n{}{}[[method]]\nname = \"str\"\n",
                problem(precisions[0]),
                problem(precisions[1])
            );
            Experiment::parse(std::path::Path::new("two.toml"), &text).unwrap()
        };
        let error = experiment(["single", "tf32"]).check_precision().unwrap_err().to_string();
        assert!(error.contains("`precision` is single for all of them or for none"), "{error}");
        assert!(experiment(["bf16", "tf32"]).check_precision().is_ok());
    }
}
