//! Makes JavaScript and declarations for TypeScript from a WebAssembly module.
//!
//!     narrows-bindgen MODULE FOLDER script|module

use std::error::Error;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args_os().skip(1);
    let (Some(module), Some(folder), Some(kind)) = (words.next(), words.next(), words.next()) else {
        return Err("expected MODULE FOLDER script|module".into());
    };
    let mut bindgen = Bindgen::new();
    bindgen.input_path(module).typescript(true);
    match kind.to_str() {
        // A classic script also works from a file, where browsers refuse modules.
        Some("script") => bindgen.no_modules(true)?,
        Some("module") => bindgen.web(true)?,
        _ => return Err("expected script or module".into()),
    };
    bindgen.remove_name_section(true).remove_producers_section(true);
    Ok(bindgen.generate(folder)?)
}
