//! Records that are kept on the device and read in bulk.

use strust::{
    Error,
    models::Exit,
    objective::Evaluations,
    radius::{Change, Verdict},
    record::{RegionRecord, StepRecord},
};
use tch::{Device, Kind, Tensor};

/// Converts a row to the record of step k.
pub(crate) type Reader = fn(u64, &[f64]) -> Result<StepRecord, Error>;

/// A table on the device with one row per step, the records that were read from it, and whether all numbers were finite.
///
/// The index of the next row is also on the device, so that writing a row is the same operation each time.
#[derive(Debug)]
pub struct DeviceProgress {
    table: Tensor,
    next: Tensor,
    /// Whether all numbers so far were finite, on the device.
    finite: Tensor,
    reader: Reader,
    /// The number of rows that were written and not read yet.
    filled: usize,
    /// The step of the first row.
    first: u64,
    records: Vec<StepRecord>,
    failure: Option<Error>,
    reads: u64,
}

impl DeviceProgress {
    /// From step `first` of a run on.
    pub(crate) fn new(first: u64, rows: usize, columns: usize, device: Device, reader: Reader) -> Self {
        let table = Tensor::zeros([rows.max(1) as i64, columns as i64], (Kind::Double, device));
        let next = Tensor::zeros([1], (Kind::Int64, device));
        let finite = Tensor::ones([0_i64; 0], (Kind::Bool, device));
        Self { table, next, finite, reader, filled: 0, first, records: Vec::new(), failure: None, reads: 0 }
    }

    /// Checks on the device that these numbers and all before them are finite.
    pub(crate) fn check_finite(&mut self, value: &Tensor, squared_norm: &Tensor) -> &Tensor {
        // 0·a is 0 only if a is finite.
        self.check(&((value + squared_norm) * 0.0).eq(0.0))
    }
    /// Whether this and all conditions before it hold, on the device.
    pub(crate) fn check(&mut self, holds: &Tensor) -> &Tensor {
        let _ = self.finite.logical_and_(holds);
        &self.finite
    }
    /// Writes a row; each number is a tensor of one double. The host has to [`count`](Self::count) it.
    pub(crate) fn write(&mut self, row: &[&Tensor]) {
        self.write_row(&Tensor::stack(row, 0));
    }
    /// Writes a row of doubles.
    pub(crate) fn write_row(&mut self, row: &Tensor) {
        let _ = self.table.index_copy_(0, &self.next, &row.unsqueeze(0));
        let _ = self.next.g_add_scalar_(1);
    }
    /// The table and the index of its next row, for a kernel that writes a row by itself.
    pub(crate) fn table(&self) -> [&Tensor; 2] {
        [&self.table, &self.next]
    }
    /// Counts a step whose operations were launched. Reads the table if it is full.
    pub(crate) fn count(&mut self) -> Result<(), Error> {
        self.filled += 1;
        if self.filled == self.table.size()[0] as usize {
            self.read();
        }
        self.failure.clone().map_or(Ok(()), Err)
    }
    /// All records that were not taken yet. After a breakdown, the call after the last records returns the error.
    pub(crate) fn take(&mut self) -> Result<Vec<StepRecord>, Error> {
        self.read();
        match &self.failure {
            Some(failure) if self.records.is_empty() => Err(failure.clone()),
            _ => Ok(std::mem::take(&mut self.records)),
        }
    }
    /// The number of steps before a breakdown, if there was one. Waits for the device.
    pub(crate) fn k(&mut self) -> u64 {
        self.read();
        match self.failure {
            Some(Error::NonFiniteValue { step, .. } | Error::NonFiniteGradient { step, .. }) => step,
            _ => self.first,
        }
    }
    /// How often the host has waited for the device to read the table.
    pub(crate) fn reads(&self) -> u64 {
        self.reads
    }

    /// The only place where the host waits for the device.
    fn read(&mut self) {
        if self.filled == 0 {
            return;
        }
        self.reads += 1;
        let numbers: Vec<f64> =
            Vec::try_from(self.table.narrow(0, 0, self.filled as i64).reshape([-1])).expect("a table of doubles");
        let _ = self.next.zero_();
        for (k, row) in (self.first..).zip(numbers.chunks_exact(self.table.size()[1] as usize)) {
            if self.failure.is_some() {
                break;
            }
            match (self.reader)(k, row) {
                Ok(record) => self.records.push(record),
                Err(error) => self.failure = Some(error),
            }
        }
        self.first += self.filled as u64;
        self.filled = 0;
    }
}

