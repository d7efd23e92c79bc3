//! A table for a terminal: columns as wide as what stands in them, numbers to the right.

use std::fmt;

/// Rows under headings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<'a>(headings: impl IntoIterator<Item = &'a str>) -> Self {
        let mut table = Self::default();
        table.row(headings.into_iter().map(str::to_owned));
        table
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let cells = |column| self.rows.iter().filter_map(move |row| row.get(column));
        let widths: Vec<usize> = (0..columns)
            .map(|column| cells(column).map(|cell| width(cell)).max().unwrap_or(0))
            .collect();
        let numeric: Vec<bool> = (0..columns)
            .map(|column| cells(column).skip(1).all(|cell| is_number(cell)))
            .collect();
        for (number, row) in self.rows.iter().enumerate() {
            let line: Vec<String> = row
                .iter()
                .enumerate()
                .map(|(column, cell)| {
                    let space = " ".repeat(widths[column] - width(cell));
                    if numeric[column] {
                        space + cell
                    } else {
                        cell.clone() + &space
                    }
                })
                .collect();
            let end = if number + 1 == self.rows.len() {
                ""
            } else {
                "\n"
            };
            write!(formatter, "{}{end}", line.join("  ").trim_end())?;
        }
        Ok(())
    }
}

fn width(cell: &str) -> usize {
    cell.chars().count()
}

/// Digits, perhaps with a unit behind them; a dash stands for none.
fn is_number(cell: &str) -> bool {
    cell.is_empty() || cell == "–" || cell.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_left_and_numbers_right() {
        let mut table = Table::new(["step", "time", "requests"]);
        table.row(["user".to_owned(), "1.2 s".to_owned(), "9".to_owned()]);
        table.row([
            "machine – on".to_owned(),
            "12.0 s".to_owned(),
            "–".to_owned(),
        ]);
        let expected = "\
step            time  requests
user           1.2 s         9
machine – on  12.0 s         –";
        assert_eq!(table.to_string(), expected);
    }
}
