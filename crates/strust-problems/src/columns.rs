//! Products of a d×k matrix W with mini-batches of the columns of a d×n matrix X.

use faer::Mat;
use strust::{
    products::{Picked, inner, product},
    sample::Sample,
};

/// X, with scratch space for Y = WᵀX of a batch and for its scaled transpose.
#[derive(Debug, Clone)]
pub(crate) struct Columns {
    pub data: Mat<f64>,
    k: usize,
    projected: Mat<f64>,
    factor: Mat<f64>,
}

impl Columns {
    pub fn new(data: Mat<f64>, k: usize) -> Self {
        Self { data, k, projected: Mat::zeros(k, 0), factor: Mat::zeros(0, k) }
    }

    /// d and k.
    pub fn size(&self) -> (usize, usize) {
        (self.data.nrows(), self.k)
    }

    /// Y ← WᵀX for the columns of a sample. Y stays in the scratch space.
    pub fn project(&mut self, w: &Mat<f64>, sample: &Sample) -> &mut Mat<f64> {
        if self.projected.ncols() != sample.len() {
            self.projected.resize_with(self.k, sample.len(), |_, _| 0.0);
        }
        inner(w, &Picked { matrix: &self.data, indices: sample.indices() }, &mut self.projected);
        &mut self.projected
    }

    /// out ← (scale/b)XYᵀ for the b columns of the sample of the last [`Self::project`].
    pub fn pull_back(&mut self, scale: f64, sample: &Sample, out: &mut Mat<f64>) {
        let b = sample.len();
        self.factor.resize_with(b, self.k, |_, _| 0.0);
        for j in 0..self.k {
            for i in 0..b {
                self.factor[(i, j)] = scale * self.projected[(j, i)] / b as f64;
            }
        }
        product(&Picked { matrix: &self.data, indices: sample.indices() }, &self.factor, out);
    }
}
