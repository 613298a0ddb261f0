//! A table of typed columns, which can be converted to a data frame.

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Floats; undefined values are NaN.
    F64(Vec<f64>),
    /// Unsigned integers.
    U64(Vec<u64>),
    /// Strings.
    Str(Vec<String>),
}

/// A named table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Name, e.g. `flows`.
    pub name: &'static str,
    /// The columns in order: (name, values). All columns have the same length.
    pub columns: Vec<(&'static str, Column)>,
}

/// One cell of a row.
#[derive(Clone, Debug)]
pub enum Cell {
    /// A float.
    F(f64),
    /// An unsigned integer.
    U(u64),
    /// A string.
    S(String),
}

impl From<f64> for Cell {
    fn from(v: f64) -> Self {
        Cell::F(v)
    }
}
impl From<u64> for Cell {
    fn from(v: u64) -> Self {
        Cell::U(v)
    }
}
impl From<u32> for Cell {
    fn from(v: u32) -> Self {
        Cell::U(v as u64)
    }
}
impl From<&str> for Cell {
    fn from(v: &str) -> Self {
        Cell::S(v.to_owned())
    }
}
impl From<String> for Cell {
    fn from(v: String) -> Self {
        Cell::S(v)
    }
}
impl From<Option<f64>> for Cell {
    fn from(v: Option<f64>) -> Self {
        Cell::F(v.unwrap_or(f64::NAN))
    }
}

impl Table {
    /// Creates an empty table. Each column has a name and a type: `f` (float), `u` (unsigned integer) or `s` (string).
    pub(crate) fn new(name: &'static str, columns: &[(&'static str, char)]) -> Self {
        let columns = columns
            .iter()
            .map(|&(column, kind)| {
                let empty = match kind {
                    'u' => Column::U64(Vec::new()),
                    's' => Column::Str(Vec::new()),
                    _ => Column::F64(Vec::new()),
                };
                (column, empty)
            })
            .collect();
        Table { name, columns }
    }

    /// Adds a row. Each cell must have the type of its column, and no cell may be missing. If this rule is violated,
    /// builds with debug assertions panic. Other builds store NaN, 0 or an empty string.
    pub fn push(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let mut cells = cells.into_iter();
        for (name, column) in &mut self.columns {
            let cell = cells.next();
            debug_assert!(cell.is_some(), "{name} has no cell");
            match (column, cell) {
                (Column::F64(v), Some(Cell::F(x))) => v.push(x),
                (Column::U64(v), Some(Cell::U(x))) => v.push(x),
                (Column::Str(v), Some(Cell::S(x))) => v.push(x),
                (Column::F64(v), other) => {
                    debug_assert!(false, "{name}: {other:?}");
                    v.push(f64::NAN);
                }
                (Column::U64(v), other) => {
                    debug_assert!(false, "{name}: {other:?}");
                    v.push(0);
                }
                (Column::Str(v), other) => {
                    debug_assert!(false, "{name}: {other:?}");
                    v.push(String::new());
                }
            }
        }
        debug_assert!(cells.next().is_none(), "{}: too many cells", self.name);
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        match self.columns.first() {
            Some((_, Column::F64(v))) => v.len(),
            Some((_, Column::U64(v))) => v.len(),
            Some((_, Column::Str(v))) => v.len(),
            None => 0,
        }
    }

    /// Returns a column of floats by name.
    pub fn f64(&self, column: &str) -> Option<&[f64]> {
        self.columns.iter().find_map(|(n, c)| match c {
            Column::F64(v) if *n == column => Some(v.as_slice()),
            _ => None,
        })
    }

    /// Returns a column of integers by name.
    pub fn u64(&self, column: &str) -> Option<&[u64]> {
        self.columns.iter().find_map(|(n, c)| match c {
            Column::U64(v) if *n == column => Some(v.as_slice()),
            _ => None,
        })
    }

    /// Returns a column of strings by name.
    pub fn str(&self, column: &str) -> Option<&[String]> {
        self.columns.iter().find_map(|(n, c)| match c {
            Column::Str(v) if *n == column => Some(v.as_slice()),
            _ => None,
        })
    }
}

/// Makes a row from values of mixed types.
macro_rules! row {
    ($($cell:expr),* $(,)?) => { [$($crate::probe::Cell::from($cell)),*] };
}
pub(crate) use row;
