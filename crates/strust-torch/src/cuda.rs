//! The few functions of CUDA that tch does not bind, as safe functions over the C++ files in `native`. A build without
//! CUDA has the same functions: they do nothing, or return an error that explains how to build with CUDA.

#[cfg(cuda_graphs)]
mod native;
#[cfg(not(cuda_graphs))]
#[path = "cuda/without_cuda.rs"]
mod native;

use crate::{Error, again::is_differentiable_again};
use std::{
    marker::PhantomData,
    mem,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::Path,
    sync::{Mutex, PoisonError, RwLock, RwLockReadGuard},
};
use tch::{Cuda, Device, Tensor, nn::BatchNormConfig};

/// Whether this build can capture a step as a CUDA graph, and has fused kernels.
pub const BUILT_WITH_GRAPHS: bool = cfg!(cuda_graphs);

/// Warnings that the caller has not taken yet.
static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Takes the warnings of the whole process since the last call, oldest first.
///
/// This crate never prints. If it has to use a slower way than the caller asked for, it continues and adds a warning:
///
/// - the fused kernels cannot be used, so layers run operation by operation;
/// - a step cannot be captured as a CUDA graph, so it runs operation by operation.
///   [`DeviceRun::why_eager`](crate::DeviceRun::why_eager) reports the same reason for one run.
///
/// A warning occurs once in the list, even if several threads add it. A program calls this function from time to time,
/// for example after each epoch, and shows the result:
///
/// ```
/// for warning in strust_torch::cuda::take_warnings() {
///     eprintln!("warning: {warning}");
/// }
/// ```
#[must_use]
pub fn take_warnings() -> Vec<String> {
    mem::take(&mut *WARNINGS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Adds a warning for [`take_warnings`].
pub(crate) fn warn(warning: String) {
    let mut warnings = WARNINGS.lock().unwrap_or_else(PoisonError::into_inner);
    if !warnings.contains(&warning) {
        warnings.push(warning);
    }
}

/// Allows or forbids TF32: products and convolutions in single precision then round their factors to ten bits. libtorch
/// starts with TF32 allowed in convolutions and forbidden in products. The setting affects only GPUs and applies to the
/// whole process.
///
/// ```
/// strust_torch::cuda::set_tf32(true);
/// ```
pub fn set_tf32(on: bool) {
    native::set_tf32(on);
}

/// Evaluates a model with its convolutions and matrix products in bfloat16 on a GPU. On the CPU it changes nothing.
///
/// Use it for the forward pass only. Compute the loss outside and in single precision, because STR's ratio compares two
/// losses:
///
/// ```
/// use strust_torch::{cross_entropy, cuda::bf16};
/// # let (x, w) = (tch::Tensor::ones([2, 3], tch::kind::FLOAT_CPU), tch::Tensor::ones([3, 4], tch::kind::FLOAT_CPU));
/// # let classes = tch::Tensor::from_slice(&[0_i64, 1]);
/// let logits = bf16(|| x.matmul(&w)).to_kind(tch::Kind::Float);
/// let loss = cross_entropy(&logits, &classes);
/// # assert!((loss.double_value(&[]) - 4.0_f64.ln()).abs() < 1e-6);
/// ```
pub fn bf16<R>(forward: impl FnOnce() -> R) -> R {
    struct RestoreOnDrop(bool);
    impl Drop for RestoreOnDrop {
        fn drop(&mut self) {
            native::bf16_end(self.0);
        }
    }
    let _restore = Cuda::is_available().then(|| RestoreOnDrop(native::bf16_begin()));
    forward()
}

/// Runs `steps` and turns every operation that would wait for a GPU into an error, at which tch panics. It proves that
/// a loop never waits. The setting applies to the whole process.
pub fn without_waiting<R>(steps: impl FnOnce() -> R) -> R {
    struct AllowOnDrop;
    impl Drop for AllowOnDrop {
        fn drop(&mut self) {
            native::forbid_waiting(false);
        }
    }
    native::forbid_waiting(true);
    let _allow = AllowOnDrop;
    steps()
}

/// The peak of the GPU's memory since the last call, in bytes: first the memory in tensors, then the memory allocated
/// from the driver. Both are zero for other devices.
#[must_use]
pub fn peak_memory(device: Device) -> [u64; 2] {
    let Device::Cuda(index) = device else { return [0; 2] };
    native::peak_memory(index)
}

/// How often something ran under the [profiler](profile), and its total time.
#[derive(Debug, Clone, PartialEq)]
pub struct Usage {
    /// A kernel or a copy on the GPU, or a function of CUDA that the host called.
    pub name: String,
    /// The number of calls.
    pub count: u64,
    /// The total time of all calls in seconds.
    pub seconds: f64,
}

/// The result of [`profile`], longest time first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    /// Kernels and copies on the GPU.
    pub on_gpu: Vec<Usage>,
    /// Functions of CUDA that the host called.
    pub calls: Vec<Usage>,
}

/// Runs `body` under libtorch's own profiler, which slows it a little. If `trace` is given, the whole trace is written
/// to that file, which is large; `chrome://tracing` shows it. Returns an error if this build has no CUDA.
///
/// ```no_run
/// use strust_torch::cuda;
/// # fn steps() {}
/// let ((), profile) = cuda::profile(None, steps)?;
/// for kernel in profile.on_gpu.iter().take(25) {
///     println!("{:9.3} ms {:6} {}", 1e3 * kernel.seconds, kernel.count, kernel.name);
/// }
/// # Ok::<(), strust_torch::Error>(())
/// ```
pub fn profile<R>(trace: Option<&Path>, body: impl FnOnce() -> R) -> Result<(R, Profile), Error> {
    native::profile_begin()?;
    let result = catch_unwind(AssertUnwindSafe(body));
    let mut found = Profile::default();
    native::profile_end(trace, |on_gpu, usage| {
        if on_gpu { &mut found.on_gpu } else { &mut found.calls }.push(usage);
    })?;
    for list in [&mut found.on_gpu, &mut found.calls] {
        list.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    }
    Ok((result.unwrap_or_else(|panic| resume_unwind(panic)), found))
}

/// A copy of a CPU tensor in pinned memory, which a GPU can read without the host.
pub(crate) fn pinned(tensor: &Tensor) -> Tensor {
    native::pinned(tensor)
}

/// Whether a layer may use our kernels on x. Their gradients cannot be differentiated again.
fn has_kernels(x: &Tensor) -> bool {
    matches!(x.device(), Device::Cuda(_)) && !is_differentiable_again()
}

/// Batch-norm with these weight, bias, running mean and running variance, the sum with `other`, and ReLU, as one
/// operation. If `HANDLES` is 2, it returns two handles to the result, each with its own gradient. Returns `None` if no
/// kernel fits.
pub(crate) fn norm_relu<const HANDLES: usize>(
    x: &Tensor,
    rows: [&Tensor; 4],
    other: Option<&Tensor>,
    config: BatchNormConfig,
) -> Option<[Tensor; HANDLES]> {
    has_kernels(x).then(|| native::norm_relu(x, rows, other, config))?
}

/// Every second pixel of every second row, with `pad` zero channels on either side. Returns `None` if no kernel fits.
pub(crate) fn halve(x: &Tensor, pad: i64) -> Option<Tensor> {
    has_kernels(x).then(|| native::halve(x, pad))?
}

/// The convolution with 3×3 weights and a border of one zero. Returns `None` if no kernel fits.
pub(crate) fn conv3x3(x: &Tensor, weight: &Tensor, stride: i64) -> Option<Tensor> {
    has_kernels(x).then(|| native::conv3x3(x, weight, stride))?
}

/// The number of blocks of the kernels of Auto for vectors like y. `None` if there are no kernels for them.
pub(crate) fn auto_blocks(y: &Tensor) -> Option<usize> {
    matches!(y.device(), Device::Cuda(_)).then(|| native::auto_blocks(y))?
}

/// Launches a kernel of Auto on tensors in the order of its arguments. The first one is a vector.
pub(crate) use native::auto_launch;

/// The thread that captures holds the write lock. A thread that launches work operation by operation holds a read lock.
/// While a stream is captured, no thread may wait for the whole device. cuDNN does so when it times its algorithms.
static CAPTURE_LOCK: RwLock<()> = RwLock::new(());

/// Prevents captures by other threads while the guard lives. Hold it to launch work that may not run during a capture.
/// Do not nest it.
pub(crate) fn hold_off_capture() -> RwLockReadGuard<'static, ()> {
    CAPTURE_LOCK.read().unwrap_or_else(PoisonError::into_inner)
}

