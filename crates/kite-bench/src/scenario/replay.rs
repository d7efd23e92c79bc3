//! The lists of a controller, and its watches as far as they begin with one, asked for once more by a
//! client that keeps nothing: how long the API server takes to send what there is, and how much
//! that is.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::AsyncBufReadExt as _;
use futures::future::try_join_all;
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

/// What is asked for in the header of a request for metadata only.
const ITEM: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// A watch whose list takes longer has failed.
const LIMIT: Duration = Duration::from_mins(2);

/// What was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Replayed {
    /// Until the last object of the slowest kind.
    pub(super) took: Duration,
    /// Of all kinds together.
    pub(super) bytes: usize,
}

/// Sends again what a controller sent to list: what is of one kind page by page, all kinds at once.
pub(super) async fn replay(
    client: &Client,
    controller: &str,
    requests: &[Request],
) -> Result<Replayed> {
    let mut kinds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let sent = requests.iter().filter(|r| r.is_by(controller));
    let listing = sent.filter(|r| r.code == 200 && !r.is_lease() && r.lists());
    for request in listing {
        let of_kind = kinds.entry(&request.resource).or_default();
        of_kind.push(&request.uri);
    }
    let began = Instant::now();
    let sent = kinds.iter().map(async |(resource, uris)| {
        let metadata = METADATA.contains(&(controller, resource));
        let mut bytes = 0;
        for uri in uris {
            let sent = tokio::time::timeout(LIMIT, read(client, uri, metadata)).await;
            bytes += sent.with_context(|| format!("the list of {uri} does not end"))??;
        }
        anyhow::Ok(bytes)
    });
    let sent = try_join_all(sent).await?;
    Ok(Replayed {
        took: began.elapsed(),
        bytes: sent.iter().sum(),
    })
}

/// The bytes of a list, or of a watch until the end of what was there.
async fn read(client: &Client, uri: &str, metadata: bool) -> Result<usize> {
    let watches = uri.contains("watch=true");
    let accept = match (metadata, watches) {
        (false, _) => "application/json",
        (true, false) => LIST,
        (true, true) => ITEM,
    };
    let request = http::Request::get(uri).header("Accept", accept);
    let mut answer = client.request_stream(request.body(Vec::new())?).await?;
    let mut bytes = 0;
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = answer.read_until(b'\n', &mut line).await?;
        bytes += read;
        if read == 0 {
            ensure!(!watches, "{uri} ended before the end of its list");
            return Ok(bytes);
        }
        // Objects are long, and the bookmark is not.
        if watches && line.len() < 1024 && line.windows(END.len()).any(|part| part == END) {
            return Ok(bytes);
        }
    }
}
