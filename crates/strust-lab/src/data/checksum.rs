//! A checksum that detects damage and mix-ups.

/// FNV-1a, 64 bits, of bytes that arrive in pieces. It detects damage and mix-ups; it does not protect against intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Checksum(u64);

impl Checksum {
    /// The checksum of no bytes.
    pub const EMPTY: Self = Self(0xcbf2_9ce4_8422_2325);

    /// Adds bytes at the end.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, &b| (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    }

    /// Its value.
    #[must_use]
    pub fn value(self) -> u64 {
        self.0
    }
}

/// The checksum of bytes.
#[must_use]
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    let mut sum = Checksum::EMPTY;
    sum.add(bytes);
    sum.value()
}
