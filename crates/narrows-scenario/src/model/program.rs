//! Flows on real stacks for which unmodified programs exchange the data.

use super::shell;
use crate::value::Value;
use crate::value::fields::{Field, List, Text, Whole};
use crate::value::reader::Reader;
use crate::value::table::{Keys, table};
use crate::value::words::words;

/// A command, split into words as a shell does. No shell runs it.
pub(crate) struct Command;

impl Field for Command {
    type Value = String;
    fn read<'v>(value: &'v Value, at: &mut Reader<'v>) -> Option<String> {
        let command = Text::<1, 4096>::read(value, at)?;
        let checked = match shell::split(&command) {
            Err(problem) => Err(format!("a command as a shell would split it ({problem})")),
            Ok(words) if words.is_empty() => Err("a program and its arguments".to_owned()),
            Ok(_) => Ok(command),
        };
        at.accept(checked, value)
    }
    fn write(value: &String, _: Keys) -> Option<Value> {
        Some(value.as_str().into())
    }
    fn schema() -> serde_json::Value {
        Text::<1, 4096>::schema()
    }
    fn words() -> String {
        "text".to_owned()
    }
}

words! {
    /// A transport protocol of the kernel.
    pub enum Protocol {
        /// TCP.
        Tcp = "tcp",
        /// UDP, which also carries QUIC.
        Udp = "udp",
    }
}

words! {
    /// An end of a flow.
    pub enum FlowEnd {
        /// The sending node.
        From = "from",
        /// The receiving node.
        To = "to",
    }
}

table! {
    /// Unmodified programs that carry a flow, on real stacks only (`--on kernel`, `--on vm`).
    ///
    /// Commands may contain `{server}` (the server's address), `{port}` and `{seconds}` (the time from the flow's start
    /// to its stop).
    pub struct Program {
        /// Command of the server. The server starts before the run, and must listen at the port.
        pub server: String as Command;
        /// Command of the client. The client starts at the flow's start, and gets SIGINT at the flow's stop.
        pub client: String as Command;
        /// Port of the server (default: a port that no other flow uses). Commands can refer to it as `{port}`.
        pub port: Option<u16> as Option<Whole<u16, 1, 65535>> = None;
        /// Protocol of the port. QUIC uses `udp`.
        pub protocol: Protocol as Protocol = Protocol::Tcp;
        /// End of the flow at which the client runs. The goodput of a flow counts only data that go from `from` to
        /// `to`. A client that downloads must therefore be at `to`.
        pub client_at: FlowEnd as FlowEnd = FlowEnd::From;
        /// Files and folders, relative to the scenario file, that the programs find in their working folder.
        pub files: Vec<String> as List<Text<1, 4096>> = Vec::new();
    }
}

/// Returns the default name of a flow: the name of the client's program.
pub(crate) fn default_name(client: &str) -> Option<String> {
    let words = shell::split(client).ok()?;
    let mut parts = words.first()?.split('/').filter(|part| !part.is_empty() && *part != ".");
    Some(parts.next_back().unwrap_or("").to_owned())
}
