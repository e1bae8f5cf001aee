//! `#[serde(with = "strust::vector::saved")]`, for a field whose type is any [`Vector`].
//!
//! Binary formats store a map of `scalar` ("f32" or "f64"), `shape` and `bytes`. The bytes are the components in
//! little-endian order; a matrix is stored column by column. Text formats such as JSON store a list `values` instead of
//! `bytes`. It contains numbers with enough digits to read the same bits back, and the words "NaN", "inf" and "-inf". A
//! NaN with a payload is stored as its bits in hexadecimal. Other programs can read and write both forms; they may omit
//! the field `checksum`.

use super::Vector;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// How binary formats store a vector.
#[derive(Serialize, Deserialize)]
struct Binary {
    scalar: String,
    shape: Vec<usize>,
    bytes: Bytes,
}

/// How text formats store a vector.
#[derive(Serialize, Deserialize)]
struct Text {
    scalar: String,
    shape: Vec<usize>,
    values: Vec<Number>,
    /// The checksum of the bytes. A parser may round a digit, but a run must resume bit for bit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
}

/// FNV-1a.
fn checksum(bytes: &[u8]) -> String {
    let hash =
        bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &b| (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

/// A number, or a word for a number that JSON cannot express.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Number {
    Finite(f64),
    Word(String),
}

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        match value {
            _ if value.is_finite() => Self::Finite(value),
            _ if value.is_nan() && value.to_bits() != f64::NAN.to_bits() => {
                Self::Word(format!("{:#x}", value.to_bits()))
            }
            _ => Self::Word(value.to_string()),
        }
    }
}

impl Number {
    fn value(&self) -> Result<f64, String> {
        match self {
            Self::Finite(value) => Ok(*value),
            Self::Word(word) => {
                let bits = word.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
                let number = bits.map(f64::from_bits).or_else(|| word.parse().ok());
                number.ok_or_else(|| format!("{word:?} is not a number"))
            }
        }
    }
}

/// The number in double precision. A cast may change the payload of a NaN: Rust promises it on no processor.
fn widened(value: f32) -> f64 {
    if !value.is_nan() {
        return value.into();
    }
    let bits = u64::from(value.to_bits());
    f64::from_bits((bits & 1 << 31) << 32 | f64::INFINITY.to_bits() | (bits & 0x7f_ffff) << 29)
}

/// The number in single precision. For numbers of [`widened`] this is exact.
fn narrowed(value: f64) -> f32 {
    if !value.is_nan() {
        return value as f32;
    }
    let (sign, payload) = (value.is_sign_negative(), (value.to_bits() >> 29) as u32 & 0x7f_ffff);
    // Without a payload it would be infinite.
    let payload = if payload == 0 { 1 << 22 } else { payload };
    f32::from_bits(u32::from(sign) << 31 | f32::INFINITY.to_bits() | payload)
}

/// Binary formats store this type as one block. They would store a `Vec<u8>` as a list of numbers.
struct Bytes(Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BytesVisitor;
        impl<'de> serde::de::Visitor<'de> for BytesVisitor {
            type Value = Bytes;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E>(self, v: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(v.to_vec()))
            }
            fn visit_byte_buf<E>(self, v: Vec<u8>) -> Result<Bytes, E> {
                Ok(Bytes(v))
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Bytes, A::Error> {
                let mut bytes = Vec::new();
                while let Some(b) = seq.next_element()? {
                    bytes.push(b);
                }
                Ok(Bytes(bytes))
            }
        }
        deserializer.deserialize_byte_buf(BytesVisitor)
    }
}

/// Writes the vector.
pub fn serialize<V: Vector, S: Serializer>(vector: &V, serializer: S) -> Result<S::Ok, S::Error> {
    let (scalar, shape) = (V::scalar().into(), vector.shape());
    let mut bytes = Vec::new();
    vector.write(&mut bytes);
    if serializer.is_human_readable() {
        // From the bytes: a component of a vector on a device would be read by itself.
        let values = match V::scalar() {
            "f32" => bytes.as_chunks::<4>().0.iter().map(|b| widened(f32::from_le_bytes(*b)).into()).collect(),
            _ => bytes.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b).into()).collect(),
        };
        return Text { scalar, shape, values, checksum: Some(checksum(&bytes)) }.serialize(serializer);
    }
    Binary { scalar, shape, bytes: Bytes(bytes) }.serialize(serializer)
}

/// Reads the vector. The component type and the shape must match `V`.
pub fn deserialize<'de, V: Vector, D: Deserializer<'de>>(deserializer: D) -> Result<V, D::Error> {
    if !deserializer.is_human_readable() {
        let saved = Binary::deserialize(deserializer)?;
        return V::read(&saved.scalar, &saved.shape, &saved.bytes.0).map_err(D::Error::custom);
    }
    let saved = Text::deserialize(deserializer)?;
    let values: Vec<f64> =
        saved.values.iter().map(Number::value).collect::<Result<_, _>>().map_err(D::Error::custom)?;
    let bytes: Vec<u8> = match saved.scalar.as_str() {
        "f32" => values.iter().flat_map(|&value| narrowed(value).to_le_bytes()).collect(),
        _ => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
    };
    if saved.scalar == V::scalar() && saved.checksum.is_some_and(|sum| sum != checksum(&bytes)) {
        return Err(D::Error::custom(
            "the components changed since they were saved: the file was edited, or the parser rounds numbers \
             (serde_json needs its feature `float_roundtrip`)",
        ));
    }
    V::read(&saved.scalar, &saved.shape, &bytes).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_number_keeps_its_bits_in_double_precision_and_back() {
        let kinds = [0, 1, 0x0080_0000, 0x3dcc_cccd, 0x7f7f_ffff, 0x7f80_0000, 0x7f80_0001, 0x7fc0_0000, 0x7fc1_2345];
        for bits in kinds.into_iter().flat_map(|bits: u32| [bits, bits | 1 << 31]) {
            assert_eq!(narrowed(widened(f32::from_bits(bits))).to_bits(), bits, "{bits:#x}");
        }
        assert_eq!(widened(f32::from_bits(0x7fc0_0000)).to_bits(), 0x7ff8_0000_0000_0000);
        // As earlier versions wrote it.
        assert_eq!(widened(f32::from_bits(0xffc1_2345)).to_bits(), 0xfff8_2468_a000_0000);
        assert!(narrowed(f64::from_bits(0x7ff0_0000_0000_0001)).is_nan());
    }
}
