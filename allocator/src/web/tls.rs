//! TLS, from a certificate and a key in files.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::exit::BadUsage;

/// What makes a connection one of TLS, with the certificates and the key of these files.
pub(super) fn config(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, BadUsage> {
    let wrong = |why: &dyn std::fmt::Display| BadUsage::file("tls_certificate", certificate, why);
    let certificates: Vec<_> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|error| wrong(&error))?;
    if certificates.is_empty() {
        return Err(wrong(&"there is no certificate in it"));
    }
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|error| BadUsage::file("tls_key", key, error))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&error))?
        .with_no_client_auth()
        .with_single_cert(certificates, private)
        .map_err(|error| wrong(&error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
