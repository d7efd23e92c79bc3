//! Hashing what can be written as JSON and has no hash of its own, such as the types of
//! Kubernetes: it goes into the hasher as it is written, and no text is made of it.

use std::hash::{Hash, Hasher};
use std::io::{Result, Write};

use serde::Serialize;

/// A value by what its JSON says. What cannot be written as JSON is like any other that cannot.
#[derive(Clone, Copy, Debug)]
pub struct AsJson<'v, T>(pub &'v T);

impl<T: Serialize> Hash for AsJson<'_, T> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let written = serde_json::to_writer(Into(hasher), self.0);
        written.is_ok().hash(hasher);
    }
}

struct Into<'h, H>(&'h mut H);

impl<H: Hasher> Write for Into<'_, H> {
    fn write(&mut self, text: &[u8]) -> Result<usize> {
        self.0.write(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::hash::DefaultHasher;

    use serde_json::{Value, json};

    use super::*;

    fn hash(value: &Value) -> u64 {
        let mut hasher = DefaultHasher::new();
        AsJson(value).hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn what_says_the_same_has_the_same_hash_and_what_does_not_has_another() {
        let value = json!({"ports": [{"port": 22}], "type": "ClusterIP"});
        assert_eq!(hash(&value), hash(&value.clone()));
        let other = json!({"ports": [{"port": 23}], "type": "ClusterIP"});
        assert_ne!(hash(&value), hash(&other));
    }
}
