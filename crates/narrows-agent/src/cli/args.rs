//! Commands and options. Options that replace a configuration file are converted into the table of such a file.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueHint};
use toml::{Table, Value};

use super::cc::CcCommand;
use super::shown;
use crate::config::{self, Config, Invalid, Problem, retired};

/// Explicit rate control on stock Linux: switches write rates into ACKs, and senders pace at these rates
#[derive(Debug, Parser)]
#[command(name = "narrows-agent", version)]
pub struct Args {
    /// The subcommand.
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Control ports of this machine: count flows, allocate rates, write rates into ACKs
    Switch(SwitchArgs),
    /// Pace TCP connections of this host at the rates that switches write
    Sender(SenderArgs),
    /// Reserve space for rates in the ACKs of this host (optional)
    Receiver(HostArgs),
    /// Check configuration files; exit with 2 if one is wrong
    Check {
        /// Configuration files
        #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
        files: Vec<PathBuf>,
    },
    /// Print the state of running agents
    Status {
        /// Name of the agent (default: every agent that runs on this host)
        #[arg(long)]
        name: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Largest number of flows to list (default: 0)
        #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
        flows: usize,
    },
    /// Show the flows of a running agent, updated twice a second
    Top {
        /// Name of the agent (default: the only agent that runs on this host)
        #[arg(long)]
        name: Option<String>,
    },
    /// Load congestion control algorithms of the papers into the kernel, for any program of this host
    #[command(subcommand)]
    Cc(CcCommand),
    /// Make a key and a certificate for the channel between agents and controller
    ///
    /// Writes NAME.key, which stays on this machine, and NAME.crt, which the other side trusts. The certificate
    /// is valid until 2120. NAME is the controller's name, or the name in [controller] of an agent's configuration.
    Key {
        /// Name of the agent or of the controller
        #[arg(value_parser = key_name)]
        name: String,
        /// Folder for the two files (default: the current one)
        #[arg(long, value_hint = ValueHint::DirPath, default_value = ".", hide_default_value = true)]
        folder: PathBuf,
    },
    /// Remove all objects that killed agents have left behind; objects of running agents stay
    Clean {
        /// Network namespace to clean (default: every namespace that has a name or a process)
        #[arg(long, value_name = "NAME")]
        netns: Option<String>,
    },
    /// Write the man pages and shell completions into a folder
    #[command(hide = true)]
    Generate {
        /// Folder for man1/, bash/, zsh/ and fish/
        #[arg(value_hint = ValueHint::DirPath)]
        folder: PathBuf,
    },
    /// Wait until the agent that started this process has ended, then clean up
    #[command(hide = true, name = crate::guard::SUBCOMMAND)]
    Guardian,
}

