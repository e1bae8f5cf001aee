use super::{
    Save, Saved,
    vector::{FNV_START, fnv},
};

/// A hash of a state, such as that of a method: equal states have equal hashes, bit for bit, on every machine.
///
/// ```
/// use strust::saved::fingerprint;
/// assert_eq!(fingerprint(&(1.0, 2_u64)), fingerprint(&(1.0, 2_u64)));
/// assert_ne!(fingerprint(&0.0), fingerprint(&-0.0));
/// ```
pub fn fingerprint(state: &impl Save) -> u64 {
    let mut hash = Fnv(FNV_START);
    hash.tree(&state.save());
    hash.0
}

/// FNV-1a over a tree.
struct Fnv(u64);

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        self.0 = fnv(self.0, bytes);
    }
    /// Lists of different lengths differ even if one continues into the next field, and so do parts of different kinds.
    fn open(&mut self, kind: u8, length: usize) {
        self.add(&[kind]);
        self.add(&(length as u64).to_le_bytes());
    }
    fn bytes(&mut self, kind: u8, bytes: &[u8]) {
        self.open(kind, bytes.len());
        self.add(bytes);
    }
    fn tree(&mut self, saved: &Saved) {
        match saved {
            Saved::Nothing => self.open(0, 0),
            Saved::Flag(flag) => self.open(1, usize::from(*flag)),
            Saved::Count(count) => self.bytes(2, &count.to_le_bytes()),
            Saved::Negative(number) => self.bytes(3, &number.to_le_bytes()),
            Saved::Number(number) => self.bytes(4, &number.to_le_bytes()),
            Saved::Text(text) => self.bytes(5, text.as_bytes()),
            Saved::Bytes(bytes) => self.bytes(6, bytes),
            Saved::Vector(vector) => {
                self.bytes(7, vector.scalar.as_bytes());
                vector.shape.iter().for_each(|&size| self.open(8, size));
                self.bytes(9, &vector.bytes);
            }
            Saved::List(list) => {
                self.open(10, list.len());
                for part in list {
                    self.tree(part);
                }
            }
            // The names of parts are those of the type.
            Saved::Map(parts) => {
                self.open(11, parts.len());
                for (_, part) in parts {
                    self.tree(part);
                }
            }
        }
    }
}
