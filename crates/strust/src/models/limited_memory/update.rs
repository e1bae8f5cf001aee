//! The formulas of the matrices.

/// A formula that changes a matrix B so that Bs = y.
pub trait Update: Clone + std::fmt::Debug {
    /// Whether a pair with these products is kept.
    fn accepts(pair: PairProducts) -> bool;
    /// γ, the curvature in directions that no pair has seen, from all pairs, oldest first. It may be 0 or infinite, and is
    /// then replaced.
    fn curvature(pairs: impl DoubleEndedIterator<Item = PairProducts>) -> f64;
    /// The change of B for a pair with w = Bs; `None` to leave B.
    fn change(pair: PairProducts, sw: f64, miss: f64) -> Option<MatrixChange>;
}

/// The products of a step s and a change y.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairProducts {
    /// sᵀs.
    pub ss: f64,
    /// sᵀy.
    pub sy: f64,
    /// yᵀy.
    pub yy: f64,
}

/// The change of a matrix B for a pair (s, y), with w = Bs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MatrixChange {
    /// yyᵀ/a − wwᵀ/b.
    Two(f64, f64),
    /// (y − w)(y − w)ᵀ/a.
    One(f64),
}

/// B − wwᵀ/sᵀw + yyᵀ/sᵀy, which stays positive definite.
#[derive(Debug, Clone, Copy)]
pub struct Bfgs;

impl Update for Bfgs {
    /// Positive curvature: sᵀy ≥ 1e-8·‖s‖‖y‖.
    fn accepts(pair: PairProducts) -> bool {
        pair.sy > 0.0 && pair.sy * pair.sy >= 1e-16 * pair.ss * pair.yy
    }
    /// yᵀy/sᵀy of the newest pair.
    fn curvature(mut pairs: impl DoubleEndedIterator<Item = PairProducts>) -> f64 {
        pairs.next_back().map_or(0.0, |pair| pair.yy / pair.sy)
    }
    fn change(pair: PairProducts, sw: f64, _: f64) -> Option<MatrixChange> {
        (sw > 0.0 && pair.sy > 0.0).then_some(MatrixChange::Two(pair.sy, sw))
    }
}

/// B + (y − w)(y − w)ᵀ/sᵀ(y − w), which may become indefinite as the Hessian may.
#[derive(Debug, Clone, Copy)]
pub struct Sr1;

impl Update for Sr1 {
    fn accepts(_: PairProducts) -> bool {
        true
    }
    /// |sᵀy|/sᵀs of the newest pair.
    fn curvature(mut pairs: impl DoubleEndedIterator<Item = PairProducts>) -> f64 {
        pairs.next_back().map_or(0.0, |pair| (pair.sy / pair.ss).abs())
    }
    /// |sᵀ(y − w)| > 1e-8·‖s‖‖y − w‖.
    fn change(pair: PairProducts, sw: f64, miss: f64) -> Option<MatrixChange> {
        let slope = pair.sy - sw;
        (slope.abs() > 1e-8 * pair.ss.sqrt() * miss).then_some(MatrixChange::One(slope))
    }
}
