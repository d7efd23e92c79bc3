//! The six thin charts: what differs between them is a name, flags and rights.

use std::fmt::Write;

use anyhow::Result;

use super::super::{File, MARK};
use super::table::{Controller, SHARED};
use super::{VERSION, flags};

/// The objects of every controller, each a template of kite-common and a file of the chart.
const OBJECTS: [&str; 11] = [
    "deployment",
    "serviceaccount",
    "rbac",
    "service",
    "servicemonitor",
    "podmonitor",
    "prometheusrule",
    "poddisruptionbudget",
    "networkpolicy",
    "flowschema",
    "extraobjects",
];

/// The object of those that clone images.
const IMAGE_NAMESPACE: &str = "imagenamespace";

/// The files of one chart, without its rights, schema and page.
pub(super) fn files(controller: &Controller) -> Result<Vec<File>> {
    let name = controller.name;
    let file = |part: String, text: String| File {
        path: format!("charts/{name}/{part}"),
        text,
    };
    let mut files = vec![
        file("Chart.yaml".to_owned(), about(controller)),
        file("values.yaml".to_owned(), values(controller)?),
        file(
            "templates/_arguments.tpl".to_owned(),
            format!(
                "{{{{- /* {MARK} from the flags of crates/{name}. */}}}}\n{}",
                flags::arguments(controller)
            ),
        ),
        file("templates/NOTES.txt".to_owned(), include(name, "notes")),
    ];
    let images = controller.images.then_some(IMAGE_NAMESPACE);
    for object in OBJECTS.into_iter().chain(images) {
        files.push(file(
            format!("templates/{object}.yaml"),
            include(name, object),
        ));
    }
    Ok(files)
}

fn include(name: &str, object: &str) -> String {
    format!(
        "{{{{- /* {MARK}. */}}}}\n{{{{- include \"kite-common.{object}\" (dict \"root\" . \"controller\" \"{name}\") }}}}\n"
    )
}

fn about(controller: &Controller) -> String {
    let mut text = format!("# {MARK}.\n");
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "apiVersion: v2
name: {name}
description: {about:?}
type: application
version: {VERSION}
appVersion: {VERSION}
kubeVersion: \">=1.33.0-0\"
dependencies:
  - name: kite-common
    version: {VERSION}
    repository: file://../kite-common
",
        name = controller.name,
        about = controller.about.trim_end_matches('.')
    );
    text
}

fn values(controller: &Controller) -> Result<String> {
    let own = flags::values(controller, controller.own)?;
    let shared = flags::values(controller, SHARED)?;
    let images = if controller.images {
        include_str!("images.values.yaml")
    } else {
        ""
    };
    let text = include_str!("values.yaml")
        .replace("OWN FLAGS\n", &own)
        .replace("SHARED FLAGS\n", &shared)
        .replace("IMAGES\n", images)
        .replace("NAME", controller.name);
    Ok(format!("# {MARK}.\n\n{text}"))
}
