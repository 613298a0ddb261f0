//! Prints the JSON schema of scenario files.
//!
//! ```sh
//! cargo run -p narrows-scenario --example schema
//! ```

use narrows_scenario::Settings;

fn main() {
    println!("{:#}", narrows_scenario::schema(&Settings::default()));
}
