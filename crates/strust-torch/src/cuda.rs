//! The few things of CUDA that tch does not bind, as safe functions over the C++ files in `build`. Where those were not
//! compiled they exist and say that they cannot be used.

use crate::Error;
use std::{
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::Path,
    sync::{Mutex, PoisonError, RwLock, RwLockReadGuard},
};
use tch::{Cuda, Device, Tensor, nn::BatchNormConfig};

/// Whether this build can capture a step as a CUDA graph, and has fused kernels.
pub const BUILT_WITH_GRAPHS: bool = cfg!(cuda_graphs);

/// Lets products and convolutions of single precision round their factors to TF32, ten bits, or forbids it. libtorch
/// starts with TF32 in convolutions and not in products. It concerns GPUs alone, and the whole process.
///
/// ```
/// strust_torch::cuda::set_tf32(true);
/// ```
pub fn set_tf32(on: bool) {
    foreign::set_tf32(on);
}

/// Evaluates a model with the layers that bear it (convolutions, products) in bfloat16, on a GPU; elsewhere as it is.
///
/// It is for the forward pass alone. The loss is to be made outside and in single precision, because STR's ratio
/// compares two of them:
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
    struct Until(bool);
    impl Drop for Until {
        fn drop(&mut self) {
            foreign::bf16_end(self.0);
        }
    }
    let _until = Cuda::is_available().then(|| Until(foreign::bf16_begin()));
    forward()
}

/// Runs `steps` with every operation that would wait for a GPU an error, at which tch panics: what proves that a loop
/// never waits. It concerns the whole process.
pub fn without_waiting<R>(steps: impl FnOnce() -> R) -> R {
    struct Forbidden;
    impl Drop for Forbidden {
        fn drop(&mut self) {
            foreign::forbid_waiting(false);
        }
    }
    foreign::forbid_waiting(true);
    let _allowed_again = Forbidden;
    steps()
}

/// The most bytes of the GPU's memory since the last call: in tensors, and got from the driver. Zero elsewhere.
#[must_use]
pub fn peak_memory(device: Device) -> [u64; 2] {
    let Device::Cuda(index) = device else { return [0; 2] };
    foreign::peak_memory(index)
}

/// How often something ran under the [profiler](profile), and how long in all.
#[derive(Debug, Clone, PartialEq)]
pub struct Usage {
    /// A kernel or a copy on the GPU, or a function of CUDA that the host called.
    pub name: String,
    /// How often.
    pub count: u64,
    /// Seconds of all of them.
    pub seconds: f64,
}

/// What [`profile`] found, the longest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    /// What the GPU did.
    pub on_gpu: Vec<Usage>,
    /// What the host called of CUDA.
    pub calls: Vec<Usage>,
}

/// Runs `body` under libtorch's own profiler, which slows it a little. The whole goes to `trace`, if that is given: a file
/// for `chrome://tracing`, large. An error where this build has no CUDA.
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
    foreign::profile_begin()?;
    let result = catch_unwind(AssertUnwindSafe(body));
    let mut found = Profile::default();
    foreign::profile_end(trace, |on_gpu, usage| {
        if on_gpu { &mut found.on_gpu } else { &mut found.calls }.push(usage);
    })?;
    for list in [&mut found.on_gpu, &mut found.calls] {
        list.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    }
    Ok((result.unwrap_or_else(|panic| resume_unwind(panic)), found))
}

/// A copy of a tensor of the CPU in memory that a GPU can fetch from by itself.
pub(crate) fn pinned(tensor: &Tensor) -> Tensor {
    foreign::pinned(tensor)
}

/// Batch-norm with these weight, bias, running mean and running variance, the sum with `other`, and ReLU, all in one;
/// two handles with a gradient each if `HANDLES` is 2. `None` where there is no kernel for it.
pub(crate) fn norm_relu<const HANDLES: usize>(
    x: &Tensor,
    rows: [&Tensor; 4],
    other: Option<&Tensor>,
    config: BatchNormConfig,
) -> Option<[Tensor; HANDLES]> {
    matches!(x.device(), Device::Cuda(_)).then(|| foreign::norm_relu(x, rows, other, config))?
}

