//! The tables: who calls whom over which protocols on which ports, and whether
//! that may come about.
//!
//! A row is asked for each protocol and port, and for IPv4 and IPv6 wherever
//! both ends have such an address. `all` is [`PORTS`]; `not 22` is all but that.

/// One end of a row: a pod of a namespace, or addresses that are no pod's.
#[derive(Clone, Copy)]
pub(crate) enum Who {
    /// With its labels.
    Pod(&'static str, &'static [(&'static str, &'static str)]),
    Address(&'static [&'static str]),
}

/// One question.
pub(crate) struct Row {
    pub(crate) text: &'static str,
    pub(crate) from: Who,
    pub(crate) to: Who,
    pub(crate) protocols: Vec<&'static str>,
    pub(crate) ports: Vec<u16>,
    pub(crate) opens: bool,
}

/// Every port that anything here listens on, and two that nothing does.
const PORTS: [u16; 13] = [
    1, 22, 53, 80, 443, 514, 5432, 6443, 8080, 8443, 9153, 10250, 65535,
];

/// What holds on every platform.
pub(crate) const ALWAYS: &str = "
    alice            | alice            | tcp udp | all     | yes
    alice/any        | alice            | tcp udp | all     | yes
    alice            | internet         | tcp udp | all     | yes
    alice            | beside private   | tcp udp | all     | yes

    bob              | alice            | tcp udp | all     | no
    bob/any          | alice/any        | tcp udp | all     | no
    bob/source       | alice/upload     | tcp udp | all     | no
    a                | a-b              | tcp udp | all     | no
    a-b              | a                | tcp udp | all     | no
    a-b              | a-b-c            | tcp udp | all     | no
    a-b-c            | a-b              | tcp udp | all     | no
    like alice       | alice            | tcp udp | all     | no
    alice            | like alice       | tcp udp | all     | no
    like ingress     | alice            | tcp udp | all     | no
    like bastion     | alice            | tcp udp | all     | no

    stranger         | alice            | tcp udp | all     | no
    node             | alice            | tcp udp | all     | no
    monitoring       | alice            | tcp udp | all     | no
    kite             | alice            | tcp udp | all     | no

    alice            | metadata         | tcp udp | all     | no
    alice            | private          | tcp udp | all     | no
    alice            | not the dns      | tcp udp | all     | no
    alice            | kite             | tcp udp | all     | no
    alice            | ingress          | tcp udp | all     | no
    alice            | monitoring       | tcp udp | all     | no

    images/source    | alice/upload     | tcp     | 8443    | yes
    images/source    | alice/upload     | tcp     | not 8443 | no
    images/source    | alice/upload     | udp     | all     | no
    images/source    | alice            | tcp udp | all     | no
    images/any       | alice/upload     | tcp udp | all     | no
    cdi              | alice/upload     | tcp udp | all     | no
    cdi              | alice            | tcp udp | all     | no
    alice/upload     | images/source    | tcp udp | all     | no
    alice            | images/any       | tcp udp | all     | no
";

/// Without a KitePlatform: the upstream DNS, and nobody from outside.
pub(crate) const NOTHING_SET: &str = "
    alice            | dns              | tcp udp | 53      | yes
    alice            | dns              | tcp udp | not 53  | no
    alice            | node-local dns   | tcp udp | 53      | yes
    alice            | node-local dns   | tcp udp | not 53  | no
    alice            | beside its cache | tcp udp | all     | no
    ingress          | alice            | tcp udp | all     | no
    bastion          | alice            | tcp udp | all     | no
    office           | alice            | tcp udp | all     | no
";

