//! The API server's store, spoken to directly: for what only the store can do, such as compaction,
//! and for what would take hours through the API server, such as ten thousand settled machines.
//!
//! It speaks the JSON gateway of etcd 3 in plain HTTP/1.0 on loopback, a connection for each
//! request, so that no answer is chunked. It does not know what the bytes mean that it stores, and
//! nothing looks over its shoulder: while it writes, no API server should be serving.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::ByteString;
use kite_testkit::ControlPlane;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// etcd refuses transactions of more operations unless told otherwise.
const OPERATIONS: usize = 128;

/// etcd refuses requests of more than 1.5 MiB unless told otherwise; keys and framing come on top.
const BYTES: usize = 1 << 20;

/// Enough that one request is encoded while another is stored; the store itself writes one by one.
const IN_FLIGHT: usize = 4;

/// How many objects one answer holds, so that no answer is too large for memory.
const PAGE: usize = 2000;

/// A key and what is stored under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Such as `/registry/pods/default/web`.
    pub key: String,
    /// The object as the API server wrote it.
    pub value: Vec<u8>,
}

impl Entry {
    fn size(&self) -> usize {
        self.key.len() + self.value.len()
    }
}

/// The store of one control plane.
#[derive(Clone, Debug)]
pub struct Store {
    address: SocketAddr,
}

impl Store {
    /// The store behind a control plane.
    pub fn of(control_plane: &ControlPlane) -> Result<Self> {
        let url = control_plane.etcd_url();
        let address = url.strip_prefix("http://").context("etcd speaks TLS")?;
        Ok(Self {
            address: address.parse()?,
        })
    }

    /// Everything whose key begins with `prefix`, by key.
    pub async fn under(&self, prefix: &str) -> Result<Vec<Entry>> {
        let end = after(prefix.as_bytes());
        let mut from = prefix.as_bytes().to_vec();
        let mut entries = Vec::new();
        loop {
            let ask =
                json!({"key": text(&from), "range_end": text(&end), "limit": PAGE.to_string()});
            let page: Page = self.ask("kv/range", &ask).await?;
            for kv in page.kvs {
                let key = String::from_utf8(kv.key.0).context("a key that is no text")?;
                from = [key.as_bytes(), &[0]].concat();
                entries.push(Entry {
                    key,
                    value: kv.value.0,
                });
            }
            if !page.more {
                return Ok(entries);
            }
        }
    }

    /// Stores all of them, in large transactions and in no particular order. Returns how many
    /// there were.
    pub async fn put_all(&self, entries: impl Iterator<Item = Entry>) -> Result<usize> {
        let written = stream::iter(Batches(entries.peekable()))
            .map(async |batch| {
                let count = batch.len();
                self.transaction(batch).await?;
                anyhow::Ok(count)
            })
            .buffer_unordered(IN_FLIGHT);
        written
            .try_fold(0, async |sum, count| Ok(sum + count))
            .await
    }

    async fn transaction(&self, batch: Vec<Entry>) -> Result<()> {
        let puts = batch.into_iter().map(|entry| Operation {
            request_put: Put {
                key: ByteString(entry.key.into_bytes()),
                value: ByteString(entry.value),
            },
        });
        let ask = Transaction {
            success: puts.collect(),
        };
        let done: Done = self.ask("kv/txn", &ask).await?;
        if !done.succeeded {
            bail!("etcd did not store a transaction without conditions");
        }
        Ok(())
    }

    /// Removes one key.
    pub async fn remove(&self, key: &str) -> Result<()> {
        let ask = json!({"key": text(key.as_bytes())});
        let _: Value = self.ask("kv/deleterange", &ask).await?;
        Ok(())
    }

    /// Removes every key that begins with `prefix`. The API server sees it as deletions; no
    /// finalizer is asked.
    pub async fn remove_under(&self, prefix: &str) -> Result<()> {
        let end = after(prefix.as_bytes());
        let ask = json!({"key": text(prefix.as_bytes()), "range_end": text(&end)});
        let _: Value = self.ask("kv/deleterange", &ask).await?;
        Ok(())
    }

    /// The number of the last change.
    pub async fn revision(&self) -> Result<i64> {
        let ask = json!({"key": text(b"/"), "count_only": true});
        let page: Page = self.ask("kv/range", &ask).await?;
        Ok(page.header.revision.parse()?)
    }

