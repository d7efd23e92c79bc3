//! The few KubeVirt and CDI fields that Kite writes, and a lenient view of
//! those it reads.
//!
//! Each kind has up to two types. A [`write`] view holds exactly what Kite
//! owns: strict, complete, and it can only be serialised. A [`read`] view holds
//! what Kite looks at: everything is optional, what is unknown is ignored, so
//! that one strange object never fails a whole list (rule C-15). Only the read
//! view implements [`kube::Resource`]; an `Api` of it takes the write view as
//! the body of an apply and parses the answer.
//!
//! There is no client here, and no opinion about what should exist.

pub mod compare;
pub mod names;
pub mod read;
mod resource;
pub mod write;

pub use compare::{Difference, Rules};
pub use read::{DataSource, DataVolume, VirtualMachine, VirtualMachineInstance};
