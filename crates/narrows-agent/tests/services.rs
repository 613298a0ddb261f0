//! This test queries, stops and kills an agent's process. Without root, the test is skipped.
//!
//! This test does not use Rust's test harness. If the first argument is a command of `narrows-agent`, this program acts
//! as `narrows-agent`. Such an agent only publishes its state and waits.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use narrows_agent::cli::{self, Agents};
use narrows_agent::config::{Receiver, Sender, Switch};
use narrows_agent::services::{Failure, Services};
use narrows_agent::status::Snapshot;
use narrows_agent::status::client::Client;
use narrows_agent::status::server::{Request, path_of};

struct Idle;

impl Agents for Idle {
    fn switch(&self, _: &Switch, services: &mut Services) -> Result<(), Failure> {
        idle(services, "switch")
    }
    fn sender(&self, _: &Sender, services: &mut Services) -> Result<(), Failure> {
        idle(services, "sender")
    }
    fn receiver(&self, _: &Receiver, services: &mut Services) -> Result<(), Failure> {
        idle(services, "receiver")
    }
}

fn idle(services: &mut Services, role: &str) -> Result<(), Failure> {
    services.board.publish(Snapshot { role: role.into(), ..Snapshot::default() });
    services.ready(&[])?;
    while !services.stop.requested() {
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// An agent that has sent READY=1, and its socket.
struct Agent {
    process: Child,
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

impl Agent {
    fn start(role: &str) -> Agent {
        let name = format!("nwcore-{role}-{}", std::process::id());
        let folder = tempfile::tempdir().unwrap();
        let (config, notify) = (folder.path().join("c.toml"), folder.path().join("notify"));
        let ports = if role == "switch" { "[[ports]]\ninterface='lo'\nrate='1mbit'" } else { "" };
        fs::write(&config, format!("[{role}]\nname='{name}'\n{ports}\n[metrics]\nenabled=false")).unwrap();
        let systemd = UnixDatagram::bind(&notify).unwrap();
        systemd.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let process = Command::new(std::env::current_exe().unwrap())
            .arg(role)
            .arg(&config)
            .env("NOTIFY_SOCKET", &notify)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = [0; 16];
        let length = systemd.recv(&mut said).expect("the agent gets ready");
        assert_eq!(&said[..length], b"READY=1");
        Agent { process, socket: path_of(&name), _folder: folder }
    }

    fn pid(&self) -> nix::unistd::Pid {
        nix::unistd::Pid::from_raw(self.process.id() as i32)
    }

    /// Returns the line `name` of /proc/PID/status.
    fn proc_status(&self, name: &str) -> String {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        status.lines().find_map(|l| l.strip_prefix(name)).unwrap().trim().to_owned()
    }
}

fn an_agent_answers_keeps_two_capabilities_and_stops_cleanly() {
    for role in ["switch", "sender", "receiver"] {
        let mut agent = Agent::start(role);
        let mut client = Client::connect(&agent.socket, &Request::default()).unwrap();
        assert_eq!(client.next().unwrap().unwrap().role, role);
        // CAP_NET_ADMIN is 12, and CAP_BPF is 39 (include/uapi/linux/capability.h). A container may have neither.
        let effective = u64::from_str_radix(&agent.proc_status("CapEff:"), 16).unwrap();
        assert_eq!(effective & !(1 << 12 | 1 << 39), 0);
        assert_eq!(agent.proc_status("NoNewPrivs:"), "1");
        // The agent has a configuration file, so SIGHUP makes it read the file and does not end it.
        nix::sys::signal::kill(agent.pid(), nix::sys::signal::SIGHUP).unwrap();
        while agent.proc_status("ShdPnd:") != "0000000000000000" {
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut client = Client::connect(&agent.socket, &Request::default()).unwrap();
        assert_eq!(client.next().unwrap().unwrap().role, role);
        nix::sys::signal::kill(agent.pid(), nix::sys::signal::SIGTERM).unwrap();
        assert!(agent.process.wait().unwrap().success());
        assert!(!agent.socket.exists());
    }
}

fn the_guardian_cleans_up_after_kill_9() {
    let mut agent = Agent::start("receiver");
    let children = format!("/proc/{0}/task/{0}/children", agent.pid());
    let guardian: i32 =
        fs::read_to_string(children).unwrap().trim().parse().expect("one child: the guardian");
    agent.process.kill().unwrap();
    agent.process.wait().unwrap();
    // The guardian is not a child of this process, so poll until it has cleaned up and ended.
    while fs::metadata(format!("/proc/{guardian}")).is_ok()
        && !fs::read_to_string(format!("/proc/{guardian}/stat")).unwrap_or_default().contains(") Z ")
    {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!agent.socket.exists());
}

fn main() -> ExitCode {
    // Cargo's arguments (`--test-threads`, filters) are not commands of the agent.
    let first = std::env::args().nth(1).unwrap_or_default();
    if ["switch", "sender", "receiver", narrows_agent::guard::SUBCOMMAND].contains(&first.as_str()) {
        return cli::run(&Idle);
    }
    if !nix::unistd::geteuid().is_root() {
        if std::env::var("NARROWS_REQUIRE_KERNEL").as_deref() == Ok("1") {
            eprintln!("root is needed");
            return ExitCode::FAILURE;
        }
        eprintln!("SKIPPED, nothing was tested: root is needed");
        return ExitCode::SUCCESS;
    }
    an_agent_answers_keeps_two_capabilities_and_stops_cleanly();
    the_guardian_cleans_up_after_kill_9();
    println!("services: ok");
    ExitCode::SUCCESS
}
