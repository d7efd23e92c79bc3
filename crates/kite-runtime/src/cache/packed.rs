//! How thousands of objects at rest are kept: as text, packed against the text of the
//! first of their kind. They differ in little more than names and UIDs, so that a few
//! hundred bytes are left of each, where its maps and strings would take thousands.
//!
//! Reading one costs a few microseconds each time, which only a pass and its events do.

use std::sync::{Arc, OnceLock};

use kube::core::error_boundary::InvalidObject;
use lz4_flex::block::{compress_prepend_size_with_dict, decompress_size_prepended_with_dict};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Read;

/// An object as it is kept.
pub(super) enum Kept<K> {
    Whole(Arc<K>),
    Packed(Box<[u8]>),
    Invalid(Arc<InvalidObject>),
}

/// How objects of a kind are packed.
pub(super) struct Packing<K> {
    write: fn(&K) -> Option<Vec<u8>>,
    read: fn(&[u8]) -> Option<K>,
    /// The first object's text.
    pattern: OnceLock<Vec<u8>>,
}

impl<K: Serialize + DeserializeOwned> Packing<K> {
    pub(super) fn new() -> Self {
        Self {
            write: |object| serde_json::to_vec(object).ok(),
            read: |text| serde_json::from_slice(text).ok(),
            pattern: OnceLock::new(),
        }
    }
}

impl<K> Packing<K> {
    fn pack(&self, object: &K) -> Option<Box<[u8]>> {
        let text = (self.write)(object)?;
        debug_assert_eq!(
            (self.read)(&text).and_then(|read| (self.write)(&read)),
            Some(text.clone()),
            "what is read back is what was written"
        );
        let pattern = self.pattern.get_or_init(|| text.clone());
        let packed = compress_prepend_size_with_dict(&text, pattern);
        Some(packed.into_boxed_slice())
    }

    fn unpack(&self, packed: &[u8]) -> Option<K> {
        let pattern = self.pattern.get()?;
        let text = decompress_size_prepended_with_dict(packed, pattern).ok()?;
        (self.read)(&text)
    }
}

impl<K> Kept<K> {
    pub(super) fn new(object: Read<K>, packing: Option<&Packing<K>>) -> Self {
        match object {
            Err(invalid) => Self::Invalid(invalid),
            Ok(object) => packing
                .and_then(|packing| packing.pack(&object))
                .map_or(Self::Whole(object), Self::Packed),
        }
    }

    pub(super) fn is_readable(&self) -> bool {
        !matches!(self, Self::Invalid(_))
    }

    pub(super) fn invalid(&self) -> Option<&Arc<InvalidObject>> {
        match self {
            Self::Invalid(invalid) => Some(invalid),
            Self::Whole(_) | Self::Packed(_) => None,
        }
    }

    /// The object, if it could be read when it came.
    pub(super) fn object(&self, packing: Option<&Packing<K>>) -> Option<Arc<K>> {
        match self {
            Self::Whole(object) => Some(Arc::clone(object)),
            Self::Packed(packed) => packing?.unpack(packed).map(Arc::new),
            Self::Invalid(_) => None,
        }
    }
}
