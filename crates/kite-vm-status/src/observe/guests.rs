//! What the watch has shown of each machine's guests, one event after the other.
//!
//! A pass sees only what is there when it comes to look; how a guest ended shows
//! in what was there before. Nothing is decided here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kite_kubevirt::VirtualMachineInstance;
use kite_runtime::Key;

use crate::status::vigil::Vigil;

/// A vigil for each machine. Clones share one map.
///
/// The lock is held for single operations on one machine's entry, by the watch and by passes.
#[derive(Clone, Debug, Default)]
pub struct Guests(Arc<Mutex<HashMap<Key, Vigil>>>);

impl Guests {
    /// Notes what the watch shows.
    pub fn look(&self, key: &Key, guest: &VirtualMachineInstance) {
        self.with(key, |vigil| vigil.look(guest));
    }

    /// Asks a machine's vigil, or tells it something.
    pub fn with<T>(&self, key: &Key, ask: impl FnOnce(&mut Vigil) -> T) -> T {
        ask(self.lock().entry(key.clone()).or_default())
    }

    /// The machine is gone.
    pub fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Vigil>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
