//! How a watch learns what there is already: by a streamed list, object by object,
//! which is one request and one object in memory at a time; in pages from a server
//! that streams none, as one of Kubernetes 1.33 does unless told to.
//!
//! What is done with the objects is the feed's business.

use std::fmt;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use http::Request;
use kube::client::Body;
use kube::runtime::watcher::{self, Event, InitialListStrategy};
use tokio::time::timeout;

/// A list that says nothing for so long has stalled. Its objects follow each other, and between two
/// pages lies a request with a deadline of its own.
const SILENCE: Duration = Duration::from_secs(30);

/// Lists in a stream.
pub(super) fn streamed(config: watcher::Config) -> watcher::Config {
    config.streaming_lists()
}

/// Lists in pages.
pub(super) fn in_pages(mut config: watcher::Config) -> watcher::Config {
    config.initial_list_strategy = InitialListStrategy::ListWatch;
    config
}

/// Has a streamed list begin with the newest there is. kube asks for any version, and a server whose
/// view is behind would show what this process, or the one before it, has already left behind.
pub(crate) fn from_the_newest(mut request: Request<Body>) -> Request<Body> {
    let query = request.uri().query().unwrap_or_default();
    if query.contains("sendInitialEvents=true")
        && let Some(newest) = request.uri().to_string().strip_suffix("&resourceVersion=0")
        && let Ok(uri) = newest.parse()
    {
        *request.uri_mut() = uri;
    }
    request
}

/// Whether a list is under way, as the events of a watch tell it.
#[derive(Debug, Default)]
pub(super) struct Listing {
    under_way: bool,
}

impl Listing {
    /// The next event. None comes from a watch for hours; during a list, silence is an error.
    pub(super) async fn next<T>(
        &mut self,
        events: &mut (impl Stream<Item = watcher::Result<Event<T>>> + Unpin),
    ) -> Option<Result<Event<T>, Broken>> {
        let event = if self.under_way {
            match timeout(SILENCE, events.next()).await {
                Ok(event) => event?,
                Err(_) => return Some(Err(Broken::Stalled)),
            }
        } else {
            events.next().await?
        };
        let broken = if self.under_way {
            Broken::List
        } else {
            Broken::Watch
        };
        let event = event.map_err(broken);
        match &event {
            // kube asks again at once, and would do so for ever.
            Ok(Event::Init) if self.under_way => return Some(Err(Broken::Ended)),
            Ok(Event::Init) => self.under_way = true,
            Ok(Event::InitDone) => self.under_way = false,
            _ => {}
        }
        Some(event)
    }
}

/// Why nothing more came.
#[derive(Debug)]
pub(super) enum Broken {
    /// The list under way failed.
    List(watcher::Error),
    /// The watch, or what would have begun a list, failed.
    Watch(watcher::Error),
    /// The list under way said nothing for too long.
    Stalled,
    /// The list under way ended without its end.
    Ended,
}

impl Broken {
    /// Whether the server will not stream this list: it refuses the request as invalid, or breaks off
    /// because its store cannot tell how new its view is.
    pub(super) fn needs_pages(&self, config: &watcher::Config) -> bool {
        config.initial_list_strategy == InitialListStrategy::StreamingList
            && match self {
                Self::Watch(watcher::Error::WatchStartFailed(kube::Error::Api(status))) => {
                    status.code == 422
                }
                Self::List(watcher::Error::WatchError(status)) => status.code != 410,
                _ => false,
            }
    }

    /// Whether what was open cannot go on. A list that failed begins anew. A watch that is too old
    /// where it was to begin would be asked for again and again (row ST8); an open one that is told so
    /// lists by itself.
    pub(super) fn lists_anew(&self) -> bool {
        match self {
            Self::Watch(watcher::Error::WatchStartFailed(kube::Error::Api(status))) => {
                matches!(status.code, 410 | 422)
            }
            Self::Watch(_) => false,
            Self::List(_) | Self::Stalled | Self::Ended => true,
        }
    }

