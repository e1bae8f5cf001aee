use serde::{
    Serialize, Serializer,
    ser::{
        SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple, SerializeTupleStruct,
        SerializeTupleVariant,
    },
};
use std::fmt::Error as Never;

/// A hash of a state, such as that of a method: equal states have equal hashes, bit for bit, on every machine.
///
/// ```
/// use strust::ranks::fingerprint;
/// assert_eq!(fingerprint(&(1.0, "a")), fingerprint(&(1.0, "a")));
/// assert_ne!(fingerprint(&0.0), fingerprint(&-0.0));
/// ```
///
/// # Panics
/// If the `Serialize` of the state fails.
pub fn fingerprint(state: &impl Serialize) -> u64 {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    state.serialize(&mut hash).expect("a state can be serialized");
    hash.0
}

/// FNV-1a over what serde visits.
struct Fnv(u64);

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, &b| (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    }
    /// Two lists of different lengths differ even if one continues into the next field.
    fn open(&mut self, length: Option<usize>) -> &mut Self {
        self.add(&(length.unwrap_or(usize::MAX) as u64).to_le_bytes());
        self
    }
}

macro_rules! numbers {
    ($($name:ident: $t:ty;)*) => {$(
        fn $name(self, v: $t) -> Result<(), Never> {
            self.add(&v.to_le_bytes());
            Ok(())
        }
    )*};
}

impl<'a> Serializer for &'a mut Fnv {
    type Ok = ();
    type Error = Never;
    type SerializeSeq = &'a mut Fnv;
    type SerializeTuple = &'a mut Fnv;
    type SerializeTupleStruct = &'a mut Fnv;
    type SerializeTupleVariant = &'a mut Fnv;
    type SerializeMap = &'a mut Fnv;
    type SerializeStruct = &'a mut Fnv;
    type SerializeStructVariant = &'a mut Fnv;

    numbers! {
        serialize_i8: i8; serialize_i16: i16; serialize_i32: i32; serialize_i64: i64; serialize_i128: i128;
        serialize_u8: u8; serialize_u16: u16; serialize_u32: u32; serialize_u64: u64; serialize_u128: u128;
        serialize_f32: f32; serialize_f64: f64;
    }
    fn is_human_readable(&self) -> bool {
        false
    }
    fn serialize_bool(self, v: bool) -> Result<(), Never> {
        self.serialize_u8(v.into())
    }
    fn serialize_char(self, v: char) -> Result<(), Never> {
        self.serialize_u32(v.into())
    }
    fn serialize_str(self, v: &str) -> Result<(), Never> {
        self.serialize_bytes(v.as_bytes())
    }
    fn serialize_bytes(self, v: &[u8]) -> Result<(), Never> {
        self.open(Some(v.len())).add(v);
        Ok(())
    }
    fn serialize_none(self) -> Result<(), Never> {
        self.serialize_u8(0)
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Never> {
        self.add(&[1]);
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<(), Never> {
        Ok(())
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Never> {
        Ok(())
    }
    fn serialize_unit_variant(self, _: &'static str, index: u32, _: &'static str) -> Result<(), Never> {
        self.serialize_u32(index)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Never> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Never> {
        self.add(&index.to_le_bytes());
        value.serialize(self)
    }
    fn serialize_seq(self, length: Option<usize>) -> Result<Self, Never> {
        Ok(self.open(length))
    }
    fn serialize_tuple(self, length: usize) -> Result<Self, Never> {
        Ok(self.open(Some(length)))
    }
    fn serialize_tuple_struct(self, _: &'static str, length: usize) -> Result<Self, Never> {
        Ok(self.open(Some(length)))
    }
    fn serialize_tuple_variant(self, _: &'static str, index: u32, _: &'static str, _: usize) -> Result<Self, Never> {
        self.add(&index.to_le_bytes());
        Ok(self)
    }
    fn serialize_map(self, length: Option<usize>) -> Result<Self, Never> {
        Ok(self.open(length))
    }
    fn serialize_struct(self, _: &'static str, length: usize) -> Result<Self, Never> {
        Ok(self.open(Some(length)))
    }
    fn serialize_struct_variant(self, _: &'static str, index: u32, _: &'static str, _: usize) -> Result<Self, Never> {
        self.add(&index.to_le_bytes());
        Ok(self)
    }
}

macro_rules! lists {
    ($($list:ident $element:ident;)*) => {$(
        impl $list for &mut Fnv {
            type Ok = ();
            type Error = Never;
            fn $element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Never> {
                value.serialize(&mut **self)
            }
            fn end(self) -> Result<(), Never> {
                Ok(())
            }
        }
    )*};
}
lists! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

macro_rules! structs {
    ($($list:ident)*) => {$(
        impl $list for &mut Fnv {
            type Ok = ();
            type Error = Never;
            fn serialize_field<T: Serialize + ?Sized>(&mut self, _: &'static str, value: &T) -> Result<(), Never> {
                value.serialize(&mut **self)
            }
            fn end(self) -> Result<(), Never> {
                Ok(())
            }
        }
    )*};
}
structs! { SerializeStruct SerializeStructVariant }

impl SerializeMap for &mut Fnv {
    type Ok = ();
    type Error = Never;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Never> {
        key.serialize(&mut **self)
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Never> {
        value.serialize(&mut **self)
    }
    fn end(self) -> Result<(), Never> {
        Ok(())
    }
}
