//! Every refusal of a value, in the words that its owner reads.
//!
//! All stand here, so that the reference page of messages is made from them
//! and none is missing there. Which field a refusal is about is said by
//! [`super::Problem`]; what needs the cluster is refused elsewhere.

use std::fmt;

/// Declares the refusals: what each is about, and the end of a sentence that the field's name begins.
macro_rules! refusals {
    ($($variant:ident $({ $($part:ident),+ })? : $about:literal, $text:literal;)+) => {
        /// Why a value cannot be what it should be: the end of a sentence that the field's name begins.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Wrong {
            $(
                #[doc = concat!("About ", $about, ".")]
                $variant $({ $(
                    #[doc = concat!("The `", stringify!($part), "` in the text.")]
                    $part: String
                ),+ })?,
            )+
        }

        impl Wrong {
            /// Each refusal once, with the names of its parts in braces for the parts.
            pub fn all() -> Vec<Self> {
                vec![$(
                    Self::$variant $({ $($part: concat!("{", stringify!($part), "}").to_owned()),+ })?
                ),+]
            }

            /// The values that it is about.
            pub const fn about(&self) -> &'static str {
                match self {
                    $(Self::$variant $({ $($part: _),+ })? => $about,)+
                }
            }
        }

        impl fmt::Display for Wrong {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant $({ $($part),+ })? => write!(f, $text),)+
                }
            }
        }
    };
}

refusals! {
    Label: "names of namespaces and KiteUsers, and prefixes of host names",
        "must be at most 63 lower-case letters, digits and hyphens, and begin and end with a letter or digit";
    MachineName: "names of machines",
        "must be at most 63 lower-case letters, digits and hyphens, begin with a letter and hold no dot, since it is also the name of a Service";
    DnsName: "names of images, Secrets and classes, and the base domain",
        "must be a DNS name: lower-case letters, digits and hyphens in parts of at most 63 characters with dots between them, at most 253 in all";
    Uid: "UIDs",
        "must be a UID as the API server gives it";
    SecretKey: "keys of Secrets",
        "must be the key of a Secret: letters, digits, hyphens, underscores and dots";
    NoQuantity { error }: "amounts of memory and disk",
        "cannot be read: {error}";
    OutOfBounds { least, most }: "amounts and numbers",
        "must be between {least} and {most}";
    TooSmall { least }: "numbers",
        "must be at least {least}";
    ReservedPrefix { prefix }: "prefixes of host names",
        "must not be {prefix}, which is reserved; choose another, for instance one that begins with your name";
    LongPrefix: "prefixes of host names",
        "is too long for the platform's base domain; choose a shorter one";
    LoginUser: "the login user",
        "must be a Linux user name: at most 32 lower-case letters, digits, hyphens and underscores, and not begin with a digit or hyphen";
    Root: "the login user",
        "must not be root; name an ordinary user, who may use sudo";
    KeyLine: "SSH keys",
        "must be one line of at most 4096 visible characters; give each key an entry of its own";
    NoKey: "SSH keys",
        "must be one public key as `cat ~/.ssh/id_ed25519.pub` shows it, without options before it";
    ShortKey: "SSH keys",
        "is an RSA key of less than 2048 bits; make a new one with `ssh-keygen -t ed25519`";
    OldKey: "SSH keys",
        "is of a kind that SSH servers no longer take; make a new one with `ssh-keygen -t ed25519`";
    CryptHash: "the Secret of a password",
        "must hold a password hash of crypt(5), such as `mkpasswd -m yescrypt` or `openssl passwd -6` prints it, not the password itself";
    ReservedNamespace { namespace }: "the namespace of a KiteUser",
        "must not be {namespace}, which belongs to the platform; make a KiteUser with a namespace of the user's own, for instance the user's name";
    SubjectName: "subjects of a KiteUser",
        "must have a name of 1 to 253 visible characters, as the cluster's authentication gives it";
    AnySubject { name }: "subjects of a KiteUser",
        "must not be {name}: anybody at all could work in the namespace; name a user or a group";
    Port: "ports of a KiteUser's network",
        "must have a port between 1 and 65535";
    QuotaKey: "further keys of a quota",
        "has a key that no ResourceQuota knows; write keys such as services.loadbalancers";
    ComputedKey { key }: "further keys of a quota",
        "must not have {key}, which Kite computes from cpu, memory, storage and virtualMachines; set those";
    ImpossibleKey { key }: "further keys of a quota",
        "must not have {key}: no machine could start; use requests.ephemeral-storage";
    NegativeAmount { key }: "further keys of a quota",
        "has a negative amount for {key}; write 0 or more";
    NoAmount { key, error }: "further keys of a quota",
        "has a value for {key} that cannot be read: {error}";
    Range: "ranges of addresses",
        "must be a range of addresses such as 10.20.0.0/16 or fd00:1234::/32";
    Everything: "ranges of the platform's network",
        "must not be every address; name the ranges that machines may not reach";
    Address: "the node-local DNS",
        "must be an IP address, or empty when there is no node-local DNS cache";
    DnsLabels: "the labels of the DNS pods",
        "must be the labels of the cluster's DNS pods, for instance k8s-app: kube-dns";
    SshSource: "sources of SSH",
        "must be either a cidr or a namespace; give exactly one";
    NoRoom: "the platform's limits",
        "must allow at least one cpu and one clone";
}

impl std::error::Error for Wrong {}

impl Wrong {
    /// A value beyond its bounds.
    pub(super) fn out_of_bounds(least: impl fmt::Display, most: impl fmt::Display) -> Self {
        Self::OutOfBounds {
            least: least.to_string(),
            most: most.to_string(),
        }
    }
}
