//! A way to the API server on which every answer comes later by a fixed time.
//!
//! It passes bytes on and understands none of them, so TLS stays between the two ends. What was
//! under way together arrives together: it delays, and does not narrow.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

/// The size of TLS's own records.
const CHUNK: usize = 16 * 1024;

/// A way that delays. Dropping it closes it to new connections.
pub struct Delay {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Delay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Delay {
    /// Opens a way to `behind`.
    pub async fn start(behind: SocketAddr, by: Duration) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(async move {
                    // A connection that fails is closed on the other side, too.
                    if let Ok(far) = TcpStream::connect(behind).await {
                        near.set_nodelay(true).ok();
                        far.set_nodelay(true).ok();
                        join(near, far, by).await;
                    }
                });
            }
        });
        Ok(Self { address, task })
    }

    /// Where it begins.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn join(near: TcpStream, far: TcpStream, by: Duration) {
    let (near_in, near_out) = near.into_split();
    let (far_in, far_out) = far.into_split();
    tokio::join!(
        pass(near_in, far_out, Duration::ZERO),
        pass(far_in, near_out, by)
    );
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, by: Duration) {
    let (sender, mut receiver) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let read = async move {
        let mut chunk = vec![0; CHUNK];
        while let Ok(length) = from.read(&mut chunk).await {
            let late = (Instant::now() + by, chunk[..length].to_vec());
            if length == 0 || sender.send(late).is_err() {
                break;
            }
        }
    };
    let write = async move {
        while let Some((at, bytes)) = receiver.recv().await {
            sleep_until(at).await;
            if to.write_all(&bytes).await.is_err() {
                break;
            }
        }
        to.shutdown().await.ok();
    };
    tokio::join!(read, write);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_comes_later_and_a_question_does_not() {
        let server = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let by = Duration::from_millis(200);
        let delay = Delay::start(server.local_addr().unwrap(), by)
            .await
            .unwrap();
        let mut client = TcpStream::connect(delay.address()).await.unwrap();
        client.write_all(b"ask").await.unwrap();
        let (mut answering, _) = server.accept().await.unwrap();
        let mut word = [0; 3];
        answering.read_exact(&mut word).await.unwrap();
        let heard = Instant::now();
        answering.write_all(&word).await.unwrap();
        client.read_exact(&mut word).await.unwrap();
        assert_eq!(&word, b"ask");
        assert!(heard.elapsed() >= by, "{:?}", heard.elapsed());
    }
}
