//! Failures on request: what a test or a person asks the stand-ins to do wrong.
//!
//! Asked for in two ways that mean the same: in the process through
//! [`Behaviour`], and from outside by an annotation on the Namespace,
//! `stand-in.kite.dev/<object name>` or `stand-in.kite.dev/every-object`, with
//! faults separated by commas (`clone-stuck,agent-connected`). It is never
//! written on the objects themselves, which belong to Kite.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::agenda::Agenda;
use super::cache::Key;
use super::fault::Fault;
use super::names::{FAULT_PREFIX, Res};

/// Name that stands for every object of a Namespace.
pub const EVERY_OBJECT: &str = "every-object";

/// The handle by which failures are asked for. Cheap to clone.
#[derive(Clone)]
pub struct Behaviour {
    state: Arc<Mutex<State>>,
    agenda: Arc<Agenda>,
}

#[derive(Default)]
struct State {
    asked: HashMap<Key, BTreeSet<Fault>>,
    annotated: HashMap<Key, BTreeSet<Fault>>,
    /// Faults that happen once and did, as long as the annotation stands.
    happened: HashSet<(Key, Fault)>,
    webhooks_down: bool,
}

impl Behaviour {
    pub(super) fn new(agenda: Arc<Agenda>) -> Self {
        Self {
            state: Arc::default(),
            agenda,
        }
    }

    /// Asks for a failure of the machine or disk of this name.
    pub fn set(&self, namespace: &str, name: &str, fault: Fault) {
        let key = Key::new(namespace, name);
        self.lock()
            .asked
            .entry(key.clone())
            .or_default()
            .insert(fault);
        self.wake(&key);
    }

    /// Takes one back.
    pub fn clear(&self, namespace: &str, name: &str, fault: &Fault) {
        let key = Key::new(namespace, name);
        if let Some(faults) = self.lock().asked.get_mut(&key) {
            faults.remove(fault);
        }
        self.wake(&key);
    }

    /// Takes all back that were asked for through this handle.
    pub fn clear_all(&self, namespace: &str, name: &str) {
        let key = Key::new(namespace, name);
        self.lock().asked.remove(&key);
        self.wake(&key);
    }

    /// Lets the webhooks fail, or answer again.
    pub fn set_webhooks_down(&self, down: bool) {
        self.lock().webhooks_down = down;
    }

    /// Whether the webhooks give an answer about an object.
    pub(super) fn answers(&self, key: &Key) -> bool {
        !self.lock().webhooks_down && !self.has(key, &Fault::NoAnswer)
    }

    /// Whether a failure that lasts is asked for.
    pub(super) fn has(&self, key: &Key, fault: &Fault) -> bool {
        self.faults(key).contains(fault)
    }

    /// Whether a failure that happens once is to happen now; it then did.
    pub(super) fn take(&self, key: &Key, fault: &Fault) -> bool {
        let mut state = self.lock();
        for place in places(key) {
            let asked = state.asked.get_mut(&place);
            if asked.is_some_and(|faults| faults.remove(fault)) {
                return true;
            }
            let annotated = state.annotated.get(&place);
            if annotated.is_some_and(|faults| faults.contains(fault)) {
                return state.happened.insert((key.clone(), fault.clone()));
            }
        }
        false
    }

    pub(super) fn printable_status(&self, key: &Key) -> Option<String> {
        self.faults(key).into_iter().find_map(|fault| match fault {
            Fault::PrintableStatus(word) => Some(word),
            _ => None,
        })
    }

    pub(super) fn disk_phase(&self, key: &Key) -> Option<String> {
        self.faults(key).into_iter().find_map(|fault| match fault {
            Fault::DiskPhase(word) => Some(word),
            _ => None,
        })
    }

    pub(super) fn refusal(&self, key: &Key) -> Option<String> {
        self.faults(key).into_iter().find_map(|fault| match fault {
            Fault::Refuse(words) => Some(words),
            _ => None,
        })
    }

    pub(super) fn disk_refusal(&self, key: &Key) -> Option<String> {
        self.faults(key).into_iter().find_map(|fault| match fault {
            Fault::RefuseDisk(words) => Some(words),
            _ => None,
        })
    }

    /// Reads what a Namespace asks for; answers whether that changed.
    pub(super) fn read_namespace(&self, namespace: &str, notes: &BTreeMap<String, String>) -> bool {
        let mut wanted: HashMap<Key, BTreeSet<Fault>> = HashMap::new();
        for (name, value) in notes {
            let Some(object) = name.strip_prefix(FAULT_PREFIX) else {
                continue;
            };
            let faults = value.split(',').filter(|word| !word.trim().is_empty());
            for fault in faults.map(str::parse::<Fault>) {
                match fault {
                    Ok(fault) => {
                        let key = Key::new(namespace, object);
                        wanted.entry(key).or_default().insert(fault);
                    }
                    Err(error) => tracing::warn!(namespace, %error, "stand-in: ignored"),
                }
            }
        }
        self.lock().replace(namespace, wanted)
    }

    fn faults(&self, key: &Key) -> BTreeSet<Fault> {
        let state = self.lock();
        let all = places(key)
            .into_iter()
            .flat_map(|place| [state.asked.get(&place), state.annotated.get(&place)])
            .flatten();
        all.flatten()
            .filter(|fault| !fault.once())
            .cloned()
            .collect()
    }

    fn wake(&self, key: &Key) {
        for kind in [Res::Vm, Res::Vmi, Res::Claim, Res::DataVolume] {
            self.agenda.wake(kind, key.clone());
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn replace(&mut self, namespace: &str, wanted: HashMap<Key, BTreeSet<Fault>>) -> bool {
        let before: HashMap<Key, BTreeSet<Fault>> = self
            .annotated
            .extract_if(|key, _| key.namespace == namespace)
            .collect();
        let changed = before != wanted;
        self.happened.retain(|(key, fault)| {
            key.namespace != namespace
                || places(key).iter().any(|place| {
                    wanted
                        .get(place)
                        .is_some_and(|faults| faults.contains(fault))
                })
        });
        self.annotated.extend(wanted);
        changed
    }
}

/// Where a failure of an object may be asked for.
fn places(key: &Key) -> [Key; 2] {
    [key.clone(), Key::new(key.namespace.clone(), EVERY_OBJECT)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(format!("{FAULT_PREFIX}web"), value.to_owned())])
    }

    #[test]
    fn an_annotated_one_time_fault_happens_once_until_it_is_asked_for_anew() {
        let behaviour = Behaviour::new(Arc::default());
        let key = Key::new("alice", "web");
        assert!(behaviour.read_namespace("alice", &notes("guest-shutdown,paused")));
        assert!(behaviour.has(&key, &Fault::Paused));
        assert!(behaviour.take(&key, &Fault::GuestShutdown));
        assert!(!behaviour.take(&key, &Fault::GuestShutdown));
        assert!(behaviour.read_namespace("alice", &notes("paused")));
        assert!(behaviour.read_namespace("alice", &notes("guest-shutdown")));
        assert!(behaviour.take(&key, &Fault::GuestShutdown));
        assert!(!behaviour.has(&Key::new("bob", "web"), &Fault::Paused));
    }
}
