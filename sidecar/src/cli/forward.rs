//! What the progress is forwarded to.

#[cfg(not(feature = "forward"))]
pub(super) use without::ForwardArgs;

#[cfg(feature = "forward")]
pub(super) use with::ForwardArgs;

#[cfg(feature = "forward")]
mod with;

#[cfg(not(feature = "forward"))]
mod without {
    //! Nothing is forwarded.

    use std::sync::Arc;

    use clap::Args;
    use paceline_reporter::wire::Progress;

    use super::super::Failure;
    use crate::job::Job;

    /// No arguments.
    #[derive(Clone, Debug, Args)]
    pub(in crate::cli) struct ForwardArgs {}

    impl ForwardArgs {
        #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "as with the feature")]
        pub(in crate::cli) fn plan(&self) -> Result<Nothing, Failure> {
            Ok(Nothing)
        }
    }

    /// Nothing is forwarded.
    #[derive(Debug)]
    pub(in crate::cli) struct Nothing;

    impl Nothing {
        #[expect(clippy::unnecessary_wraps, reason = "as with the feature")]
        pub(in crate::cli) fn start(
            self,
            _: &Arc<Job>,
            _: Option<&Progress>,
        ) -> Result<Self, Failure> {
            Ok(self)
        }

        #[expect(clippy::unused_self, reason = "as with the feature")]
        pub(in crate::cli) fn run(&self, _: &Arc<Job>) {}
    }
}
