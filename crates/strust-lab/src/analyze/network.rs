//! The scores of a trained network on test images, and its export.

use crate::{
    Error,
    data::plan::{Job, Plan},
    io::{
        output::OutputFile,
        results::{checkpoint_file, job_folder},
        stream,
    },
    registry::{
        PointType,
        problems::{network_config::Predictions, networks},
    },
    run::prepare::{Prepared, Purpose, prepare},
    stepper::Position,
};
use serde::Serialize;
use std::path::Path;
use strust_problems::Problem;

/// The scores of a network in a safetensors file on the test images in a folder. The images must be CIFAR-10's unless
/// `unchecked` is set.
pub fn evaluate(model: &Path, data: &Path, unchecked: bool, device: &str) -> Result<Scores, Error> {
    let Predictions { device, classes, labels, predicted } = networks::predictions(model, data, unchecked, device)?;
    Ok(Scores::new(device, &classes, &labels, &predicted))
}

/// The scores of a network on test images.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scores {
    /// The device.
    pub device: String,
    /// The number of images.
    pub images: usize,
    /// The share of correct predictions.
    pub accuracy: f64,
    /// The scores of each class.
    pub classes: Vec<ClassScore>,
    /// Entry (i, j): the number of images of class i with prediction j.
    pub confusion: Vec<Vec<u64>>,
}

/// The scores of a network on one class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassScore {
    /// The class.
    pub name: String,
    /// The number of its images.
    pub images: u64,
    /// The share of its images that are predicted correctly; absent without images.
    pub accuracy: Option<f64>,
    /// The share of predictions of this class that are correct; absent without such predictions.
    pub precision: Option<f64>,
}

impl Scores {
    /// Compares predictions with labels. Both are below the number of classes.
    #[must_use]
    pub fn new(device: String, names: &[String], truth: &[u8], predicted: &[u8]) -> Self {
        let mut confusion = vec![vec![0; names.len()]; names.len()];
        for (&t, &p) in truth.iter().zip(predicted) {
            confusion[usize::from(t)][usize::from(p)] += 1;
        }
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let classes = names.iter().enumerate().map(|(i, name)| {
            let (images, taken) = (confusion[i].iter().sum(), confusion.iter().map(|row| row[i]).sum());
            let right = confusion[i][i];
            ClassScore { name: name.clone(), images, accuracy: share(right, images), precision: share(right, taken) }
        });
        let classes = classes.collect();
        let right = (0..names.len()).map(|i| confusion[i][i]).sum::<u64>();
        Self { device, images: truth.len(), accuracy: right as f64 / truth.len() as f64, classes, confusion }
    }
}

/// Writes the network of the first job of a finished plan as a safetensors file, with PyTorch's parameter names.
pub fn export(folder: &Path, plan: &Plan, model: &OutputFile) -> Result<(), Error> {
    let job = &plan.jobs[0];
    let folder = job_folder(folder, job);
    // libtorch does not write atomically, so it writes to another file first.
    let space = tempfile::tempdir().map_err(Error::io("write", &std::env::temp_dir()))?;
    let path = space.path().join("model.safetensors");
    prepare(job, &plan.experiment, &folder, Export { job, plan, folder: &folder, path: &path })?;
    model.write(&stream::read_saved(&path).map_err(Error::io("read", &path))?)
}

struct Export<'a> {
    job: &'a Job,
    plan: &'a Plan,
    folder: &'a Path,
    path: &'a Path,
}

impl Purpose for Export<'_> {
    type Output = ();

    fn with<P: PointType>(self, mut prepared: Prepared<P>) -> Result<(), Error> {
        let Self { job, plan, folder, path } = self;
        if prepared.resume(folder, job.checksum(&plan.experiment))?.is_none() {
            return Err(Error::saved(&checkpoint_file(folder), "there is no checkpoint: nothing was trained"));
        }
        let Prepared { mut f, save, mut stepper, held: _held, .. } = prepared;
        let save = save.ok_or_else(|| Error::saved(folder, "the problem is no network"))?;
        let Position { x, averaged, .. } = stepper.current(&mut f);
        if averaged {
            f.recompute_extra_state(x);
        }
        save(&mut f, path, x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_counted_per_class() {
        let names = ["cat", "dog", "owl"].map(String::from);
        let e = Scores::new("cpu".into(), &names, &[0, 0, 0, 1], &[0, 0, 1, 1]);
        assert_eq!((e.images, e.accuracy), (4, 0.75));
        assert_eq!(e.confusion, [[2, 1, 0], [0, 1, 0], [0, 0, 0]]);
        assert_eq!((e.classes[0].accuracy, e.classes[0].precision), (Some(2.0 / 3.0), Some(1.0)));
        assert_eq!((e.classes[1].accuracy, e.classes[1].precision), (Some(1.0), Some(0.5)));
        assert_eq!((e.classes[2].accuracy, e.classes[2].precision), (None, None));
    }
}
