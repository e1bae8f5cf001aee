/// A matrix that describes the curvature of the mean of sampled terms at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProductKind {
    /// The Hessian ∇²f, which may be indefinite.
    Hessian,
    /// The Gauss–Newton matrix JᵀBJ of a loss of outputs, f = ℓ(F(x)), where J is the Jacobian of the outputs and B ⪰ 0 the
    /// Hessian of the loss in them. It is never indefinite, and equals the Hessian if F is linear.
    GaussNewton,
}
