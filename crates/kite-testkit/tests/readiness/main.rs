//! Readiness over every scenario, in the eyes of the real kstatus: Failed exactly
//! when a person must act, and never Current too early.

mod machines;
mod scene;
mod users;
