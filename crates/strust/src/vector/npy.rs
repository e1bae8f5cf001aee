//! Vectors as NPY files.

use super::Vector;

/// The vector as the bytes of an NPY file (format 1.0), which NumPy, Julia, R and MATLAB read.
///
/// ```
/// use strust::vector::to_npy;
/// let file = to_npy(&vec![1.0_f64, 2.0]);
/// assert!(file.starts_with(b"\x93NUMPY\x01\x00") && file.len() == 128 + 16);
/// // std::fs::write("x.npy", file)? and in Python: numpy.load("x.npy")
/// ```
#[must_use]
pub fn to_npy<V: Vector>(vector: &V) -> Vec<u8> {
    let kind = if V::scalar() == "f32" { "<f4" } else { "<f8" };
    let shape: Vec<String> = vector.shape().iter().map(ToString::to_string).collect();
    // Matrices are stored column by column.
    let header = format!("{{'descr': '{kind}', 'fortran_order': True, 'shape': ({},), }}", shape.join(", "));
    // The format requires a length divisible by 64 and a final line break.
    let length = (10 + header.len() + 1).next_multiple_of(64).max(128) - 10;
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    let size = u16::try_from(length).expect("the header of a vector is short");
    out.extend(size.to_le_bytes());
    out.extend(format!("{header:<width$}\n", width = length - 1).bytes());
    vector.write(&mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;

    #[test]
    fn the_header_names_type_order_and_shape() {
        let file = to_npy(&Mat::<f32>::from_fn(2, 3, |i, j| (10 * i + j) as f32));
        let header = std::str::from_utf8(&file[10..128]).unwrap();
        assert!(header.starts_with("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3,), }"), "{header}");
        assert!(header.ends_with('\n') && file.len() == 128 + 6 * 4);
        let second = f32::from_le_bytes(file[132..136].try_into().unwrap());
        assert!((second - 10.0).abs() < f32::EPSILON, "the first column comes first");
        assert!(std::str::from_utf8(&to_npy(&vec![0.0_f64; 3])[10..128]).unwrap().contains("'shape': (3,), }"));
    }
}
