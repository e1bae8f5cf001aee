//! Bindings of the C++ files in `native`: the only unsafe code of the workspace but for `leave`.

#![allow(unsafe_code)] // foreign functions; a comment at each use explains why it is sound

use super::{Usage, warn};
use crate::Error;
use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    ptr::{NonNull, null, null_mut},
    sync::LazyLock,
};
use strust::methods::Learned;
use tch::{Tensor, nn::BatchNormConfig};

// SAFETY: the signatures agree with the C++ files in `native`, and no exception leaves those functions. The safe
// functions take only numbers.
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
    fn strust_auto_blocks(
        source: *const c_char,
        y: *const c_void,
        blocks: *mut c_int,
        why: *mut c_char,
        room: usize,
    ) -> c_int;
    fn strust_auto_launch(
        source: *const c_char,
        name: *const c_char,
        tensors: *const *const c_void,
        count: c_int,
        blocks: c_int,
        why: *mut c_char,
        room: usize,
    ) -> c_int;
}

pub use strust_bf16_begin as bf16_begin;
pub use strust_bf16_end as bf16_end;
pub use strust_forbid_waiting as forbid_waiting;
pub use strust_tf32 as set_tf32;

/// Calls a function that writes the reason if it fails.
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

/// Whether kernels could be used. If an operation fails, it panics as tch does.
fn is_done((outcome, why): (c_int, String)) -> bool {
    match outcome {
        0 => true,
        2 => false,
        3 => {
            warn(format!("fused kernels cannot be used, so layers run operation by operation: {why}"));
            false
        }
        _ => panic!("{why}"),
    }
}

/// Calls a native function that creates tensors.
fn fused<const N: usize>(function: impl FnOnce(*mut *mut c_void, *mut c_char, usize) -> c_int) -> Option<[Tensor; N]> {
    let mut made = [null_mut(); N];
    // SAFETY: `new at::Tensor` created each of them, as in tch, and each has no other owner.
    is_done(call(|why, room| function(made.as_mut_ptr(), why, room)))
        .then(|| made.map(|tensor| unsafe { Tensor::from_ptr(tensor.cast()) }))
}

