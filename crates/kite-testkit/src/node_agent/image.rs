//! Which of Kite's binaries an image stands for. Nothing is pulled: an image is
//! the name of a program that was built here.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Container;

use crate::cluster::CONTROLLERS;
use crate::kite_process::binary;

/// All of Kite's binaries are called so.
const PREFIX: &str = "kite-";

/// The program of a container, or a sentence that says why there is none.
pub(super) fn program(container: &Container) -> Result<PathBuf, String> {
    let image = container.image.as_deref().unwrap_or_default();
    let name = name(image);
    if !name.starts_with(PREFIX) {
        return Err(format!(
            "the stand-in for a kubelet pulls no image and does not know {image:?}; it runs {}",
            CONTROLLERS.join(", ")
        ));
    }
    binary(name).map_err(|error| error.to_string())
}

/// What follows the program's name, or a sentence when the command is not the program.
pub(super) fn arguments(container: &Container) -> Result<Vec<String>, String> {
    let mut words = container.command.clone().unwrap_or_default();
    if !words.is_empty() {
        let first = words.remove(0);
        let asked = Path::new(&first).file_name().unwrap_or_default();
        let image = container.image.as_deref().unwrap_or_default();
        if asked != name(image) {
            return Err(format!("the image {image:?} has no command {first:?}"));
        }
    }
    words.extend(container.args.clone().unwrap_or_default());
    Ok(words)
}

/// The last element of an image's path, without tag and digest.
fn name(image: &str) -> &str {
    let path = image.split('@').next().unwrap_or_default();
    let last = path.rsplit('/').next().unwrap_or_default();
    last.split(':').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_known_by_the_last_element_of_its_path() {
        for image in [
            "kite-vm",
            "kite/kite-vm:1",
            "127.0.0.1:5000/kite/kite-vm:0.1.0@sha256:00",
        ] {
            assert_eq!(name(image), "kite-vm", "{image}");
        }
    }

    #[test]
    fn a_command_is_the_program_of_the_image_or_refused() {
        let mut container = Container {
            image: Some("kite/kite-vm:1".into()),
            command: Some(vec!["/usr/bin/kite-vm".into(), "--a".into()]),
            args: Some(vec!["--b".into()]),
            ..Container::default()
        };
        assert_eq!(arguments(&container), Ok(vec!["--a".into(), "--b".into()]));
        container.command = Some(vec!["sh".into()]);
        assert!(arguments(&container).unwrap_err().contains("\"sh\""));
    }
}
