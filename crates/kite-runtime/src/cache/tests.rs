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