    /// Forgets everything but what is there now, and returns the number of the last change. A
    /// watch that asks for something older is told that it is too old.
    pub async fn compact(&self) -> Result<i64> {
        let revision = self.revision().await?;
        let ask = json!({"revision": revision.to_string(), "physical": true});
        let _: Value = self.ask("kv/compaction", &ask).await?;
        Ok(revision)
    }

    /// Gives back the space of what was forgotten.
    pub async fn defragment(&self) -> Result<()> {
        let _: Value = self.ask("maintenance/defragment", &json!({})).await?;
        Ok(())
    }

    /// The bytes of its file that are in use.
    pub async fn bytes_in_use(&self) -> Result<u64> {
        let status: Status = self.ask("maintenance/status", &json!({})).await?;
        Ok(status.in_use.parse()?)
    }

    async fn ask<T: DeserializeOwned>(&self, path: &str, ask: &impl Serialize) -> Result<T> {
        let body = serde_json::to_vec(ask)?;
        let (status, answer) = self.exchange(path, &body).await?;
        if status != 200 {
            let words = String::from_utf8_lossy(&answer);
            bail!("etcd answers {status} to {path}: {words}");
        }
        serde_json::from_slice(&answer).with_context(|| format!("etcd's answer to {path}"))
    }

    async fn exchange(&self, path: &str, body: &[u8]) -> Result<(u16, Vec<u8>)> {
        let mut stream = TcpStream::connect(self.address).await?;
        let head = format!(
            "POST /v3/{path} HTTP/1.0\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        let blank = b"\r\n\r\n";
        let end = answer.windows(blank.len()).position(|four| four == blank);
        let end = end.context("etcd did not answer in HTTP")?;
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        let status = head.split(' ').nth(1).context("no status")?.parse()?;
        Ok((status, answer.split_off(end + blank.len())))
    }
}

/// Entries in lots that fit a transaction.
struct Batches<I: Iterator<Item = Entry>>(std::iter::Peekable<I>);

impl<I: Iterator<Item = Entry>> Iterator for Batches<I> {
    type Item = Vec<Entry>;

    fn next(&mut self) -> Option<Vec<Entry>> {
        let mut batch = vec![self.0.next()?];
        let mut bytes = batch[0].size();
        while batch.len() < OPERATIONS {
            let Some(next) = self.0.next_if(|next| bytes + next.size() <= BYTES) else {
                break;
            };
            bytes += next.size();
            batch.push(next);
        }
        Some(batch)
    }
}

/// The first key after all that begin with `prefix`.
fn after(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    // To the end of all keys.
    vec![0]
}

fn text(bytes: &[u8]) -> ByteString {
    ByteString(bytes.to_vec())
}

#[derive(Serialize)]
struct Transaction {
    success: Vec<Operation>,
}

#[derive(Serialize)]
struct Operation {
    request_put: Put,
}

#[derive(Serialize)]
struct Put {
    key: ByteString,
    value: ByteString,
}

#[derive(Deserialize)]
struct Page {
    header: Header,
    // What is empty or zero is left out of an answer.
    #[serde(default)]
    kvs: Vec<Kv>,
    #[serde(default)]
    more: bool,
}

#[derive(Deserialize)]
struct Header {
    revision: String,
}

#[derive(Deserialize)]
struct Kv {
    key: ByteString,
    #[serde(default)]
    value: ByteString,
}

#[derive(Deserialize)]
struct Done {
    #[serde(default)]
    succeeded: bool,
}

#[derive(Deserialize)]
struct Status {
    #[serde(rename = "dbSizeInUse")]
    in_use: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(value: usize) -> Entry {
        Entry {
            key: "k".to_owned(),
            value: vec![0; value],
        }
    }

    #[test]
    fn lots_hold_no_more_than_a_transaction_may() {
        let sizes = |entries: Vec<Entry>| {
            let lots = Batches(entries.into_iter().peekable());
            lots.map(|lot| lot.len()).collect::<Vec<_>>()
        };
        assert_eq!(sizes(vec![entry(1); 300]), [128, 128, 44]);
        assert_eq!(sizes(vec![entry(BYTES / 3); 4]), [2, 2]);
        assert_eq!(sizes(vec![entry(2 * BYTES), entry(1)]), [1, 1]);
        assert!(sizes(Vec::new()).is_empty());
    }

    #[test]
    fn a_range_ends_where_the_prefix_does() {
        assert_eq!(after(b"/registry/"), b"/registry0");
        assert_eq!(after(b"a\xff"), b"b");
        assert_eq!(after(b"\xff"), [0]);
    }
}
