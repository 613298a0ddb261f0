//! The SDN controller is killed by `kill -9`. The agent continues without a controller, and connects to the next
//! controller.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use narrows_agent::clock;
use narrows_control::units::Span;
use narrows_lab::patiently;

use super::agent::{Agent, since};
use super::flow::{Flow, all_well, rates};
use super::net::{Forwarding, Net};

/// Returns the path of a Python interpreter that can run the controller: the interpreter in the repository's `.venv`,
/// or the value of `NARROWS_PYTHON`.
fn python() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    let python = std::env::var_os("NARROWS_PYTHON").map_or(own, PathBuf::from);
    let has_it = std::process::Command::new(&python)
        .args(["-c", "import os_ken, uvicorn, narrows.controller"])
        .output()
        .is_ok_and(|output| output.status.success());
    has_it.then_some(python)
}

struct Controller(Child);

impl Controller {
    fn start(net: &Net, python: &Path) -> Controller {
        let mut command = net.command("r", &python.to_string_lossy());
        command.args(["-m", "narrows.cli.main", "controller"]).stdout(Stdio::null()).stderr(Stdio::null());
        Controller(command.spawn().expect("the controller starts"))
    }

    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.kill();
    }
}

fn until_connected(switch: &Agent, connected: bool) -> Span {
    let begun = clock::now();
    while switch.fresh().controller != Some(connected) {
        assert!(since(begun) < Span::from_secs(30), "{:?}", switch.fresh().controller);
        thread::sleep(Duration::from_millis(20));
    }
    since(begun)
}

#[test]
fn the_agent_continues_without_its_controller() {
    patiently(|| {
        let Some(python) = python() else {
            // NARROWS_REQUIRE_KERNEL does not require Python.
            eprintln!("SKIPPED: no Python with the controller; make setup, or NARROWS_PYTHON");
            return;
        };
        let Some(net) = Net::star(Forwarding::Router, 2) else { return };
        let mut controller = Controller::start(&net, &python);
        let switch = Agent::switch_with(&net, "100mbit", "", "[controller]\naddress = \"127.0.0.1:6690\"");
        let _sender = Agent::sender(&net, "all", &[("s1", "r"), ("s2", "r")]);
        let connected = until_connected(&switch, true);
        let first = Flow::from_sender(&net, 1, 5001);
        first.wait_for_data();
        thread::sleep(Duration::from_secs(1));
        controller.kill();
        let noticed = until_connected(&switch, false);
        let second = Flow::from_sender(&net, 2, 5002);
        second.wait_for_data();
        thread::sleep(Duration::from_secs(1));
        let alone = rates(&[&first, &second], Duration::from_secs(2));
        let _again = Controller::start(&net, &python);
        let back = until_connected(&switch, true);
        let with = rates(&[&first, &second], Duration::from_secs(1));
        println!(
            "connected after {connected:?}; killed: noticed after {noticed:?}, a newcomer's share {alone:.1?} Mbit/s; the next is \
             found after {back:?}, {with:.1?}"
        );
        all_well(&[&first, &second]);
        for rate in alone.iter().chain(&with) {
            assert!((rate - 46.7).abs() < 0.15 * 46.7, "{alone:?} {with:?}");
        }
    });
}
