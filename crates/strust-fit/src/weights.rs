//! The weights of a model: layers of a network. A linear model has one layer.

use crate::encoded::EncodedRows;

/// Layers a ← max(0, Wa + b), the last one without max, as one flat vector: for each layer W, column by column, then b.
/// So the weights of an input are contiguous.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// The number of inputs, the widths of the hidden layers and the number of outputs.
    pub widths: Vec<usize>,
    /// The numbers.
    pub flat: Vec<f64>,
}

/// Space for the layers of one row.
#[derive(Debug, Clone, Default)]
pub struct LayerSpace {
    now: Vec<f64>,
    next: Vec<f64>,
}

impl Weights {
    /// The number of inputs.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.widths[0]
    }
    /// The number of outputs.
    #[must_use]
    pub fn outputs(&self) -> usize {
        *self.widths.last().unwrap_or(&0)
    }
    /// The weights from an input to the units of the first layer.
    #[must_use]
    pub fn of_input(&self, input: usize) -> &[f64] {
        let width = self.widths[1];
        &self.flat[input * width..(input + 1) * width]
    }
    /// The biases of the first layer.
    #[must_use]
    pub fn first_bias(&self) -> &[f64] {
        self.of_input(self.inputs())
    }

    /// The outputs for a row.
    pub fn apply<'a>(&self, rows: &EncodedRows, i: usize, space: &'a mut LayerSpace) -> &'a [f64] {
        self.first_layer(rows, i, &mut space.now);
        self.other_layers(space)
    }

    /// The activations of the last hidden layer for a row: the inputs of the last layer of a network.
    pub(crate) fn hidden<'a>(&self, rows: &EncodedRows, i: usize, space: &'a mut LayerSpace) -> &'a [f64] {
        self.first_layer(rows, i, &mut space.now);
        self.layers(space, self.widths.len() - 2);
        space.now.iter_mut().for_each(|a| *a = a.max(0.0));
        &space.now
    }

    /// The place of the last layer in the flat vector.
    pub(crate) fn last_layer(&self) -> std::ops::Range<usize> {
        let inputs = self.widths[self.widths.len() - 2];
        self.flat.len() - (inputs + 1) * self.outputs()..self.flat.len()
    }

    /// Wa + b of the first layer.
    pub(crate) fn first_layer(&self, rows: &EncodedRows, i: usize, out: &mut Vec<f64>) {
        out.clear();
        out.extend_from_slice(self.first_bias());
        rows.for_each(i, |j, value| add(out, value, self.of_input(j)));
    }

    /// The outputs, from Wa + b of the first layer.
    pub(crate) fn after_first<'a>(&self, first: &[f64], space: &'a mut LayerSpace) -> &'a [f64] {
        space.now.clear();
        space.now.extend_from_slice(first);
        self.other_layers(space)
    }

    fn other_layers<'a>(&self, space: &'a mut LayerSpace) -> &'a [f64] {
        self.layers(space, self.widths.len() - 1);
        &space.now
    }

    /// Applies the layers after the first one, up to the layer with this number.
    fn layers(&self, space: &mut LayerSpace, last: usize) {
        let LayerSpace { now, next } = space;
        let mut start = (self.inputs() + 1) * self.widths[1];
        for pair in self.widths.windows(2).take(last).skip(1) {
            let (inputs, outputs) = (pair[0], pair[1]);
            let columns = &self.flat[start..start + (inputs + 1) * outputs];
            next.clear();
            next.extend_from_slice(&columns[inputs * outputs..]);
            for (&a, column) in now.iter().zip(columns.chunks_exact(outputs)) {
                if a > 0.0 {
                    add(next, a, column);
                }
            }
            std::mem::swap(now, next);
            start += (inputs + 1) * outputs;
        }
    }
}

/// out ← out + a·x.
#[inline]
fn add(out: &mut [f64], a: f64, x: &[f64]) {
    out.iter_mut().zip(x).for_each(|(out, x)| *out += a * x);
}