pub fn norm_relu<const HANDLES: usize>(
    x: &Tensor,
    rows: [&Tensor; 4],
    other: Option<&Tensor>,
    BatchNormConfig { momentum, eps, .. }: BatchNormConfig,
) -> Option<[Tensor; HANDLES]> {
    let rows = pointers(rows);
    let other = other.map_or(null(), |other| other.as_ptr().cast());
    // SAFETY: all pointers belong to living tensors, `rows` has four of them, and `out` has room for `HANDLES`.
    fused(|out, why, room| unsafe {
        let x = x.as_ptr().cast();
        strust_norm_relu(x, rows.as_ptr(), other, momentum, eps, HANDLES == 2, out, why, room)
    })
}
pub fn halve(x: &Tensor, pad: i64) -> Option<Tensor> {
    // SAFETY: the pointer belongs to a living tensor; `out` has room for one.
    let made = fused(|out, why, room| unsafe { strust_halve(x.as_ptr().cast(), pad, out, why, room) });
    made.map(|[tensor]| tensor)
}
pub fn conv3x3(x: &Tensor, weight: &Tensor, stride: i64) -> Option<Tensor> {
    let (x, weight) = (x.as_ptr().cast(), weight.as_ptr().cast());
    // SAFETY: the pointers belong to living tensors; `out` has room for one.
    let made = fused(|out, why, room| unsafe { strust_conv3x3(x, weight, stride, out, why, room) });
    made.map(|[tensor]| tensor)
}
/// The source of the kernels of Auto.
fn auto_source() -> *const c_char {
    static SOURCE: LazyLock<CString> =
        LazyLock::new(|| CString::new(Learned::cuda_source()).expect("a text without zeros"));
    SOURCE.as_ptr()
}
pub fn auto_blocks(y: &Tensor) -> Option<usize> {
    let mut blocks = 0;
    // SAFETY: the pointers belong to a living tensor, to a string that lives as long as the program, and to this frame.
    let outcome =
        call(|why, room| unsafe { strust_auto_blocks(auto_source(), y.as_ptr().cast(), &raw mut blocks, why, room) });
    is_done(outcome).then_some(blocks as usize)
}
pub fn auto_launch<const N: usize>(name: &CStr, blocks: usize, tensors: [&Tensor; N]) {
    let tensors = pointers(tensors);
    // SAFETY: the pointers belong to living tensors. `DeviceAuto` passes them in the order of the kernel, with the kinds
    // and sizes that the kernel reads and writes.
    let outcome = call(|why, room| unsafe {
        let (count, blocks) = (N as c_int, blocks as c_int);
        strust_auto_launch(auto_source(), name.as_ptr(), tensors.as_ptr(), count, blocks, why, room)
    });
    assert!(is_done(outcome), "a launch succeeds or panics");
}
fn pointers<const N: usize>(tensors: [&Tensor; N]) -> [*const c_void; N] {
    tensors.map(|tensor| tensor.as_ptr().cast())
}
pub fn pinned(tensor: &Tensor) -> Tensor {
    // SAFETY: as above.
    let made = fused(|out, why, room| unsafe { strust_pinned(tensor.as_ptr().cast(), out, why, room) });
    let [tensor] = made.expect("a copy succeeds or panics");
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
        // SAFETY: the C++ code passes the `take` below, which is alive, and a string that lives during this call.
        let (take, name) = unsafe { (&mut *to.cast::<F>(), CStr::from_ptr(name)) };
        take(on_gpu, Usage { name: name.to_string_lossy().into(), count, seconds: 1e-9 * nanoseconds as f64 });
    }
    let file = trace.map(|path| CString::new(path.to_string_lossy().as_bytes()).unwrap_or_default());
    let file = file.as_ref().map_or(null(), |file| file.as_ptr());
    // SAFETY: `file` is null or a string of this frame, only `row` uses `take`, and `why` has `room` bytes.
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
    // SAFETY: both pointers point to numbers of this frame.
    unsafe { strust_peak_memory(device as c_int, &raw mut in_tensors, &raw mut reserved) };
    [in_tensors, reserved].map(i64::cast_unsigned)
}

/// A graph of the C++ code. Dropping this frees it.
#[derive(Debug)]
pub struct Capture(NonNull<c_void>);

impl Capture {
    pub fn of(device: usize, body: impl FnOnce()) -> Result<Self, Error> {
        let mut made = null_mut();
        // SAFETY: `made` is a pointer of this frame, and `why` has `room` bytes.
        attempt(|why, room| unsafe { strust_capture_begin(device as c_int, &raw mut made, why, room) })?;
        let graph = Self(NonNull::new(made).expect("the capture has begun"));
        // An operation that cannot be captured panics. The capture must end in that case too. Nothing has run.
        let outcome = catch_unwind(AssertUnwindSafe(body));
        // SAFETY: the pointer belongs to a capture that has begun and not ended; it lives as long as `graph`.
        let ended = attempt(|why, room| unsafe { strust_capture_end(graph.0.as_ptr(), why, room) });
        let because = |panic: Box<dyn std::any::Any + Send>| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
            // The panic quotes libtorch's message, with its lines separated by `\\n`.
            let thrown = text.split_once("Torch(\"").map_or(text, |(_, thrown)| thrown);
            Error::Graph(thrown.split("\\n").next().and_then(|text| text.lines().next()).unwrap_or_default().into())
        };
        outcome.map_err(because).and(ended).map(|()| graph)
    }
    pub fn replay(&mut self) -> Result<(), Error> {
        // SAFETY: the graph is alive and its capture has ended; `why` has `room` bytes.
        attempt(|why, room| unsafe { strust_replay(self.0.as_ptr(), why, room) })
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // SAFETY: strust_capture_begin created it, and nothing else frees it.
        unsafe { strust_graph_free(self.0.as_ptr()) }
    }
}

#[cfg(all(test, miri))]
mod host;