/// Every second pixel of every second row, with `pad` zero channels on either side. `None` where there is no kernel for it.
pub(crate) fn halve(x: &Tensor, pad: i64) -> Option<Tensor> {
    matches!(x.device(), Device::Cuda(_)).then(|| foreign::halve(x, pad))?
}

/// The convolution with 3×3 weights and a border of one zero. `None` where there is no kernel for it.
pub(crate) fn conv3x3(x: &Tensor, weight: &Tensor, stride: i64) -> Option<Tensor> {
    matches!(x.device(), Device::Cuda(_)).then(|| foreign::conv3x3(x, weight, stride))?
}

/// Written by the thread that captures, read by all that give work to a device operation by operation: while a stream is
/// captured nobody may wait for the whole device, as cuDNN does where it times its algorithms.
static CAPTURING: RwLock<()> = RwLock::new(());

/// To hold while giving work to the device that may not run beside a capture of another thread. Not to be nested.
pub(crate) fn beside_no_capture() -> RwLockReadGuard<'static, ()> {
    CAPTURING.read().unwrap_or_else(PoisonError::into_inner)
}

/// While one lives, cuDNN times all its algorithms for a convolution it has not seen and keeps the fastest: it pays for
/// shapes that come again and again, not for those of an evaluation.
#[derive(Debug)]
pub(crate) struct Choosing(());

/// How many there are. Held until the switch fits.
static CHOOSING: Mutex<usize> = Mutex::new(0);

impl Choosing {
    pub fn algorithms() -> Self {
        let mut count = CHOOSING.lock().unwrap_or_else(PoisonError::into_inner);
        *count += 1;
        Cuda::cudnn_set_benchmark(true);
        Self(())
    }
}

impl Drop for Choosing {
    fn drop(&mut self) {
        let mut count = CHOOSING.lock().unwrap_or_else(PoisonError::into_inner);
        *count -= 1;
        Cuda::cudnn_set_benchmark(*count > 0);
    }
}

/// Work of this thread goes to a stream of its own while this lives: the default stream cannot be captured, and there
/// the work of several threads would wait for each other. A thread that has one already keeps it.
///
/// What is made on one stream is best used and freed there: make it before the model and its data.
///
/// ```
/// use strust_torch::{cuda::OwnStream, device::Device};
/// assert!(OwnStream::on(Device::Cpu).is_err());
/// ```
#[derive(Debug)]
pub struct OwnStream {
    device: usize,
    /// Whether this one brought the thread there and has to bring it back.
    entered: bool,
    of_this_thread: PhantomData<*const ()>,
}

impl OwnStream {
    /// Brings this thread to a stream of its own on a GPU; an error elsewhere.
    pub fn on(device: Device) -> Result<Self, Error> {
        let Device::Cuda(device) = device else { return Err(Error::Graph(format!("{device:?} is no GPU"))) };
        let entered = !foreign::has_stream(device);
        if entered {
            let _held = beside_no_capture();
            foreign::use_stream(device, true)?;
        }
        Ok(Self { device, entered, of_this_thread: PhantomData })
    }
    /// Captures what `body` gives to the device; none of it runs. One thread at a time.
    pub(crate) fn capture(&self, body: impl FnOnce()) -> Result<Graph, Error> {
        let _held = CAPTURING.write().unwrap_or_else(PoisonError::into_inner);
        foreign::Capture::of(self.device, body).map(|capture| Graph(Some(capture)))
    }
}

impl Drop for OwnStream {
    fn drop(&mut self) {
        if self.entered {
            let _held = beside_no_capture();
            let _ = foreign::use_stream(self.device, false);
        }
    }
}

/// A captured sequence of operations on memory that stays where it is; there is one until it is dropped.
#[derive(Debug)]
pub(crate) struct Graph(Option<foreign::Capture>);

impl Graph {
    /// Gives the whole sequence to the device, without waiting for it.
    pub fn replay(&mut self) -> Result<(), Error> {
        self.0.as_mut().map_or(Ok(()), foreign::Capture::replay)
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // libtorch's generator keeps a list of all graphs, and a capture that begins writes to it.
        let _held = beside_no_capture();
        self.0 = None;
    }
}

