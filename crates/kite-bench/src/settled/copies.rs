//! Turns the objects of one user into those of another, as text.
//!
//! What is its user's own is replaced wherever it stands: the name, the UIDs of its objects, the
//! addresses of Services and pods, the times. Everything else stays, byte for byte: UIDs of objects
//! that are not the user's or are gone, and a machine's firmware. Nothing is known of any kind but where a Service and a pod have their addresses.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::Ipv4Addr;

use anyhow::{Context, Result, ensure};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::store::Entry;

/// How much older each user is than the one before it.
pub const STEP: SignedDuration = SignedDuration::from_secs(1);

/// Times may not go back to before Kite was thought of, nor need they: a day's worth is enough.
const STEPS: usize = 24 * 60 * 60;

/// Services' addresses begin behind those that the API server gives out by itself at first, and
/// end with its range, 10.0.0.0/16.
const SERVICES: (Ipv4Addr, usize) = (Ipv4Addr::new(10, 0, 4, 0), 0xfb00);

/// Pods' addresses, of which nobody keeps a list.
const PODS: (Ipv4Addr, usize) = (Ipv4Addr::new(10, 128, 0, 0), 1 << 23);

/// How many characters of a UID stay as they are; the rest becomes the number of the copy. What
/// stays tells the objects of one copy apart, and names that are made from a UID begin with it.
const UID_KEPT: usize = 24;

/// A machine's firmware keeps the UID that KubeVirt once drew for it, since it is part of the
/// fingerprint by which a change of the machine is told.
const FIRMWARE: [&str; 2] = [r#""serial":""#, r#""uuid":""#];

const UID_LENGTH: usize = 36;
const TIME_LENGTH: usize = "2026-01-01T00:00:00Z".len();

/// A user's objects with gaps in them.
pub struct Pattern {
    entries: Vec<(Text, Text)>,
    /// How many addresses of each kind a copy needs.
    services: usize,
    pods: usize,
}

/// A text with gaps.
struct Text(Vec<Piece>);

enum Piece {
    Same(String),
    Own(Slot),
}

/// What stands in a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Slot {
    User,
    Uid(String),
    Time(Timestamp),
    /// By number within the copy.
    Service(usize),
    /// By number within the copy.
    Pod(usize),
}

impl Pattern {
    /// Makes gaps in the objects of `user`.
    pub fn of(user: &str, own: &[Entry]) -> Result<Self> {
        ensure!(!own.is_empty(), "nothing is stored that names {user}");
        let mut services = BTreeSet::new();
        let mut pods = BTreeSet::new();
        for entry in own {
            let object = object(entry).with_context(|| {
                let args = super::APISERVER_ARGS;
                format!("{} is not JSON; the API server needs {args:?}", entry.key)
            })?;
            match object.get("kind").and_then(Value::as_str) {
                Some("Service") => services.extend(texts(&object, "/spec/clusterIPs")),
                Some("Pod") => pods.extend(texts(&object, "/status/podIPs")),
                _ => {}
            }
        }
        let gaps = Gaps {
            user: user.to_owned(),
            addresses: (services.iter().enumerate())
                .map(|(at, ip)| (ip.clone(), Slot::Service(at)))
                .chain(
                    pods.iter()
                        .enumerate()
                        .map(|(at, ip)| (ip.clone(), Slot::Pod(at))),
                )
                .collect(),
            uids: own.iter().filter_map(uid).collect(),
        };
        let entries = own.iter().map(|entry| {
            let value = String::from_utf8(entry.value.clone())?;
            anyhow::Ok((gaps.cut(&entry.key), gaps.cut(&value)))
        });
        Ok(Self {
            entries: entries.collect::<Result<_>>()?,
            services: services.len(),
            pods: pods.len(),
        })
    }

