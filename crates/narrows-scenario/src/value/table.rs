//! The macros that declare the tables of a scenario. A declaration has the key, type, default and meaning of each field
//! in one place. The reader, the printed scenario and the hints in errors use this declaration.

use super::fields::Field;
use super::reader::Reader;
use super::{Table, Value};

/// JSON, as `serde_json` represents it.
type Json = serde_json::Value;

/// A table that [`table!`] declares.
pub(crate) trait Checked: Sized + Clone {
    /// Returns the properties of the table and of its keys.
    fn about() -> &'static About;
    /// Reads the values of all known keys.
    fn read_keys<'v>(table: &'v Table, at: &mut Reader<'v>) -> Option<Self>;
    /// Checks whether the keys fit together. The error completes "expected ...".
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
    /// Appends the keys with units.
    fn write_keys(&self, into: &mut Table, keys: Keys);

    /// Returns the table with units.
    fn write(&self, keys: Keys) -> Value {
        let mut table = Table::new();
        if let Some((key, word)) = Self::about().tag {
            table.insert(key.to_owned(), word.into());
        }
        self.write_keys(&mut table, keys);
        Value::Table(table)
    }
}

/// The keys that a printed scenario has.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// The keys that the scenario sets.
    Set,
    /// All keys that have a value, including default values.
    All,
}

/// The properties of a table.
#[derive(Debug)]
pub(crate) struct About {
    /// The name of the table's type.
    pub(crate) name: &'static str,
    /// The meaning of the table. The reference and the JSON schema print it.
    pub(crate) meaning: &'static str,
    /// The table whose keys this table also has.
    pub(crate) base: Option<fn() -> &'static About>,
    /// Keys of `base` that have another meaning in this table, with this meaning.
    pub(crate) meanings: &'static [(&'static str, &'static str)],
    /// The table's own keys.
    pub(crate) keys: &'static [Key],
    /// The key whose value identifies this table among the tables at the same place, and this value.
    pub(crate) tag: Option<(&'static str, &'static str)>,
    /// Whether the table may have further keys.
    pub(crate) is_open: bool,
}

/// A key of a table.
#[derive(Debug)]
pub(crate) struct Key {
    /// The key.
    pub(crate) name: &'static str,
    /// Another name with which programs can set the key, because `from` and `class` are keywords of Python.
    pub(crate) also: Option<&'static str>,
    /// The meaning of the key.
    pub(crate) meaning: &'static str,
    /// The kind of its values.
    pub(crate) takes: fn() -> Takes,
    /// Its values in words.
    pub(crate) words: fn() -> String,
    /// The JSON schema of its values.
    pub(crate) schema: fn() -> Json,
    /// The default, with its unit; `None`: there is no default.
    pub(crate) default: fn() -> Option<Value>,
    /// Whether the key is required.
    pub(crate) is_required: bool,
}

/// The kind of values that a key takes, as far as hints need it.
#[derive(Clone, Debug)]
pub(crate) enum Takes {
    /// A plain value.
    Plain,
    /// One of several tables, or just one table.
    Tables(Vec<&'static About>),
    /// A list of such values.
    List(Box<Takes>),
    /// An optional list of such values.
    OptionalList(Box<Takes>),
}

impl Takes {
    /// Returns all tables that values of this kind contain.
    pub(crate) fn tables(&self) -> Vec<&'static About> {
        match self {
            Takes::Plain => Vec::new(),
            Takes::Tables(tables) => tables.clone(),
            Takes::List(inner) | Takes::OptionalList(inner) => inner.tables(),
        }
    }
}

impl About {
    /// Returns all keys, except the tag.
    pub(crate) fn all_keys(&self) -> Vec<&'static Key> {
        let mut keys = self.base.map_or_else(Vec::new, |base| base().all_keys());
        keys.extend(self.keys);
        keys
    }

    /// Returns the key with this name.
    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        let own = self.keys.iter().find(|key| key.name == name || key.also == Some(name));
        own.or_else(|| self.base.and_then(|base| base().key(name)))
    }

    pub(crate) fn knows(&self, name: &str) -> bool {
        self.is_open || self.tag.is_some_and(|(tag, _)| tag == name) || self.key(name).is_some()
    }
}

/// The keys that a scenario sets in a table, as bits in the order of the table's own keys.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Given(pub(crate) u64);

impl Given {
    pub(crate) fn push(&mut self, position: &mut u32, is_given: bool) {
        self.0 |= u64::from(is_given) << (*position).min(63);
        *position += 1;
    }