/// With [`crate::scene::full_platform`].
pub(crate) const ALL_SET: &str = "
    alice            | dns              | tcp udp | 53      | yes
    alice            | dns              | tcp udp | not 53  | no
    alice            | other dns        | tcp udp | all     | no
    alice            | node-local dns   | tcp udp | 53      | yes
    alice            | node-local dns   | tcp udp | not 53  | no
    alice            | beside its cache | tcp udp | all     | no
    alice            | other cache      | tcp udp | all     | no

    ingress          | alice            | tcp     | 80      | yes
    ingress          | alice            | tcp     | not 80  | no
    ingress          | alice            | udp     | all     | no
    office           | alice            | tcp     | 22      | yes
    office           | alice            | tcp     | not 22  | no
    office           | alice            | udp     | all     | no
    bastion          | alice            | tcp     | 22      | yes
    bastion          | alice            | tcp     | not 22  | no
    bastion          | alice            | udp     | all     | no

    alice            | api server       | tcp udp | all     | no
    alice            | node             | tcp udp | all     | no
    alice            | services         | tcp udp | all     | no
    alice            | company          | tcp udp | all     | no
    alice            | granted          | tcp udp | all     | no

    monitoring       | carol            | tcp udp | all     | yes
    carol            | monitoring       | tcp udp | all     | no
    carol            | granted          | tcp     | 5432    | yes
    carol            | granted          | tcp     | not 5432 | no
    carol            | granted v4       | udp     | 514     | yes
    carol            | granted          | udp     | not 514 | no
    carol            | granted wholly   | tcp udp | all     | yes
    carol            | beside granted   | tcp udp | all     | no
    carol            | alice            | tcp udp | all     | no
    alice            | carol            | tcp udp | all     | no
";

/// With [`crate::scene::other_cluster`]: what was closed before is the internet here.
pub(crate) const ANOTHER_CLUSTER: &str = "
    alice            | other dns        | tcp udp | 53      | yes
    alice            | other dns        | tcp udp | not 53  | no
    alice            | dns              | tcp udp | all     | no
    alice            | other cache      | tcp udp | 53      | yes
    alice            | other cache      | tcp udp | not 53  | no
    alice            | node-local dns   | tcp udp | all     | no

    alice            | other services   | tcp udp | all     | no
    alice            | services         | tcp udp | all     | yes
    alice            | company          | tcp udp | all     | yes

    ingress          | alice            | tcp     | 80      | yes
    bastion          | alice            | tcp udp | all     | no
    office           | alice            | tcp udp | all     | no
";

/// After carol's additions were taken back.
pub(crate) const NOTHING_EXTRA: &str = "
    carol            | granted          | tcp udp | all     | no
    carol            | granted wholly   | tcp udp | all     | no
    monitoring       | carol            | tcp udp | all     | no
";

/// What one policy that allows everything does to its namespace, and to no other.
pub(crate) const OPENED: &str = "
    stranger         | alice            | tcp udp | all     | yes
    alice            | private          | tcp udp | all     | yes
    alice            | bob              | tcp udp | all     | no
    stranger         | bob              | tcp udp | all     | no
";

