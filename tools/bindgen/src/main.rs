//! Makes JavaScript and declarations for TypeScript from a WebAssembly module.
//!
//!     narrows-bindgen MODULE FOLDER

use std::error::Error;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args_os().skip(1);
    let (Some(module), Some(folder)) = (words.next(), words.next()) else {
        return Err("expected MODULE FOLDER".into());
    };
    let mut bindgen = Bindgen::new();
    // A classic script also works from a file, where browsers refuse modules.
    bindgen.input_path(module).no_modules(true)?.typescript(true);
    bindgen.remove_name_section(true).remove_producers_section(true);
    Ok(bindgen.generate(folder)?)
}
