//! A pod's status as a kubelet writes it, from what its containers do. Pure.

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::{Container, Pod};
use serde_json::{Value, json};

use super::view::{End, State, View, now};

/// What a status is made of.
pub(super) struct Facts<'a> {
    pub(super) pod: &'a Pod,
    pub(super) ip: Ipv4Addr,
    pub(super) host: Ipv4Addr,
    /// When the agent took the pod.
    pub(super) since: &'a str,
    pub(super) views: &'a [View],
    /// Whether no container will ever run again.
    pub(super) over: bool,
}

/// The status. `before` is the one written last, whose times are kept where
/// nothing has changed.
pub(super) fn status(facts: &Facts, before: &Value) -> Value {
    let phase = phase(facts.views, facts.over);
    let containers = facts
        .pod
        .spec
        .as_ref()
        .map(|spec| spec.containers.as_slice());
    let containers = containers.unwrap_or_default();
    let unready = containers.iter().zip(facts.views);
    let unready: Vec<&str> = unready
        .filter(|(_, view)| !view.ready)
        .map(|(container, _)| container.name.as_str())
        .collect();
    let ready = readiness(phase, &unready);
    let yes = json!({"status": "True"});
    let conditions = [
        ("PodScheduled", &yes),
        ("Initialized", &yes),
        ("ContainersReady", &ready),
        ("Ready", &ready),
    ];
    let conditions: Vec<_> = conditions
        .into_iter()
        .map(|(kind, condition)| timed(kind, condition.clone(), before))
        .collect();
    let statuses = containers.iter().zip(facts.views);
    let statuses: Vec<_> = statuses
        .map(|(container, view)| one(container, view))
        .collect();
    json!({
        "observedGeneration": facts.pod.metadata.generation,
        "phase": phase,
        "hostIP": facts.host,
        "hostIPs": [{"ip": facts.host}],
        "podIP": facts.ip,
        "podIPs": [{"ip": facts.ip}],
        "startTime": facts.since,
        "conditions": conditions,
        "containerStatuses": statuses,
    })
}

/// What Ready and ContainersReady say.
fn readiness(phase: &str, unready: &[&str]) -> Value {
    match phase {
        "Succeeded" => json!({"status": "False", "reason": "PodCompleted"}),
        "Failed" => json!({"status": "False", "reason": "PodFailed"}),
        _ if unready.is_empty() => json!({"status": "True"}),
        _ => {
            let message = format!("containers with unready status: [{}]", unready.join(" "));
            json!({"status": "False", "reason": "ContainersNotReady", "message": message})
        }
    }
}

fn phase(views: &[View], over: bool) -> &'static str {
    let failed = |view: &View| match &view.state {
        State::Ended(end) => end.code != 0,
        State::Running { .. } | State::Waiting { .. } => true,
    };
    let unborn = |view: &View| matches!(view.state, State::Waiting { .. }) && view.last.is_none();
    match () {
        () if over && views.iter().any(failed) => "Failed",
        () if over => "Succeeded",
        () if views.iter().any(unborn) => "Pending",
        () => "Running",
    }
}

/// The condition with the time since when its status stands.
fn timed(kind: &str, mut condition: Value, before: &Value) -> Value {
    let known = before["conditions"].as_array().into_iter().flatten();
    let mut known = known.filter(|known| known["type"] == kind);
    let same = known.find(|known| known["status"] == condition["status"]);
    let time = same.map_or_else(|| json!(now()), |same| same["lastTransitionTime"].clone());
    // The patch is merged, so what does not hold any more must be taken away.
    for field in ["reason", "message"] {
        if condition.get(field).is_none() {
            condition[field] = Value::Null;
        }
    }
    condition["type"] = json!(kind);
    condition["lastTransitionTime"] = time;
    condition
}

fn one(container: &Container, view: &View) -> Value {
    let last = view.last.as_ref();
    let (state, id) = match &view.state {
        State::Waiting { reason, message } => {
            let waiting = json!({"waiting": {"reason": reason, "message": message}});
            (waiting, last.map(|end| &end.id))
        }
        State::Running { since, id } => (json!({"running": {"startedAt": since}}), Some(id)),
        State::Ended(end) => (json!({"terminated": ended(end)}), Some(&end.id)),
    };
    let image = container.image.as_deref().unwrap_or_default();
    json!({
        "name": container.name,
        "image": image,
        // Nothing was pulled; that something runs is all that this says.
        "imageID": if id.is_some() { format!("stand-in://{image}") } else { String::new() },
        "containerID": id,
        "state": state,
        "lastState": last.map_or(json!({}), |end| json!({"terminated": ended(end)})),
        "ready": view.ready,
        "started": view.started,
        "restartCount": view.restarts,
    })
}

fn ended(end: &End) -> Value {
    json!({
        "exitCode": end.code,
        "reason": end.reason,
        "message": end.message,
        "startedAt": end.started,
        "finishedAt": end.finished,
        "containerID": end.id,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Pod {
        let spec = json!({"containers": [{"name": "a", "image": "kite-vm"}]});
        serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).unwrap()
    }

    fn written(view: View, over: bool, before: &Value) -> Value {
        let facts = Facts {
            pod: &pod(),
            ip: Ipv4Addr::new(127, 1, 2, 3),
            host: Ipv4Addr::new(127, 1, 2, 1),
            since: "2020-01-01T00:00:00Z",
            views: &[view],
            over,
        };
        status(&facts, before)
    }

    fn end(code: i32) -> End {
        End {
            code,
            reason: "Error",
            message: String::new(),
            started: now(),
            finished: now(),
            id: "process://1".into(),
        }
    }

    fn ready(status: &Value) -> &Value {
        &status["conditions"][3]
    }

    #[test]
    fn a_pod_is_pending_until_its_container_has_lived_once() {
        let mut view = View::creating();
        assert_eq!(
            written(view.clone(), false, &Value::Null)["phase"],
            "Pending"
        );
        view.last = Some(end(1));
        view.wait("CrashLoopBackOff", "");
        assert_eq!(
            written(view.clone(), false, &Value::Null)["phase"],
            "Running"
        );
        view.state = State::Ended(end(1));
        assert_eq!(written(view.clone(), true, &Value::Null)["phase"], "Failed");
        view.state = State::Ended(end(0));
        assert_eq!(written(view, true, &Value::Null)["phase"], "Succeeded");
    }

    #[test]
    fn the_time_of_a_condition_changes_only_with_its_status() {
        let mut view = View::creating();
        let mut before = written(view.clone(), false, &Value::Null);
        before["conditions"][3]["lastTransitionTime"] = json!("then");
        view.wait("ErrImageNeverPull", "");
        let unready = written(view.clone(), false, &before);
        assert_eq!(ready(&unready)["lastTransitionTime"], "then");
        view.ready = true;
        let is = written(view, false, &before);
        assert_eq!(ready(&is)["status"], "True");
        assert_ne!(ready(&is)["lastTransitionTime"], "then");
    }
}