/// While one lives, cuDNN times all its algorithms for each new shape of a convolution and keeps the fastest. This pays
/// for shapes that occur in every step. It does not pay for the shapes of an evaluation.
#[derive(Debug)]
pub(crate) struct AlgorithmSearch(());

/// The number of living searches. The lock is held until cuDNN's switch agrees with it.
static SEARCHES: Mutex<usize> = Mutex::new(0);

impl AlgorithmSearch {
    pub fn start() -> Self {
        let mut count = SEARCHES.lock().unwrap_or_else(PoisonError::into_inner);
        *count += 1;
        Cuda::cudnn_set_benchmark(true);
        Self(())
    }
}

impl Drop for AlgorithmSearch {
    fn drop(&mut self) {
        let mut count = SEARCHES.lock().unwrap_or_else(PoisonError::into_inner);
        *count -= 1;
        Cuda::cudnn_set_benchmark(*count > 0);
    }
}

/// While this lives, the work of this thread goes to a stream of its own. The default stream cannot be captured, and on
/// it the threads would wait for each other. If the thread has its own stream already, it keeps that one.
///
/// Memory is best used and freed on the stream that allocated it: create this before the model and its data.
///
/// ```
/// use strust_torch::{cuda::OwnStream, device::Device};
/// assert!(OwnStream::on(Device::Cpu).is_err());
/// ```
#[derive(Debug)]
pub struct OwnStream {
    device: usize,
    /// Whether this value switched the thread to the stream and has to switch it back.
    entered: bool,
    /// A stream belongs to one thread.
    not_send: PhantomData<*const ()>,
}

