//! The watches that a controller opens, opened once more by a client that keeps nothing: how long
//! the API server takes to send what there is, and how much that is.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::future::try_join_all;
use futures::{AsyncBufReadExt as _, AsyncReadExt as _};
use kite_testkit::audit::Request;
use kube::Client;

/// Stands in the bookmark behind the last object that was there when a watch began.
const END: &[u8] = b"k8s.io/initial-events-end";

/// What is watched as metadata only, by controller and resource.
const METADATA: [(&str, &str); 6] = [
    ("kite-vm", "kubevirt.io/virtualmachineinstances"),
    ("kite-vm", "namespaces"),
    ("kite-vm", "apiextensions.k8s.io/customresourcedefinitions"),
    ("kite-user", "namespaces"),
    (
        "kite-user",
        "apiextensions.k8s.io/customresourcedefinitions",
    ),
    ("kite-namespace", "persistentvolumeclaims"),
];

const WHOLE: &str = "application/json";
const ONLY_METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// A watch whose list takes longer has failed.
const LIMIT: Duration = Duration::from_mins(2);

/// What was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Replayed {
    /// Until the last object of the slowest watch.
    pub(super) took: Duration,
    /// Of all watches together.
    pub(super) bytes: usize,
    pub(super) watches: usize,
}

/// Whether a watch began with a list.
pub(super) fn lists(request: &Request) -> bool {
    request.is_watch() && request.uri.contains("sendInitialEvents=true")
}

/// Opens again, all at once, what a controller opened with a list.
pub(super) async fn replay(
    client: &Client,
    controller: &str,
    requests: &[Request],
) -> Result<Replayed> {
    let own = requests.iter().filter(|r| r.is_by(controller) && lists(r));
    let own: Vec<&Request> = own.filter(|r| !r.is_lease() && r.code == 200).collect();
    let began = Instant::now();
    let sent = own.iter().map(|r| {
        let metadata = METADATA.contains(&(controller, r.resource.as_str()));
        let accept = if metadata { ONLY_METADATA } else { WHOLE };
        async move {
            let sent = tokio::time::timeout(LIMIT, read(client, &r.uri, accept)).await;
            sent.with_context(|| format!("the list of {} does not end", r.uri))?
        }
    });
    let sent = try_join_all(sent).await?;
    Ok(Replayed {
        took: began.elapsed(),
        bytes: sent.iter().sum(),
        watches: own.len(),
    })
}

/// The bytes until the end of what was there.
async fn read(client: &Client, uri: &str, accept: &str) -> Result<usize> {
    let request = http::Request::get(uri).header("Accept", accept);
    let mut answer = client.request_stream(request.body(Vec::new())?).await?;
    let mut bytes = 0;
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = answer.read_until(b'\n', &mut line).await?;
        bytes += read;
        if read == 0 {
            let mut rest = String::new();
            answer.read_to_string(&mut rest).await.ok();
            bail!("{uri} ended before the end of its list {rest}");
        }
        // Objects are long, and the bookmark is not.
        if line.len() < 1024 && line.windows(END.len()).any(|part| part == END) {
            return Ok(bytes);
        }
    }
}
