//! Records kept on the device and read in bulk.

use strust::{
    Error,
    model::Exit,
    objective::Evaluations,
    radius::Change,
    record::{RegionRecord, StepRecord, Verdict},
};
use tch::{Device, Kind, Tensor};

/// The numbers of one step of STR, each a tensor of one double on the device.
#[derive(Debug)]
pub(crate) struct Row {
    pub value: Tensor,
    pub squared_norm: Tensor,
    pub size: Tensor,
    pub length: Tensor,
    pub radius: Tensor,
    pub predicted: Tensor,
    pub trial: Tensor,
    pub ratio: Tensor,
    pub interior: Tensor,
    pub accepted: Tensor,
    pub grows: Tensor,
    pub keeps: Tensor,
}
const COLUMNS: usize = 12;

impl Row {
    fn stack(&self) -> Tensor {
        let Self { value, squared_norm, size, length, radius, predicted, trial, ratio, .. } = self;
        let Self { interior, accepted, grows, keeps, .. } = self;
        let flags = [interior, accepted, grows, keeps].map(|flag| flag.to_kind(Kind::Double));
        let numbers = [value, squared_norm, size, length, radius, predicted, trial, ratio];
        Tensor::stack(&numbers.into_iter().chain(&flags).collect::<Vec<_>>(), 0)
    }
}

/// A table on the device with a row a step, and the records read from it so far.
#[derive(Debug)]
pub(crate) struct Ledger {
    table: Tensor,
    /// Rows that are written and not yet read.
    filled: usize,
    /// The step of the first row.
    first: u64,
    records: Vec<StepRecord>,
    failure: Option<Error>,
}

impl Ledger {
    pub fn new(rows: usize, first: u64, device: Device) -> Self {
        let table = Tensor::zeros([rows as i64, COLUMNS as i64], (Kind::Double, device));
        Self { table, filled: 0, first, records: Vec::new(), failure: None }
    }

    /// Writes a row, and reads the table when it is full.
    pub fn push(&mut self, row: &Row) -> Result<(), Error> {
        self.table.get(self.filled as i64).copy_(&row.stack());
        self.filled += 1;
        if self.filled == self.table.size()[0] as usize {
            self.read();
        }
        self.failure.clone().map_or(Ok(()), Err)
    }
    /// Every record not yet taken. Those before a breakdown come first; after them, the error.
    pub fn take(&mut self) -> Result<Vec<StepRecord>, Error> {
        self.read();
        match &self.failure {
            Some(failure) if self.records.is_empty() => Err(failure.clone()),
            _ => Ok(std::mem::take(&mut self.records)),
        }
    }
    /// The first step that broke down, once it has been read.
    pub fn broken_at(&self) -> Option<u64> {
        match self.failure {
            Some(Error::NonFiniteValue { step, .. } | Error::NonFiniteGradient { step, .. }) => Some(step),
            _ => None,
        }
    }

    /// The only place where the host waits for the device.
    pub fn read(&mut self) {
        let numbers: Vec<f64> =
            Vec::try_from(self.table.narrow(0, 0, self.filled as i64).reshape([-1])).expect("a table of doubles");
        let (rows, _) = numbers.as_chunks::<COLUMNS>();
        for (k, row) in (self.first..).zip(rows) {
            if self.failure.is_some() {
                break;
            }
            match record(k, row) {
                Ok(record) => self.records.push(record),
                Err(error) => self.failure = Some(error),
            }
        }
        self.first += self.filled as u64;
        self.filled = 0;
    }
}

fn record(k: u64, row: &[f64; COLUMNS]) -> Result<StepRecord, Error> {
    let [value, squared_norm, step_size, step_length, radius, predicted, trial, ratio, ..] = *row;
    let [interior, accepted, grows, keeps] = [row[8], row[9], row[10], row[11]].map(|flag| flag > 0.0);
    if !value.is_finite() {
        return Err(Error::NonFiniteValue { step: k, value });
    }
    if !squared_norm.is_finite() {
        return Err(Error::NonFiniteGradient { step: k, norm: squared_norm.sqrt() });
    }
    let exit = match (squared_norm, interior) {
        (0.0, _) => Exit::Stationary,
        (_, true) => Exit::Interior,
        (_, false) => Exit::Boundary,
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
        // The trial is made even where there is no step: the host does not know.
        evaluations: Evaluations { values: 1, gradients: 1 },
    })
}
