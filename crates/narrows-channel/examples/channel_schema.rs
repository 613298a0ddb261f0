//! Prints the JSON schema of the agents' channel. `crates/narrows-channel/schema.json` holds this output.
//!
//! ```sh
//! cargo run -p narrows-channel --features schema --example channel_schema
//! ```

fn main() -> Result<(), serde_json::Error> {
    println!("{}", serde_json::to_string_pretty(&narrows_channel::schema())?);
    Ok(())
}
