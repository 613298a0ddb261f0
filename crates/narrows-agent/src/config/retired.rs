//! Names of version 0.2 that a file may still use. The next release refuses them.

use toml::{Table, Value};

/// Keys of `[[ports]]`: old name and current name.
const PORT_KEYS: [(&str, &str); 1] = [("controller", "rate_controller")];

/// Renames keys to their current names. Returns the path of each renamed key and its current name.
///
/// If a port has a key under both names, the old name stays. The check of the table then refuses the old name as an
/// unknown key.
pub(super) fn rename(table: &mut Table) -> Vec<(String, &'static str)> {
    let mut renamed = Vec::new();
    let ports = table.get_mut("ports").and_then(Value::as_array_mut);
    for (number, port) in ports.into_iter().flatten().enumerate() {
        let Some(port) = port.as_table_mut() else { continue };
        for (old, new) in PORT_KEYS {
            if port.contains_key(new) {
                continue;
            }
            if let Some(value) = port.remove(old) {
                port.insert(new.to_owned(), value);
                renamed.push((format!("ports[{number}].{old}"), new));
            }
        }
    }
    renamed
}

/// Reports an old name on standard error, with its place and the current name.
pub(crate) fn report(source: &str, old: &str, new: &str) {
    eprintln!("{source}: '{old}' is now '{new}'; the next release refuses the old name");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renamed(content: &str) -> (Table, Vec<(String, &'static str)>) {
        let mut table = content.parse().unwrap();
        let names = rename(&mut table);
        (table, names)
    }

    #[test]
    fn the_old_key_of_a_port_gets_its_current_name() {
        let (table, names) = renamed("[[ports]]\nrate_controller = 'brf'\n[[ports]]\ncontroller = 'rcp'");
        assert_eq!(names, [("ports[1].controller".to_owned(), "rate_controller")]);
        let kinds =
            table["ports"].as_array().unwrap().iter().map(|port| port["rate_controller"].as_str().unwrap());
        assert_eq!(kinds.collect::<Vec<_>>(), ["brf", "rcp"]);
    }

    #[test]
    fn other_tables_and_ports_with_both_names_stay() {
        for content in
            ["[controller]\naddress = 'a'", "ports = 1", "[[ports]]\ncontroller = 'a'\nrate_controller = 'b'"]
        {
            let (table, names) = renamed(content);
            assert!(names.is_empty(), "{content}");
            assert_eq!(table, content.parse().unwrap());
        }
    }
}
