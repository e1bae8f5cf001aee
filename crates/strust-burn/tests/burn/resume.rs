//! Saved states.

use crate::models::{Net, device, random};
use burn::{
    module::{Module, ModuleMapper, Param},
    tensor::{Bytes, DType, Device, Tensor},
};
use std::fs;
use strust::{constraints::Affine, prelude::*};
use strust_burn::{Error, Flat, Optimizer, Parameters, Place};

fn steps<V: Place>(optimizer: &mut Optimizer<V>, mut net: Net, batches: &[Tensor<2>]) -> Net {
    for batch in batches {
        (net, _) = optimizer.step(net, |net| net.loss(batch)).unwrap();
    }
    net
}

/// Parameters and running statistics.
fn all_numbers<V: Place>(net: &Net) -> Vec<f64> {
    let mut all = Parameters::of(net).unwrap().vector::<V, _>(net).unwrap().components();
    let norm = net.valid().norm;
    for statistic in [norm.running_mean, norm.running_var] {
        all.extend(statistic.value().into_data().iter::<f64>());
    }
    all
}

struct Cast(DType);

impl ModuleMapper for Cast {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let trained = param.is_require_grad();
        param.map(|tensor| tensor.inner().cast(self.0).autodiff().set_require_grad(trained))
    }
}

fn net<V: Place>(device: &Device) -> Net {
    Net::new(device).map(&mut Cast(V::DTYPE))
}

