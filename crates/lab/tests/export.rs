//! Exported files: what is in them, and that the Parquet file is the one that another reader has read.

use std::collections::BTreeMap;

use weir_lab::export::{self, Column, Parquet, Table, Values};
use weir_lab::results::{Results, Row, Value};

fn results() -> Results {
    let row = |clients: f64, variant: &str, seed, loss: Option<f64>| Row {
        point: BTreeMap::from([
            ("clients".to_owned(), Value::Number(clients)),
            ("variant".to_owned(), Value::Word(variant.to_owned())),
        ]),
        seed,
        metrics: loss.map(|loss| ("loss".to_owned(), loss)).into_iter().collect(),
        series: BTreeMap::from([("rate".to_owned(), vec![(0.5, 100.0), (1.0, f64::from(seed as u32))])]),
    };
    let rows = vec![row(2.0, "AVMRC, literal", 1, Some(0.1 + 0.2)), row(64.0, "said \"so\"", 2, None)];
    Results { scenario: "test/small".to_owned(), rows }
}

#[test]
fn csv_has_a_line_a_run_with_quotes_where_needed_and_nothing_where_nothing_is() {
    let expected = "scenario,clients,variant,seed,loss\r\n\
                    test/small,2,\"AVMRC, literal\",1,0.30000000000000004\r\n\
                    test/small,64,\"said \"\"so\"\"\",2,\r\n";
    assert_eq!(export::runs(&results()).to_csv(), expected);
}

#[test]
fn series_have_a_line_a_value() {
    let csv = export::series(&results()).to_csv();
    assert_eq!(csv.lines().count(), 1 + 4);
    assert_eq!(csv.lines().nth(2), Some("test/small,2,\"AVMRC, literal\",1,rate,1,1"));
}

#[test]
fn json_reads_back_as_the_results() {
    let read: Results = serde_json::from_str(&export::json(&results())).expect("it is JSON");
    assert_eq!(read, results());
}

/// pyarrow 26 read `runs.parquet` with `pyarrow.parquet.read_table`, with the types and values of the CSV above, and a null
/// where that has nothing.
#[test]
fn the_parquet_file_is_the_one_that_pyarrow_has_read() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/runs.parquet");
    let file = export::runs(&results()).to_parquet();
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(&path, &file).expect("it can be written");
    }
    assert_eq!(std::fs::read(&path).expect("it is there"), file);
}

/// pyarrow 26 read `groups.parquet`, too: three row groups of 2, 0 and 1 rows, `a` = 1, null, 3 and `b` = x, y, null.
#[test]
fn a_parquet_file_of_several_groups_is_the_one_that_pyarrow_has_read() {
    let group = |integers: &[Option<i64>], words: &[Option<&str>]| {
        let words = words.iter().map(|word| word.map(str::to_owned)).collect();
        let column = |name: &str, values| Column { name: name.to_owned(), values };
        Table { columns: vec![column("a", Values::Integers(integers.to_vec())), column("b", Values::Words(words))] }
    };
    let mut file = Parquet::new(Vec::new());
    for table in [group(&[Some(1), None], &[Some("x"), Some("y")]), group(&[], &[]), group(&[Some(3)], &[None])] {
        file.write(&table).expect("memory takes everything");
    }
    let file = file.finish().expect("memory takes everything");
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/groups.parquet");
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(&path, &file).expect("it can be written");
    }
    assert_eq!(std::fs::read(&path).expect("it is there"), file);
}

#[test]
fn a_table_without_rows_is_a_file_too() {
    let none = Results { rows: Vec::new(), ..results() };
    assert_eq!(export::runs(&none).to_csv(), "scenario,seed\r\n");
    let file = export::runs(&none).to_parquet();
    assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
}
