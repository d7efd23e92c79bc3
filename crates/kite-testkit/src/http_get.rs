//! One plain HTTP request to a process on loopback: health and metrics.
//!
//! HTTP/1.0, so that the answer ends with the connection and is never chunked;
//! nothing else is understood.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A health endpoint that takes longer is not healthy.
const LIMIT: Duration = Duration::from_secs(5);

/// The status and body that `address` answers for `path`.
pub async fn get(address: SocketAddr, path: &str) -> Result<(u16, String)> {
    timeout(LIMIT, exchange(address, path))
        .await
        .with_context(|| format!("{address} does not answer"))?
}

async fn exchange(address: SocketAddr, path: &str) -> Result<(u16, String)> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("not HTTP")?;
    let status = head.split(' ').nth(1).context("no status")?;
    Ok((status.parse()?, body.to_owned()))
}
