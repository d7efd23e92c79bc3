//! A container's environment and arguments: values, where they come from, and
//! `$(NAME)` in them, as a kubelet resolves them.
//!
//! No environment of the agent's own is passed on, and no service links.

use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvFromSource, EnvVarSource, Secret};
use kube::{Api, Client};

use super::downward::Facts;

/// Name and value, each name once, in the order in which they are set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Variables(Vec<(String, String)>);

impl Variables {
    /// The value of a variable.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let mut all = self.0.iter();
        all.find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// Sets a variable, over one that is there.
    pub(super) fn set(&mut self, name: &str, value: String) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// All of them.
    pub(super) fn all(&self) -> &[(String, String)] {
        &self.0
    }

    /// Puts values in place of `$(NAME)`. `$$` is one dollar, and what is not
    /// set stays as it is written.
    pub(super) fn expand(&self, text: &str) -> String {
        let mut result = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            result.push_str(before);
            if let Some(after) = after.strip_prefix('$') {
                result.push('$');
                rest = after;
                continue;
            }
            let name = after
                .strip_prefix('(')
                .and_then(|name| name.split_once(')'));
            rest = after;
            if let Some((value, after)) =
                name.and_then(|(name, rest)| Some((self.get(name)?, rest)))
            {
                result.push_str(value);
                rest = after;
            } else {
                result.push('$');
            }
        }
        result + rest
    }
}

/// Reads what environments are made of.
pub(super) struct Sources<'a> {
    client: &'a Client,
    facts: &'a Facts,
    namespace: &'a str,
}

impl<'a> Sources<'a> {
    /// Those of one pod.
    pub(super) fn new(client: &'a Client, facts: &'a Facts) -> Self {
        let namespace = facts.pod.metadata.namespace.as_deref();
        let namespace = namespace.unwrap_or_default();
        Self {
            client,
            facts,
            namespace,
        }
    }

    /// The environment of a container. The error says what is missing.
    pub(super) async fn variables(&self, container: &Container) -> Result<Variables, String> {
        let mut variables = Variables::default();
        let pod = self.facts.pod.metadata.name.clone();
        variables.set("HOSTNAME", pod.unwrap_or_default());
        for source in container.env_from.iter().flatten() {
            self.all_of(source, &mut variables).await?;
        }
        for wanted in container.env.iter().flatten() {
            let value = match &wanted.value_from {
                Some(from) => self.one(container, from).await?,
                None => Some(variables.expand(wanted.value.as_deref().unwrap_or_default())),
            };
            if let Some(value) = value {
                variables.set(&wanted.name, value);
            }
        }
        Ok(variables)
    }

    async fn all_of(&self, from: &EnvFromSource, into: &mut Variables) -> Result<(), String> {
        let (name, optional, secret) = match (&from.config_map_ref, &from.secret_ref) {
            (Some(map), _) => (&map.name, map.optional, false),
            (None, Some(secret)) => (&secret.name, secret.optional, true),
            (None, None) => return Ok(()),
        };
        let prefix = from.prefix.as_deref().unwrap_or_default();
        let found = if secret {
            self.secret(name).await?
        } else {
            self.config_map(name).await?
        };
        for (key, value) in require(found, optional, || missing(secret, name))?.unwrap_or_default()
        {
            into.set(&format!("{prefix}{key}"), text(&value));
        }
        Ok(())
    }

    async fn one(
        &self,
        container: &Container,
        from: &EnvVarSource,
    ) -> Result<Option<String>, String> {
        if let Some(field) = &from.field_ref {
            return self.facts.field(field).map(Some);
        }
        if let Some(resource) = &from.resource_field_ref {
            return self.facts.resource(Some(container), resource).map(Some);
        }
        let (name, key, optional, secret) = match (&from.config_map_key_ref, &from.secret_key_ref) {
            (Some(map), _) => (&map.name, &map.key, map.optional, false),
            (None, Some(secret)) => (&secret.name, &secret.key, secret.optional, true),
            (None, None) => return Err("a source of values that the stand-in does not know".into()),
        };
        let found = if secret {
            self.secret(name).await?
        } else {
            self.config_map(name).await?
        };
        let Some(mut found) = require(found, optional, || missing(secret, name))? else {
            return Ok(None);
        };
        let position = found.iter().position(|(known, _)| known == key);
        let value = position.map(|at| text(&found.swap_remove(at).1));
        require(value, optional, || {
            format!("couldn't find key {key} in {}", missing(secret, name))
        })
    }

    /// The entries of a ConfigMap, or nothing when it is not there.
    pub(super) async fn config_map(&self, name: &str) -> Result<Option<Entries>, String> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), self.namespace);
        let Some(map) = api.get_opt(name).await.map_err(|error| error.to_string())? else {
            return Ok(None);
        };
        let plain = map.data.into_iter().flatten();
        let plain = plain.map(|(key, value)| (key, value.into_bytes()));
        let binary = map.binary_data.into_iter().flatten();
        Ok(Some(
            plain
                .chain(binary.map(|(key, value)| (key, value.0)))
                .collect(),
        ))
    }

    /// The entries of a Secret, or nothing when it is not there.
    pub(super) async fn secret(&self, name: &str) -> Result<Option<Entries>, String> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), self.namespace);
        let secret = api.get_opt(name).await.map_err(|error| error.to_string())?;
        let entries = |secret: Secret| {
            let data = secret.data.into_iter().flatten();
            data.map(|(key, value)| (key, value.0)).collect()
        };
        Ok(secret.map(entries))
    }
}

/// Keys and what they hold.
pub(super) type Entries = Vec<(String, Vec<u8>)>;

/// What is there; an error when it is not and must be.
pub(super) fn require<T>(
    found: Option<T>,
    optional: Option<bool>,
    missing: impl FnOnce() -> String,
) -> Result<Option<T>, String> {
    match found {
        None if optional != Some(true) => Err(missing()),
        found => Ok(found),
    }
}

/// How a kubelet says that an object is not there.
pub(super) fn missing(secret: bool, name: &str) -> String {
    let kind = if secret { "secret" } else { "configmap" };
    format!("{kind} {name:?} not found")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_parentheses_are_expanded_and_two_dollars_are_one() {
        let mut variables = Variables::default();
        variables.set("POD", "web-0".into());
        for (text, becomes) in [
            ("--identity=$(POD)", "--identity=web-0"),
            ("$(POD)$(POD)", "web-0web-0"),
            ("$$(POD)", "$(POD)"),
            ("$(OTHER)", "$(OTHER)"),
            ("$POD $(POD", "$POD $(POD"),
            ("cost: 5$", "cost: 5$"),
        ] {
            assert_eq!(variables.expand(text), becomes);
        }
    }

    #[test]
    fn a_variable_that_is_set_again_keeps_its_place() {
        let mut variables = Variables::default();
        for (name, value) in [("A", "1"), ("B", "2"), ("A", "3")] {
            variables.set(name, value.into());
        }
        let all = [
            ("A".to_owned(), "3".to_owned()),
            ("B".to_owned(), "2".to_owned()),
        ];
        assert_eq!(variables.all(), all);
    }
}
