//! Thousands of machines that have come to rest, made from one that really did.
