//! Gradients that are differentiated again.

use std::cell::Cell;

thread_local! {
    static AGAIN: Cell<bool> = const { Cell::new(false) };
}

/// Runs a forward pass whose gradient will be differentiated again. In it, layers use no kernel that libtorch cannot
/// differentiate twice: neither our own nor its fused attention. The results are the same up to rounding.
pub(crate) fn differentiable_again<R>(forward: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            AGAIN.set(self.0);
        }
    }
    let _restore = Restore(AGAIN.replace(true));
    forward()
}

/// Whether the gradient of this forward pass will be differentiated again.
pub(crate) fn is_differentiable_again() -> bool {
    AGAIN.get()
}
