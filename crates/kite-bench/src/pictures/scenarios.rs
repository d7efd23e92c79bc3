//! The words for each scenario: its title, what was done, and what its figures are not.

/// One scenario as the page tells of it.
pub(super) struct Scenario {
    /// Its name in reports and on the command line.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// What was done.
    pub(super) done: &'static str,
    /// What the figures must not be taken for; it goes on after a colon.
    pub(super) not: &'static str,
}

/// What holds for every figure.
pub(super) const NEVER: [&str; 4] = [
    "Seconds are not a promise. API server, store, contestant and the stand-ins share the processors named below; \
     only what was measured in the same run, side by side, may be compared.",
    "No virtual machine runs. KubeVirt and CDI are played by stand-ins on their real CRDs, at the pace that the \
     settings have; how long a real disk or guest takes is not in any figure.",
    "One replica of each controller runs. Standbys add their own leases, watches and memory.",
    "There is no load beside the one that is described, and no admission webhook of KubeVirt or CDI.",
];

/// The scenarios in the order of the page.
pub(super) const ALL: [Scenario; 16] = [
    Scenario {
        name: "burst",
        title: "A burst of creates",
        done: "Machines are created as fast as the server takes them, and played until all run. `kite` is the six \
               processes; `bare` sends the least writes with the same visible result and decides nothing; `raw` is a \
               plain loop that sends the same writes and waits for nothing; `bare without stand-ins` is the bare \
               client beside that loop; `stand-ins` is that loop with the life played and mirrored by nobody. `p50` and `p99` count from each machine's own creation, `time to all \
               Running` from the first.",
        not: "how many machines a second a cluster can start: storage and nodes decide that. The bare client is not \
               an alternative to Kite; it is the floor, and it is worth no more than its distance from `raw`. \
               Requests are counted in runs of their own, with the audit log on; times of those runs say so in their \
               names and are compared with nothing.",
    },
    Scenario {
        name: "rest",
        title: "Rest",
        done: "Machines have come to rest, and nothing is changed.",
        not: "zero for the installation: leases are renewed and watches are opened again when the server ends \
              them. `of machines` is everything else.",
    },
    Scenario {
        name: "memory",
        title: "Memory",
        done: "Resident memory of each process with settled machines, after a minute in which nothing happened, and \
               its peak since it started, the first lists included. `private` is what the process has for itself.",
        not: "a limit to set: leave room above the peak. Pages that processes share count in each of them, so the \
               sum is more than they take from a node. The peaks were not at the same time. The API server's memory \
               for the same objects is not in it.",
    },
    Scenario {
        name: "restart",
        title: "Restart",
        done: "All six are killed and started again, one after the other, with everything settled. `bare list and \
               watch` is a client that opens the same watches and keeps nothing.",
        not: "a failover, since no standby waits. A lease is taken again by a write, which is not counted as one.",
    },
    Scenario {
        name: "relist",
        title: "Relist after compaction",
        done: "The API server goes away, the store forgets the versions that the watches know, and everything is \
               listed again.",
        not: "how long an API server is away, which its own restart decides.",
    },
    Scenario {
        name: "steady",
        title: "Steady creates",
        done: "Machines are created by a schedule that waits for nobody, with Kite and with the bare client in turn.",
        not: "the greatest rate that can be kept up: this one leaves the server room.",
    },
    Scenario {
        name: "ticks",
        title: "Ticks of progress",
        done: "All disks are being cloned at once, and each tells its progress every few seconds; told is how many \
               of those ticks became a write.",
        not: "CDI's own load on the server, which is not counted.",
    },
    Scenario {
        name: "power",
        title: "A power storm",
        done: "All machines are switched off at once, then on; meanwhile another tenant creates one.",
        not: "the time in which guests shut down or boot; the stand-ins take the time that they are told.",
    },
    Scenario {
        name: "noisy",
        title: "A noisy tenant",
        done: "One tenant creates many machines at once while a quiet one creates single ones, which it did before \
               alone.",
        not: "Kite's part alone: the time runs until the machine is Running, so it holds what the stand-ins and the \
              server make a machine wait for. What Kite alone does stands beside it: from the create until the \
              disk is made, and from KubeVirt's word that the machine runs until Kite's. The stand-ins let \
              namespaces take turns, which KubeVirt and CDI do not. `bare` is two bare clients, one for the storm and \
              one that only has the quiet tenant's machines: what a quiet create waits for there is the server and \
              the stand-ins.",
    },
    Scenario {
        name: "concurrency",
        title: "How much at once",
        done: "A noisy tenant and a quiet one, as before, with `--concurrency` of all six set to what the first \
               column says.",
        not: "a law for other servers: with more processors or a slower store the same number of requests in \
              flight makes a shorter row.",
    },
    Scenario {
        name: "fairness",
        title: "A server that admits little",
        done: "A noisy tenant and a quiet one on an API server that works on 16 reads and 8 writes at a time, \
               without and with `flowSchema.enabled` in all six charts.",
        not: "what a server does with its default of 400 and 200 at a time: on two processors nothing ever waits in \
              its queues then.",
    },
    Scenario {
        name: "slow",
        title: "A slow server",
        done: "Every answer of the API server to the contestant comes later by a fixed time; who creates machines \
               and looks on has the short way.",
        not: "an overloaded server: it is only far away, and refuses nothing.",
    },
    Scenario {
        name: "deletion",
        title: "Deletion in bulk",
        done: "All machines are deleted at once.",
        not: "the time in which storage gives disks back.",
    },
    Scenario {
        name: "users",
        title: "Users",
        done: "Users are created at once, each with a namespace, its policies and its quota. There are no machines.",
        not: "what their machines cost, which other scenarios have.",
    },
    Scenario {
        name: "start",
        title: "Start to ready",
        done: "From the start of a process until it says that it is ready, on an empty cluster, with the program in \
               the system's cache.",
        not: "a Pod's start: scheduling, pulling the image and the kubelet's probes come on top.",
    },
    Scenario {
        name: "sizes",
        title: "Sizes",
        done: "The programs as they are put into images, without debug information.",
        not: "what is pulled, which is compressed.",
    },
];
