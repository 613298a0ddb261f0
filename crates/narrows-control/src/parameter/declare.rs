//! The macros that declare parameters.

/// Declares a structure of parameters, and implements [`Parameters`](crate::parameter::Parameters) for it.
///
/// The doc comment of a field is the meaning of the parameter. The last expression of a field states the accepted
/// values, the unit and the source. Fields in a second block, after `and`, are not parameters.
///
/// ```
/// use narrows_control::parameter::{Parameters, Value, number};
///
/// narrows_control::parameters! {
///     /// Parameters of a window that multiplies.
///     pub struct Params {
///         /// Factor per round trip.
///         pub factor: f64 = 2.0, number(1.0, 8.0).from("invented");
///     }
/// }
///
/// let values = [("factor".to_owned(), Value::Number(3.0))].into();
/// assert_eq!(Params::default().with("", &values).factor, 3.0);
/// ```
#[macro_export]
macro_rules! parameters {
    (
        $(#[$about:meta])*
        $vis:vis struct $name:ident {
            $( $(#[doc = $doc:literal])+ $field_vis:vis $field:ident: $type:ty = $default:expr, $shape:expr; )*
        }
        $( and { $( $(#[doc = $other_doc:literal])+ $other_vis:vis $other:ident: $other_type:ty = $other_default:expr; )* } )?
    ) => {
        $crate::parameters! {
            $(#[$about])*
            $vis struct $name without default {
                $( $(#[doc = $doc])+ $field_vis $field: $type, $shape; )*
            }
            $( and { $( $(#[doc = $other_doc])+ $other_vis $other: $other_type; )* } )?
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $( $field: $default, )* $( $( $other: $other_default, )* )? }
            }
        }
    };
    (
        $(#[$about:meta])*
        $vis:vis struct $name:ident without default {
            $( $(#[doc = $doc:literal])+ $field_vis:vis $field:ident: $type:ty, $shape:expr; )*
        }
        $( and { $( $(#[doc = $other_doc:literal])+ $other_vis:vis $other:ident: $other_type:ty; )* } )?
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $name {
            $( $(#[doc = $doc])+ $field_vis $field: $type, )*
            $( $( $(#[doc = $other_doc])+ $other_vis $other: $other_type, )* )?
        }

        impl $crate::parameter::Parameters for $name {
            const TABLE: &'static [$crate::parameter::Parameter] = &[
                $( $crate::parameter::Parameter::new(stringify!($field), concat!($($doc),+), $shape), )*
            ];

            fn values(&self) -> Vec<$crate::parameter::Value> {
                vec![ $( $crate::parameter::Field::value(&self.$field, &$shape), )* ]
            }

            fn set(&mut self, name: &str, value: &$crate::parameter::Value) -> bool {
                $(
                    let shape = &$shape;
                    if name == shape.name.unwrap_or(stringify!($field)) {
                        let read = $crate::parameter::Field::read(value, shape);
                        return read.map(|value| self.$field = value).is_some();
                    }
                )*
                false
            }
        }
    };
}

/// Declares an enumeration with values that scenarios write as words.
#[macro_export]
macro_rules! words {
    (
        $(#[$about:meta])*
        $vis:vis enum $name:ident {
            $( $(#[$doc:meta])* $variant:ident = $word:literal, )+
        }
    ) => {
        $(#[$about])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        $vis enum $name {
            $( $(#[$doc])* $variant, )+
        }

        impl $name {
            /// The words, in the order of the values.
            pub const WORDS: &'static [&'static str] = &[$($word),+];
        }

        impl $crate::parameter::Field for $name {
            fn read(value: &$crate::parameter::Value, _shape: &$crate::parameter::Shape) -> Option<Self> {
                match value {
                    $( $crate::parameter::Value::Word(word) if word == $word => Some($name::$variant), )+
                    _ => None,
                }
            }
            fn value(&self, _shape: &$crate::parameter::Shape) -> $crate::parameter::Value {
                let word = match self { $( $name::$variant => $word, )+ };
                $crate::parameter::Value::Word(word.into())
            }
        }
    };
}
