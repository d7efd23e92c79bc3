//! The API server's store, spoken to directly: for what only the store can do, such as compaction,
//! and for what would take hours through the API server, such as ten thousand settled machines.
