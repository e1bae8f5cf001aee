//! The host's side of the foreign functions under Miri, which cannot run C++: Rust functions take their places, and use every
//! pointer as the C++ code does. Miri reports a pointer that is dangling, aliased or too short, and whatever is not freed, or
//! freed twice. `scripts/sanitize` runs this.

use super::*;
use std::slice::from_raw_parts;

const NAMES: [&CStr; 2] = [c"gemm", c"relu"];

/// Writes a reason as the C++ code does: cut to the room, with a 0 at its end.
unsafe fn explain(text: &str, why: *mut c_char, room: usize) -> c_int {
    let length = text.len().min(room - 1);
    unsafe {
        why.copy_from_nonoverlapping(text.as_ptr().cast(), length);
        why.add(length).write(0);
    }
    1
}

#[unsafe(no_mangle)]
unsafe extern "C" fn strust_use_stream(device: c_int, _own: bool, why: *mut c_char, room: usize) -> c_int {
    match device {
        0 => 0,
        1 => unsafe { explain("the first line\nthe second line", why, room) },
        2 => unsafe { explain(&"long ".repeat(1000), why, room) },
        // A reason without its end.
        _ => unsafe {
            why.write_bytes(b'x', room);
            1
        },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn strust_peak_memory(_device: c_int, in_tensors: *mut i64, reserved: *mut i64) {
    unsafe {
        in_tensors.write(3);
        reserved.write(5);
    }
}

/// A graph is a number here: how often it ran, and −1 during its capture.
#[unsafe(no_mangle)]
unsafe extern "C" fn strust_capture_begin(
    device: c_int,
    out: *mut *mut c_void,
    why: *mut c_char,
    room: usize,
) -> c_int {
    if device > 0 {
        return unsafe { explain("no such device", why, room) };
    }
    unsafe { out.write(Box::into_raw(Box::new(-1_i64)).cast()) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn strust_capture_end(graph: *mut c_void, _why: *mut c_char, _room: usize) -> c_int {
    unsafe { *graph.cast::<i64>() += 1 };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn strust_replay(graph: *mut c_void, why: *mut c_char, room: usize) -> c_int {
    let runs = unsafe { &mut *graph.cast::<i64>() };
    assert!(*runs >= 0, "the capture has not ended");
    *runs += 1;
    if *runs < 3 { 0 } else { unsafe { explain("it ran too often", why, room) } }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn strust_graph_free(graph: *mut c_void) {
    drop(unsafe { Box::from_raw(graph.cast::<i64>()) });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn strust_profile_begin(_why: *mut c_char, _room: usize) -> c_int {
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn strust_profile_end(
    file: *const c_char,
    to: *mut c_void,
    row: unsafe extern "C" fn(*mut c_void, bool, *const c_char, u64, u64),
    why: *mut c_char,
    room: usize,
) -> c_int {
    for (i, name) in (1_u64..).zip(NAMES) {
        // A name is freed after the call, so the host must copy it.
        let name = name.to_owned();
        unsafe { row(to, i == 1, name.as_ptr(), i, 1_000_000_000 * i) };
    }
    if file.is_null() { 0 } else { unsafe { explain(&CStr::from_ptr(file).to_string_lossy(), why, room) } }
}

/// A tensor is a number here.
fn tensor(value: u64) -> Tensor {
    // SAFETY: `at_free` below frees it.
    unsafe { Tensor::from_ptr(Box::into_raw(Box::new(value)).cast()) }
}

fn value(tensor: &Tensor) -> u64 {
    // SAFETY: `tensor` or a function below made it.
    unsafe { *tensor.as_ptr().cast::<u64>() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn at_free(tensor: *mut c_void) {
    drop(unsafe { Box::from_raw(tensor.cast::<u64>()) });
}

/// tch asks for an error after each call.
#[unsafe(no_mangle)]
extern "C" fn get_and_reset_last_err() -> *mut c_char {
    null_mut()
}

unsafe fn sum(tensors: &[*const c_void]) -> u64 {
    tensors.iter().map(|tensor| unsafe { *tensor.cast::<u64>() }).sum()
}

unsafe fn put(value: u64, out: *mut *mut c_void) {
    unsafe { out.write(Box::into_raw(Box::new(value)).cast()) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn strust_pinned(
    tensor: *const c_void,
    out: *mut *mut c_void,
    why: *mut c_char,
    room: usize,
) -> c_int {
    match unsafe { sum(&[tensor]) } {
        0 => unsafe { explain("there is no memory", why, room) },
        value => unsafe {
            put(value, out);
            0
        },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn strust_norm_relu(
    x: *const c_void,
    rows: *const *const c_void,
    other: *const c_void,
    _momentum: f64,
    _epsilon: f64,
    twice: bool,
    out: *mut *mut c_void,
    _why: *mut c_char,
    _room: usize,
) -> c_int {
    unsafe {
        let rows = sum(from_raw_parts(rows, 4));
        // As if the kernels did not fit the layer.
        if rows == 0 {
            return 2;
        }
        put(sum(&[x]) + rows, out);
        if twice {
            put(if other.is_null() { 0 } else { sum(&[other]) }, out.add(1));
        }
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn strust_auto_blocks(
    source: *const c_char,
    y: *const c_void,
    blocks: *mut c_int,
    _why: *mut c_char,
    _room: usize,
) -> c_int {
    unsafe {
        assert!(!CStr::from_ptr(source).is_empty());
        blocks.write(sum(&[y]) as c_int);
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn strust_auto_launch(
    source: *const c_char,
    name: *const c_char,
    tensors: *const *const c_void,
    count: c_int,
    blocks: c_int,
    _why: *mut c_char,
    _room: usize,
) -> c_int {
    // Kernels write to their tensors.
    unsafe {
        assert!(!CStr::from_ptr(source).is_empty() && CStr::from_ptr(name) == c"auto_judge");
        let tensors = from_raw_parts(tensors, count as usize);
        *tensors[1].cast_mut().cast::<u64>() = sum(tensors) + blocks as u64;
    }
    0
}

fn reason(error: &Error) -> &str {
    match error {
        Error::Graph(why) => why,
        other => panic!("{other}"),
    }
}

#[test]
fn a_reason_is_its_first_line_and_never_longer_than_its_room() {
    assert!(use_stream(0, true).is_ok());
    assert_eq!(reason(&use_stream(1, true).unwrap_err()), "the first line");
    assert_eq!(reason(&use_stream(2, true).unwrap_err()).len(), 399);
    assert_eq!(reason(&use_stream(3, true).unwrap_err()), "");
    assert_eq!(peak_memory(0), [3, 5]);
}

#[test]
fn a_graph_is_freed_once_also_if_its_capture_panics() {
    assert_eq!(reason(&Capture::of(1, || {}).unwrap_err()), "no such device");
    assert_eq!(reason(&Capture::of(0, || panic!("not here\nnor there")).unwrap_err()), "not here");
    let mut graph = Capture::of(0, || {}).unwrap();
    assert!(graph.replay().is_ok() && graph.replay().is_ok());
    assert_eq!(reason(&graph.replay().unwrap_err()), "it ran too often");
}

#[test]
fn a_profile_reaches_the_closure_of_the_caller() {
    profile_begin().unwrap();
    let mut taken = Vec::new();
    profile_end(None, |on_gpu, usage| taken.push((on_gpu, usage.name, usage.count, usage.seconds))).unwrap();
    assert_eq!(taken, [(true, "gemm".into(), 1, 1.0), (false, "relu".into(), 2, 2.0)]);
    assert_eq!(reason(&profile_end(Some(Path::new("trace.json")), |_, _| {}).unwrap_err()), "trace.json");
}

#[test]
fn every_tensor_of_a_fused_operation_has_one_owner() {
    let rows = [1, 2, 3, 4].map(tensor);
    let rows = [&rows[0], &rows[1], &rows[2], &rows[3]];
    let config = BatchNormConfig::default();
    let [one] = norm_relu(&tensor(5), rows, None, config).unwrap();
    let [first, second] = norm_relu(&tensor(5), rows, Some(&tensor(7)), config).unwrap();
    assert_eq!([&one, &first, &second].map(value), [15, 15, 7]);
    let zero = tensor(0);
    assert!(norm_relu::<1>(&tensor(5), [&zero; 4], None, config).is_none());
    assert_eq!(value(&pinned(&tensor(9))), 9);
    let failed = catch_unwind(AssertUnwindSafe(|| pinned(&zero))).unwrap_err();
    assert_eq!(failed.downcast_ref::<String>().map(String::as_str), Some("there is no memory"));
}

#[test]
fn kernels_read_and_write_the_tensors_of_the_caller() {
    let (vector, memory) = (tensor(5), tensor(2));
    assert_eq!(auto_blocks(&vector), Some(5));
    auto_launch(c"auto_judge", 3, [&vector, &memory, &vector]);
    assert_eq!(value(&memory), 5 + 2 + 5 + 3);
}
