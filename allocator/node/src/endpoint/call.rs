//! One request to an endpoint, and its answer as it comes.

use std::io;
use std::pin::Pin;

use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::{ANSWER_TIMEOUT, EndpointError, MAX_ANSWER, Reach, Route};
use crate::observe::owner::NotOwned;

/// An answer whose body may still be coming.
pub(super) struct Call {
    route: String,
    content_type: Option<HeaderValue>,
    body: Incoming,
    /// Drives the request; `None` once it has ended, at the latest with the last byte.
    connection: Option<Driven>,
}

type Driven = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;

/// A connection of any kind.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Call {
    /// Sends a GET request. The head of the answer must arrive in time and report a success.
    pub(super) async fn get(
        reach: &Reach,
        route: &Route,
        page: &'static str,
    ) -> Result<Self, EndpointError> {
        Self::begin_in_time(reach, route, (Method::GET, page)).await
    }

    /// Sends a POST request without a body. The same applies to its answer.
    pub(super) async fn post(
        reach: &Reach,
        route: &Route,
        page: &'static str,
    ) -> Result<Self, EndpointError> {
        Self::begin_in_time(reach, route, (Method::POST, page)).await
    }

    async fn begin_in_time(
        reach: &Reach,
        route: &Route,
        request: (Method, &'static str),
    ) -> Result<Self, EndpointError> {
        let late = |late: tokio::time::error::Elapsed| unreachable(route, late.into());
        tokio::time::timeout(ANSWER_TIMEOUT, Self::begin(reach, route, request))
            .await
            .map_err(late)?
    }

    async fn begin(
        reach: &Reach,
        route: &Route,
        (method, page): (Method, &'static str),
    ) -> Result<Self, EndpointError> {
        let stream = connect(reach, route).await?;
        let http = |error| EndpointError::Http(route.to_string(), error);
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(MAX_ANSWER)
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
            return Err(EndpointError::Status(route.to_string(), asked, response.status()));
        }
        let content_type = response.headers().get(CONTENT_TYPE).cloned();
        Ok(Self { route: route.to_string(), content_type, body: response.into_body(), connection })
    }

    /// The route that answers, as text.
    pub(super) fn route(&self) -> &str {
        &self.route
    }

    /// Whether the answer has this content type.
    pub(super) fn is(&self, content_type: &str) -> bool {
        let given = self.content_type.as_ref().and_then(|given| given.to_str().ok());
        given.is_some_and(|given| given.split(';').next() == Some(content_type))
    }

    /// The next piece of the body; `None` at its end. Nothing is lost when the future is dropped.
    pub(super) async fn piece(&mut self) -> Result<Option<Bytes>, EndpointError> {
        loop {
            let frame = match &mut self.connection {
                Some(connection) => tokio::select! {
                    biased;
                    frame = self.body.frame() => frame,
                    ended = connection => {
                        self.connection = None;
                        ended.map_err(|error| EndpointError::Http(self.route.clone(), error))?;
                        continue;
                    }
                },
                None => self.body.frame().await,
            };
            match frame {
                None => return Ok(None),
                Some(Err(error)) => {
                    return Err(EndpointError::Body(self.route.clone(), error.into()));
                }
                Some(Ok(frame)) => {
                    if let Ok(piece) = frame.into_data() {
                        return Ok(Some(piece));
                    }
                }
            }
        }
    }

    /// The whole body; an error if it is longer than [`MAX_ANSWER`].
    pub(super) async fn whole(mut self) -> Result<Vec<u8>, EndpointError> {
        let mut all = Vec::new();
        while let Some(piece) = self.piece().await? {
            if all.len() + piece.len() > MAX_ANSWER {
                return Err(too_much(&self.route));
            }
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }
}

/// The error for an answer that is too long.
pub(super) fn too_much(route: &str) -> EndpointError {
    let most = format!("more than {MAX_ANSWER} bytes");
    EndpointError::Body(route.to_owned(), most.into())
}

async fn connect(reach: &Reach, route: &Route) -> Result<Box<dyn Stream>, EndpointError> {
    let failed = |error| unreachable(route, error);
    Ok(match route {
        Route::Namespace { pid, port } => {
            let connected = reach.connect(*pid, *port).await.map_err(|error| match error {
                NotOwned::Io(error) => failed(error),
                NotOwned::Stranger(_) | NotOwned::TooMuch(_) => {
                    EndpointError::NotOwned { route: route.to_string(), source: error.into() }
                }
            });
            Box::new(connected?)
        }
        Route::Address(address) => Box::new(TcpStream::connect(address).await.map_err(failed)?),
        Route::Unix { root, path } => {
            Box::new(reach.connect_unix(root, path).await.map_err(failed)?)
        }
    })
}

pub(super) fn unreachable(route: &Route, source: io::Error) -> EndpointError {
    EndpointError::Unreachable { route: route.to_string(), source }
}
