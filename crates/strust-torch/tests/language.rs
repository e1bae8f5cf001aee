//! The transformer against plain loops, and a text as a problem of the library.

mod common;

use common::{bits, fill, store};
use std::collections::HashMap;
use strust::{diagnostics::gradient_slope, objective::full_value, prelude::*};
use strust_baselines::{Adam, AdamConfig};
use strust_data::text::Characters;
use strust_problems::Problem;
use strust_torch::{Component, Flat, Gpt, GptShape, LanguageModel};
use tch::{Device, Kind, Tensor, nn::Module};

const SHAPE: GptShape = GptShape { layers: 2, width: 12, heads: 3, context: 10 };

fn codes(numbers: &[i64]) -> Tensor {
    Tensor::from_slice(numbers).view([1, -1])
}

/// A matrix of weights as rows.
type Rows = Vec<Vec<f64>>;

/// The formulas of [`Gpt`] on one row of codes, number by number.
struct Loops {
    weights: HashMap<String, Rows>,
    heads: usize,
}

impl Loops {
    fn linear(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let (w, b) = (&self.weights[&format!("{name}.weight")], &self.weights[&format!("{name}.bias")][0]);
        w.iter().zip(b).map(|(row, b)| b + row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>()).collect()
    }
    fn norm(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let (w, b) = (&self.weights[&format!("{name}.weight")][0], &self.weights[&format!("{name}.bias")][0]);
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64;
        x.iter().zip(w).zip(b).map(|((x, w), b)| (x - mean) / (variance + 1e-5).sqrt() * w + b).collect()
    }
    fn attention(&self, layer: &str, x: &[Vec<f64>]) -> Rows {
        let width = x[0].len();
        let size = width / self.heads;
        let qkv: Rows = x.iter().map(|x| self.linear(&format!("{layer}.attn.c_attn"), x)).collect();
        let position = |i: usize| {
            let mut y = vec![0.0; width];
            for head in 0..self.heads {
                let at = |j: usize, part: usize, c: usize| qkv[j][part * width + head * size + c];
                let score = |j| (0..size).map(|c| at(i, 0, c) * at(j, 1, c)).sum::<f64>() / (size as f64).sqrt();
                // Only this position and earlier ones.
                let exp: Vec<f64> = (0..=i).map(|j| score(j).exp()).collect();
                let sum: f64 = exp.iter().sum();
                for c in 0..size {
                    y[head * size + c] = (0..=i).map(|j| exp[j] / sum * at(j, 2, c)).sum();
                }
            }
            self.linear(&format!("{layer}.attn.c_proj"), &y)
        };
        (0..x.len()).map(position).collect()
    }
    fn logits(&self, codes: &[i64], layers: usize) -> Rows {
        let add = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a + b).collect::<Vec<_>>();
        let gelu =
            |x: f64| 0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh());
        let (characters, positions) = (&self.weights["wte.weight"], &self.weights["wpe.weight"]);
        let mut x: Rows = codes.iter().zip(positions).map(|(&c, p)| add(&characters[c as usize], p)).collect();
        for layer in (0..layers).map(|i| format!("h.{i}")) {
            let normed: Rows = x.iter().map(|x| self.norm(&format!("{layer}.ln_1"), x)).collect();
            x = x.iter().zip(self.attention(&layer, &normed)).map(|(x, y)| add(x, &y)).collect();
            for x in &mut x {
                let wide = self.linear(&format!("{layer}.mlp.c_fc"), &self.norm(&format!("{layer}.ln_2"), x));
                let inner: Vec<f64> = wide.into_iter().map(gelu).collect();
                *x = add(x, &self.linear(&format!("{layer}.mlp.c_proj"), &inner));
            }
        }
        let out = |x: &Vec<f64>| {
            let x = self.norm("ln_f", x);
            characters.iter().map(|row| row.iter().zip(&x).map(|(a, b)| a * b).sum()).collect()
        };
        x.iter().map(out).collect()
    }
}

#[test]
fn the_transformer_computes_its_formulas() {
    let store = store::<f64>();
    let gpt = Gpt::new(&store.root(), 7, SHAPE);
    fill(&store);
    let rows = |t: &Tensor| -> Rows {
        let columns = t.size().last().copied().unwrap();
        let t = t.to_kind(Kind::Double).reshape([-1, columns]);
        (0..t.size()[0]).map(|i| Vec::try_from(t.get(i)).unwrap()).collect()
    };
    let weights = store.variables().iter().map(|(name, t)| (name.clone(), rows(t))).collect();
    let text = [3, 1, 4, 1, 5, 0, 2, 6];
    let (found, expected) = (rows(&gpt.forward(&codes(&text)).get(0)), Loops { weights, heads: 3 }.logits(&text, 2));
    let size = expected.iter().flatten().fold(0.0_f64, |a, b| a.max(b.abs()));
    assert!(size > 0.1, "{size}");
    for (a, b) in found.iter().flatten().zip(expected.iter().flatten()) {
        assert!((a - b).abs() < 1e-12 * size, "{a} and {b}");
    }
}

