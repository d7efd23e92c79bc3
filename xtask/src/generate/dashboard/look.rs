//! What a panel is, and how each look of it is told to Grafana.

use serde_json::{Value, json};

/// How a panel looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// One number each, of now.
    Number,
    /// Lines over time.
    Lines,
    /// Areas that add up.
    Areas,
    /// Observations by size and time.
    Heat,
}

impl Look {
    pub(super) fn plugin(self) -> &'static str {
        match self {
            Self::Number => "stat",
            Self::Lines | Self::Areas => "timeseries",
            Self::Heat => "heatmap",
        }
    }

    /// Columns and rows of the page.
    pub(super) fn size(self) -> (u32, u32) {
        match self {
            Self::Number => (6, 4),
            Self::Lines | Self::Areas | Self::Heat => (8, 8),
        }
    }

    pub(super) fn is_of_now(self) -> bool {
        self == Self::Number
    }

    pub(super) fn options(self) -> Value {
        match self {
            Self::Number => json!({
                "reduceOptions": { "calcs": ["lastNotNull"], "fields": "", "values": false },
                "colorMode": "value",
                "graphMode": "none",
                "textMode": "value_and_name",
            }),
            Self::Lines | Self::Areas => json!({
                "legend": { "displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"] },
                "tooltip": { "mode": "multi", "sort": "desc" },
            }),
            Self::Heat => json!({
                "calculate": false,
                "color": { "mode": "scheme", "scheme": "Oranges", "steps": 64 },
                "yAxis": { "unit": "s" },
                "tooltip": { "mode": "single" },
            }),
        }
    }
}

/// One panel.
pub(super) struct Panel {
    pub(super) title: &'static str,
    /// What it shows, in a sentence.
    pub(super) about: &'static str,
    pub(super) look: Look,
    /// Grafana's word for the unit.
    pub(super) unit: &'static str,
    /// Queries with their legends.
    pub(super) queries: &'static [(&'static str, &'static str)],
    /// Values that have a word and a colour.
    pub(super) words: &'static [(&'static str, &'static str, &'static str)],
}

/// Panels under one heading.
pub(super) struct Row {
    pub(super) title: &'static str,
    pub(super) panels: &'static [Panel],
}

pub(super) const fn panel(
    look: Look,
    title: &'static str,
    unit: &'static str,
    about: &'static str,
    queries: &'static [(&'static str, &'static str)],
) -> Panel {
    Panel {
        title,
        about,
        look,
        unit,
        queries,
        words: &[],
    }
}

impl Panel {
    pub(super) const fn words(
        mut self,
        words: &'static [(&'static str, &'static str, &'static str)],
    ) -> Self {
        self.words = words;
        self
    }
}
