//! The wall clock, as conditions are given times.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

/// The time in whole seconds, as the API writes it: a fraction would not survive
/// a reader that knows the API's form, and the object would look changed.
pub fn now() -> Time {
    let now = Timestamp::now();
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}