    pub(crate) fn has(self, position: u32) -> bool {
        self.0 >> position.min(63) & 1 == 1
    }
}

/// Appends a key to a printed table.
pub(crate) fn write_key<F: Field>(
    into: &mut Table,
    key: &'static str,
    value: &F::Value,
    is_given: bool,
    keys: Keys,
) {
    let written = match keys {
        Keys::All => F::write(value, keys),
        Keys::Set if is_given => Some(F::write(value, keys).unwrap_or(Value::Null)),
        Keys::Set => None,
    };
    if let Some(written) = written {
        into.insert(key.to_owned(), written);
    }
}

/// Declares a table. Each field has the form `name: type as FIELD = default;`, where FIELD is a type of
/// [`fields`](super::fields). A field without default is required. `["key"]` after the name sets another key.
///
/// `with base: TYPE, "meaning";` adds the keys of another table. `tagged "kind" = "fifo"` sets the value that
/// identifies the table. `check FUNCTION` checks the table as a whole.
macro_rules! table {
    (
        $(#[doc = $about:literal])+
        pub struct $name:ident $(tagged $tag:literal = $word:literal)? $(check $check:path)? {
            $( with $base_field:ident: $base:ty, $base_doc:literal $(, $own:literal: $own_meaning:literal)*; )?
            $(
                $(#[doc = $doc:literal])+
                pub $field:ident $([$key:literal])?: $type:ty as $kind:ty $(= $default:expr)?;
            )*
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct $name {
            $( #[doc = $base_doc] pub $base_field: $base, )?
            $( $(#[doc = $doc])+ pub $field: $type, )*
            pub(crate) given: $crate::value::table::Given,
        }

        impl $crate::value::table::Checked for $name {
            fn about() -> &'static $crate::value::table::About {
                use $crate::value::table::{About, Key};
                static ABOUT: About = About {
                    name: stringify!($name),
                    meanings: &[$( $( ($own, $own_meaning), )* )?],
                    meaning: concat!($($about, "\n"),+),
                    base: {
                        #[allow(unused_mut, unused_assignments)]
                        const BASE: Option<fn() -> &'static About> = {
                            let mut base: Option<fn() -> &'static About> = None;
                            $( base = Some(<$base as $crate::value::table::Checked>::about); )?
                            base
                        };
                        BASE
                    },
                    keys: &[$(
                        Key {
                            name: $crate::value::table::key_name!($field $(, $key)?),
                            also: $crate::value::table::key_also!($field $(, $key)?),
                            meaning: concat!($($doc, "\n"),+),
                            takes: <$kind as $crate::value::fields::Field>::takes,
                            words: <$kind as $crate::value::fields::Field>::words,
                            schema: <$kind as $crate::value::fields::Field>::schema,
                            default: || {
                                let default: Option<$type> = $crate::value::table::optional!($($default)?);
                                let keys = $crate::value::table::Keys::All;
                                <$kind as $crate::value::fields::Field>::write(&default?, keys)
                            },
                            is_required: $crate::value::table::is_missing!($($default)?),
                        },
                    )*],
                    tag: $crate::value::table::optional!($(($tag, $word))?),
                    is_open: false,
                };
                &ABOUT
            }

            #[allow(unused_mut, unused_variables, unused_assignments)]
            fn read_keys<'v>(
                table: &'v $crate::value::Table, at: &mut $crate::value::reader::Reader<'v>,
            ) -> Option<Self> {
                let mut given = $crate::value::table::Given::default();
                let mut position = 0;
                $( let $base_field = <$base as $crate::value::table::Checked>::read_keys(table, at); )?
                $(
                    let $field = at.key::<$kind>(
                        table,
                        (
                            $crate::value::table::key_name!($field $(, $key)?),
                            $crate::value::table::key_also!($field $(, $key)?),
                        ),
                        $crate::value::table::optional!($($default)?),
                    );
                )*
                $(
                    let ($field, is_given) = $field?;
                    given.push(&mut position, is_given);
                )*
                Some($name { $( $base_field: $base_field?, )? $( $field, )* given })
            }

            $( fn check(&self) -> Result<(), String> { $check(self) } )?

            #[allow(unused_mut, unused_variables, unused_assignments)]
            fn write_keys(&self, into: &mut $crate::value::Table, keys: $crate::value::table::Keys) {
                let mut position = 0;
                $( $crate::value::table::Checked::write_keys(&self.$base_field, into, keys); )?
                $(
                    $crate::value::table::write_key::<$kind>(
                        into,
                        $crate::value::table::key_name!($field $(, $key)?),
                        &self.$field,
                        self.given.has(position),
                        keys,
                    );
                    position += 1;
                )*
            }
        }

        impl $crate::value::fields::Field for $name {
            type Value = $name;
            fn read<'v>(value: &'v $crate::value::Value, at: &mut $crate::value::reader::Reader<'v>) -> Option<Self> {
                at.table(value)
            }
            fn write(value: &Self, keys: $crate::value::table::Keys) -> Option<$crate::value::Value> {
                Some($crate::value::table::Checked::write(value, keys))
            }
            fn takes() -> $crate::value::table::Takes {
                $crate::value::table::Takes::Tables(vec![<$name as $crate::value::table::Checked>::about()])
            }
            fn schema() -> serde_json::Value {
                $crate::value::schema::reference(stringify!($name))
            }
            fn words() -> String {
                $crate::value::reference::link(stringify!($name))
            }
        }

        impl $name {
            /// Returns whether the scenario sets the key, rather than taking its default.
            #[allow(dead_code)]
            pub(crate) fn sets(&self, key: &str) -> bool {
                use $crate::value::table::Checked;
                let place = Self::about().keys.iter().position(|known| known.name == key);
                place.is_some_and(|place| self.given.has(place as u32))
            }

            /// Records that the scenario sets a key.
            #[allow(dead_code)]
            pub(crate) fn mark(&mut self, key: &str) {
                use $crate::value::table::Checked;
                if let Some(place) = Self::about().keys.iter().position(|known| known.name == key) {
                    self.given.push(&mut (place as u32), true);
                }
            }
        }
    };
}

/// The name of a key: that of the field, unless the declaration has another one.
macro_rules! key_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident, $key:literal) => {
        $key
    };
}

