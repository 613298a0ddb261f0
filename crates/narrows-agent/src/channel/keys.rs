//! Keys of the channel. Each end has a key, a certificate, and a list of certificates that it trusts.
//!
//! Each end compares the other end's whole certificate with its list, as SSH does with public keys. There is no
//! certificate authority, and the agent ignores the certificates' dates. Certificates therefore need no renewal, and a
//! switch needs no correct clock.

use std::fmt::Display;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, PeerIncompatible, SignatureScheme,
};

/// The permission bits of a file for its group and for other users.
const OTHERS: u32 = 0o077;
/// New certificates are valid between the starts of these years. The agent ignores these dates. The controller uses
/// Python's ssl module, which checks them.
const YEARS: (i32, i32) = (2020, 2120);

/// The files of the agent's end of the channel (PEM).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFiles {
    /// The private key, which only its owner can read.
    pub key: PathBuf,
    /// The certificate of this key.
    pub certificate: PathBuf,
    /// Certificates of the controllers.
    pub trusted: PathBuf,
}

impl KeyFiles {
    /// Reads the files, and returns the agent's configuration of TLS.
    ///
    /// # Errors
    /// One line: the file, what was found, what was expected.
    pub fn read(&self) -> Result<Arc<ClientConfig>, String> {
        check_private(&self.key)?;
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|_| at(&self.key, "found no private key, expected one in PEM format"))?;
        let (own, trusted) = (certificates(&self.certificate)?, certificates(&self.trusted)?);
        let provider = Arc::new(ring::default_provider());
        let verifier = Pinned { trusted, algorithms: provider.signature_verification_algorithms };
        let mut config =
            client(provider, verifier).and_then(|builder| builder.with_client_auth_cert(own, key)).map_err(
                |error| at(&self.key, format_args!("does not fit {}: {error}", self.certificate.display())),
            )?;
        // Without resumption, every handshake checks the certificates.
        config.resumption = Resumption::disabled();
        Ok(Arc::new(config))
    }
}

type WithVerifier = rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>;

fn client(provider: Arc<CryptoProvider>, verifier: Pinned) -> Result<WithVerifier, Error> {
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13])?;
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)))
}

fn at(path: &Path, text: impl Display) -> String {
    format!("{}: {text}", path.display())
}

fn check_private(path: &Path) -> Result<(), String> {
    let mode = fs::metadata(path).map_err(|error| at(path, error))?.permissions().mode() & 0o7777;
    if mode & OTHERS == 0 {
        return Ok(());
    }
    let shown = path.display();
    Err(at(path, format_args!("found mode {mode:04o}, expected 0600: run 'chmod 600 {shown}'")))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = fs::read(path).map_err(|error| at(path, error))?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match read {
        Ok(read) if !read.is_empty() => Ok(read),
        _ => Err(at(path, "found no certificate, expected at least one in PEM format")),
    }
}

/// Accepts only the certificates of this list.
#[derive(Debug)]
struct Pinned {
    trusted: Vec<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.trusted.iter().any(|trusted| trusted == end_entity) {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::UnknownIssuer.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Makes a key and a certificate for this name (ECDSA with P-256), and writes them to `NAME.key` and `NAME.crt` in
/// `folder`. Returns the paths of both files.
///
/// # Errors
/// If one of the files already exists or cannot be written. An existing key is never replaced.
pub fn create(name: &str, folder: &Path) -> io::Result<(PathBuf, PathBuf)> {
    let (key, certificate) = make(name).map_err(io::Error::other)?;
    let paths = ["key", "crt"].map(|end| folder.join(format!("{name}.{end}")));
    let [key_path, certificate_path] = &paths;
    write_new(key_path, 0o600, &key)?;
    if let Err(error) = write_new(certificate_path, 0o644, &certificate) {
        // A key without its certificate is useless, so remove it.
        let _ = fs::remove_file(key_path);
        return Err(error);
    }
    Ok(paths.into())
}

/// Generates a key and its certificate (PEM).
fn make(name: &str) -> Result<(String, String), rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new([])?;
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = rcgen::date_time_ymd(YEARS.0, 1, 1);
    params.not_after = rcgen::date_time_ymd(YEARS.1, 1, 1);
    let certificate = params.self_signed(&key)?;
    Ok((key.serialize_pem(), certificate.pem()))
}

fn write_new(path: &Path, mode: u32, text: &str) -> io::Result<()> {
    let named = |error: io::Error| io::Error::new(error.kind(), at(path, error));
    let mut file =
        fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path).map_err(named)?;
    file.write_all(text.as_bytes()).map_err(named)
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
