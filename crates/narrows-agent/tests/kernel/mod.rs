//! A network namespace of a test's own with a veth pair, gone when the test is.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use narrows_agent::netns::Netns;

/// A namespace with two ends of a veth: `a` (10.99.0.1) here and `b` (10.99.0.2) in a second one.
pub(crate) struct Lab {
    here: String,
    there: String,
}

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A lab, or why there is none. With NARROWS_REQUIRE_KERNEL=1 its absence fails the test.
pub(crate) fn lab() -> Option<Lab> {
    if let Some(missing) = missing() {
        assert!(std::env::var("NARROWS_REQUIRE_KERNEL").as_deref() != Ok("1"), "{missing}");
        // Not by eprintln, which a test that passes does not show.
        let _ = writeln!(std::io::stderr(), "SKIPPED, nothing was tested: {missing}");
        return None;
    }
    let name = format!("nwcore{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let lab = Lab { here: format!("{name}a"), there: format!("{name}b") };
    lab.build().unwrap();
    Some(lab)
}

/// What a lab needs and is not there. Anything else that goes wrong is a failure.
fn missing() -> Option<&'static str> {
    if !nix::unistd::geteuid().is_root() {
        return Some("root is needed");
    }
    run("ip -V")
        .and_then(|_| run("tc -V"))
        .and_then(|_| run("nsenter -V"))
        .err()
        .map(|_| "iproute2 and nsenter are needed")
}

impl Lab {
    fn build(&self) -> Result<(), String> {
        let (here, there) = (&self.here, &self.there);
        run(&format!("ip netns add {here}"))?;
        run(&format!("ip netns add {there}"))?;
        // Fixed addresses and no IPv6: no packet leaves that a test did not send.
        let (mac_a, mac_b) = ("02:00:00:00:00:01", "02:00:00:00:00:02");
        run(&format!(
            "ip -n {here} link add name a address {mac_a} type veth peer name b address {mac_b} netns {there}"
        ))?;
        for (space, end, address) in [(here, "a", "10.99.0.1"), (there, "b", "10.99.0.2")] {
            run(&format!("ip -n {space} address add {address}/24 dev {end}"))?;
            run(&format!("ip -n {space} link set dev {end} addrgenmode none up"))?;
            run(&format!("ip -n {space} link set dev lo up"))?;
        }
        run(&format!("ip -n {here} neigh add 10.99.0.2 lladdr {mac_b} dev a nud permanent"))?;
        run(&format!("ip -n {there} neigh add 10.99.0.1 lladdr {mac_a} dev b nud permanent"))?;
        Ok(())
    }

    /// The namespace of `a`.
    pub(crate) fn here(&self) -> Netns {
        Netns::named(&self.here)
    }

    /// Its name.
    #[allow(dead_code, reason = "each test program uses its part")]
    pub(crate) fn name(&self) -> &str {
        &self.here
    }

    /// What a command says when run in the namespace of `a`; `None` when it fails or is not there.
    #[allow(dead_code, reason = "each test program uses its part")]
    pub(crate) fn says(&self, command: &str) -> Option<String> {
        run(&format!("nsenter --net=/run/netns/{} {command}", self.here)).ok()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for name in [&self.here, &self.there] {
            let _ = run(&format!("ip netns delete {name}"));
        }
    }
}

fn run(command: &str) -> Result<String, String> {
    let mut words = command.split(' ');
    let output = Command::new(words.next().unwrap_or_default())
        .args(words)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{command}: {e}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{command}: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}
