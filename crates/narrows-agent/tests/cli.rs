//! Tests the program through its command line and its socket. The tests need no root.

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Output};
use std::sync::Arc;

use narrows_agent::status::client::Client;
use narrows_agent::status::server::{Request, Server};
use narrows_agent::status::{Board, FlowStatus, Snapshot};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_narrows-agent")).args(arguments).output().unwrap()
}

#[test]
fn check_reports_all_errors_and_exits_with_2() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.toml");
    fs::write(&file, "[switch]\ntick = 10\n[[ports]]\ninterface = 'eth1'\nrat = '1mbit'\n").unwrap();
    let name = file.to_str().unwrap();
    let output = run(&["check", name]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    let expected = [
        format!("{name}: switch.tick: found 10, expected a time such as \"20ms\" or \"30s\""),
        format!("{name}: ports[0].rate: found nothing, expected this key, e.g. rate = \"100mbit\""),
        format!("{name}: ports[0].rat: found an unknown key; did you mean \"rate\"?"),
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
    fs::write(&file, "[receiver]").unwrap();
    assert_eq!(run(&["check", name]).status.code(), Some(0));
    assert_eq!(
        run(&["switch", name]).status.code(),
        Some(2),
        "a receiver's file is no configuration of a switch"
    );
    assert_eq!(run(&["switch", "--port", "eth1=fast"]).status.code(), Some(2));
}

#[test]
fn check_accepts_and_reports_the_old_name_of_a_ports_rate_controller() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("old.toml");
    let name = file.to_str().unwrap();
    let port = "[switch]\n[[ports]]\ninterface = 'eth1'\nrate = '1mbit'\n";
    fs::write(&file, format!("{port}controller = 'rcp'\n")).unwrap();
    let output = run(&["check", name]);
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stderr).unwrap();
    let key = "'ports[0].controller' is now 'rate_controller'";
    assert_eq!(said, format!("{name}: {key}; the next release refuses the old name\n"));
    fs::write(&file, format!("{port}controller = 'rcp'\nrate_controller = 'rcp'\n")).unwrap();
    let output = run(&["check", name]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with(&format!("{name}: ports[0].controller: found an unknown key")), "{said}");
}

#[test]
fn status_without_an_agent_gives_one_line() {
    let output = run(&["status", "--name", "nobody-is-called-so"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8(output.stderr).unwrap().lines().count(), 1);
}

fn board() -> Arc<Board> {
    let board = Board::new();
    let flows = vec![FlowStatus { source: "10.0.0.1:1".into(), ..FlowStatus::default() }; 5];
    board.publish(Snapshot { role: "switch".into(), flow_count: 5, flows, ..Snapshot::default() });
    board
}

#[test]
fn the_socket_answers_once_or_repeatedly() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sock");
    fs::write(&path, "remains of an agent that died").unwrap();
    let server = Server::start(&path, board()).unwrap();
    let mut once = Client::connect(&path, &Request { flows: 2, ..Request::default() }).unwrap();
    let snapshot = once.next().unwrap().unwrap();
    assert_eq!((snapshot.flow_count, snapshot.flows.len()), (5, 2));
    assert!(once.next().is_none());
    let mut again = Client::connect(&path, &Request { every_ms: Some(50), ..Request::default() }).unwrap();
    for _ in 0..3 {
        assert!(again.next().unwrap().unwrap().flows.is_empty());
    }
    assert!(
        Server::start(&path, board()).unwrap_err().to_string().contains("an agent of this name is running")
    );
    let mut garbage = std::os::unix::net::UnixStream::connect(&path).unwrap();
    garbage.write_all(b"{\"flows\": \"all\"}\n").unwrap();
    let mut said = String::new();
    garbage.read_to_string(&mut said).unwrap();
    assert!(said.contains("error"), "{said}");
    drop(server);
    assert!(!path.exists());
}

#[test]
fn man_pages_and_completions_cover_every_visible_command() {
    let folder = tempfile::tempdir().unwrap();
    assert!(run(&["generate", folder.path().to_str().unwrap()]).status.success());
    let read =
        |path: &str| fs::read_to_string(folder.path().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
    let help = String::from_utf8(run(&["--help"]).stdout).unwrap();
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands: Vec<_> = commands.map(|line| line.split_whitespace().next().unwrap()).collect();
    assert!(commands.contains(&"switch") && commands.contains(&"clean"), "{commands:?}");
    let shells = ["bash/narrows-agent.bash", "zsh/_narrows-agent", "fish/narrows-agent.fish"].map(read);
    for command in commands.iter().filter(|command| **command != "help") {
        read(&format!("man1/narrows-agent-{command}.1"));
        shells.iter().for_each(|text| assert!(text.contains(command), "{command} is not in\n{text}"));
    }
    let page = read("man1/narrows-agent.1") + &read("man1/narrows-agent-switch.1");
    assert!(page.contains("narrows\\-agent\\-switch") && page.contains("\\-\\-port"), "{page}");
    for hidden in ["guardian", "generate"] {
        assert!(!folder.path().join(format!("man1/narrows-agent-{hidden}.1")).exists());
        assert!(!help.contains(hidden));
    }
}
