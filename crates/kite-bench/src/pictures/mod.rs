//! Pictures and a page of a report, for people.