    /// Whether there are addresses enough for so many copies.
    pub fn fits(&self, copies: usize) -> Result<()> {
        for (what, each, range) in [
            ("Services", self.services, SERVICES),
            ("pods", self.pods, PODS),
        ] {
            let needed = copies * each;
            ensure!(
                needed <= range.1,
                "{needed} {what} are more than the {} addresses there are",
                range.1
            );
        }
        Ok(())
    }

    /// The objects of copy number `copy`, a user called `name`.
    pub fn copy(&self, copy: usize, name: &str) -> Vec<Entry> {
        let entry = |(key, value): &(Text, Text)| Entry {
            key: self.fill(key, copy, name),
            value: self.fill(value, copy, name).into_bytes(),
        };
        self.entries.iter().map(entry).collect()
    }

    fn fill(&self, text: &Text, copy: usize, name: &str) -> String {
        let mut filled = String::new();
        for piece in &text.0 {
            match piece {
                Piece::Same(same) => filled.push_str(same),
                Piece::Own(slot) => filled.push_str(&self.own(slot, copy, name)),
            }
        }
        filled
    }

    fn own(&self, slot: &Slot, copy: usize, name: &str) -> String {
        match slot {
            Slot::User => name.to_owned(),
            Slot::Uid(uid) => format!("{}{copy:012x}", &uid[..UID_KEPT]),
            Slot::Time(time) => earlier(*time, copy).to_string(),
            Slot::Service(at) => address(SERVICES.0, copy * self.services + at).to_string(),
            Slot::Pod(at) => address(PODS.0, copy * self.pods + at).to_string(),
        }
    }
}

/// What is replaced.
struct Gaps {
    user: String,
    addresses: HashMap<String, Slot>,
    uids: HashSet<String>,
}

impl Gaps {
    fn cut(&self, text: &str) -> Text {
        let mut pieces = Vec::new();
        let mut same = String::new();
        let mut at = 0;
        while let Some(next) = text[at..].chars().next() {
            let (before, rest) = text.split_at(at);
            if let Some((slot, length)) = self.slot(before, rest) {
                pieces.push(Piece::Same(std::mem::take(&mut same)));
                pieces.push(Piece::Own(slot));
                at += length;
            } else {
                same.push(next);
                at += next.len_utf8();
            }
        }
        pieces.push(Piece::Same(same));
        Text(pieces)
    }

    /// What `rest` begins with, and how long that is.
    fn slot(&self, before: &str, rest: &str) -> Option<(Slot, usize)> {
        if rest.starts_with(&self.user) {
            return Some((Slot::User, self.user.len()));
        }
        let uid = rest.get(..UID_LENGTH);
        if let Some(uid) = uid.and_then(|text| self.uids.get(text)) {
            if FIRMWARE.iter().any(|field| before.ends_with(field)) {
                return None;
            }
            return Some((Slot::Uid(uid.clone()), UID_LENGTH));
        }
        if let Some(time) = rest.get(..TIME_LENGTH).and_then(time) {
            return Some((Slot::Time(time), TIME_LENGTH));
        }
        let of_number = |c: char| c.is_ascii_digit() || c == '.';
        if before.ends_with(of_number) {
            return None;
        }
        let end = rest.find(|c| !of_number(c)).unwrap_or(rest.len());
        let slot = self.addresses.get(&rest[..end])?;
        Some((slot.clone(), end))
    }
}

fn time(text: &str) -> Option<Timestamp> {
    let looks = text.ends_with('Z') && text.as_bytes().get(10) == Some(&b'T');
    looks.then(|| text.parse().ok())?
}

/// All times of one copy go back by as much, so that their order stays.
fn earlier(time: Timestamp, copy: usize) -> Timestamp {
    let steps = i32::try_from(copy % STEPS).unwrap_or_default();
    time.checked_sub(STEP * steps).unwrap_or(time)
}

fn address(first: Ipv4Addr, number: usize) -> Ipv4Addr {
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    Ipv4Addr::from_bits(first.to_bits().saturating_add(number))
}

