//! Each controller can be left out, paused, or be there alone.

use kite_testkit::helm::Helm;

use crate::{PARTS, called, everything, object, render, words};

#[tokio::test]
async fn a_controller_that_is_left_out_leaves_no_object_behind() {
    let all = render(Helm::Four, "kite", &everything()).await.unwrap();
    for (part, name) in PARTS {
        let mut without = everything();
        without.push(format!("--set={part}.enabled=false"));
        let rest = render(Helm::Four, "kite", &without).await.unwrap();

        // Its objects are gone, which are more than a handful, and nothing else is.
        let gone: Vec<String> = all
            .iter()
            .filter(|object| !rest.contains(object))
            .map(called)
            .collect();
        assert!(gone.len() >= 10, "{name}: {gone:?}");
        for object in &gone {
            let called = [format!(" {name}"), format!(" {name}-lease")];
            let named = called.iter().any(|own| object.ends_with(own));
            let own = named || object == "Namespace kite-images";
            assert!(own, "without {name} there is no {object}");
        }
        let of_it = rest
            .iter()
            .map(called)
            .find(|o| o.ends_with(&format!(" {name}")));
        assert_eq!(of_it, None);
        assert_eq!(rest.len() + gone.len(), all.len());
    }
}

#[tokio::test]
async fn everything_of_a_paused_controller_stays_but_its_pods() {
    let paused = words(&["--set=replicas=0", "--set=metrics.podMonitor.enabled=true"]);
    let objects = render(Helm::Four, "kite-service", &paused).await.unwrap();
    let deployment = object(&objects, "Deployment", "kite-service");
    assert_eq!(deployment["spec"]["replicas"], 0);
    for kind in ["ServiceAccount", "ClusterRole", "Role", "PodMonitor"] {
        object(&objects, kind, "kite-service");
    }
    assert!(objects.iter().all(|o| o["kind"] != "PodDisruptionBudget"));
}

#[tokio::test]
async fn the_chart_of_one_controller_renders_what_its_part_of_the_whole_renders() {
    let whole = render(Helm::Four, "kite", &[]).await.unwrap();
    for (_, name) in PARTS {
        for object in render(Helm::Four, name, &[]).await.unwrap() {
            assert!(whole.contains(&object), "{name}: {}", called(&object));
        }
    }
}
