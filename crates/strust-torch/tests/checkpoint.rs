//! 2k steps equal k steps, a save, a load into a new model, and k steps, bit for bit.

mod common;

use common::{TERMS, bits, problem, store};
use serde::{Serialize, de::DeserializeOwned};
use strust::{methods::StrState, prelude::*, samplers::Sampler, saved::Load};
use strust_baselines::{Adam, AdamConfig, LineSearch, LineSearchConfig, Sgd, SgdConfig};
use strust_torch::{DeviceMethod, DeviceStr, Flat, ModelCheckpoint, SupervisedLoss, TorchObjective};

type Problem = TorchObjective<f32, SupervisedLoss<'static>>;

fn through_a_file<T: Serialize + DeserializeOwned>(value: &T) -> T {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), rmp_serde::to_vec_named(value).unwrap()).unwrap();
    rmp_serde::from_slice(&std::fs::read(file.path()).unwrap()).unwrap()
}

fn steps<M: Method<Problem>>(f: &mut Problem, method: &mut M, state: &mut M::State, count: u64) -> Vec<StepRecord> {
    let mut sampler = Epochs::new(TERMS, 16, 3).unwrap();
    let mut sample = Sample::default();
    (0..count)
        .map(|_| {
            sampler.draw(state.steps(), &mut sample);
            method.step(f, state, &sample).unwrap()
        })
        .collect()
}

fn resumes<M: Method<Problem>>(name: &str, make: impl Fn() -> M)
where
    M::State: Load + Serialize + DeserializeOwned,
{
    let whole = {
        let store = store::<f32>();
        let mut f = problem::<f32>(&store, 0.3, 0.1);
        let (mut method, start) = (make(), f.point());
        let mut state = method.init(&mut f, start).unwrap();
        let records = steps(&mut f, &mut method, &mut state, 24);
        (records[12..].to_vec(), bits(state.point()), bits(f.parameters().buffers()))
    };
    let saved = {
        let store = store::<f32>();
        let mut f = problem::<f32>(&store, 0.3, 0.1);
        let (mut method, start) = (make(), f.point());
        let mut state = method.init(&mut f, start).unwrap();
        steps(&mut f, &mut method, &mut state, 12);
        through_a_file(&f.checkpoint(state))
    };
    let store = store::<f32>();
    let mut f = problem::<f32>(&store, 0.3, 0.1);
    let mut state = f.restore(&saved).unwrap();
    let records = steps(&mut f, &mut make(), &mut state, 12);
    assert!(whole == (records, bits(state.point()), bits(f.parameters().buffers())), "{name}");
}

#[test]
fn every_method_resumes_bit_for_bit() {
    resumes("Auto", Auto::default);
    resumes("STR", || Str::new(StrConfig::default()).unwrap());
    resumes("SGD", || Sgd::new(SgdConfig { learning_rate: 0.1, momentum: 0.9, ..Default::default() }).unwrap());
    resumes("Adam", || Adam::new(AdamConfig::default()).unwrap());
    resumes("line search", || LineSearch::new(LineSearchConfig::default()).unwrap());
}

#[test]
fn str_on_the_device_resumes_bit_for_bit_and_from_the_librarys_state() {
    let run = |f: &mut Problem, method: &mut DeviceStr<f32>, from: u64| {
        let (mut sampler, mut sample) = (Epochs::new(TERMS, 16, 3).unwrap(), Sample::default());
        for k in from..from + 12 {
            sampler.draw(k, &mut sample);
            method.step(f, &sample).unwrap();
        }
    };
    let one = store::<f32>();
    let mut f = problem::<f32>(&one, 0.3, 0.1);
    let mut method = DeviceStr::start(StrConfig::default(), &f, 5).unwrap();
    run(&mut f, &mut method, 0);
    let state = method.state(&f);
    let saved: ModelCheckpoint<StrState<Flat<f32>>, f32> = through_a_file(&f.checkpoint(state));
    run(&mut f, &mut method, 12);

    let other = store::<f32>();
    let mut g = problem::<f32>(&other, 0.3, 0.1);
    let state = g.restore(&saved).unwrap();
    let mut resumed = DeviceStr::resume(StrConfig::default(), &mut g, &state, 7).unwrap();
    run(&mut g, &mut resumed, 12);
    assert_eq!(method.records().unwrap()[12..], resumed.records().unwrap());
    assert_eq!(bits(f.parameters().flat()), bits(g.parameters().flat()));
    assert_eq!(bits(f.parameters().buffers()), bits(g.parameters().buffers()));
    assert!(method.state(&f) == resumed.state(&g));
}

#[test]
fn the_checkpoint_of_another_model_is_refused_with_a_message() {
    let (one, other) = (store::<f32>(), store::<f32>());
    let f = problem::<f32>(&one, 0.3, 0.1);
    let w = other.root().var("w", &[2], tch::nn::Init::Const(0.0));
    let mut g = TorchObjective::<f32, _>::new(&other, 1, move |_: &Sample| w.sum(tch::Kind::Float)).unwrap();
    let checkpoint = f.checkpoint(StrState::from_parts(f.point(), 1.0, 0, ()));
    let error = g.restore(&checkpoint).unwrap_err().to_string();
    assert_eq!(error, "checkpoint: it holds 32 numbers in buffers, but the model has 0: it belongs to another model");
}
