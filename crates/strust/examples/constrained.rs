//! A matrix with orthonormal columns: the frame W nearest to A, min ½‖W − A‖² subject to WᵀW = I.
//!
//! Run with `cargo run --example constrained`.

use faer::Mat;
use strust::{
    constraints::{Manifold, Retraction, Stiefel},
    prelude::*,
};

fn main() -> Result<(), Error> {
    let a = Mat::from_fn(6, 2, |i, j| ((3 * i + 5 * j) as f64).sin() + f64::from(i == j));
    let mut f = from_terms(1, |_, w: &Mat<f64>, g| {
        let r = w - &a;
        g.add(1.0, &r);
        0.5 * r.norm_squared()
    });
    // The known answer is the orthogonal factor of the polar decomposition of A.
    let mut answer = a.clone();
    Stiefel::new(6, 2)?.with_retraction(Retraction::Polar).restore(&mut answer)?;

    let mut violations = Vec::new();
    for penalty in [50.0, 100.0, 200.0] {
        let method = StrP::new(StrPConfig { penalty, ..Default::default() }, Stiefel::new(6, 2)?)?;
        let report = minimize(&mut f).method(method).stop(Stop::steps(5000)).start(answer.clone() * 1.3)?;
        let off = (report.point() - &answer).norm_l2();
        println!("μ = {penalty:>3}: ‖WᵀW − I‖ = {:.2e}, {off:.2e} from the answer", report.last.constraint_norm);
        // At a minimum of φ the Lagrangian's gradient vanishes, but the point is not feasible.
        assert!(report.last.gradient_norm < 1e-7 && off < 2.0 / penalty);
        violations.push(report.last.constraint_norm);
    }
    // With a fixed penalty ‖c‖ = O(1/μ), so doubling μ halves ‖c‖.
    assert!(violations.windows(2).all(|v| (1.9..2.1).contains(&(v[0] / v[1]))));
    Ok(())
}