impl OwnStream {
    /// Switches this thread to a stream of its own. Returns an error if the device is no GPU.
    pub fn on(device: Device) -> Result<Self, Error> {
        let Device::Cuda(device) = device else { return Err(Error::Graph(format!("{device:?} is no GPU"))) };
        let entered = !native::has_stream(device);
        if entered {
            let _held = hold_off_capture();
            native::use_stream(device, true)?;
        }
        Ok(Self { device, entered, not_send: PhantomData })
    }
    /// Captures the work that `body` launches, without running it. Only one thread captures at a time.
    pub(crate) fn capture(&self, body: impl FnOnce()) -> Result<Graph, Error> {
        let _held = CAPTURE_LOCK.write().unwrap_or_else(PoisonError::into_inner);
        native::Capture::of(self.device, body).map(|capture| Graph(Some(capture)))
    }
}

impl Drop for OwnStream {
    fn drop(&mut self) {
        if self.entered {
            let _held = hold_off_capture();
            let _ = native::use_stream(self.device, false);
        }
    }
}

/// A captured sequence of operations on fixed memory. It is `Some` until it is dropped.
#[derive(Debug)]
pub(crate) struct Graph(Option<native::Capture>);

impl Graph {
    /// Launches the whole sequence and returns at once.
    pub fn replay(&mut self) -> Result<(), Error> {
        self.0.as_mut().map_or(Ok(()), native::Capture::replay)
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // libtorch's generator keeps a list of all graphs, and a capture that begins writes to it.
        let _held = hold_off_capture();
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_kept_once_until_it_is_taken() {
        for text in ["a test of warnings: one", "a test of warnings: two", "a test of warnings: one"] {
            warn(text.into());
        }
        let mut taken = take_warnings();
        taken.retain(|warning| warning.starts_with("a test of warnings"));
        assert_eq!(taken, ["a test of warnings: one", "a test of warnings: two"]);
        assert!(!take_warnings().iter().any(|warning| warning.starts_with("a test of warnings")));
    }
}
