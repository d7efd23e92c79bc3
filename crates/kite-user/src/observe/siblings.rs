//! Which KiteUsers share a namespace, so that a change in it wakes all of them.
//!
//! The passes fill it in: a user whose first pass has not run yet needs no
//! waking, since that pass is due anyway. It decides nothing.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kite_api::KiteUser;
use kite_runtime::Key;

/// What others who share the namespace have to know of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    namespace: String,
    uid: String,
    going: bool,
}

/// The users by namespace. Locked for single look-ups, by watches and passes.
#[derive(Debug, Default)]
pub struct Siblings {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    users: HashMap<String, Known>,
    namespaces: HashMap<String, BTreeSet<String>>,
}

impl Siblings {
    /// Takes a user in. True when that is news to those who share its namespace.
    pub fn note(&self, user: &KiteUser) -> bool {
        let name = user.metadata.name.clone().unwrap_or_default();
        let known = Known {
            namespace: user.spec.namespace.clone(),
            uid: user.metadata.uid.clone().unwrap_or_default(),
            going: user.metadata.deletion_timestamp.is_some(),
        };
        let mut state = self.lock();
        if state.users.get(&name) == Some(&known) {
            return false;
        }
        state.leave(&name);
        let members = state.namespaces.entry(known.namespace.clone());
        members.or_default().insert(name.clone());
        state.users.insert(name, known);
        true
    }

    /// Takes a user out, and says whom that concerns.
    pub fn forget(&self, name: &str) -> Vec<Key> {
        let namespace = self.lock().leave(name);
        namespace.map_or_else(Vec::new, |namespace| self.of(&namespace))
    }

    /// The users of a namespace.
    pub fn of(&self, namespace: &str) -> Vec<Key> {
        let state = self.lock();
        let members = state.namespaces.get(namespace);
        members
            .map(|m| m.iter().map(Key::cluster).collect())
            .unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn leave(&mut self, name: &str) -> Option<String> {
        let known = self.users.remove(name)?;
        if let Some(members) = self.namespaces.get_mut(&known.namespace) {
            members.remove(name);
            if members.is_empty() {
                self.namespaces.remove(&known.namespace);
            }
        }
        Some(known.namespace)
    }
}

#[cfg(test)]
mod tests {
    use kite_api::KiteUserSpec;

    use super::*;

    fn user(name: &str, uid: &str, namespace: &str) -> KiteUser {
        let spec = KiteUserSpec {
            namespace: namespace.to_owned(),
            quota: None,
            network: None,
            subjects: Vec::new(),
        };
        let mut user = KiteUser::new(name, spec);
        user.metadata.uid = Some(uid.to_owned());
        user
    }

    // U-3 (d)
    #[test]
    fn users_of_one_namespace_are_found_together_until_they_leave() {
        let siblings = Siblings::default();
        assert!(siblings.note(&user("a", "1", "shared")));
        assert!(!siblings.note(&user("a", "1", "shared")), "no news");
        assert!(siblings.note(&user("a", "2", "shared")), "a successor");
        siblings.note(&user("b", "3", "shared"));
        siblings.note(&user("c", "4", "own"));
        assert_eq!(siblings.of("shared").len(), 2);
        assert_eq!(siblings.forget("a"), [Key::cluster("b")]);
        assert!(siblings.forget("a").is_empty());
        assert_eq!(siblings.of("own"), [Key::cluster("c")]);
    }
}
