//! Compares constraints on a model's parameters with closed forms.

mod common;

use common::{fill, store, waves};
use strust::{
    constraints::{Manifold, Stiefel},
    prelude::*,
};
use strust_torch::{AutodiffConstraint, Flat, ModelParameters, Orthonormal, TorchObjective};
use tch::{
    Kind, Tensor,
    nn::{self, VarStore},
};

/// Two weights with a bias between them.
fn model(store: &VarStore) -> [Tensor; 3] {
    let root = store.root();
    let made = [("tall", vec![6, 3]), ("bias", vec![4]), ("kernel", vec![2, 2, 3, 3])]
        .map(|(name, shape)| root.var(name, &shape, nn::Init::Const(0.1)));
    fill(store);
    made
}

fn vector(parameters: &ModelParameters<f64>, phase: f64) -> Flat<f64> {
    Flat::from_tensor(&waves(&[parameters.flat().len()], phase, Kind::Double))
}

fn assert_near(what: &str, a: &Flat<f64>, b: &Flat<f64>) {
    let mut difference = a.clone();
    difference.add(-1.0, b);
    assert!(difference.norm() <= 1e-12 * (1.0 + a.norm()), "{what}: {:?} against {:?}", a.to_vec(), b.to_vec());
}

/// The value and both Jacobian products at a fixed point, along fixed directions.
fn products<C>(c: &mut C, parameters: &ModelParameters<f64>) -> (Flat<f64>, Flat<f64>, Flat<f64>)
where
    C: Constraint<Point = Flat<f64>, Residual = Flat<f64>>,
{
    let (x, v) = (vector(parameters, 0.4), vector(parameters, 1.1));
    let mut value = c.new_residual();
    let mut jv = c.new_residual();
    c.residual(&x, &mut value);
    c.jvp(&x, &v, &mut jv);
    let y = Flat::from_tensor(&waves(&[value.len()], 2.2, Kind::Double));
    let mut jty = vector(parameters, 3.3);
    c.add_vjp(&x, -0.5, &y, &mut jty);
    // ⟨y, Jv⟩ = ⟨Jᵀy, v⟩
    let mut added = jty.clone();
    added.add(-1.0, &vector(parameters, 3.3));
    assert!((-0.5 * y.dot(&jv) - added.dot(&v)).abs() < 1e-12 * (1.0 + jv.norm() * y.norm()));
    (value, jv, jty)
}

#[test]
fn orthonormal_weights_agree_with_the_librarys_stiefel_manifold() {
    let store = store::<f64>();
    let _model = model(&store);
    let parameters = ModelParameters::<f64>::new(&store).unwrap();
    let mut set = Orthonormal::columns(&parameters, &["tall"]).unwrap();
    let mut stiefel = Stiefel::<f64>::new(6, 3).unwrap();
    let slot = parameters.slot("tall").unwrap();
    let matrix = |x: &Flat<f64>| {
        let values = Flat::<f64>::from_tensor(&slot.of(x)).to_vec();
        faer::Mat::from_fn(6, 3, |i, j| values[i * 3 + j])
    };
    let (x, v) = (vector(&parameters, 0.4), vector(&parameters, 1.1));
    let (value, jv, _) = products(&mut set, &parameters);
    let (mut c, mut p) = (stiefel.new_residual(), stiefel.new_residual());
    stiefel.residual(&matrix(&x), &mut c);
    stiefel.jvp(&matrix(&x), &matrix(&v), &mut p);
    for (i, j) in (0..3).flat_map(|i| (0..3).map(move |j| (i, j))) {
        assert!((value.to_vec()[i * 3 + j] - c[(i, j)]).abs() < 1e-13);
        assert!((jv.to_vec()[i * 3 + j] - p[(i, j)]).abs() < 1e-13);
    }
    assert!((set.rounding(&x, 0.0) - stiefel.rounding(&matrix(&x), 0.0)).abs() < 1e-20);
    assert_eq!((set.redundant(), stiefel.redundant()), (3, 3));
}

