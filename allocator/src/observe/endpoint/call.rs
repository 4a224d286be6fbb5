//! One request to an endpoint, and its answer as it comes.

use std::io;
use std::path::Path;
use std::pin::Pin;

use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::{EndpointError, LONGEST, PATIENCE, Way, unix};
use crate::observe::namespace;

/// An answer whose body may still be coming.
pub(super) struct Call {
    way: String,
    content_type: Option<HeaderValue>,
    body: Incoming,
    /// Drives the request; `None` once it has ended, which may be with the last byte.
    connection: Option<Driven>,
}

type Driven = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;

/// A connection of whatever kind.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Call {
    /// Asks for a page. The head of the answer must be here in time, and be that of a success.
    pub(super) async fn get(
        proc: &Path,
        way: &Way,
        page: &'static str,
    ) -> Result<Self, EndpointError> {
        Self::begin_in_time(proc, way, (Method::GET, page)).await
    }

    /// Asks for something to be done, which says nothing more. The same goes for the answer.
    pub(super) async fn post(
        proc: &Path,
        way: &Way,
        page: &'static str,
    ) -> Result<Self, EndpointError> {
        Self::begin_in_time(proc, way, (Method::POST, page)).await
    }

    async fn begin_in_time(
        proc: &Path,
        way: &Way,
        request: (Method, &'static str),
    ) -> Result<Self, EndpointError> {
        let late = |late: tokio::time::error::Elapsed| unreachable(way, late.into());
        tokio::time::timeout(PATIENCE, Self::begin(proc, way, request)).await.map_err(late)?
    }

    async fn begin(
        proc: &Path,
        way: &Way,
        (method, page): (Method, &'static str),
    ) -> Result<Self, EndpointError> {
        let stream = connect(proc, way).await.map_err(|error| unreachable(way, error))?;
        let http = |error| EndpointError::Http(way.to_string(), error);
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(LONGEST)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(http)?;
        let mut connection: Driven = Box::pin(connection);
        let asked = format!("{method} {page}");
        let request = Request::builder()
            .method(method)
            .uri(page)
            .header("host", "localhost")
            .header("connection", "close")
            .body(Empty::<Bytes>::new())
            .expect("the request is made of constants");
        let mut answer = Box::pin(sender.send_request(request));
        let (response, connection) = tokio::select! {
            biased;
            response = &mut answer => (response.map_err(http)?, Some(connection)),
            ended = &mut connection => {
                ended.map_err(http)?;
                (answer.await.map_err(http)?, None)
            }
        };
        if !response.status().is_success() {
            return Err(EndpointError::Status(way.to_string(), asked, response.status()));
        }
        let content_type = response.headers().get(CONTENT_TYPE).cloned();
        Ok(Self { way: way.to_string(), content_type, body: response.into_body(), connection })
    }

    /// Who answers.
    pub(super) fn way(&self) -> &str {
        &self.way
    }

    /// Whether the answer says to be of this type.
    pub(super) fn is(&self, content_type: &str) -> bool {
        let given = self.content_type.as_ref().and_then(|given| given.to_str().ok());
        given.is_some_and(|given| given.split(';').next() == Some(content_type))
    }

    /// The next piece of the body; `None` at its end. Nothing is lost when this is given up.
    pub(super) async fn piece(&mut self) -> Result<Option<Bytes>, EndpointError> {
        loop {
            let frame = match &mut self.connection {
                Some(connection) => tokio::select! {
                    biased;
                    frame = self.body.frame() => frame,
                    ended = connection => {
                        self.connection = None;
                        ended.map_err(|error| EndpointError::Http(self.way.clone(), error))?;
                        continue;
                    }
                },
                None => self.body.frame().await,
            };
            match frame {
                None => return Ok(None),
                Some(Err(error)) => {
                    return Err(EndpointError::Body(self.way.clone(), error.into()));
                }
                Some(Ok(frame)) => {
                    if let Ok(piece) = frame.into_data() {
                        return Ok(Some(piece));
                    }
                }
            }
        }
    }

    /// The whole body, if it is short enough.
    pub(super) async fn whole(mut self) -> Result<Vec<u8>, EndpointError> {
        let mut all = Vec::new();
        while let Some(piece) = self.piece().await? {
            if all.len() + piece.len() > LONGEST {
                return Err(too_much(&self.way));
            }
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }
}

/// More came than is read.
pub(super) fn too_much(way: &str) -> EndpointError {
    let most = format!("more than {LONGEST} bytes");
    EndpointError::Body(way.to_owned(), most.into())
}

async fn connect(proc: &Path, way: &Way) -> io::Result<Box<dyn Stream>> {
    Ok(match way {
        Way::Namespace { pid, port } => {
            let stream = namespace::connect(proc, *pid, *port, PATIENCE).await?;
            Box::new(TcpStream::from_std(stream)?)
        }
        Way::Address(address) => Box::new(TcpStream::connect(address).await?),
        Way::Unix { root, path } => Box::new(unix::connect(root, path).await?),
    })
}

pub(super) fn unreachable(way: &Way, source: io::Error) -> EndpointError {
    EndpointError::Unreachable { way: way.to_string(), source }
}
