//! The few things of CUDA that tch does not bind, as safe functions over `build/graph.cpp`. Where that was not compiled
//! they exist and say that they cannot be used.

use crate::Error;
use std::{
    marker::PhantomData,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};
use tch::{Cuda, Device, autocast};

/// Whether this build can capture a step as a CUDA graph.
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
    foreign::autocast_to_bf16();
    autocast(BUILT_WITH_GRAPHS, forward)
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

/// While one lives, cuDNN times all its algorithms for a convolution it has not seen and keeps the fastest: it pays for
/// shapes that come again and again, not for those of an evaluation.
#[derive(Debug)]
pub(crate) struct Choosing(());

static CHOOSING: AtomicUsize = AtomicUsize::new(0);

impl Choosing {
    pub fn algorithms() -> Self {
        CHOOSING.fetch_add(1, Ordering::SeqCst);
        Cuda::cudnn_set_benchmark(true);
        Self(())
    }
}

impl Drop for Choosing {
    fn drop(&mut self) {
        if CHOOSING.fetch_sub(1, Ordering::SeqCst) == 1 {
            Cuda::cudnn_set_benchmark(false);
        }
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
            foreign::use_stream(device, true)?;
        }
        Ok(Self { device, entered, of_this_thread: PhantomData })
    }
    /// Captures what `body` gives to the device; none of it runs. One thread at a time.
    pub(crate) fn capture(&self, body: impl FnOnce()) -> Result<Graph, Error> {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _held = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        foreign::Capture::of(self.device, body).map(Graph)
    }
}

impl Drop for OwnStream {
    fn drop(&mut self) {
        if self.entered {
            let _ = foreign::use_stream(self.device, false);
        }
    }
}

/// A captured sequence of operations on memory that stays where it is.
#[derive(Debug)]
pub(crate) struct Graph(foreign::Capture);

impl Graph {
    /// Gives the whole sequence to the device, without waiting for it.
    pub fn replay(&mut self) -> Result<(), Error> {
        self.0.replay()
    }
}

#[cfg(cuda_graphs)]
#[allow(unsafe_code)] // foreign functions; each use says why it is sound
mod foreign {
    use crate::Error;
    use std::{
        ffi::{CStr, c_char, c_int, c_void},
        panic::{AssertUnwindSafe, catch_unwind},
        ptr::{NonNull, null_mut},
    };

    // SAFETY: these are the signatures in build/graph.cpp, and no exception leaves it. The safe ones take numbers only.
    unsafe extern "C" {
        safe fn strust_has_stream(device: c_int) -> bool;
        fn strust_use_stream(device: c_int, own: bool, why: *mut c_char, room: usize) -> c_int;
        fn strust_capture_begin(device: c_int, out: *mut *mut c_void, why: *mut c_char, room: usize) -> c_int;
        fn strust_capture_end(graph: *mut c_void, why: *mut c_char, room: usize) -> c_int;
        fn strust_replay(graph: *mut c_void, why: *mut c_char, room: usize) -> c_int;
        fn strust_graph_free(graph: *mut c_void);
        pub safe fn strust_tf32(on: bool);
        pub safe fn strust_autocast_to_bf16();
        pub safe fn strust_forbid_waiting(on: bool);
        fn strust_peak_memory(device: c_int, in_tensors: *mut i64, reserved: *mut i64);
    }

    pub use strust_autocast_to_bf16 as autocast_to_bf16;
    pub use strust_forbid_waiting as forbid_waiting;
    pub use strust_tf32 as set_tf32;

    /// Calls a function that may write why it failed.
    fn attempt(call: impl FnOnce(*mut c_char, usize) -> c_int) -> Result<(), Error> {
        let mut why = [0_u8; 400];
        if call(why.as_mut_ptr().cast(), why.len()) == 0 {
            return Ok(());
        }
        let why = CStr::from_bytes_until_nul(&why).unwrap_or_default().to_string_lossy();
        Err(Error::Graph(why.lines().next().unwrap_or_default().into()))
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
    use crate::Error;

    pub fn has_stream(_device: usize) -> bool {
        false
    }
    pub fn use_stream(_device: usize, _own: bool) -> Result<(), Error> {
        let advice = "run  eval \"$(scripts/torch-env cuda)\"  and build again";
        Err(Error::Graph(format!("this program was built without CUDA graphs; {advice}")))
    }
    pub fn set_tf32(_on: bool) {}
    pub fn autocast_to_bf16() {}
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
