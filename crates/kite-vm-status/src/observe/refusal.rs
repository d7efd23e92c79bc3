//! What the server does not take of what KubeVirt makes for a machine.
//!
//! KubeVirt hands its words on in a condition and tries again for ever, while
//! the machine reads as starting. They hold random names, so only what stays the
//! same is read out of them.

use kite_kubevirt::{VirtualMachine, VirtualMachineInstance};

/// Why an instance or its launcher Pod is not made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// A quota leaves no room; its name, where the words tell it.
    Quota(Option<String>),
    /// Something else.
    Other,
}

/// Condition of the machine that tells why there is no instance.
pub const FAILURE: &str = "Failure";
/// Condition of the instance that tells why there is no launcher Pod.
pub const SYNCHRONIZED: &str = "Synchronized";

/// The refusal that stands, if one does.
pub fn refusal(vm: &VirtualMachine, instance: Option<&VirtualMachineInstance>) -> Option<Refusal> {
    let failure = vm.condition(FAILURE).filter(|c| c.is_true());
    let refused = instance.and_then(|i| i.condition(SYNCHRONIZED));
    let refused = refused.filter(|c| c.status == "False");
    let told = failure
        .into_iter()
        .chain(refused)
        .find(|c| c.reason() == "FailedCreate")?;
    Some(read(told.message()))
}

/// The words that the server's quota admission uses before the quota's name.
const EXCEEDED: &str = "exceeded quota";

/// What the words of a refusal say.
pub fn read(words: &str) -> Refusal {
    let Some((_, after)) = words.split_once(EXCEEDED) else {
        return Refusal::Other;
    };
    let name = after.strip_prefix(": ").unwrap_or_default();
    let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '.')));
    let name = &name[..end.unwrap_or(name.len())];
    Refusal::Quota(Some(name.to_owned()).filter(|n| !n.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-7: the Pod's name is another one at each try.
    #[test]
    fn only_what_stays_the_same_is_read_from_a_refusal() {
        let words = r#"failed to create virtual machine pod: pods "virt-launcher-web-x7k2p" is forbidden: exceeded quota: kite, requested: requests.memory=1Gi, used: …"#;
        assert_eq!(read(words), Refusal::Quota(Some("kite".to_owned())));
        assert_eq!(read("exceeded quota"), Refusal::Quota(None));
        assert_eq!(read("exceeded quota: é"), Refusal::Quota(None));
        assert_eq!(read("admission webhook says no"), Refusal::Other);
    }
}
