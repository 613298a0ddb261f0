//! Converts serialisable Rust values to Python objects, for plans. Unlike JSON, this conversion keeps pairs as tuples.

use std::fmt;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyList, PyString, PyTuple};
use serde::ser::{self, Serialize};

/// Returns a value as Python objects: structures as dicts, sequences as lists, tuples as tuples.
pub(super) fn object<'py, T: Serialize>(py: Python<'py>, value: &T) -> PyResult<Bound<'py, PyAny>> {
    value.serialize(ToPython(py)).map_err(|Failure(error)| error)
}

#[derive(Debug)]
struct Failure(PyErr);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Failure {}

impl ser::Error for Failure {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Failure(PyValueError::new_err(message.to_string()))
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Failure(error)
    }
}

type Object<'py> = Bound<'py, PyAny>;

#[derive(Copy, Clone)]
struct ToPython<'py>(Python<'py>);

/// The items of a sequence or tuple.
struct Items<'py> {
    py: Python<'py>,
    items: Vec<Object<'py>>,
    is_tuple: bool,
    /// The name of an enum's variant, which encloses the items.
    variant: Option<&'static str>,
}

impl<'py> Items<'py> {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        self.items.push(value.serialize(ToPython(self.py))?);
        Ok(())
    }

    fn finish(self) -> Result<Object<'py>, Failure> {
        let made = if self.is_tuple {
            PyTuple::new(self.py, self.items)?.into_any()
        } else {
            PyList::new(self.py, self.items)?.into_any()
        };
        enclosed(self.py, self.variant, made)
    }
}

/// The entries of a map or structure.
struct Entries<'py> {
    dict: Bound<'py, PyDict>,
    key: Option<Object<'py>>,
    variant: Option<&'static str>,
}

impl<'py> Entries<'py> {
    fn new(py: Python<'py>, variant: Option<&'static str>) -> Self {
        Entries { dict: PyDict::new(py), key: None, variant }
    }

    fn insert<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Failure> {
        let py = self.dict.py();
        self.dict.set_item(PyString::intern(py, key), value.serialize(ToPython(py))?)?;
        Ok(())
    }

    fn finish(self) -> Result<Object<'py>, Failure> {
        enclosed(self.dict.py(), self.variant, self.dict.into_any())
    }
}

fn enclosed<'py>(
    py: Python<'py>,
    variant: Option<&'static str>,
    inner: Object<'py>,
) -> Result<Object<'py>, Failure> {
    let Some(variant) = variant else { return Ok(inner) };
    let dict = PyDict::new(py);
    dict.set_item(variant, inner)?;
    Ok(dict.into_any())
}

macro_rules! numbers {
    ($($method:ident: $type:ty),*) => {$(
        fn $method(self, value: $type) -> Result<Object<'py>, Failure> {
            Ok(value.into_pyobject(self.0).map_err(PyErr::from)?.to_owned().into_any())
        }
    )*};
}

impl<'py> ser::Serializer for ToPython<'py> {
    type Ok = Object<'py>;
    type Error = Failure;
    type SerializeSeq = Items<'py>;
    type SerializeTuple = Items<'py>;
    type SerializeTupleStruct = Items<'py>;
    type SerializeTupleVariant = Items<'py>;
    type SerializeMap = Entries<'py>;
    type SerializeStruct = Entries<'py>;
    type SerializeStructVariant = Entries<'py>;

    numbers!(
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64
    );

    fn serialize_f32(self, value: f32) -> Result<Object<'py>, Failure> {
        self.serialize_f64(f64::from(value))
    }
    fn serialize_f64(self, value: f64) -> Result<Object<'py>, Failure> {
        Ok(PyFloat::new(self.0, value).into_any())
    }
    fn serialize_char(self, value: char) -> Result<Object<'py>, Failure> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }
    fn serialize_str(self, value: &str) -> Result<Object<'py>, Failure> {
        Ok(PyString::new(self.0, value).into_any())
    }
    fn serialize_bytes(self, value: &[u8]) -> Result<Object<'py>, Failure> {
        value.serialize(self)
    }
    fn serialize_none(self) -> Result<Object<'py>, Failure> {
        self.serialize_unit()
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Object<'py>, Failure> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<Object<'py>, Failure> {
        Ok(self.0.None().into_bound(self.0))
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<Object<'py>, Failure> {
        self.serialize_unit()
    }
    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Object<'py>, Failure> {
        Ok(PyString::intern(self.0, variant).into_any())
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Object<'py>, Failure> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Object<'py>, Failure> {
        enclosed(self.0, Some(variant), value.serialize(self)?)
    }
    fn serialize_seq(self, length: Option<usize>) -> Result<Items<'py>, Failure> {
        let items = Vec::with_capacity(length.unwrap_or_default());
        Ok(Items { py: self.0, items, is_tuple: false, variant: None })
    }
    fn serialize_tuple(self, length: usize) -> Result<Items<'py>, Failure> {
        Ok(Items { is_tuple: true, ..self.serialize_seq(Some(length))? })
    }
    fn serialize_tuple_struct(self, _: &'static str, length: usize) -> Result<Items<'py>, Failure> {
        self.serialize_tuple(length)
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Items<'py>, Failure> {
        Ok(Items { variant: Some(variant), ..self.serialize_tuple(length)? })
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Entries<'py>, Failure> {
        Ok(Entries::new(self.0, None))
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Entries<'py>, Failure> {
        Ok(Entries::new(self.0, None))
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Entries<'py>, Failure> {
        Ok(Entries::new(self.0, Some(variant)))
    }
}

macro_rules! items {
    ($($trait:ident: $method:ident),*) => {$(
        impl<'py> ser::$trait for Items<'py> {
            type Ok = Object<'py>;
            type Error = Failure;
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
                self.push(value)
            }
            fn end(self) -> Result<Object<'py>, Failure> {
                self.finish()
            }
        }
    )*};
}

items!(
    SerializeSeq: serialize_element, SerializeTuple: serialize_element, SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field
);

macro_rules! structures {
    ($($trait:ident),*) => {$(
        impl<'py> ser::$trait for Entries<'py> {
            type Ok = Object<'py>;
            type Error = Failure;
            fn serialize_field<T: Serialize + ?Sized>(
                &mut self, key: &'static str, value: &T,
            ) -> Result<(), Failure> {
                self.insert(key, value)
            }
            fn end(self) -> Result<Object<'py>, Failure> {
                self.finish()
            }
        }
    )*};
}

structures!(SerializeStruct, SerializeStructVariant);

impl<'py> ser::SerializeMap for Entries<'py> {
    type Ok = Object<'py>;
    type Error = Failure;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Failure> {
        self.key = Some(key.serialize(ToPython(self.dict.py()))?);
        Ok(())
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        let key =
            self.key.take().ok_or_else(|| <Failure as ser::Error>::custom("found a value without a key"))?;
        self.dict.set_item(key, value.serialize(ToPython(self.dict.py()))?)?;
        Ok(())
    }
    fn end(self) -> Result<Object<'py>, Failure> {
        self.finish()
    }
}
