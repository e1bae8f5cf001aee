//! Your own libtorch model with STR: a small network learns two interleaved spirals, without a learning rate.
//!
//! Run with `eval "$(scripts/torch-env)"; cargo run -p strust-torch --example own_model`.

#![allow(clippy::cast_possible_wrap)] // libtorch counts in i64

use strust::prelude::*;
use strust_torch::{Orthonormal, cross_entropy, device, seeded, supervised};
use tch::{Kind, Tensor, nn, nn::Module};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = device::open("auto")?;
    println!("on {}", device::report(device)?);

    // Two spirals of 100 points.
    let t = Tensor::arange(200, (Kind::Float, device));
    let (class, angle) = (t.remainder(2.0), &t / 200.0 * 6.0);
    let turn = &angle + &class * std::f64::consts::PI;
    let points = Tensor::stack(&[turn.cos() * &angle, turn.sin() * &angle], 1) / 6.0;
    let classes = class.to_kind(Kind::Int64);

    // Any model made from a VarStore.
    let store = nn::VarStore::new(device);
    let net = seeded(0, || {
        nn::seq()
            .add(nn::linear(store.root() / "first", 2, 64, nn::LinearConfig::default()))
            .add_fn(Tensor::relu)
            .add(nn::linear(store.root() / "middle", 64, 64, nn::LinearConfig::default()))
            .add_fn(Tensor::relu)
            .add(nn::linear(store.root() / "last", 64, 2, nn::LinearConfig::default()))
    });

    // Model, batch and loss in, records out.
    let batch = |sample: &Sample| {
        let rows: Vec<i64> = sample.indices().iter().map(|&i| i as i64).collect();
        let rows = Tensor::from_slice(&rows).to_device(device);
        (points.index_select(0, &rows), classes.index_select(0, &rows))
    };
    let mut f = supervised::<f32>(&store, 200, batch, |x| net.forward(x), cross_entropy)?;
    let (start, mut sampler) = (f.point(), Epochs::new(200, 50, 0)?);
    let report = minimize(&mut f)
        .method(Str::new(StrConfig::default())?)
        .sampler(&mut sampler)
        .stop(Stop::epochs(300))
        .start(start.clone())?;
    println!("loss {:.4}, {:.0} % of steps accepted", report.last.value, 100.0 * report.acceptance_rate());
    f.set(report.point());
    let right = tch::no_grad(|| net.forward(&points)).argmax(1, false).eq_tensor(&classes).sum(Kind::Int64);
    assert!(right.int64_value(&[]) >= 195);

    // The same with orthonormal columns in the first layer, and no penalty to choose.
    let set = Orthonormal::columns(f.parameters(), &["first.weight"])?;
    let mut method = StrSqp::new(StrSqpConfig::default(), set)?;
    let report = minimize(&mut f).method(&mut method).sampler(&mut sampler).stop(Stop::epochs(300)).start(start)?;
    println!("loss {:.4}, |c| {:.1e}", report.last.value, report.last.constraint_norm);
    assert!(report.last.constraint_norm < 1e-5);
    Ok(())
}
