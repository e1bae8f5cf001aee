//! A step over a Burn module is that of the library over the same function.

use crate::models::device;
use burn::{
    module::{Module, Param},
    tensor::{Device, Tensor, TensorData},
};
use strust::{constraints::Affine, prelude::*, samplers::Sampler};
use strust_burn::{Component, Flat, Optimizer, Parameters, Place};

const TERMS: usize = 60;
const WIDTH: usize = 5;

/// Fixed inputs and targets.
fn row(i: usize) -> ([f64; WIDTH], f64) {
    let input = std::array::from_fn(|j| (1.7 * (i * WIDTH + j) as f64).sin());
    (input, (0.9 * i as f64).cos() + 0.3 * input[0])
}

/// (tanh(aᵀw) + aᵀw/10 + b − y)², by hand. As in a loop over batches, no method can ask for the full sum.
fn by_hand<T: Component>() -> impl Objective<Point = Vec<T>> {
    from_terms(usize::MAX, |i, x: &Vec<T>, g: &mut Vec<T>| {
        let (a, y) = row(i);
        let of = |k: usize| -> f64 { x[k].into() };
        let seen: f64 = (0..WIDTH).map(|j| a[j] * of(j)).sum();
        let error = seen.tanh() + 0.1 * seen + of(WIDTH) - y;
        let slope = 2.0 * error * (1.0 - seen.tanh().powi(2) + 0.1);
        let mut add = |k: usize, value: f64| {
            let before: f64 = g[k].into();
            g[k] = T::from_f64(before + value);
        };
        (0..WIDTH).for_each(|j| add(j, slope * a[j]));
        add(WIDTH, 2.0 * error);
        error * error
    })
}

#[derive(Module, Debug)]
struct Neuron {
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
}

fn tensor<T: Component, const D: usize>(numbers: Vec<f64>, shape: [usize; D], device: &Device) -> Tensor<D> {
    let numbers: Vec<T> = numbers.into_iter().map(T::from_f64).collect();
    Tensor::from_data(TensorData::new(numbers, shape), (device, T::KIND))
}

impl Neuron {
    fn new<T: Component>(device: &Device) -> Self {
        Self {
            weight: Param::from_tensor(tensor::<T, 2>(vec![0.2; WIDTH], [WIDTH, 1], device)),
            bias: Param::from_tensor(tensor::<T, 1>(vec![0.2], [1], device)),
        }
    }
    fn loss<T: Component>(&self, sample: &Sample, device: &Device) -> Tensor<1> {
        let rows: Vec<([f64; WIDTH], f64)> = sample.indices().iter().map(|&i| row(i)).collect();
        let inputs = rows.iter().flat_map(|(a, _)| *a).collect();
        let inputs = tensor::<T, 2>(inputs, [rows.len(), WIDTH], device);
        let targets = tensor::<T, 2>(rows.iter().map(|(_, y)| *y).collect(), [rows.len(), 1], device);
        let seen = inputs.matmul(self.weight.val());
        let error = seen.clone().tanh() + seen * 0.1 + self.bias.val().unsqueeze() - targets;
        error.square().mean()
    }
}

/// Makes the steps of a method in both ways, and compares the points and records.
fn compare<V: Place, T: Component, A, B, S>(library: A, over_burn: B, steps: u64, batch: usize, tolerance: f64)
where
    A: Method<Box<dyn Objective<Point = Vec<T>>>, State: State<Point = Vec<T>>>,
    B: for<'a> Method<&'a mut (dyn Objective<Point = V> + 'a), State = S> + Send + 'static,
    S: State<Point = V> + Send + 'static,
{
    let (device, _alone) = device();
    let mut library = library;
    let mut f: Box<dyn Objective<Point = Vec<T>>> = Box::new(by_hand::<T>());
    let mut state = library.init(&mut f, vec![T::from_f64(0.2); WIDTH + 1]).unwrap();
    let mut neuron = Neuron::new::<T>(&device);
    let parameters = Parameters::of(&neuron).unwrap();
    let mut optimizer = Optimizer::<V>::new(over_burn);
    let mut sampler = Epochs::new(TERMS, batch, 5).unwrap();
    let mut sample = Sample::default();
    for k in 0..steps {
        sampler.draw(k, &mut sample);
        let record = library.step(&mut f, &mut state, &sample).unwrap();
        let loss;
        (neuron, loss) = optimizer.step(neuron, |neuron| neuron.loss::<T>(&sample, &device)).unwrap();
        let near = (loss - record.value).abs() <= tolerance * record.value;
        assert!(near, "step {k}: {loss} and {}", record.value);
        let found: Vec<T> = parameters.vector(&neuron).unwrap();
        let mut difference = found.clone();
        difference.add(-1.0, state.point());
        let (distance, norm) = (difference.norm(), state.point().norm());
        assert!(distance <= tolerance * norm, "step {k}: {distance} of {norm}");
    }
}

#[test]
fn auto_in_double_precision() {
    compare::<Vec<f64>, f64, _, _, _>(Auto::default(), Auto::default(), 300, 10, 1e-11);
    compare::<Flat<f64>, f64, _, _, _>(Auto::default(), Auto::default(), 300, 10, 1e-11);
    let config = AutoConfig { weight_decay: 0.1, ..Default::default() };
    let [a, b] = [0, 1].map(|_| config.clone());
    compare::<Vec<f64>, f64, _, _, _>(Auto::new(a).unwrap(), Auto::new(b).unwrap(), 300, 10, 1e-11);
}

#[test]
fn auto_in_single_precision() {
    compare::<Vec<f32>, f32, _, _, _>(Auto::default(), Auto::default(), 100, 20, 1e-5);
    compare::<Flat<f32>, f32, _, _, _>(Auto::default(), Auto::default(), 100, 20, 1e-5);
}

#[test]
fn str_and_the_methods_with_constraints() {
    compare::<Vec<f64>, f64, _, _, _>(Str::default(), Str::default(), 300, 10, 1e-11);
    compare::<Flat<f64>, f64, _, _, _>(Str::default(), Str::default(), 300, 10, 1e-11);
    let plane = || Affine::new(vec![vec![1.0; WIDTH + 1]], vec![0.7]).unwrap();
    let sqp = || StrSqp::new(StrSqpConfig::default(), plane()).unwrap();
    compare::<Vec<f64>, f64, _, _, _>(sqp(), sqp(), 100, 20, 1e-10);
    let penalty = || StrP::new(StrPConfig::default(), plane()).unwrap();
    compare::<Vec<f64>, f64, _, _, _>(penalty(), penalty(), 100, 20, 1e-10);
}