#[test]
fn automatic_differentiation_agrees_with_the_closed_form_for_several_weights_and_rows() {
    let store = store::<f64>();
    let [tall, _, kernel] = model(&store);
    let parameters = ModelParameters::<f64>::new(&store).unwrap();
    let gram = |w: &Tensor| w.tr().matmul(w) - Tensor::eye(w.size()[1], (Kind::Double, w.device()));
    let mut closed = Orthonormal::columns(&parameters, &["tall"]).unwrap();
    let one = tall.shallow_clone();
    let mut automatic = AutodiffConstraint::new(&parameters, move || gram(&one)).unwrap();
    let (a, b) = (products(&mut closed, &parameters), products(&mut automatic, &parameters));
    assert_near("c", &a.0, &b.0);
    assert_near("Jv", &a.1, &b.1);
    assert_near("Jᵀy", &a.2, &b.2);

    let mut closed = Orthonormal::rows(&parameters, &["kernel"]).unwrap();
    let mut automatic = AutodiffConstraint::new(&parameters, move || gram(&kernel.view([2, 18]).tr())).unwrap();
    let (a, b) = (products(&mut closed, &parameters), products(&mut automatic, &parameters));
    assert_near("rows, c", &a.0, &b.0);
    assert_near("rows, Jv", &a.1, &b.1);
    assert_near("rows, Jᵀy", &a.2, &b.2);
}

#[test]
fn a_nonlinear_constraint_has_the_products_of_its_closed_form() {
    let store = store::<f64>();
    let [_, bias, _] = model(&store);
    let parameters = ModelParameters::<f64>::new(&store).unwrap();
    let offset = parameters.slot("bias").unwrap().offset as usize;
    // c = (b₀b₁ − 1, sin b₂ + b₃²)
    let mut c = AutodiffConstraint::new(&parameters, move || {
        let b = bias.unbind(0);
        Tensor::stack(&[&b[0] * &b[1] - 1.0, b[2].sin() + b[3].square()], 0)
    })
    .unwrap();
    let (x, v) = (vector(&parameters, 0.4).to_vec(), vector(&parameters, 1.1).to_vec());
    let (b, d) = (&x[offset..offset + 4], &v[offset..offset + 4]);
    let (value, jv, _) = products(&mut c, &parameters);
    let close = |a: &[f64], b: [f64; 2]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-14);
    assert!(close(&value.to_vec(), [b[0] * b[1] - 1.0, b[2].sin() + b[3] * b[3]]));
    assert!(close(&jv.to_vec(), [b[1] * d[0] + b[0] * d[1], b[2].cos() * d[2] + 2.0 * b[3] * d[3]]));
}

#[test]
fn the_manifold_projects_and_restores() {
    let store = store::<f64>();
    let _model = model(&store);
    let parameters = ModelParameters::<f64>::new(&store).unwrap();
    let mut set = Orthonormal::columns(&parameters, &["tall"]).unwrap();
    let (mut x, mut v) = (vector(&parameters, 0.4), vector(&parameters, 1.1));
    let free = x.to_vec().split_off(18);
    set.restore(&mut x).unwrap();
    let (mut c, mut p) = (set.new_residual(), set.new_residual());
    set.residual(&x, &mut c);
    set.project_tangent(&x, &mut v).unwrap();
    set.jvp(&x, &v, &mut p);
    assert!(c.norm() < 1e-14 && p.norm() < 1e-14);
    assert_eq!(x.to_vec().split_off(18), free, "parameters that were not chosen");
    let error = set.restore(&mut x.zeros_like()).unwrap_err().to_string();
    assert!(error.contains("rank deficient"), "{error}");
}

/// The orthonormal frame nearest to A is the polar factor UVᵀ of A.
#[test]
fn str_p_finds_the_nearest_orthonormal_weight() {
    let store = store::<f64>();
    let w = store.root().var("w", &[6, 3], nn::Init::Const(0.1));
    fill(&store);
    let target = Tensor::eye_m(6, 3, (Kind::Double, w.device())) * 2.0 + waves(&[6, 3], 0.9, Kind::Double);
    let (u, _, v) = target.svd(true, true);
    let answer = Flat::<f64>::from_tensor(&u.matmul(&v.tr()));
    let (own, goal) = (w.shallow_clone(), target.copy());
    let mut f =
        TorchObjective::<f64, _>::new(&store, 1, move |_: &Sample| (&own - &goal).square().sum(Kind::Double)).unwrap();
    let set = Orthonormal::columns(f.parameters(), &["w"]).unwrap();
    let mut method = StrP::new(StrPConfig { penalty: 1e3, ..Default::default() }, set).unwrap();
    let (start, mut sampler) = (f.point(), Epochs::new(1, 1, 0).unwrap());
    let report =
        minimize(&mut f).method(&mut method).sampler(&mut sampler).stop(Stop::steps(4000)).start(start).unwrap();
    let mut distance = report.point().clone();
    distance.add(-1.0, &answer);
    // A fixed penalty μ leaves ‖c‖ = O(1/μ).
    assert!(
        report.last.constraint_norm < 5e-3 && distance.norm() < 5e-3,
        "{} {}",
        report.last.constraint_norm,
        distance.norm()
    );
}

