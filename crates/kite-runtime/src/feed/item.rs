//! What a watch delivers, read from the server's text.
//!
//! An object that cannot be read is told apart from the others instead of taking
//! the whole list with it (rule C-15). Nobody here reads who owns which field,
//! which is nearly half of the text, so it is skipped and never built.

use std::borrow::Cow;
use std::fmt::{self, Debug};

use kube::core::error_boundary::InvalidObject;
use kube::core::{ObjectMeta, PartialObjectMeta, Resource};
use serde::de::value::CowStrDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// What a watch delivers: something that is an object, or says why it is not.
pub trait Item:
    Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static
{
    /// The object a pass reads.
    type Object: Resource<DynamicType = ()> + Send + Sync + 'static;
    /// The object, or what could be read of it.
    fn read(self) -> Result<Self::Object, Box<InvalidObject>>;
}

/// A whole object, or what could be read of it.
#[derive(Clone, Debug)]
pub struct Guarded<K>(Result<K, Box<InvalidObject>>);

impl<K> Item for Guarded<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    type Object = K;

    fn read(self) -> Result<K, Box<InvalidObject>> {
        self.0
    }
}

/// Metadata only: less on the wire and less in memory.
impl<K> Item for PartialObjectMeta<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Send + Sync + 'static,
{
    type Object = Self;

    fn read(self) -> Result<Self, Box<InvalidObject>> {
        Ok(self)
    }
}

impl<'de, K: DeserializeOwned> Deserialize<'de> for Guarded<K> {
    fn deserialize<D: Deserializer<'de>>(inner: D) -> Result<Self, D::Error> {
        let part = Part::Object;
        // Kept until it is known whether it has the right shape.
        let whole = Value::deserialize(Pruned { inner, part })?;
        let object = K::deserialize(&whole).map(|object| Self(Ok(object)));
        object.or_else(|error| {
            let named = Named::deserialize(&whole).map_err(serde::de::Error::custom)?;
            Ok(Self(Err(Box::new(InvalidObject {
                error: error.to_string(),
                metadata: named.metadata.unwrap_or_default(),
            }))))
        })
    }
}

/// What is left of an object whose shape is unknown.
#[derive(Deserialize)]
struct Named {
    metadata: Option<ObjectMeta>,
}

/// Which part of an object is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Object,
    Metadata,
}

/// Reads as what it holds does, and passes over `managedFields`: it serves as the deserializer
/// of an object and of its metadata, as their visitor, as their entries, and as the seed in between.
struct Pruned<T> {
    inner: T,
    part: Part,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Pruned<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let part = self.part;
        self.inner.deserialize_any(Pruned {
            inner: visitor,
            part,
        })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Pruned<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(Entries {
            inner: entries,
            part: self.part,
            metadata: false,
        })
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Pruned<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        let part = self.part;
        self.inner.deserialize(Pruned { inner, part })
    }
}

/// The entries of an object or of its metadata.
struct Entries<A> {
    inner: A,
    part: Part,
    /// Whether the value that comes next is the object's metadata.
    metadata: bool,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Entries<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        while let Some(Name(name)) = self.inner.next_key()? {
            if self.part == Part::Metadata && name == "managedFields" {
                self.inner.next_value::<IgnoredAny>()?;
                continue;
            }
            self.metadata = self.part == Part::Object && name == "metadata";
            return seed
                .deserialize(CowStrDeserializer::<A::Error>::new(name))
                .map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        if !self.metadata {
            return self.inner.next_value_seed(seed);
        }
        let part = Part::Metadata;
        self.inner.next_value_seed(Pruned { inner: seed, part })
    }
}

/// A key, in the server's text where it stands there as it is.
struct Name<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a field's name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl<K: Resource> Resource for Guarded<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(dt: &K::DynamicType) -> Cow<'_, str> {
        K::kind(dt)
    }

    fn group(dt: &K::DynamicType) -> Cow<'_, str> {
        K::group(dt)
    }

    fn version(dt: &K::DynamicType) -> Cow<'_, str> {
        K::version(dt)
    }

    fn plural(dt: &K::DynamicType) -> Cow<'_, str> {
        K::plural(dt)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.as_ref().map_or_else(|e| &e.metadata, Resource::meta)
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0
            .as_mut()
            .map_or_else(|e| &mut e.metadata, Resource::meta_mut)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Service;
    use kube::core::ObjectList;
    use kube::core::WatchEvent;
    use serde_json::json;

    use super::*;

    fn service(name: &str, ports: &serde_json::Value) -> serde_json::Value {
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {
                "name": name, "labels": {"managedFields": "kept", "metadata": "kept"}, "uid": "1",
                "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:ports": {}}}}],
            },
            "spec": {"ports": ports, "selector": {"a \"quoted\" name": "b"}},
        })
    }

    // C-15, C-4
    #[test]
    fn one_object_of_an_unknown_shape_leaves_the_others_of_a_list_as_they_are() {
        let list = json!({
            "apiVersion": "v1", "kind": "ServiceList", "metadata": {},
            "items": [service("good", &json!([{"port": 22}])), service("bad", &json!("none"))],
        });
        let list: ObjectList<Guarded<Service>> = serde_json::from_str(&list.to_string()).unwrap();
        let [good, bad] = list.items.try_into().unwrap();
        let good = good.read().unwrap();
        assert_eq!(good.metadata.managed_fields, None);
        assert_eq!(good.metadata.labels.unwrap().len(), 2);
        let spec = good.spec.unwrap();
        assert_eq!(spec.ports.unwrap()[0].port, 22);
        assert!(spec.selector.unwrap().contains_key("a \"quoted\" name"));
        let bad = bad.read().unwrap_err();
        assert_eq!(bad.metadata.name.as_deref(), Some("bad"));
        assert_eq!(bad.metadata.uid.as_deref(), Some("1"));
        assert_eq!(bad.metadata.managed_fields, None);
        assert_eq!(
            bad.error,
            "invalid type: string \"none\", expected a sequence"
        );
    }

    // C-15
    #[test]
    fn an_event_is_read_as_a_list_is() {
        for metadata in [json!({"name": "a"}), json!(null)] {
            let event = json!({"type": "ADDED", "object": {"metadata": metadata, "spec": 7}});
            let event: WatchEvent<Guarded<Service>> =
                serde_json::from_str(&event.to_string()).unwrap();
            let WatchEvent::Added(object) = event else {
                panic!("{event:?}");
            };
            assert!(object.read().is_err());
        }
    }
}
