//! Faults between one controller and the API server, made to happen exactly:
//! first the layer that makes them, then what Kite does.

mod layer;
mod leaders;
mod server;
mod stage;
mod views;
mod writes;