/// The other name of a key: that of the field, if the declaration has a key of its own.
macro_rules! key_also {
    ($field:ident) => {
        None
    };
    ($field:ident, $key:literal) => {
        Some(stringify!($field))
    };
}

/// Whether an expression is missing.
macro_rules! is_missing {
    () => {
        true
    };
    ($value:expr) => {
        false
    };
}

/// An expression that may be missing.
macro_rules! optional {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}

/// Declares a choice between tables. The value of the key `by` selects one of them.
macro_rules! tables {
    (
        $(#[doc = $about:literal])+
        pub enum $name:ident by $tag:literal {
            $( $(#[doc = $doc:literal])+ $variant:ident($table:ty), )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name {
            $( $(#[doc = $doc])+ $variant($table), )+
        }

        impl $name {
            /// The tables, each with its tag.
            fn tables() -> Vec<&'static $crate::value::table::About> {
                vec![$( <$table as $crate::value::table::Checked>::about() ),+]
            }

            /// Reads the table with this tag.
            fn read_tagged<'v>(
                tag: &str, value: &'v $crate::value::Value, at: &mut $crate::value::reader::Reader<'v>,
            ) -> Option<Self> {
                use $crate::value::table::Checked;
                $(
                    let word = <$table as Checked>::about().tag.map_or("", |(_, word)| word);
                    if tag == word {
                        let part = $crate::value::reader::Part::Form(word);
                        return at.inside(part, |at| at.table::<$table>(value)).map($name::$variant);
                    }
                )+
                let tags = $name::tables().iter().filter_map(|table| table.tag).map(|(_, word)| word).collect();
                at.report($crate::value::problem::Kind::WrongTag { tag: $tag, word: tag.to_owned(), tags }, value);
                None
            }

            /// Reads a table with a tag.
            #[allow(dead_code)]
            fn read_table<'v>(
                value: &'v $crate::value::Value, at: &mut $crate::value::reader::Reader<'v>,
            ) -> Option<Self> {
                match value.get($tag) {
                    Some(word) => Self::read_tagged(&word.display(), value, at),
                    None => {
                        let tags = $name::tables().iter().filter_map(|table| table.tag).map(|(_, word)| word).collect();
                        at.report($crate::value::problem::Kind::NoTag { tag: $tag, tags }, value);
                        None
                    }
                }
            }

            /// The JSON schema of the tables.
            fn tables_schema() -> serde_json::Value {
                $crate::value::schema::one_of($tag, &Self::tables())
            }

            fn write_table(&self, keys: $crate::value::table::Keys) -> $crate::value::Value {
                match self {
                    $( $name::$variant(table) => $crate::value::table::Checked::write(table, keys), )+
                }
            }
        }
    };
}

pub(crate) use {is_missing, key_also, key_name, optional, table, tables};
