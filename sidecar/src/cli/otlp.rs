//! Sends the metrics to an OpenTelemetry receiver.

#[cfg(feature = "otlp")]
pub(super) use with::{OtlpArgs, Receiver};
#[cfg(not(feature = "otlp"))]
pub(super) use without::{OtlpArgs, Receiver};

#[cfg(feature = "otlp")]
mod with;

#[cfg(not(feature = "otlp"))]
mod without {
    //! Nothing is sent.

    use std::sync::Arc;

    use clap::Args;

    use crate::cli::Failure;
    use crate::forward::Target;
    use crate::job::Job;

    /// No arguments.
    #[derive(Clone, Copy, Debug, Args)]
    pub(in crate::cli) struct OtlpArgs {}

    /// There is none.
    #[derive(Debug)]
    pub(in crate::cli) enum Receiver {}

    impl OtlpArgs {
        #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "as with the feature")]
        pub(in crate::cli) fn plan(self) -> Result<Option<Receiver>, Failure> {
            Ok(None)
        }
    }

    impl Receiver {
        pub(in crate::cli) fn target(
            &self,
            _: &Arc<Job>,
        ) -> Result<Option<Box<dyn Target>>, Failure> {
            match *self {}
        }
    }
}
