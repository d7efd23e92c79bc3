//! Certificates and keys of one control plane, made anew at each start.
//!
//! They hold for a day at least and are worth nothing elsewhere: the server
//! listens on loopback only.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// Names and addresses under which the API server is called.
const SERVER_NAMES: [&str; 6] = [
    "127.0.0.1",
    "10.0.0.1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
];

/// The user whom the server's own roles give the rights of the controller-manager.
pub(crate) const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";
/// The same for the scheduler.
pub(crate) const SCHEDULER: &str = "system:kube-scheduler";
/// The user as whom the node agent is seen in the audit log.
pub(crate) const NODE_AGENT: &str = "kite-node-agent";

/// Everything that a control plane proves itself with.
#[derive(Clone, Debug)]
pub struct Pki {
    /// The authority's certificate, PEM.
    pub ca: String,
    /// File of the authority's certificate.
    pub ca_file: PathBuf,
    /// File of the API server's certificate.
    pub server_cert_file: PathBuf,
    /// File of the API server's key.
    pub server_key_file: PathBuf,
    /// File of the key that signs ServiceAccount tokens.
    pub service_account_key_file: PathBuf,
    /// File of the public key that checks them.
    pub service_account_public_file: PathBuf,
    /// A client certificate of the group `system:masters` and its key, PEM.
    pub admin: (String, String),
    /// The same for the controller-manager, which RBAC knows by its name.
    pub controller_manager: (String, String),
    /// The same for the scheduler, whom RBAC knows too.
    pub scheduler: (String, String),
    /// The same for the node agent, of the group `system:masters`.
    pub node_agent: (String, String),
}

/// A certificate authority that signs for one control plane.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate, PEM.
    pub certificate: String,
}

impl Authority {
    /// A new authority.
    pub fn new(name: &str) -> Result<Self> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self {
            issuer: Issuer::new(params, key),
            certificate,
        })
    }

    /// A serving certificate and its key, PEM, for names and addresses.
    pub fn server(&self, names: &[&str]) -> Result<(String, String)> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let name = names.first().cloned().unwrap_or_default();
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params)
    }

    /// A client certificate and its key, PEM, for a user in a group.
    pub fn client(&self, user: &str, group: &str) -> Result<(String, String)> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, user);
        params
            .distinguished_name
            .push(DnType::OrganizationName, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params)
    }

    fn sign(&self, mut params: CertificateParams) -> Result<(String, String)> {
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyEncipherment,
        ];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok((certificate.pem(), key.serialize_pem()))
    }
}

impl Pki {
    /// Makes all of it and writes into `folder` what the programs read.
    pub fn create(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let authority = Authority::new("kite-testkit")?;
        let (server_cert, server_key) = authority.server(&SERVER_NAMES)?;
        let tokens = KeyPair::generate()?;
        let write = |name: &str, text: &str| write_private(&folder.join(name), text);
        Ok(Self {
            ca_file: write("ca.crt", &authority.certificate)?,
            server_cert_file: write("server.crt", &server_cert)?,
            server_key_file: write("server.key", &server_key)?,
            service_account_key_file: write("service-account.key", &tokens.serialize_pem())?,
            service_account_public_file: write("service-account.pub", &tokens.public_key_pem())?,
            admin: authority.client("kite-admin", "system:masters")?,
            controller_manager: authority.client(CONTROLLER_MANAGER, "kite-testkit")?,
            scheduler: authority.client(SCHEDULER, "kite-testkit")?,
            node_agent: authority.client(NODE_AGENT, "system:masters")?,
            ca: authority.certificate,
        })
    }
}

/// Writes a file that only its owner may read.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<PathBuf> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(path.to_owned())
}
