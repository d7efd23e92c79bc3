//! TLS for the port of the metrics, with files that are replaced while it serves.
//!
//! The files are read again at each handshake, which is once a scrape, so that
//! nothing has to be watched and nothing runs in between. A pair that cannot be
//! used, because half of it is written for instance, leaves the last good one in
//! force. Clients are not asked for certificates: who they are is said by tokens.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use axum::serve::Listener;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A client that takes longer than this to say who it is has gone away.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// So many may say hello at the same time; scrapers are few.
const HANDSHAKES: usize = 32;

/// The certificate and its key, as files and as they were last good.
#[derive(Debug)]
pub(crate) struct Certificate {
    chain_file: PathBuf,
    key_file: PathBuf,
    /// Locked for one look at the files.
    last: Mutex<Last>,
}

#[derive(Debug)]
struct Last {
    /// What the files held when they were last looked at, good or not.
    bytes: [Vec<u8>; 2],
    config: Arc<ServerConfig>,
}

impl Certificate {
    /// Reads them for the first time. An error names the file and what is wrong with it.
    pub(crate) fn read(chain_file: &Path, key_file: &Path) -> anyhow::Result<Self> {
        let bytes = [bytes(chain_file)?, bytes(key_file)?];
        let config = config(&bytes).with_context(|| {
            format!(
                "cannot serve metrics with the certificate {} and the key {}; check --tls-cert-file and --tls-key-file",
                chain_file.display(),
                key_file.display()
            )
        })?;
        Ok(Self {
            chain_file: chain_file.to_owned(),
            key_file: key_file.to_owned(),
            last: Mutex::new(Last { bytes, config }),
        })
    }

    /// What the files hold now, or held when they were last good.
    fn now(&self) -> Arc<ServerConfig> {
        let read = bytes(&self.chain_file).and_then(|c| Ok([c, bytes(&self.key_file)?]));
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let new = read.and_then(|bytes| {
            if bytes == last.bytes {
                return Ok(None);
            }
            let new = config(&bytes);
            // The same bad pair is not looked at, nor told about, twice.
            last.bytes = bytes;
            new.map(Some)
        });
        match new {
            Ok(None) => {}
            Ok(Some(new)) => {
                last.config = new;
                tracing::info!(file = %self.chain_file.display(), "metrics are served with a new certificate");
            }
            Err(error) => tracing::warn!(
                error = format!("{error:#}"),
                "the new certificate for metrics cannot be used; the one before stays in force"
            ),
        }
        Arc::clone(&last.config)
    }
}

fn bytes(file: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(file).with_context(|| {
        format!(
            "cannot read {}; check --tls-cert-file and --tls-key-file",
            file.display()
        )
    })
}

fn config([chain, key]: &[Vec<u8>; 2]) -> anyhow::Result<Arc<ServerConfig>> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        .context("the certificate is not PEM")?;
    let key = PrivateKeyDer::from_pem_slice(key).context("the key is not PEM")?;
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .context("the certificate and the key do not belong together")?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Takes connections and lets each say hello by itself, so that a slow one delays no other.
pub(crate) struct TlsListener {
    address: SocketAddr,
    ready: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
}

impl TlsListener {
    /// Serves on a port that was taken before.
    pub(crate) fn new(mut tcp: TcpListener, certificate: Certificate) -> std::io::Result<Self> {
        let address = tcp.local_addr()?;
        let (send, ready) = mpsc::channel(1);
        tokio::spawn(async move {
            let room = Arc::new(Semaphore::new(HANDSHAKES));
            while let Ok(place) = Arc::clone(&room).acquire_owned().await {
                let (stream, peer) = Listener::accept(&mut tcp).await;
                let acceptor = TlsAcceptor::from(certificate.now());
                let send = send.clone();
                tokio::spawn(async move {
                    let hello = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream));
                    match hello.await {
                        // The receiver is gone only while the process shuts down.
                        Ok(Ok(stream)) => drop(send.send((stream, peer)).await),
                        Ok(Err(error)) => {
                            tracing::debug!(%peer, %error, "a client of the metrics spoke no TLS");
                        }
                        Err(_) => tracing::debug!(%peer, "a client of the metrics said nothing"),
                    }
                    drop(place);
                });
            }
        });
        Ok(Self { address, ready })
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        match self.ready.recv().await {
            Some(connection) => connection,
            // The task that sends never ends by itself.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        Ok(self.address)
    }
}
