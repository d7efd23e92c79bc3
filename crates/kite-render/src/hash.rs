//! A short, stable fingerprint of a rendered object, for annotations.
//!
//! It tells whether an object was rendered from the same input, nothing more:
//! it is no protection against anybody, so nothing secret goes into it (C-18).
//! The standard library's hasher may change with any release of Rust, and a
//! changed hash would rewrite every object in the cluster; hence these few lines.

use std::io;

use serde::Serialize;

/// The two numbers that define FNV-1a for 64 bits.
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// The fingerprint of a value's JSON, as sixteen hexadecimal digits.
pub fn hash<T: Serialize>(value: &T) -> Result<String, serde_json::Error> {
    let mut state = Fnv(OFFSET);
    serde_json::to_writer(&mut state, value)?;
    Ok(format!("{:016x}", state.0))
}

/// FNV-1a, fed by serde_json so that no copy of the object is made.
struct Fnv(u64);

impl io::Write for Fnv {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_hash_is_the_same_in_every_release() {
        assert_eq!(hash(&()).unwrap(), "5b9bc4ba528108e4"); // FNV-1a of the text null
        assert_ne!(hash(&"a").unwrap(), hash(&"b").unwrap());
    }

    #[test]
    fn the_order_in_which_a_map_was_filled_does_not_matter() {
        let forth: BTreeMap<_, _> = (0..9).map(|i| (i.to_string(), i)).collect();
        let back: BTreeMap<_, _> = (0..9).rev().map(|i| (i.to_string(), i)).collect();
        assert_eq!(hash(&forth).unwrap(), hash(&back).unwrap());
    }
}
