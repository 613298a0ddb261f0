//! Fields whose value is one of a few words.

/// Declares a choice between words.
macro_rules! words {
    (
        $(#[doc = $about:literal])+
        pub enum $name:ident {
            $( $(#[doc = $doc:literal])+ $variant:ident = $word:literal, )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        pub enum $name {
            $( $(#[doc = $doc])+ $variant, )+
        }

        impl $name {
            /// The word in scenarios.
            pub fn word(self) -> &'static str {
                match self { $( $name::$variant => $word, )+ }
            }
        }

        impl $crate::value::fields::Field for $name {
            type Value = $name;
            fn read<'v>(
                value: &'v $crate::value::Value, at: &mut $crate::value::reader::Reader<'v>,
            ) -> Option<Self> {
                match value.as_text() {
                    $( Some($word) => Some($name::$variant), )+
                    _ => {
                        at.report($crate::value::problem::Kind::Word(vec![$($word),+]), value);
                        None
                    }
                }
            }
            fn write(value: &Self, _: $crate::value::table::Keys) -> Option<$crate::value::Value> {
                Some(value.word().into())
            }
            fn schema() -> serde_json::Value {
                $crate::value::schema::words(&[$($word),+])
            }
            fn words() -> String {
                $crate::value::reference::quoted(&[$($word),+])
            }
        }
    };
}
pub(crate) use words;