/// The ends that the tables name.
fn who(name: &str) -> Who {
    use Who::{Address, Pod};
    const MACHINE: &[(&str, &str)] = &[("kubevirt.io", "virt-launcher"), ("kite.dev/vm-uid", "1")];
    const SOURCE: &[(&str, &str)] = &[("cdi.kubevirt.io", "cdi-clone-source")];
    const OTHER_DNS: &[(&str, &str)] = &[("dns.operator.openshift.io/daemonset-dns", "default")];
    match name {
        "alice" => Pod("alice", MACHINE),
        "bob" => Pod("bob", MACHINE),
        "carol" => Pod("carol", MACHINE),
        "a" => Pod("a", MACHINE),
        "a-b" => Pod("a-b", MACHINE),
        "a-b-c" => Pod("a-b-c", MACHINE),
        "alice/any" => Pod("alice", &[]),
        "bob/any" => Pod("bob", &[]),
        "alice/upload" => Pod("alice", &[("cdi.kubevirt.io", "cdi-upload-server")]),
        "bob/source" => Pod("bob", SOURCE),
        "images/source" => Pod("kite-images", SOURCE),
        "images/any" => Pod("kite-images", &[]),
        "like alice" => Pod("alice-copy", MACHINE),
        "like ingress" => Pod("ingress-nginx-copy", &[]),
        "like bastion" => Pod("bastion-2", &[]),
        "ingress" => Pod("ingress-nginx", &[]),
        "bastion" => Pod("bastion", &[]),
        "monitoring" => Pod("monitoring", &[]),
        "cdi" => Pod("cdi", &[("cdi.kubevirt.io", "cdi-uploadproxy")]),
        "kite" => Pod("kite-system", &[]),
        "dns" => Pod("kube-system", &[("k8s-app", "kube-dns")]),
        "not the dns" => Pod("kube-system", &[("k8s-app", "metrics-server")]),
        "other dns" => Pod("openshift-dns", OTHER_DNS),
        "node-local dns" => Address(&["169.254.20.10"]),
        "beside its cache" => Address(&["169.254.20.9", "169.254.20.11"]),
        "other cache" => Address(&["fd00:53::10"]),
        "internet" => Address(&["1.1.1.1", "198.19.0.1", "2606:4700::1111"]),
        "stranger" => Address(&["192.0.2.1", "2001:db8:98::1"]),
        "office" => Address(&["203.0.113.7", "2001:db8:99::7"]),
        "company" => Address(&["198.51.100.7", "2001:db8:51::7"]),
        "metadata" => Address(&["169.254.169.254", "fd00:ec2::254"]),
        "node" => Address(&["198.18.0.5", "2001:db8:64::5"]),
        "api server" => Address(&["11.96.0.1", "198.18.0.5", "2001:db8:96::1"]),
        "services" => Address(&["11.96.0.1", "11.111.255.255", "2001:db8:96::1"]),
        "other services" => Address(&["11.43.0.1"]),
        "granted" => Address(&["10.20.3.4", "fd00:20::5"]),
        "granted v4" => Address(&["10.20.3.4"]),
        "granted wholly" => Address(&["192.168.7.7"]),
        "beside granted" => Address(&["10.21.0.1", "192.168.7.8", "fd00:21::5"]),
        "private" => Address(PRIVATE),
        "beside private" => Address(BESIDE_PRIVATE),
        other => panic!("{other} is nobody"),
    }
}

/// First and last addresses of what is not the internet (RFC 1918, 6598, 3927, 4193, 4291).
const PRIVATE: &[&str] = &[
    "10.0.0.0",
    "10.255.255.255",
    "172.16.0.0",
    "172.31.255.255",
    "192.168.0.0",
    "192.168.255.255",
    "100.64.0.0",
    "100.127.255.255",
    "169.254.0.1",
    "169.254.255.255",
    "fc00::",
    "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "fe80::1",
    "febf:ffff::1",
];

/// The addresses before and after them.
const BESIDE_PRIVATE: &[&str] = &[
    "9.255.255.255",
    "11.0.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "192.169.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "169.253.255.255",
    "169.255.0.0",
    "fbff:ffff::1",
    "fec0::1",
];

/// Reads a table.
pub(crate) fn rows(table: &'static str) -> Vec<Row> {
    table
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(row)
        .collect()
}

fn row(line: &'static str) -> Row {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let [from, to, protocols, ports, opens] = cells[..] else {
        panic!("{line} is no row");
    };
    let protocol = |word| match word {
        "tcp" => "TCP",
        "udp" => "UDP",
        other => panic!("{other} is no protocol"),
    };
    let ports = match ports.strip_prefix("not ") {
        Some(port) => PORTS
            .into_iter()
            .filter(|p| p.to_string() != port)
            .collect(),
        None if ports == "all" => PORTS.to_vec(),
        None => vec![ports.parse().unwrap()],
    };
    Row {
        text: line.trim(),
        from: who(from),
        to: who(to),
        protocols: protocols.split(' ').map(protocol).collect(),
        ports,
        opens: opens == "yes",
    }
}
