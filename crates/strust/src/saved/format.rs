//! [`Saved`] in any format of serde.
//!
//! Binary formats store a vector as a map of `scalar` ("f32" or "f64"), `shape` and `bytes`. The bytes are the components
//! in little-endian order; a matrix is stored column by column. Text formats such as JSON store a list `values` instead of
//! `bytes`. Numbers have enough digits to read the same bits back; "NaN", "inf" and "-inf" are words. A NaN with a payload
//! is stored as its bits in hexadecimal. Other programs can read and write both forms; they may omit the field `checksum`.

use super::{Saved, SavedVector, vector};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, SeqAccess, Visitor},
    ser::SerializeMap,
};

impl Serialize for Saved {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Nothing => serializer.serialize_none(),
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            Self::Count(count) => serializer.serialize_u64(*count),
            Self::Negative(number) => serializer.serialize_i64(*number),
            Self::Number(number) if serializer.is_human_readable() && !number.is_finite() => {
                serializer.serialize_str(&vector::word(*number))
            }
            Self::Number(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Bytes(bytes) => serializer.serialize_bytes(bytes),
            Self::Vector(vector) => vector.serialize(serializer),
            Self::List(list) => list.serialize(serializer),
            Self::Map(parts) => {
                let mut map = serializer.serialize_map(Some(parts.len()))?;
                parts.iter().try_for_each(|(name, part)| map.serialize_entry(name, part))?;
                map.end()
            }
        }
    }
}

impl Serialize for SavedVector {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = serializer.is_human_readable();
        let mut map = serializer.serialize_map(Some(if text { 4 } else { 3 }))?;
        map.serialize_entry("scalar", &self.scalar)?;
        map.serialize_entry("shape", &self.shape)?;
        if text {
            let values: Vec<Saved> = self.values().into_iter().map(Saved::Number).collect();
            map.serialize_entry("values", &values)?;
            map.serialize_entry("checksum", &self.checksum())?;
        } else {
            map.serialize_entry("bytes", &ByteBlock(&self.bytes))?;
        }
        map.end()
    }
}

/// Binary formats store this as one block. They would store a `[u8]` as a list of numbers.
struct ByteBlock<'a>(&'a [u8]);

impl Serialize for ByteBlock<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

impl<'de> Deserialize<'de> for Saved {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Tree)
    }
}

struct Tree;

impl<'de> Visitor<'de> for Tree {
    type Value = Saved;
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("saved data")
    }
    fn visit_unit<E>(self) -> Result<Saved, E> {
        Ok(Saved::Nothing)
    }
    fn visit_none<E>(self) -> Result<Saved, E> {
        Ok(Saved::Nothing)
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Saved, D::Error> {
        deserializer.deserialize_any(self)
    }
    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Saved, D::Error> {
        deserializer.deserialize_any(self)
    }
    fn visit_bool<E>(self, v: bool) -> Result<Saved, E> {
        Ok(Saved::Flag(v))
    }
    fn visit_u64<E>(self, v: u64) -> Result<Saved, E> {
        Ok(Saved::Count(v))
    }
    fn visit_i64<E>(self, v: i64) -> Result<Saved, E> {
        Ok(u64::try_from(v).map_or(Saved::Negative(v), Saved::Count))
    }
    fn visit_f64<E>(self, v: f64) -> Result<Saved, E> {
        Ok(Saved::Number(v))
    }
    fn visit_str<E>(self, v: &str) -> Result<Saved, E> {
        Ok(Saved::Text(v.to_string().into()))
    }
    fn visit_bytes<E>(self, v: &[u8]) -> Result<Saved, E> {
        Ok(Saved::Bytes(v.to_vec()))
    }
    fn visit_byte_buf<E>(self, v: Vec<u8>) -> Result<Saved, E> {
        Ok(Saved::Bytes(v))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Saved, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        Ok(Saved::List(values))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Saved, A::Error> {
        let mut parts = Vec::new();
        while let Some((name, part)) = map.next_entry::<String, Saved>()? {
            parts.push((name.into(), part));
        }
        let map = Saved::Map(parts);
        // Something that is no vector, or a damaged one, stays as it is. Who loads it says what is wrong.
        Ok(SavedVector::of_map(&map, None).map_or(map, Saved::Vector))
    }
}
