//! What a KiteVirtualMachine gets: a disk, a login, the machine, an address and
//! perhaps a host name, one file each.
//!
//! Each name of a child is decided here and nowhere else. Names that end in a
//! suffix are those of Secrets, whose names may be longer than a machine's.

mod cloud_init;
mod data_volume;
mod host_claim;
mod ingress;
mod service;
mod ssh_key;
mod virtual_machine;

use crate::validate::MachineOwner;

pub use cloud_init::{Login, Password, USER_DATA, cloud_init, login_hash};
pub use data_volume::{data_volume, policy_text};
pub use host_claim::host_claim;
pub use ingress::ingress;
pub use service::{HTTP, Port, SSH, service};
pub use ssh_key::{KeyError, KeyPair, PRIVATE_KEY, PUBLIC_KEY, public_key_of, ssh_key};
pub use virtual_machine::{
    CLOUD_INIT_VOLUME, Hardware, NETWORK, ROOT_VOLUME, run_strategy, virtual_machine,
};

/// Name of the DataVolume, its claim, the VirtualMachine, the Service and the Ingress.
pub fn child_name(owner: &MachineOwner) -> String {
    owner.name.to_string()
}

/// Name of the Secret that cloud-init reads.
pub fn cloud_init_name(owner: &MachineOwner) -> String {
    format!("{}-cloud-init", owner.name)
}

/// Name of the Secret with a generated key pair.
pub fn ssh_key_name(owner: &MachineOwner) -> String {
    format!("{}-ssh-key", owner.name)
}
