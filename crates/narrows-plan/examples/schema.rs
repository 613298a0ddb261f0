//! Prints the JSON schema of plans. `crates/narrows-plan/schema.json` holds this output.
//!
//! ```sh
//! cargo run -p narrows-plan --features schema --example schema
//! ```

fn main() -> Result<(), serde_json::Error> {
    println!("{}", serde_json::to_string_pretty(&narrows_plan::schema())?);
    Ok(())
}
