//! How a field whose type is any [`Vector`] is saved, for [`saved!`](crate::saved!) and for
//! `#[serde(with = "strust::saved::vector")]`.

use super::{Load, Saved};
use crate::{Error, vector::Vector};
use std::borrow::Cow;

/// A saved vector: its components as little-endian bytes, column by column for a matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedVector {
    /// The component type: "f32" or "f64".
    pub scalar: Cow<'static, str>,
    /// The shape.
    pub shape: Vec<usize>,
    /// The components.
    pub bytes: Vec<u8>,
}

impl SavedVector {
    /// The components in double precision, with the payload of a NaN.
    #[must_use]
    pub fn values(&self) -> Vec<f64> {
        // From the bytes: a component of a vector on a device would be read by itself.
        match &*self.scalar {
            "f32" => self.bytes.as_chunks().0.iter().map(|b| widened(f32::from_le_bytes(*b))).collect(),
            _ => self.bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect(),
        }
    }

    fn from_values(scalar: Cow<'static, str>, shape: Vec<usize>, values: &[f64]) -> Self {
        let bytes = match &*scalar {
            "f32" => values.iter().flat_map(|&value| narrowed(value).to_le_bytes()).collect(),
            _ => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        };
        Self { scalar, shape, bytes }
    }

    /// The checksum of the bytes, FNV-1a. A parser may round a digit, but a run must resume bit for bit.
    pub(super) fn checksum(&self) -> String {
        format!("{:016x}", fnv(FNV_START, &self.bytes))
    }

    /// The vector of a file, where it is a map. With another component type than
    /// `wanted` its checksum does not matter.
    pub(super) fn of_map(saved: &Saved, wanted: Option<&str>) -> Result<Self, Error> {
        let scalar = saved.part("scalar", |part| match part {
            Saved::Text(scalar) => Ok(scalar.clone()),
            _ => Err(part.is_not("a word")),
        })?;
        let shape = saved.part("shape", Vec::load)?;
        let bytes = saved.part("bytes", |part| match part {
            Saved::Nothing => Ok(None),
            Saved::Bytes(bytes) => Ok(Some(bytes.clone())),
            Saved::List(list) => list.iter().map(byte).collect::<Result<_, _>>().map(Some),
            _ => Err(part.is_not("bytes")),
        })?;
        if let Some(bytes) = bytes {
            return Ok(Self { scalar, shape, bytes });
        }
        let vector = Self::from_values(scalar, shape, &saved.part("values", Vec::<f64>::load)?);
        let differs = |part: &Saved| Ok(matches!(part, Saved::Text(sum) if *sum != vector.checksum()));
        // With another component type the vector is refused for that reason.
        if wanted.is_none_or(|wanted| vector.scalar == wanted) && saved.part("checksum", differs)? {
            return Err(Error::Saved(
                "the components changed since they were saved: the file was edited, or the parser rounds numbers \
                 (serde_json needs its feature `float_roundtrip`)"
                    .into(),
            ));
        }
        Ok(vector)
    }
}

fn byte(saved: &Saved) -> Result<u8, Error> {
    u64::load(saved).and_then(|byte| byte.try_into().map_err(|_| saved.is_not("a byte")))
}

/// Saves a vector.
pub fn save<V: Vector>(vector: &V) -> Saved {
    let mut bytes = Vec::new();
    vector.write(&mut bytes);
    Saved::Vector(SavedVector { scalar: V::scalar().into(), shape: vector.shape(), bytes })
}

/// Loads a vector. The component type and the shape must match `V`.
pub fn load<V: Vector>(saved: &Saved) -> Result<V, Error> {
    let read = |SavedVector { scalar, shape, bytes }: &SavedVector| V::read(scalar, shape, bytes);
    match saved {
        Saved::Vector(vector) => read(vector),
        _ => read(&SavedVector::of_map(saved, Some(V::scalar()))?),
    }
}

/// Writes the vector in a format of serde.
#[cfg(feature = "serde")]
pub fn serialize<V: Vector, S: serde::Serializer>(vector: &V, serializer: S) -> Result<S::Ok, S::Error> {
    serde::Serialize::serialize(&save(vector), serializer)
}

/// Reads the vector from a format of serde.
#[cfg(feature = "serde")]
pub fn deserialize<'de, V: Vector, D: serde::Deserializer<'de>>(deserializer: D) -> Result<V, D::Error> {
    let saved: Saved = serde::Deserialize::deserialize(deserializer)?;
    load(&saved).map_err(serde::de::Error::custom)
}

/// The word for a number that JSON cannot express.
#[cfg(feature = "serde")]
pub(super) fn word(value: f64) -> String {
    if value.is_nan() && value.to_bits() != f64::NAN.to_bits() {
        format!("{:#x}", value.to_bits())
    } else {
        value.to_string()
    }
}

/// The number of a word.
pub(super) fn number(word: &str) -> Result<f64, Error> {
    let bits = word.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let number = bits.map(f64::from_bits).or_else(|| word.parse().ok());
    number.ok_or_else(|| Error::Saved(format!("{word:?} is not a number")))
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

/// The start of [`fnv`].
pub(crate) const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, continued from `hash`.
pub(crate) fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, &b| (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
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