#[cfg(cuda_graphs)]
#[allow(unsafe_code)] // foreign functions; each use says why it is sound
mod foreign {
    use super::Usage;
    use crate::Error;
    use std::{
        ffi::{CStr, CString, c_char, c_int, c_void},
        panic::{AssertUnwindSafe, catch_unwind},
        path::Path,
        ptr::{NonNull, null, null_mut},
    };
    use tch::{Tensor, nn::BatchNormConfig};

    // SAFETY: these are the signatures in the C++ files in build, and no exception leaves them. The safe ones take numbers
    // only.
    unsafe extern "C" {
        safe fn strust_has_stream(device: c_int) -> bool;
        fn strust_use_stream(device: c_int, own: bool, why: *mut c_char, room: usize) -> c_int;
        fn strust_capture_begin(device: c_int, out: *mut *mut c_void, why: *mut c_char, room: usize) -> c_int;
        fn strust_capture_end(graph: *mut c_void, why: *mut c_char, room: usize) -> c_int;
        fn strust_replay(graph: *mut c_void, why: *mut c_char, room: usize) -> c_int;
        fn strust_graph_free(graph: *mut c_void);
        pub safe fn strust_tf32(on: bool);
        pub safe fn strust_bf16_begin() -> bool;
        pub safe fn strust_bf16_end(before: bool);
        pub safe fn strust_forbid_waiting(on: bool);
        fn strust_peak_memory(device: c_int, in_tensors: *mut i64, reserved: *mut i64);
        fn strust_pinned(tensor: *const c_void, out: *mut *mut c_void, why: *mut c_char, room: usize) -> c_int;
        fn strust_profile_begin(why: *mut c_char, room: usize) -> c_int;
        fn strust_profile_end(
            file: *const c_char,
            to: *mut c_void,
            row: unsafe extern "C" fn(*mut c_void, bool, *const c_char, u64, u64),
            why: *mut c_char,
            room: usize,
        ) -> c_int;
        fn strust_norm_relu(
            x: *const c_void,
            rows: *const *const c_void,
            other: *const c_void,
            momentum: f64,
            epsilon: f64,
            twice: bool,
            out: *mut *mut c_void,
            why: *mut c_char,
            room: usize,
        ) -> c_int;
        fn strust_halve(x: *const c_void, pad: i64, out: *mut *mut c_void, why: *mut c_char, room: usize) -> c_int;
        fn strust_conv3x3(
            x: *const c_void,
            weight: *const c_void,
            stride: i64,
            out: *mut *mut c_void,
            why: *mut c_char,
            room: usize,
        ) -> c_int;
    }

    pub use strust_bf16_begin as bf16_begin;
    pub use strust_bf16_end as bf16_end;
    pub use strust_forbid_waiting as forbid_waiting;
    pub use strust_tf32 as set_tf32;

    /// Calls a function that may write why it failed.
    fn call(function: impl FnOnce(*mut c_char, usize) -> c_int) -> (c_int, String) {
        let mut why = [0_u8; 400];
        let outcome = function(why.as_mut_ptr().cast(), why.len());
        let why = CStr::from_bytes_until_nul(&why).unwrap_or_default().to_string_lossy();
        (outcome, why.lines().next().unwrap_or_default().into())
    }
    fn attempt(function: impl FnOnce(*mut c_char, usize) -> c_int) -> Result<(), Error> {
        let (outcome, why) = call(function);
        if outcome == 0 { Ok(()) } else { Err(Error::Graph(why)) }
    }

    /// A function of build that makes tensors; panics as tch does where an operation fails.
    fn fused<const N: usize>(
        function: impl FnOnce(*mut *mut c_void, *mut c_char, usize) -> c_int,
    ) -> Option<[Tensor; N]> {
        let mut made = [null_mut(); N];
        match call(|why, room| function(made.as_mut_ptr(), why, room)) {
            // SAFETY: each was made by `new at::Tensor`, as tch makes its own, and has no other owner.
            (0, _) => Some(made.map(|tensor| unsafe { Tensor::from_ptr(tensor.cast()) })),
            (2, _) => None,
            (3, why) => {
                eprintln!("strust: fused kernels cannot be used, so layers run operation by operation: {why}");
                None
            }
            (_, why) => panic!("{why}"),
        }
    }