#[derive(Debug, ClapArgs)]
pub(super) struct SwitchArgs {
    /// Configuration file to use instead of --port and --also
    #[arg(
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        conflicts_with_all = ["ports", "also"],
        required_unless_present = "ports"
    )]
    config: Option<PathBuf>,
    /// Port to control and the rate of its link, e.g. eth1=100mbit or eth1=measured; may be repeated
    #[arg(long = "port", value_name = "INTERFACE=RATE")]
    ports: Vec<String>,
    /// Interface through which ACKs leave, if it is not a controlled port; may be repeated
    #[arg(long, value_name = "INTERFACE")]
    also: Vec<String>,
    /// Rate controller of every port: brf, rcp, bdr or pacec (default: from the file, or brf)
    #[arg(long, value_name = "NAME")]
    rate_controller: Option<String>,
    /// Name of the option --rate-controller in version 0.2
    #[arg(long, value_name = "NAME", hide = true, conflicts_with = "rate_controller")]
    controller: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(super) struct SenderArgs {
    #[command(flatten)]
    host: HostArgs,
    /// Interface through which data leaves. There, one data packet per RTT states whether the application
    /// limits the flow; may be repeated
    #[arg(long = "interface", value_name = "INTERFACE", conflicts_with = "config")]
    interfaces: Vec<String>,
    /// brf, or cap to keep each connection's congestion control algorithm and limit its pacing rate (default: brf)
    #[arg(long, conflicts_with = "config")]
    mode: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(super) struct HostArgs {
    /// Configuration file to use instead of options
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,
    /// Folder of a cgroup (version 2) whose connections are included (default: all connections)
    #[arg(long, value_name = "PATH", value_hint = ValueHint::DirPath, conflicts_with = "config")]
    cgroup: Option<String>,
}

/// The arguments of a role, which can be converted into a configuration.
pub(super) trait Configured {
    /// Returns the configuration file, if one was given.
    fn file(&self) -> Option<&PathBuf>;
    /// Returns the table of a configuration file that is equivalent to the options.
    fn table(&self, role: &str) -> Result<Table, Problem>;
    /// Applies the options that override a file to the table.
    fn amend(&self, _table: &mut Table) {}

    fn config(&self, role: &'static str) -> Result<Config, Invalid> {
        let invalid = |source: &str, problem| Invalid { source: source.to_owned(), problems: vec![problem] };
        let Some(file) = self.file() else {
            const SOURCE: &str = "command line";
            let mut table = self.table(role).map_err(|problem| invalid(SOURCE, problem))?;
            self.amend(&mut table);
            return Config::read(&table, SOURCE);
        };
        let config = Config::load_with(file, |table| self.amend(table))?;
        if config.role() != role {
            let text = format!("found [{}], expected [{role}]", config.role());
            return Err(invalid(&shown(file), Problem { key: String::new(), text }));
        }
        Ok(config)
    }
}

/// Checks the name of a key. The key's files also have this name.
fn key_name(name: &str) -> Result<String, String> {
    config::plain_name(name.to_owned()).map_err(|expected| format!("expected {expected}"))
}

fn strings(words: &[String]) -> Value {
    Value::Array(words.iter().map(|word| Value::from(word.as_str())).collect())
}

impl Configured for SwitchArgs {
    fn file(&self) -> Option<&PathBuf> {
        self.config.as_ref()
    }

    fn table(&self, role: &str) -> Result<Table, Problem> {
        let port = |given: &String| {
            let (interface, rate) = given.split_once('=').ok_or_else(|| Problem {
                key: "--port".into(),
                text: format!("found {given:?}, expected an interface and a rate such as eth1=100mbit"),
            })?;
            let key = if rate == "measured" { "capacity" } else { "rate" };
            Ok(Value::from(Table::from_iter(
                [("interface", interface), (key, rate)].map(|(k, v)| (k.to_owned(), Value::from(v))),
            )))
        };
        let ports = self.ports.iter().map(port).collect::<Result<Vec<_>, Problem>>()?;
        let own = Table::from_iter([("interfaces".to_owned(), strings(&self.also))]);
        Ok(Table::from_iter([(role.to_owned(), own.into()), ("ports".to_owned(), Value::Array(ports))]))
    }

    fn amend(&self, table: &mut Table) {
        if self.controller.is_some() {
            retired::report("narrows-agent switch", "--controller", "--rate-controller");
        }
        let Some(name) = self.rate_controller.as_ref().or(self.controller.as_ref()) else { return };
        let ports = table.get_mut("ports").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten().filter_map(Value::as_table_mut) {
            port.insert("rate_controller".into(), name.as_str().into());
        }
    }
}

impl Configured for SenderArgs {
    fn file(&self) -> Option<&PathBuf> {
        self.host.config.as_ref()
    }

    fn table(&self, role: &str) -> Result<Table, Problem> {
        let mut own = self.host.own();
        own.insert("interfaces".into(), strings(&self.interfaces));
        own.extend(self.mode.iter().map(|mode| ("mode".to_owned(), Value::from(mode.as_str()))));
        Ok(Table::from_iter([(role.to_owned(), own.into())]))
    }
}

impl HostArgs {
    fn own(&self) -> Table {
        self.cgroup.iter().map(|cgroup| ("cgroup".to_owned(), Value::from(cgroup.as_str()))).collect()
    }
}

impl Configured for HostArgs {
    fn file(&self) -> Option<&PathBuf> {
        self.config.as_ref()
    }

    fn table(&self, role: &str) -> Result<Table, Problem> {
        Ok(Table::from_iter([(role.to_owned(), self.own().into())]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Capacity, Mode};

    fn config(line: &str) -> Result<Config, String> {
        let args = Args::try_parse_from(line.split(' ')).map_err(|e| e.to_string())?;
        let config = match args.command {
            Command::Switch(args) => args.config("switch"),
            Command::Sender(args) => args.config("sender"),
            Command::Receiver(args) => args.config("receiver"),
            other => panic!("{other:?}"),
        };
        config.map_err(|e| e.to_string())
    }

    #[test]
    fn ports_and_interfaces_can_be_given_without_a_file() {
        let line = "narrows-agent switch --port eth1=100mbit --port eth2=measured --also eth0";
        let Ok(Config::Switch(switch)) = config(line) else { panic!() };
        assert_eq!(switch.ports.len(), 2);
        assert_eq!((&*switch.ports[0].interface, switch.ports[1].capacity), ("eth1", Capacity::Measured));
        assert_eq!(switch.interfaces, ["eth0"]);
        let Ok(Config::Sender(sender)) = config("narrows-agent sender --interface eth0 --mode cap") else {
            panic!()
        };
        assert_eq!((&*sender.interfaces[0], sender.mode), ("eth0", Mode::Cap));
        assert!(matches!(config("narrows-agent receiver"), Ok(Config::Receiver(_))));
    }

    #[test]
    fn the_rate_controller_of_the_command_line_overrides_the_files() {
        let kinds = |line: &str| match config(line) {
            Ok(Config::Switch(switch)) => {
                Ok(switch.ports.iter().map(|port| port.rate_controller.clone()).collect::<Vec<_>>())
            }
            Ok(other) => panic!("{other:?}"),
            Err(wrong) => Err(wrong),
        };
        assert_eq!(kinds("narrows-agent switch --port a=1mbit --port b=2mbit").unwrap(), ["brf", "brf"]);
        let line = "narrows-agent switch --port a=1mbit --port b=2mbit --rate-controller rcp";
        assert_eq!(kinds(line).unwrap(), ["rcp", "rcp"]);
        let old = "narrows-agent switch --port a=1mbit --controller rcp";
        assert_eq!(kinds(old).unwrap(), ["rcp"], "the name of version 0.2");
        assert!(kinds(&format!("{old} --rate-controller bdr")).is_err());
        let file = std::env::temp_dir().join(format!("narrows-args-{}.toml", std::process::id()));
        let content = "[switch]\n[[ports]]\ninterface = 'a'\nrate = '1mbit'\nrate_controller = 'rcp'\n";
        std::fs::write(&file, content).unwrap();
        let line = format!("narrows-agent switch {} --rate-controller", file.display());
        assert_eq!(kinds(&format!("{line} bdr")).unwrap(), ["bdr"]);
        let wrong = kinds(&format!("{line} xcp")).unwrap_err();
        std::fs::remove_file(&file).unwrap();
        let expected = "ports[0].rate_controller: found \"xcp\", which real switches do not support, expected one of \"bdr\", \
                        \"brf\", \"pacec\", \"rcp\"";
        assert!(wrong.ends_with(expected), "{wrong}");
    }

    #[test]
    fn errors_of_options_use_the_keys_of_the_file() {
        let wrong = config("narrows-agent switch --port eth1=100").unwrap_err();
        assert_eq!(wrong, "command line: ports[0].rate: found \"100\", expected a rate such as \"100mbit\"");
        let wrong = config("narrows-agent switch --port eth1").unwrap_err();
        assert!(wrong.starts_with("command line: --port: found \"eth1\", expected"), "{wrong}");
        assert!(config("narrows-agent switch").is_err());
        assert!(config("narrows-agent switch f.toml --port a=1mbit").is_err());
    }

    #[test]
    fn clap_accepts_the_definition() {
        <Args as clap::CommandFactory>::command().debug_assert();
    }
}