fn object(entry: &Entry) -> Option<Value> {
    serde_json::from_slice(&entry.value).ok()
}

fn uid(entry: &Entry) -> Option<String> {
    let object = object(entry)?;
    let uid = object.pointer("/metadata/uid")?.as_str()?;
    Some(uid.to_owned())
}

/// The texts of a list, or those under `ip` in its objects.
fn texts(object: &Value, list: &str) -> Vec<String> {
    let list = object.pointer(list).and_then(Value::as_array);
    let text = |item: &Value| Some(item.get("ip").unwrap_or(item).as_str()?.to_owned());
    list.into_iter().flatten().filter_map(text).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const A: &str = "3a095422-10a8-4963-ae80-d13536db16cf";
    const B: &str = "58f6e3d5-a0f6-456b-9662-2e852c390ca5";

    fn entry(key: &str, value: &Value) -> Entry {
        Entry {
            key: key.to_owned(),
            value: value.to_string().into_bytes(),
        }
    }

    fn copies_of(own: &[Entry], copy: usize, name: &str) -> Vec<(String, Value)> {
        let pattern = Pattern::of("original", own).unwrap();
        let entries = pattern.copy(copy, name);
        entries
            .into_iter()
            .map(|e| (e.key, serde_json::from_slice(&e.value).unwrap()))
            .collect()
    }

    #[test]
    fn a_copy_has_its_own_name_uids_and_times_and_keeps_the_rest() {
        let own = entry(
            &format!("/pods/original/web-{A}"),
            &json!({"kind": "Thing", "metadata": {"uid": A, "time": "2026-12-01T06:54:41Z"}, "uuid": A,
                "of": format!("original@example.org {B}"), "hash": "4aa9ab15905e164f"}),
        );
        let copies = copies_of(&[own], 0x2b, "alice");
        let uid = "3a095422-10a8-4963-ae80-00000000002b";
        let expected = json!({"kind": "Thing", "metadata": {"uid": uid, "time": "2026-12-01T06:53:58Z"}, "uuid": A,
            "of": format!("alice@example.org {B}"), "hash": "4aa9ab15905e164f"});
        assert_eq!(copies, [(format!("/pods/alice/web-{uid}"), expected)]);
    }

    #[test]
    fn addresses_of_services_and_pods_are_a_copys_own_and_no_longer_one_is_cut_short() {
        let service = |ip: &str| json!({"kind": "Service", "spec": {"clusterIPs": [ip]}});
        let pod = json!({"kind": "Pod", "status": {"hostIP": "192.0.2.1", "podIPs": [{"ip": "10.9.9.9"}]}});
        let own = [
            entry("/ipaddresses/10.0.7.1", &json!({"of": "original 10.0.7.1"})),
            entry("/s/original/1", &service("10.0.7.1")),
            entry("/s/original/2", &service("10.0.7.10")),
            entry("/p/original", &pod),
        ];
        let copies = copies_of(&own, 3, "alice");
        assert_eq!(copies[0].0, "/ipaddresses/10.0.4.6");
        assert_eq!(copies[0].1, json!({"of": "alice 10.0.4.6"}));
        assert_eq!(copies[2].1, service("10.0.4.7"));
        let pod = json!({"kind": "Pod", "status": {"hostIP": "192.0.2.1", "podIPs": [{"ip": "10.128.0.3"}]}});
        assert_eq!(copies[3].1, pod);
        let pattern = Pattern::of("original", &own).unwrap();
        pattern.fits(30_000).unwrap();
        assert!(pattern.fits(40_000).is_err());
    }

    #[test]
    fn what_is_not_stored_as_text_is_refused() {
        let own = Entry {
            key: "/p/original".to_owned(),
            value: b"k8s\0\n".to_vec(),
        };
        let refused = Pattern::of("original", &[own]).err().unwrap();
        assert!(format!("{refused:#}").contains("storage-media-type"));
    }
}
