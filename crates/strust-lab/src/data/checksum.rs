//! A checksum that detects damage and mix-ups.

/// FNV-1a, 64 bits. It detects damage and mix-ups; it does not protect against intent.
#[must_use]
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &b| (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}