    /// What the API server, or the way to it, answered to a request.
    pub(super) fn answer(&self) -> Option<&kube::Error> {
        match self {
            Self::List(error) | Self::Watch(error) => match error {
                watcher::Error::InitialListFailed(e)
                | watcher::Error::WatchStartFailed(e)
                | watcher::Error::WatchFailed(e) => Some(e),
                watcher::Error::WatchError(_) | watcher::Error::NoResourceVersion => None,
            },
            Self::Stalled | Self::Ended => None,
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(error) | Self::Watch(error) => error.fmt(f),
            Self::Stalled => write!(
                f,
                "the list said nothing for {} s and is asked for again",
                SILENCE.as_secs()
            ),
            Self::Ended => f.write_str("the list broke off and is asked for again"),
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn asked(uri: &str) -> String {
        let request = Request::get(uri).body(Body::empty()).unwrap();
        from_the_newest(request).uri().to_string()
    }

    #[test]
    fn a_streamed_list_begins_with_the_newest_and_a_watch_where_it_was() {
        let streamed = "/api/v1/services?&watch=true&sendInitialEvents=true\
                        &resourceVersionMatch=NotOlderThan";
        assert_eq!(asked(&format!("{streamed}&resourceVersion=0")), streamed);
        let watch = "/api/v1/services?&watch=true&allowWatchBookmarks=true&resourceVersion=0";
        assert_eq!(asked(watch), watch);
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_stalls_is_told_and_a_watch_may_be_silent() {
        let events: Vec<watcher::Result<Event<()>>> =
            vec![Ok(Event::Init), Ok(Event::InitApply(()))];
        let mut events = futures::stream::iter(events).chain(futures::stream::pending());
        let mut listing = Listing::default();
        for _ in 0..2 {
            assert!(listing.next(&mut events).await.unwrap().is_ok());
        }
        let broken = listing.next(&mut events).await.unwrap().unwrap_err();
        assert!(broken.lists_anew(), "{broken}");

        let events: Vec<watcher::Result<Event<()>>> = vec![Ok(Event::Init), Ok(Event::InitDone)];
        let mut events = futures::stream::iter(events).chain(futures::stream::pending());
        let mut listing = Listing::default();
        for _ in 0..2 {
            assert!(listing.next(&mut events).await.unwrap().is_ok());
        }
        let silent = timeout(SILENCE * 10, listing.next(&mut events)).await;
        assert!(silent.is_err());
    }

    #[tokio::test]
    async fn a_list_that_breaks_off_without_a_word_is_told() {
        let events: Vec<watcher::Result<Event<()>>> =
            vec![Ok(Event::Init), Ok(Event::InitApply(())), Ok(Event::Init)];
        let mut events = futures::stream::iter(events);
        let mut listing = Listing::default();
        for _ in 0..2 {
            assert!(listing.next(&mut events).await.unwrap().is_ok());
        }
        let broken = listing.next(&mut events).await.unwrap().unwrap_err();
        assert!(broken.lists_anew(), "{broken}");
    }

    #[test]
    fn only_a_server_that_will_not_stream_is_asked_for_pages() {
        let config = streamed(watcher::Config::default());
        let status = |code| Box::new(Status::failure("no", "No").with_code(code));
        let start = |code| {
            let error = kube::Error::Api(status(code));
            Broken::Watch(watcher::Error::WatchStartFailed(error))
        };
        let during = |code| Broken::List(watcher::Error::WatchError(status(code)));
        for broken in [start(422), during(500), during(504)] {
            assert!(
                broken.needs_pages(&config) && broken.lists_anew(),
                "{broken:?}"
            );
            assert!(!broken.needs_pages(&in_pages(config.clone())), "{broken:?}");
        }
        for broken in [
            start(404),
            start(410),
            start(403),
            during(410),
            Broken::Stalled,
        ] {
            assert!(!broken.needs_pages(&config), "{broken:?}");
        }
    }
}
