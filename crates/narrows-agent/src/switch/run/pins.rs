//! Loads a new data plane, or takes over the data plane that an earlier agent pinned.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::bpffs;
use crate::config::{self, Pin};
use crate::dataplane::program::{Sizes, Switch as Plane, Tunables};
use crate::htb::{self, Rtnl};
use crate::services::Failure;

/// The time for which queues and attachments stay in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// As long as the process. If the agent dies, the guardian removes its queues.
    Process,
    /// Until the agent is stopped. If the agent dies, the next agent takes them over.
    UntilStopped,
    /// Until `narrows-agent clean` removes them.
    Always,
}

/// The pins of a data plane. With [`Life::UntilStopped`], dropping this value removes the pins. If the agent is killed,
/// this value is not dropped, so the pins stay.
pub(super) struct Pins {
    folder: PathBuf,
    life: Life,
}

impl Pins {
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn life(&self) -> Life {
        self.life
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        if self.life != Life::UntilStopped {
            return;
        }
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            tracing::warn!(event = "pins-remain", folder = %self.folder.display(), %error);
        }
        // This fails if other agents have pins in this folder. The folder then stays.
        let _ = fs::remove_dir(bpffs::AGENTS);
    }
}

/// Loads a new data plane, or takes over the data plane that an earlier agent pinned.
pub(super) fn load(config: &config::Switch, rtnl: &mut Rtnl) -> Result<(Plane, Option<Pins>), Failure> {
    let folder = config.pins();
    match config.pin {
        Pin::Never => {
            // An agent with another value of `pin` may have died and left its pins. Remove them, because otherwise its
            // program and the new one would both write into each packet.
            replace(&folder, "pin is false now")?;
            Ok((new(config)?, None))
        }
        Pin::Always | Pin::In(_) if is_pinned(&folder) => {
            let plane = Plane::open_pinned(&folder)?;
            match misfit(&plane, config, rtnl)? {
                Some(text) => Err(refusal(&folder, "ports", text)),
                None => Ok((plane, Some(Pins { folder, life: Life::Always }))),
            }
        }
        Pin::Always | Pin::In(_) => {
            if !folder.ancestors().find(|place| place.exists()).is_some_and(bpffs::is_bpffs) {
                let text =
                    format!("found a folder that is not in a bpffs, expected one below {}", bpffs::PATH);
                return Err(refusal(&folder, "pin", text));
            }
            check_hidden(&folder)?;
            let plane = new(config)?;
            plane.pin(&folder)?;
            Ok((plane, Some(Pins { folder, life: Life::Always })))
        }
        Pin::UntilStopped => {
            if !bpffs::is_bpffs(Path::new(bpffs::PATH)) {
                report_unpinned(&format!("found no bpffs at {}", bpffs::PATH));
                return Ok((new(config)?, None));
            }
            if let Some(plane) = taken_over(config, &folder, rtnl)? {
                return Ok((plane, Some(Pins { folder, life: Life::UntilStopped })));
            }
            check_hidden(&folder)?;
            let plane = new(config)?;
            if !plane.has_tcx() {
                report_unpinned("found a kernel without tcx, which Linux has since 6.6");
                return Ok((plane, None));
            }
            let pins = Pins { folder, life: Life::UntilStopped };
            plane.pin(pins.folder())?;
            Ok((plane, Some(pins)))
        }
    }
}

fn report_unpinned(reason: &str) {
    tracing::info!(event = "not-pinned", reason, "if the agent is killed, its flows are lost");
}

/// Takes over the pinned data plane of an agent that died, if there is one. If this data plane does not fit the
/// configuration, removes it.
fn taken_over(config: &config::Switch, folder: &Path, rtnl: &mut Rtnl) -> Result<Option<Plane>, Failure> {
    if !is_pinned(folder) {
        return Ok(None);
    }
    let reason = match Plane::open_pinned(folder) {
        Ok(plane) => match misfit(&plane, config, rtnl)? {
            None => {
                tracing::info!(event = "taken-over", folder = %folder.display(), "an earlier agent died");
                return Ok(Some(plane));
            }
            Some(reason) => reason,
        },
        Err(error) => error.to_string(),
    };
    replace(folder, &reason)?;
    Ok(None)
}

fn is_pinned(folder: &Path) -> bool {
    folder.join("program").exists()
}

