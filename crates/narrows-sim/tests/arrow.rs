//! Tests that result tables are unchanged after they are written to Arrow IPC files and read back.

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use arrow_array::{Float64Array, StringArray, UInt64Array};
use arrow_ipc::reader::FileReader;
use narrows_control::units::{Bytes, Rate, Span};
use narrows_sim::plan::{AppPlan, FlowPlan, LimitPlan, LinkPlan, Plan};
use narrows_sim::{Column, Results, Table};

fn results() -> Results {
    let rate = Rate::from_bits_per_sec(10_000_000);
    let link = |name: &str, ends, limit| LinkPlan::new(name, ends, rate, Span::from_millis(10), limit);
    let sized = AppPlan::Size { bytes: Bytes::new(500_000) };
    let plan = Plan {
        seed: 7,
        duration: Span::from_secs(2),
        nodes: vec!["a".into(), "b".into()],
        links: vec![link("a->b", (0, 1), LimitPlan::packets(20)), link("b->a", (1, 0), LimitPlan::default())],
        flows: vec![
            FlowPlan { app: sized, ..FlowPlan::bulk("zwölf", (0, 1), "cubic") },
            FlowPlan::bulk("bulk", (0, 1), "bbr"),
        ],
        ..Plan::default()
    };
    narrows_sim::run(&plan, &AtomicBool::new(false)).expect("a run")
}

/// A folder for the files of one test. It is removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        Folder(std::env::temp_dir().join(format!("narrows-arrow-{name}-{}", std::process::id())))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Compares floats by their bits, because undefined values are NaN, and NaN is not equal to itself.
fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn files_contain_every_table_with_every_value() {
    let (results, folder) = (results(), Folder::new("all"));
    results.write_arrow(&folder.0).expect("files");
    let mut rows = 0;
    for table in &results.tables {
        let file = File::open(folder.0.join(format!("{}.arrow", table.name))).expect("a file");
        let batches: Vec<_> = FileReader::try_new(file, None).expect("an IPC file").collect();
        let [Ok(batch)] = batches.as_slice() else { panic!("{}: {} batches", table.name, batches.len()) };
        assert_eq!(batch.num_rows(), table.rows(), "{}", table.name);
        assert_eq!(batch.num_columns(), table.columns.len(), "{}", table.name);
        rows += batch.num_rows();
        for (name, column) in &table.columns {
            let array = batch.column_by_name(name).expect(name).as_any();
            match column {
                Column::F64(values) => {
                    let array = array.downcast_ref::<Float64Array>().expect("floats");
                    assert_eq!(bits(array.values()), bits(values), "{name}");
                }
                Column::U64(values) => {
                    let array = array.downcast_ref::<UInt64Array>().expect("integers");
                    assert_eq!(&array.values()[..], values, "{name}");
                }
                Column::Str(values) => {
                    let array = array.downcast_ref::<StringArray>().expect("strings");
                    assert!(array.iter().eq(values.iter().map(|value| Some(value.as_str()))), "{name}");
                }
            }
        }
    }
    assert!(rows > 10, "{rows}");
    let files = fs::read_dir(&folder.0).expect("a folder").count();
    assert_eq!(files, results.tables.len(), "only complete files stay");
}

#[test]
fn a_second_run_replaces_the_files_of_the_first() {
    let (results, folder) = (results(), Folder::new("twice"));
    results.write_arrow(&folder.0).expect("files");
    let flows = folder.0.join("flows.arrow");
    let first = fs::read(&flows).expect("a file");
    fs::write(&flows, "damaged").expect("a file");
    results.write_arrow(&folder.0).expect("files");
    assert_eq!(fs::read(&flows).expect("a file"), first);
}

#[test]
fn columns_of_different_length_are_an_error() {
    let columns = vec![("a", Column::U64(vec![1])), ("b", Column::F64(vec![1.0, 2.0]))];
    assert!(Table { name: "uneven", columns }.to_arrow().is_err());
}