fn resumes_with_the_same_bits<V: Place>(make: impl Fn() -> Optimizer<V>) {
    let (device, _alone) = device();
    let batches: Vec<Tensor<2>> = (0..20).map(|_| random([16, 4], &device).cast(V::DTYPE)).collect();
    let folder = std::env::temp_dir().join(format!("strust-burn-{}-{}", std::process::id(), V::scalar()));
    fs::create_dir_all(&folder).unwrap();
    let (state, module) = (folder.join("state.bpk"), folder.join("module.bpk"));

    let mut optimizer = make().seed(9);
    let trained = steps(&mut optimizer, net::<V>(&device), &batches[..10]);
    optimizer.save(&state).unwrap();
    trained.clone().save_file(&module).unwrap();
    let point = Parameters::of(&trained).unwrap().vector::<V, _>(&trained).unwrap().components();
    let expected = all_numbers::<V>(&steps(&mut optimizer, trained, &batches[10..]));

    let mut optimizer = make().load(&state).unwrap();
    let answer = optimizer.averaged(net::<V>(&device), &batches, |net, batch| drop(net.loss(batch))).unwrap();
    assert_eq!(all_numbers::<V>(&answer)[..point.len()], point, "the answer of a loaded state");
    let net = net::<V>(&device).load_file(&module);
    assert_eq!(optimizer.steps(), 10);
    assert_eq!(optimizer.to_bytes().unwrap()[..], fs::read(&state).unwrap()[..], "also before the next step");
    assert_eq!(all_numbers::<V>(&steps(&mut optimizer, net, &batches[10..])), expected);
    assert_eq!(optimizer.steps(), 20);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_run_resumes_from_files_with_the_same_bits() {
    resumes_with_the_same_bits(Optimizer::auto);
    resumes_with_the_same_bits(Optimizer::auto_on_device);
    resumes_with_the_same_bits(|| Optimizer::<Vec<f32>>::new(Str::default()));
    resumes_with_the_same_bits(|| Optimizer::<Vec<f64>>::new(Auto::default()));
    let plane = || Affine::new(vec![vec![1.0; 45]], vec![0.7]).unwrap();
    let sqp = || StrSqp::new(StrSqpConfig::default(), plane()).unwrap();
    resumes_with_the_same_bits(|| Optimizer::<Vec<f32>>::new(sqp()));
    let penalty = || StrP::new(StrPConfig::default(), plane()).unwrap();
    resumes_with_the_same_bits(|| Optimizer::<Vec<f32>>::new(penalty()));
}

fn mistakes_change_no_bit<V: Place>(mut optimizer: Optimizer<V>) {
    let (device, _alone) = device();
    let batches: Vec<Tensor<2>> = (0..10).map(|_| random([16, 4], &device)).collect();
    let mut net = steps(&mut optimizer, Net::new(&device), &batches[..5]);
    let (state, numbers) = (optimizer.to_bytes().unwrap(), all_numbers::<V>(&net));
    for kind in 0..4 {
        let mut calls = 0;
        let wrong = |net: &Net| {
            calls += 1;
            let loss = net.loss(&batches[0]);
            match (kind, calls) {
                (0, _) => loss.detach(),
                (1, _) => net.output.weight.val().square().sum(),
                (2, 1) | (3, 2) => loss.repeat(&[3]),
                _ => loss,
            }
        };
        let error = optimizer.step(net.clone(), wrong).unwrap_err();
        match kind {
            0 => assert!(matches!(error, Error::Detached), "{error}"),
            1 => assert!(matches!(error, Error::NoGradient { .. }), "{error}"),
            _ => assert!(matches!(error, Error::NotOneNumber { found: 3 }), "{error}"),
        }
        assert_eq!(calls, if kind == 3 { 2 } else { 1 });
        assert_eq!(optimizer.to_bytes().unwrap()[..], state[..], "mistake {kind}");
        assert_eq!(all_numbers::<V>(&net), numbers, "mistake {kind}");
    }
    net = steps(&mut optimizer, net, &batches[5..]);
    let mut other = optimizer.from_bytes(state).unwrap();
    let net_of_other = steps(&mut other, net.clone(), &batches[5..]);
    let parameters = Parameters::of(&net).unwrap();
    let [found, expected] = [net, net_of_other].map(|net| parameters.vector::<V, _>(&net).unwrap().components());
    assert_eq!(found, expected);
}

#[test]
fn a_mistake_in_the_closure_changes_no_bit() {
    mistakes_change_no_bit(Optimizer::auto());
    mistakes_change_no_bit(Optimizer::auto_on_device());
    mistakes_change_no_bit(Optimizer::<Vec<f32>>::new(Str::default()));
}

#[test]
fn a_state_that_does_not_fit_is_refused() {
    let (device, _alone) = device();
    let batches = [random([16, 4], &device)];
    assert!(Optimizer::auto().to_bytes().unwrap_err().to_string().contains("make a step first"));

    let mut optimizer = Optimizer::auto();
    let net = steps(&mut optimizer, Net::new(&device), &batches);
    let bytes = optimizer.to_bytes().unwrap().to_vec();
    let from = |bytes: &[u8]| Optimizer::auto().from_bytes(Bytes::from_bytes_vec(bytes.to_vec()));
    for length in [0, 10, bytes.len() / 2, bytes.len() - 1] {
        from(&bytes[..length]).unwrap_err();
    }
    let record = net.clone().into_record().into_bytes().unwrap().to_vec();
    assert!(from(&record).unwrap_err().to_string().contains("not a state of strust"));
    let error = Optimizer::auto().load("/nowhere/state.bpk").unwrap_err().to_string();
    assert!(error.starts_with("state /nowhere/state.bpk: cannot be read"), "{error}");
    let error = optimizer.save("/nowhere/state.bpk").unwrap_err().to_string();
    assert!(error.starts_with("state /nowhere/state.bpk: cannot be written"), "{error}");

    // Of another method, another type, another module.
    let input = &batches[0];
    let mut other =
        Optimizer::<Vec<f32>>::new(Str::default()).from_bytes(Bytes::from_bytes_vec(bytes.clone())).unwrap();
    assert!(other.step(net.clone(), |net| net.loss(input)).unwrap_err().to_string().contains("is missing"));
    let mut other = from(&bytes).unwrap();
    let error = other.step(net.output.clone(), |layer| layer.forward(random([2, 6], &device)).mean()).unwrap_err();
    assert!(error.to_string().contains("`norm.gamma` of shape [4] is now `weight` of shape [6, 1]"), "{error}");
    let mut on_device = Optimizer::<Flat<f32>>::auto_on_device().from_bytes(Bytes::from_bytes_vec(bytes)).unwrap();
    on_device.step(net, |net| net.loss(input)).unwrap();
}