/// Removes the data plane that a dead agent has pinned in this folder, if any.
fn replace(folder: &Path, reason: &str) -> Result<(), Failure> {
    match fs::remove_dir_all(folder) {
        Ok(()) => {
            tracing::warn!(event = "pins-removed", folder = %folder.display(), reason, "flows start again");
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(format!("{}: {error}", folder.display()).into()),
    }
}

fn new(config: &config::Switch) -> Result<Plane, Failure> {
    let sizes = match config.keeps_flows() {
        true => Sizes { flows: config.max_flows, ..Sizes::default() },
        false => Sizes::STATELESS,
    };
    Ok(Plane::load(sizes, Tunables::default())?)
}

fn refusal(folder: &Path, key: &str, text: String) -> Failure {
    let problems = vec![config::Problem { key: key.into(), text }];
    config::Invalid { source: folder.display().to_string(), problems }.into()
}

/// Returns why this data plane does not fit the configuration, or `None` if it fits. A flow table of another size is
/// accepted and keeps its size. The difference is logged.
fn misfit(plane: &Plane, config: &config::Switch, rtnl: &mut Rtnl) -> Result<Option<String>, Failure> {
    let wanted: Vec<_> = config.ports.iter().map(|port| port.interface.as_str()).collect();
    let mismatch = port_mismatch(&plane.controlled()?, &wanted, &rtnl.links()?);
    let (wanted, pinned) = (config.max_flows, plane.slots.len());
    if plane.keeps_flows() != config.keeps_flows() {
        return Ok(mismatch.or_else(|| Some(other_kind(config.keeps_flows()).into())));
    }
    if mismatch.is_none() && wanted != pinned && config.keeps_flows() {
        let advice =
            "the pinned table keeps its size; to change it, stop the agent and run narrows-agent clean";
        tracing::warn!(event = "max-flows-kept", wanted, pinned, "{advice}");
    }
    Ok(mismatch)
}

/// Returns the error message for a data plane that does not fit the rate controllers: it has room for flows, but they
/// keep no flows, or vice versa. `keeps_flows` says whether the rate controllers keep flows.
fn other_kind(keeps_flows: bool) -> &'static str {
    if keeps_flows {
        "found the pinned maps of a switch with bdr, expected maps with room for flows (narrows-agent clean removes them)"
    } else {
        "found pinned maps with room for flows, expected those of a switch with bdr (narrows-agent clean removes them)"
    }
}

/// Refuses a folder if another mount hides an earlier agent's data plane there. The hidden program and a new one would
/// both write into each packet.
fn check_hidden(folder: &Path) -> Result<(), Failure> {
    let text = match bpffs::is_hidden(&folder.join("program")) {
        Ok(false) => return Ok(()),
        Ok(true) => format!(
            "found a pinned data plane that a second mount at {} hides, expected one mount \
             (narrows-agent clean removes the hidden one)",
            bpffs::PATH
        ),
        Err(error) if bpffs::covered().is_ok_and(|covered| covered > 0) => format!(
            "found several mounts at {}, and looking below the upper one failed ({error}); expected one mount \
             (run narrows-agent clean in a root shell)",
            bpffs::PATH
        ),
        Err(error) => {
            let error = error.to_string();
            tracing::warn!(event = "hidden-pins-unknown", folder = %folder.display(), error);
            return Ok(());
        }
    };
    Err(refusal(folder, "pin", text))
}

/// Compares the pinned ports with the `wanted` ports, because flows identify a port by its number. Returns the
/// difference as text. New ports may follow the pinned ones. `pinned` lacks the ports whose interfaces had vanished
/// when the earlier agent ended. An index without an interface is accepted, because an interface that is created again
/// has another index.
fn port_mismatch(pinned: &BTreeMap<u8, u32>, wanted: &[&str], links: &[htb::Link]) -> Option<String> {
    let name = |index: &u32| links.iter().find(|link| link.index == *index).map(|link| link.name.as_str());
    let found: Vec<_> = pinned.values().map(|index| name(index).unwrap_or("(gone)")).collect();
    let same = |(number, found): (&u8, &&str)| {
        wanted.get(usize::from(*number)).is_some_and(|wanted| *found == "(gone)" || found == wanted)
    };
    if pinned.keys().zip(&found).all(same) {
        return None;
    }
    let (found, wanted) = (found.join(", "), wanted.join(", "));
    Some(format!(
        "found the pinned ports {found}, expected [[ports]] in the same order; the configuration has {wanted} \
         (narrows-agent clean removes the pinned ports)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_ports_must_be_the_same_in_the_same_order() {
        let link = |(index, name): (u32, &str)| htb::Link {
            index,
            name: name.into(),
            mtu: 1500,
            mac: String::new(),
            ethernet: true,
        };
        let links: Vec<_> = [(1, "lo"), (7, "eth1"), (8, "eth2"), (9, "eth3")].map(link).into();
        let pinned = BTreeMap::from([(0, 8), (1, 7)]);
        let refused = |wanted: &[&str]| port_mismatch(&pinned, wanted, &links);
        assert_eq!(refused(&["eth2", "eth1"]), None);
        assert_eq!(refused(&["eth2", "eth1", "eth3"]), None, "a new port");
        let vanished = BTreeMap::from([(1, 7)]);
        assert_eq!(port_mismatch(&vanished, &["eth2", "eth1"], &links), None);
        assert!(port_mismatch(&vanished, &["eth1", "eth2"], &links).is_some());
        for wanted in [&["eth1", "eth2"][..], &["eth2"], &["eth3", "eth2", "eth1"], &["eth2", "eth3"]] {
            assert!(refused(wanted).is_some(), "{wanted:?}");
        }
        assert_eq!(
            refused(&["eth1"]).unwrap(),
            "found the pinned ports eth2, eth1, expected [[ports]] in the same order; the configuration has eth1 \
             (narrows-agent clean removes the pinned ports)"
        );
        let remade = BTreeMap::from([(0, 8), (1, 70)]);
        assert_eq!(port_mismatch(&remade, &["eth2", "eth1"], &links), None);
        assert_eq!(port_mismatch(&BTreeMap::new(), &["eth1"], &links), None, "pinned, and no more");
    }
}
