//! Stand-ins for KubeVirt and CDI, labelled as such wherever they show.
