//! Result tables as Arrow record batches and as files in Arrow's IPC format.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_ipc::writer::FileWriter;
use arrow_schema::ArrowError;

use super::table::{Column, Table};
use crate::Results;

impl Table {
    /// Returns the table as an Arrow record batch. Floats become `Float64` (undefined values stay NaN), integers
    /// `UInt64` and strings `Utf8`.
    ///
    /// # Errors
    ///
    /// Returns an error if the columns differ in length.
    pub fn to_arrow(&self) -> Result<RecordBatch, ArrowError> {
        let columns = self.columns.iter().map(|(name, column)| {
            let array: ArrayRef = match column {
                Column::F64(values) => Arc::new(Float64Array::from(values.clone())),
                Column::U64(values) => Arc::new(UInt64Array::from(values.clone())),
                Column::Str(values) => Arc::new(StringArray::from_iter_values(values)),
            };
            (*name, array, false)
        });
        RecordBatch::try_from_iter_with_nullable(columns)
    }
}

impl Results {
    /// Writes each table to `<folder>/<table>.arrow`, in Arrow's IPC file format (Feather version 2). Creates the
    /// folder if it is missing. Replaces existing files of these names.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be written. Each table is first written to `<table>.arrow.part`. When this
    /// file is complete, it is renamed. Every `.arrow` file is therefore complete, even if the program is killed.
    pub fn write_arrow(&self, folder: &Path) -> Result<(), ArrowError> {
        fs::create_dir_all(folder)?;
        for table in &self.tables {
            let batch = table.to_arrow()?;
            let part = folder.join(format!("{}.arrow.part", table.name));
            let mut writer = FileWriter::try_new(File::create(&part)?, &batch.schema())?;
            writer.write(&batch)?;
            writer.finish()?;
            drop(writer);
            fs::rename(part, folder.join(format!("{}.arrow", table.name)))?;
        }
        Ok(())
    }
}