    pub fn norm_relu<const HANDLES: usize>(
        x: &Tensor,
        rows: [&Tensor; 4],
        other: Option<&Tensor>,
        BatchNormConfig { momentum, eps, .. }: BatchNormConfig,
    ) -> Option<[Tensor; HANDLES]> {
        let rows = rows.map(|row| row.as_ptr().cast());
        let other = other.map_or(null(), |other| other.as_ptr().cast());
        // SAFETY: the pointers are those of living tensors, four of them in `rows`; `out` has room for one or two.
        fused(|out, why, room| unsafe {
            let x = x.as_ptr().cast();
            strust_norm_relu(x, rows.as_ptr(), other, momentum, eps, HANDLES == 2, out, why, room)
        })
    }
    pub fn halve(x: &Tensor, pad: i64) -> Option<Tensor> {
        // SAFETY: the pointer is that of a living tensor; `out` has room for one.
        let made = fused(|out, why, room| unsafe { strust_halve(x.as_ptr().cast(), pad, out, why, room) });
        made.map(|[tensor]| tensor)
    }
    pub fn conv3x3(x: &Tensor, weight: &Tensor, stride: i64) -> Option<Tensor> {
        let (x, weight) = (x.as_ptr().cast(), weight.as_ptr().cast());
        // SAFETY: the pointers are those of living tensors; `out` has room for one.
        let made = fused(|out, why, room| unsafe { strust_conv3x3(x, weight, stride, out, why, room) });
        made.map(|[tensor]| tensor)
    }
    pub fn pinned(tensor: &Tensor) -> Tensor {
        // SAFETY: as above.
        let made = fused(|out, why, room| unsafe { strust_pinned(tensor.as_ptr().cast(), out, why, room) });
        let [tensor] = made.expect("it is done or it fails");
        tensor
    }

    pub fn profile_begin() -> Result<(), Error> {
        // SAFETY: `why` has `room` bytes.
        attempt(|why, room| unsafe { strust_profile_begin(why, room) })
    }
    pub fn profile_end<F: FnMut(bool, Usage)>(trace: Option<&Path>, mut take: F) -> Result<(), Error> {
        unsafe extern "C" fn row<F: FnMut(bool, Usage)>(
            to: *mut c_void,
            on_gpu: bool,
            name: *const c_char,
            count: u64,
            nanoseconds: u64,
        ) {
            // SAFETY: the shim passes on the `take` of below, which lives, and a string that lives as long as this call.
            let (take, name) = unsafe { (&mut *to.cast::<F>(), CStr::from_ptr(name)) };
            take(on_gpu, Usage { name: name.to_string_lossy().into(), count, seconds: 1e-9 * nanoseconds as f64 });
        }
        let file = trace.map(|path| CString::new(path.to_string_lossy().as_bytes()).unwrap_or_default());
        let file = file.as_ref().map_or(null(), |file| file.as_ptr());
        // SAFETY: `file` is null or a string of this frame, `take` is given to `row` alone, `why` has `room` bytes.
        attempt(|why, room| unsafe { strust_profile_end(file, (&raw mut take).cast(), row::<F>, why, room) })
    }

    pub fn has_stream(device: usize) -> bool {
        strust_has_stream(device as c_int)
    }
    pub fn use_stream(device: usize, own: bool) -> Result<(), Error> {
        // SAFETY: `why` has `room` bytes.
        attempt(|why, room| unsafe { strust_use_stream(device as c_int, own, why, room) })
    }
    pub fn peak_memory(device: usize) -> [u64; 2] {
        let (mut in_tensors, mut reserved) = (0, 0);
        // SAFETY: both point to numbers of this frame.
        unsafe { strust_peak_memory(device as c_int, &raw mut in_tensors, &raw mut reserved) };
        [in_tensors, reserved].map(i64::cast_unsigned)
    }