/// 30 windows of 11 characters, with a rest that is left out.
fn problem<T: Component>() -> LanguageModel<T> {
    tch::set_num_threads(1);
    let text: String = (0..30 * 11 + 7_u32).map(|i| char::from(b'a' + (i * i % 23 % 9) as u8)).collect();
    LanguageModel::new(&Characters::new(&text).unwrap(), SHAPE, Device::Cpu).unwrap()
}

#[test]
fn a_later_character_does_not_change_earlier_predictions() {
    let mut f = problem::<f64>();
    let mut x = f.start(0);
    // At the start the weights are so small that attention is nearly uniform.
    x.scale(10.0);
    let logits = |f: &mut LanguageModel<f64>, last: i64| f.logits(&x, &codes(&[0, 3, 1, 2, 4, last]));
    let (one, other) = (logits(&mut f, 0), logits(&mut f, 5));
    let changed = |from: i64, length: i64| (&one - &other).narrow(1, from, length).abs().max().double_value(&[]);
    assert!(changed(0, 5) == 0.0 && changed(5, 1) > 1e-3, "{} and {}", changed(0, 5), changed(5, 1));
}

#[test]
fn the_gradient_is_the_slope_and_every_evaluation_is_a_function_of_point_and_sample() {
    let mut f = problem::<f64>();
    assert_eq!((f.terms(), f.optimum(), f.extra_state().len()), (27, None, 0));
    let x = f.start(3);
    assert!(bits(&x) == bits(&f.start(3)) && bits(&x) != bits(&f.start(4)));
    assert_eq!(x.len() as usize, f.parameters());
    let direction = Flat::<f64>::from_tensor(&common::waves(&[x.len()], 0.4, Kind::Double));
    for sample in [Sample::range(0..27), Sample::new(vec![5, 0, 5], 9)] {
        let slope = gradient_slope(&mut f, &x, &direction, &sample);
        assert!((1.9..2.1).contains(&slope), "{slope}");
        let (mut one, mut other) = (x.zeros_like(), direction.clone());
        let value = f.value_and_gradient(&x, &sample, &mut one).value;
        f.value(&direction, &Sample::range(0..3));
        assert_eq!(value.to_bits(), f.value(&x, &sample).value.to_bits());
        assert_eq!(value.to_bits(), f.value_and_gradient(&x, &sample, &mut other).value.to_bits());
        assert!(bits(&one) == bits(&other));
    }
    // At the start all eight characters are about equally likely.
    assert!((full_value(&mut f, &x) - 8.0_f64.ln()).abs() < 0.05);
    let mean: f64 = (0..27).map(|i| f.value(&x, &Sample::range(i..i + 1)).value).sum::<f64>() / 27.0;
    assert!((full_value(&mut f, &x) - mean).abs() < 1e-12, "windows do not interact");
}

#[test]
fn training_learns_the_text_and_a_saved_model_has_the_same_loss() {
    let mut f = problem::<f32>();
    let start = f.start(0);
    let adam = Adam::new(AdamConfig { learning_rate: 0.01, ..Default::default() }).unwrap();
    let stop = Stop::epochs(30);
    let report = minimize(&mut f).method(adam).batch(9).stop(stop).start(start.clone()).unwrap();
    let x = report.point();
    // The text repeats after 23 characters.
    let (before, after) = (f.test_loss(&start), f.test_loss(x));
    assert!(after < 0.6 * before && full_value(&mut f, x) < 0.6 * before, "{before} and {after}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    f.save(&path, x).unwrap();
    let mut other = problem::<f32>();
    let loaded = other.load(&path).unwrap();
    assert!(bits(&loaded) == bits(x) && other.test_loss(&loaded).to_bits() == after.to_bits());
}

#[test]
fn texts_and_shapes_that_do_not_fit_are_refused_with_a_message() {
    let error = |text: &str, shape| {
        LanguageModel::<f32>::new(&Characters::new(text).unwrap(), shape, Device::Cpu).unwrap_err().to_string()
    };
    assert_eq!(error("abc", SHAPE), "text: 3 characters are not two windows of 11: use a longer text");
    let odd = GptShape { heads: 5, ..SHAPE };
    assert_eq!(error("abc", odd), "text: 5 heads do not divide the width 12");
}
