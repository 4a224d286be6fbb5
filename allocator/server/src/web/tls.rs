//! The TLS configuration, from certificate and key files.

use std::path::Path;
use std::sync::Arc;

use paceline_api::bounded;
use paceline_api::token::refuse_readable;
use paceline_api::usage::BadUsage;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The TLS configuration with the certificates and the key of these files.
pub(super) fn config(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, BadUsage> {
    let wrong = |why: &dyn std::fmt::Display| BadUsage::file("tls_certificate", certificate, why);
    let text = bounded::CERTIFICATE.read(certificate).map_err(|error| wrong(&error))?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(text.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(&error))?;
    if certificates.is_empty() {
        return Err(wrong(&"it contains no certificate"));
    }
    // A group may read it, as that of a web server's certificates.
    refuse_readable("tls_key", key, 0o007)?;
    let text =
        bounded::CERTIFICATE.read(key).map_err(|error| BadUsage::file("tls_key", key, error))?;
    let private = PrivateKeyDer::from_pem_slice(text.as_bytes())
        .map_err(|error| BadUsage::file("tls_key", key, error))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&error))?
        .with_no_client_auth()
        .with_single_cert(certificates, private)
        .map_err(|error| wrong(&error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