    /// A graph of the shim, freed with this.
    #[derive(Debug)]
    pub struct Capture(NonNull<c_void>);

    impl Capture {
        pub fn of(device: usize, body: impl FnOnce()) -> Result<Self, Error> {
            let mut made = null_mut();
            // SAFETY: `made` points to a pointer of this frame, `why` has `room` bytes.
            attempt(|why, room| unsafe { strust_capture_begin(device as c_int, &raw mut made, why, room) })?;
            let graph = Self(NonNull::new(made).expect("a capture that has begun"));
            // An operation that cannot be captured panics. The capture is ended all the same, and nothing has run.
            let outcome = catch_unwind(AssertUnwindSafe(body));
            // SAFETY: the pointer came from a capture that has begun and not ended, and lives as long as `graph`.
            let ended = attempt(|why, room| unsafe { strust_capture_end(graph.0.as_ptr(), why, room) });
            let because = |panic: Box<dyn std::any::Any + Send>| {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
                // What libtorch has thrown is in quotes there, its lines divided by `\\n`.
                let thrown = text.split_once("Torch(\"").map_or(text, |(_, thrown)| thrown);
                Error::Graph(thrown.split("\\n").next().and_then(|text| text.lines().next()).unwrap_or_default().into())
            };
            outcome.map_err(because).and(ended).map(|()| graph)
        }
        pub fn replay(&mut self) -> Result<(), Error> {
            // SAFETY: the graph lives and its capture has ended; `why` has `room` bytes.
            attempt(|why, room| unsafe { strust_replay(self.0.as_ptr(), why, room) })
        }
    }

    impl Drop for Capture {
        fn drop(&mut self) {
            // SAFETY: made by strust_capture_begin and freed nowhere else.
            unsafe { strust_graph_free(self.0.as_ptr()) }
        }
    }
}

/// The same where there is nothing to call.
#[cfg(not(cuda_graphs))]
mod foreign {
    use super::Usage;
    use crate::Error;
    use std::path::Path;
    use tch::{Tensor, nn::BatchNormConfig};

    pub fn has_stream(_device: usize) -> bool {
        false
    }
    pub fn use_stream(_device: usize, _own: bool) -> Result<(), Error> {
        let advice = "run  eval \"$(scripts/torch-env cuda)\"  and build again";
        Err(Error::Graph(format!("this program was built without CUDA graphs; {advice}")))
    }
    pub fn profile_begin() -> Result<(), Error> {
        use_stream(0, true)
    }
    pub fn profile_end(_trace: Option<&Path>, _take: impl FnMut(bool, Usage)) -> Result<(), Error> {
        use_stream(0, true)
    }
    pub fn norm_relu<const HANDLES: usize>(
        _x: &Tensor,
        _rows: [&Tensor; 4],
        _other: Option<&Tensor>,
        _config: BatchNormConfig,
    ) -> Option<[Tensor; HANDLES]> {
        None
    }
    pub fn halve(_x: &Tensor, _pad: i64) -> Option<Tensor> {
        None
    }
    pub fn conv3x3(_x: &Tensor, _weight: &Tensor, _stride: i64) -> Option<Tensor> {
        None
    }
    pub fn pinned(tensor: &Tensor) -> Tensor {
        tensor.shallow_clone()
    }
    pub fn set_tf32(_on: bool) {}
    pub fn bf16_begin() -> bool {
        false
    }
    pub fn bf16_end(_before: bool) {}
    pub fn forbid_waiting(_on: bool) {}
    pub fn peak_memory(_device: usize) -> [u64; 2] {
        [0; 2]
    }

    /// There is none.
    #[derive(Debug)]
    pub enum Capture {}

    impl Capture {
        pub fn of(device: usize, _body: impl FnOnce()) -> Result<Self, Error> {
            use_stream(device, true).map(|()| unreachable!("there is no stream to capture"))
        }
        pub fn replay(&mut self) -> Result<(), Error> {
            match *self {}
        }
    }
}
