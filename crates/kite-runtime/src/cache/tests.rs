//! What a cache remembers, forgets and tells apart.

use k8s_openapi::api::core::v1::ConfigMap;

use super::*;

fn object(name: &str, uid: &str, version: u64, data: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.into()),
            uid: Some(uid.into()),
            resource_version: Some(version.to_string()),
            ..ObjectMeta::default()
        },
        data: Some([("k".to_owned(), data.to_owned())].into()),
        ..ConfigMap::default()
    }
}

fn cache() -> Cache<ConfigMap> {
    Cache::new(|c| c.data.iter().flatten().map(|(_, v)| v.len() as u64).sum())
}

fn shown(cache: &Cache<ConfigMap>, object: ConfigMap) -> bool {
    cache.shown(Ok(Arc::new(object)))
}

// ST11: the view never falls behind our own last write.
#[test]
fn an_older_event_does_not_undo_what_was_written_here() {
    let cache = cache();
    assert!(shown(&cache, object("a", "1", 10, "x")));
    cache.remember(object("a", "1", 20, "xyz"));
    assert!(!shown(&cache, object("a", "1", 15, "xy")));
    assert_eq!(
        cache
            .get(&Key::cluster("a"))
            .unwrap()
            .metadata
            .resource_version
            .as_deref(),
        Some("20")
    );
    assert!(
        !shown(&cache, object("a", "1", 20, "xyz")),
        "the echo of an own write wakes nobody"
    );
}

#[test]
fn what_was_deleted_here_stays_gone_until_a_successor_comes() {
    let cache = cache();
    shown(&cache, object("a", "1", 10, "x"));
    cache.forget(&Key::cluster("a"), "1");
    assert!(!shown(&cache, object("a", "1", 12, "xx")));
    assert!(cache.get(&Key::cluster("a")).is_none());
    assert!(shown(&cache, object("a", "2", 14, "x")));
}

#[test]
fn a_list_removes_what_it_does_not_hold_but_not_what_was_written_meanwhile() {
    let cache = cache();
    shown(&cache, object("old", "1", 10, "x"));
    cache.begin_list();
    cache.remember(object("new", "2", 30, "x"));
    assert_eq!(cache.end_list().len(), 1);
    assert_eq!(cache.keys(), vec![Key::cluster("new")]);
}

// ST4
#[test]
fn a_successor_of_the_same_name_is_a_change_even_if_it_looks_the_same() {
    let cache = cache();
    shown(&cache, object("a", "1", 10, "x"));
    assert!(shown(&cache, object("a", "2", 20, "x")));
    assert!(
        cache
            .removed(Ok(Arc::new(object("a", "1", 15, "x"))))
            .is_none()
    );
    assert!(cache.get(&Key::cluster("a")).is_some());
}

fn in_namespace(namespace: &str, name: &str, data: &str) -> ConfigMap {
    let mut object = object(name, name, 10, data);
    object.metadata.namespace = Some(namespace.into());
    object
}

const BY_DATA: By<ConfigMap> = By {
    name: "data",
    of: |object| object.data.as_ref()?.get("k").cloned(),
};

fn names(objects: &[Arc<ConfigMap>]) -> Vec<String> {
    objects.iter().map(|o| o.name_any()).collect()
}

#[test]
fn objects_are_found_by_namespace_and_by_what_they_say_however_they_are_kept() {
    let caches = [
        cache(),
        cache().indexed(BY_DATA),
        cache().packed(),
        cache().packed().indexed(BY_DATA),
    ];
    for cache in caches {
        for (namespace, name, data) in [("a", "1", "x"), ("b", "2", "x"), ("b", "3", "y")] {
            shown(&cache, in_namespace(namespace, name, data));
        }
        shown(&cache, in_namespace("ba", "4", "z"));
        assert_eq!(names(&cache.within("b")), ["2", "3"]);
        assert_eq!(
            cache.keys_within("b"),
            [Key::new("b", "2"), Key::new("b", "3")]
        );
        assert_eq!(names(&cache.find(BY_DATA, "x")), ["1", "2"]);

        let mut changed = in_namespace("b", "2", "y");
        changed.metadata.resource_version = Some("11".into());
        let kept = changed.clone();
        shown(&cache, changed);
        assert_eq!(cache.get(&Key::new("b", "2")).as_deref(), Some(&kept));
        assert_eq!(names(&cache.find(BY_DATA, "x")), ["1"]);
        assert_eq!(names(&cache.find(BY_DATA, "y")), ["2", "3"]);
        cache.forget(&Key::new("b", "3"), "3");
        assert_eq!(names(&cache.find(BY_DATA, "y")), ["2"]);
        cache.begin_list();
        let gone = cache.end_list();
        assert_eq!(gone.len(), 3);
        assert!(gone.iter().all(Result::is_ok), "as they were last seen");
        assert_eq!(names(&cache.find(BY_DATA, "y")), [""; 0]);
    }
}

// C-15
#[test]
fn an_object_that_cannot_be_read_is_known_all_the_same() {
    let cache = cache().packed().indexed(BY_DATA);
    let good = object("a", "1", 10, "x");
    let metadata = good.metadata.clone();
    shown(&cache, good);
    let invalid = InvalidObject {
        error: "odd".into(),
        metadata,
    };
    assert!(cache.shown(Err(Arc::new(invalid))));
    let key = Key::cluster("a");
    assert!(cache.get(&key).is_none() && cache.malformed(&key).is_some());
    assert!(cache.contains(&key) && cache.len() == 1);
    assert_eq!(names(&cache.find(BY_DATA, "x")), [""; 0]);
    assert!(shown(&cache, object("a", "1", 11, "x")));
    assert!(cache.malformed(&key).is_none());
}