/// Returns an error if a number of the step is not finite.
fn check(step: u64, value: f64, squared_norm: f64) -> Result<(), Error> {
    if !value.is_finite() {
        return Err(Error::NonFiniteValue { step, value });
    }
    if !squared_norm.is_finite() {
        return Err(Error::NonFiniteGradient { step, norm: squared_norm.sqrt() });
    }
    Ok(())
}

/// The columns of a step that is always accepted: value, ‖g‖², the step's size and length.
pub(crate) const PLAIN_COLUMNS: usize = 4;

pub(crate) fn plain(k: u64, row: &[f64]) -> Result<StepRecord, Error> {
    let &[value, squared_norm, step_size, step_length] = row else { unreachable!("a row of {PLAIN_COLUMNS}") };
    check(k, value, squared_norm)?;
    Ok(StepRecord::plain(k, value, squared_norm.sqrt(), step_size, step_length))
}

/// The columns of a step of Auto: value, ‖g‖², a, ‖Δ‖, and whether the step was accepted, value and gradient were finite,
/// the run broke down.
pub(crate) const JUDGED_COLUMNS: usize = 7;

pub(crate) fn judged(k: u64, row: &[f64]) -> Result<StepRecord, Error> {
    let &[value, squared_norm, step_size, step_length, ref flags @ ..] = row else {
        unreachable!("a row of {JUDGED_COLUMNS}")
    };
    let [accepted, finite, broken] = [0, 1, 2].map(|i| flags[i] > 0.0);
    if broken {
        check(k, value, squared_norm)?;
    }
    let moves = finite && squared_norm > 0.0;
    let (step_size, step_length) = if moves { (step_size, step_length) } else { (0.0, 0.0) };
    Ok(StepRecord {
        verdict: if accepted || (finite && !moves) { Verdict::Accepted } else { Verdict::Rejected },
        // The trial is evaluated even if there is no step: the host does not know.
        evaluations: Evaluations { values: 1, gradients: 1, products: 0 },
        ..StepRecord::plain(k, value, squared_norm.sqrt(), step_size, step_length)
    })
}

/// The columns of a step of STR: value, ‖g‖², a, ‖p‖, Δ, predicted reduction, trial, ratio, and whether the step was
/// accepted, the radius grew, the radius was kept.
pub(crate) const REGION_COLUMNS: usize = 11;

pub(crate) fn region(k: u64, row: &[f64]) -> Result<StepRecord, Error> {
    let &[value, squared_norm, step_size, step_length, radius, predicted, trial, ratio, ref flags @ ..] = row else {
        unreachable!("a row of {REGION_COLUMNS}")
    };
    let [accepted, grows, keeps] = [0, 1, 2].map(|i| flags[i] > 0.0);
    check(k, value, squared_norm)?;
    // a = min(1, Δ/‖g‖). The device sets it to 1 if there is no step.
    let (exit, step_size) = match squared_norm {
        0.0 => (Exit::Stationary, 0.0),
        _ if step_size < 1.0 => (Exit::Boundary, step_size),
        _ => (Exit::Interior, step_size),
    };
    let judged = exit != Exit::Stationary && trial.is_finite();
    let change = match (grows, keeps) {
        (true, _) => Change::Grow,
        (false, true) => Change::Keep,
        (false, false) => Change::Shrink,
    };
    Ok(StepRecord {
        k,
        value,
        gradient_norm: squared_norm.sqrt(),
        step_size,
        step_length,
        verdict: if accepted { Verdict::Accepted } else { Verdict::Rejected },
        region: Some(RegionRecord {
            radius,
            exit,
            trial: judged.then_some(trial),
            predicted,
            ratio: judged.then_some(ratio),
            change,
        }),
        constraint_norm: None,
        // The trial is evaluated even if there is no step: the host does not know.
        evaluations: Evaluations { values: 1, gradients: 1, products: 0 },
    })
}

/// The columns of a step of STR with curvature: those of [`region`], whether the step ended at the boundary, and the number
/// of products.
pub(crate) const NEWTON_COLUMNS: usize = REGION_COLUMNS + 2;

pub(crate) fn newton(k: u64, row: &[f64]) -> Result<StepRecord, Error> {
    let (row, rest) = row.split_at(REGION_COLUMNS);
    let mut record = region(k, row)?;
    if record.gradient_norm > 0.0 && record.step_length == 0.0 {
        return Err(Error::NonFiniteCurvature { step: k, curvature: f64::NAN });
    }
    if let Some(region) = record.region.as_mut().filter(|_| rest[0] > 0.0) {
        region.exit = Exit::Boundary;
    }
    // All products are made, even after the end of the inner iteration.
    record.evaluations.products = rest[1] as u64;
    Ok(record)
}