/// The nearest weight in an exact set: no penalty to choose, and feasible to rounding.
#[test]
fn str_sqp_satisfies_constraints_on_parts_of_a_model() {
    let store = store::<f64>();
    let root = store.root();
    let (w, b) = (root.var("w", &[6, 5], nn::Init::Const(0.1)), root.var("b", &[4], nn::Init::Const(0.1)));
    fill(&store);
    let target = Tensor::eye_m(6, 5, (Kind::Double, w.device())) * 2.0 + waves(&[6, 5], 0.9, Kind::Double);
    let (u, _, v) = target.svd(true, true);
    let frame = u.matmul(&v.tr());
    let (own, bias) = (w.shallow_clone(), b.shallow_clone());
    // Two terms, whose mean has its minimum at the target and at b = 3.
    let mut f = TorchObjective::<f64, _>::new(&store, 2, move |sample: &Sample| {
        let shift: f64 = sample.indices().iter().map(|&i| if i == 0 { 0.5 } else { -0.5 }).sum::<f64>();
        (&own - &target - shift / sample.len() as f64).square().sum(Kind::Double)
            + (&bias - 3.0).square().sum(Kind::Double)
    })
    .unwrap();
    // Orthonormal columns of w (25 rows, by products), ‖b‖² ≤ 1 and a linear condition b₀ = 2b₁.
    let norm = b.shallow_clone();
    let ball = at_most(AutodiffConstraint::new(f.parameters(), move || norm.square().sum(Kind::Double) - 1.0).unwrap());
    let line = AutodiffConstraint::new(f.parameters(), move || b.get(0) - b.get(1) * 2.0).unwrap();
    let set = Orthonormal::columns(f.parameters(), &["w"]).unwrap();
    let set = both(set, both(ball, line).unwrap()).unwrap();
    let mut method = StrSqp::new(StrSqpConfig::default(), set).unwrap();
    let start = f.point();
    for full in [true, false] {
        let run = minimize(&mut f).method(&mut method);
        let run = if full { run.full_batch().stop(Stop::steps(200)) } else { run.batch(1).stop(Stop::epochs(400)) };
        let report = run.start(start.clone()).unwrap();
        assert!(report.last.constraint_norm < 1e-8, "{}", report.last.constraint_norm);
        let x = report.point().to_vec();
        let distance: f64 =
            x[..30].iter().zip(Flat::<f64>::from_tensor(&frame).to_vec()).map(|(x, a)| (x - a).powi(2)).sum();
        assert!(distance.sqrt() < if full { 1e-5 } else { 0.05 }, "{distance}");
        let b = &x[30..];
        assert!((b[0] - 2.0 * b[1]).abs() < 1e-8 && b.iter().map(|b| b * b).sum::<f64>() < 1.0 + 1e-8, "{b:?}");
        assert!(b[2] > 0.5 && (b[2] - b[3]).abs() < 1e-3, "{b:?}");
    }
}

#[test]
fn wrong_weights_are_refused_with_a_message() {
    let store = store::<f64>();
    let _model = model(&store);
    let parameters = ModelParameters::<f64>::new(&store).unwrap();
    let error = |r: Result<Orthonormal<f64>, strust_torch::Error>| r.map(|_| ()).unwrap_err().to_string();
    assert_eq!(
        error(Orthonormal::columns(&parameters, &["kernel"])),
        "`kernel` as a 2×18 matrix has more columns than rows, so they cannot be orthonormal: ask for its rows"
    );
    assert_eq!(
        error(Orthonormal::rows(&parameters, &["short"])),
        "there is no parameter `short`; there are `tall`, `bias`, `kernel`"
    );
}
