//! Loopback addresses for pods: each agent has a block of its own, also among
//! those of other processes, and each pod an address in it.
//!
//! Only Linux answers on all of 127.0.0.0/8 without more ado.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};

/// Who listens here on the first address of a block has the block. Below the
/// ports that control planes take.
const BLOCK_PORT: u16 = 17_999;

/// Blocks that are tried: as many as there are second and third bytes, without
/// 127.0, where everybody else is.
const BLOCKS: u32 = 254 * 256;

/// The first address is the node's own.
const FIRST_POD: u8 = 2;

/// The addresses of one agent.
#[derive(Debug)]
pub(super) struct Block {
    prefix: [u8; 3],
    _held: TcpListener,
    /// Addresses in use and the one tried next; locked for one choice or return.
    used: Mutex<(BTreeSet<u8>, u8)>,
}

/// An address that is given back when it is dropped.
#[derive(Debug)]
pub(super) struct Address {
    block: Arc<Block>,
    last: u8,
}

impl Block {
    /// Takes a block that no other process has.
    pub(super) fn take() -> Result<Arc<Self>> {
        let start = std::process::id().wrapping_mul(31);
        for step in 0..BLOCKS {
            let number = start.wrapping_add(step) % BLOCKS;
            let [.., second, third] = (number + 256).to_be_bytes();
            let prefix = [127, second, third];
            if let Ok(held) = TcpListener::bind((first(prefix), BLOCK_PORT)) {
                return Ok(Arc::new(Self {
                    prefix,
                    _held: held,
                    used: Mutex::new((BTreeSet::new(), FIRST_POD)),
                }));
            }
        }
        anyhow::bail!(
            "no free block of loopback addresses; pods need those of Linux in 127.0.0.0/8"
        )
    }

    /// The node's own address.
    pub(super) fn node(&self) -> Ipv4Addr {
        first(self.prefix)
    }

    /// An address that no pod has, and that none had for long.
    pub(super) fn pod(self: &Arc<Self>) -> Result<Address> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let next = used.1;
        let mut all = (next..u8::MAX).chain(FIRST_POD..next);
        let last = all.find(|last| !used.0.contains(last));
        let last = last.context("all addresses for pods are in use")?;
        used.0.insert(last);
        used.1 = if last + 1 == u8::MAX {
            FIRST_POD
        } else {
            last + 1
        };
        Ok(Address {
            block: Arc::clone(self),
            last,
        })
    }
}

impl Address {
    /// The address.
    pub(super) fn ip(&self) -> Ipv4Addr {
        let [a, b, c] = self.block.prefix;
        Ipv4Addr::new(a, b, c, self.last)
    }
}

impl Drop for Address {
    fn drop(&mut self) {
        let used = &self.block.used;
        let mut used = used.lock().unwrap_or_else(PoisonError::into_inner);
        used.0.remove(&self.last);
    }
}

fn first([a, b, c]: [u8; 3]) -> Ipv4Addr {
    Ipv4Addr::new(a, b, c, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_agents_share_a_block_and_no_two_pods_an_address() {
        let (one, other) = (Block::take().unwrap(), Block::take().unwrap());
        assert_ne!(one.node(), other.node());
        let first = one.pod().unwrap();
        let second = one.pod().unwrap();
        assert_ne!(first.ip(), second.ip());
        let was = first.ip();
        drop(first);
        assert_ne!(
            one.pod().unwrap().ip(),
            was,
            "an address rests before it is used again"
        );
        let all: Vec<_> = std::iter::from_fn(|| one.pod().ok()).collect();
        assert_eq!(all.len(), 252);
        assert!(all.iter().any(|address| address.ip() == was));
    }
}
