//! Lists every built-in congestion controller and rate controller with its description.
//!
//! ```sh
//! cargo run -p narrows-control --example list_controllers
//! ```

use narrows_control::{catalogue, rate};

fn main() {
    println!("At the sender:");
    for entry in catalogue::all() {
        println!("  {:16} {}", entry.name, entry.summary);
    }
    println!("In the network:");
    for entry in rate::registry::all() {
        println!("  {:16} {}", entry.name, entry.summary);
    }
}
