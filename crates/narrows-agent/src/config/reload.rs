//! Compares the configuration in force with a new one, and decides which keys can change while the agent runs.

use super::{Capacity, Common, Config, Log, Port, Receiver, Scope, Sender, Switch};

/// The outcome of a comparison. All keys are paths such as `ports.eth1.rate`.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The configuration in force from now on: the old one, with new values for the keys that can change.
    pub config: Config,
    /// Keys that change now.
    pub changed: Vec<String>,
    /// Keys that change with the next start.
    pub restart: Vec<String>,
}

/// Compares the fields of two values. A differing field of the list `now` is copied to the value in force, and its key
/// is added to `changed`. For a differing field of the list `restart`, only its key is added to `restart`.
macro_rules! compare {
    ($plan:ident, $prefix:expr, $old:expr, $new:expr; now: $($now:ident),*; restart: $($later:ident),*) => {
        $(if $old.$now != $new.$now {
            $old.$now = $new.$now.clone();
            $plan.changed.push(format!("{}{}", $prefix, stringify!($now)));
        })*
        $(if $old.$later != $new.$later {
            $plan.restart.push(format!("{}{}", $prefix, stringify!($later)));
        })*
    };
}

#[derive(Default)]
struct Keys {
    changed: Vec<String>,
    restart: Vec<String>,
}

impl Plan {
    /// Compares the configuration in force with a new configuration.
    pub fn new(old: &Config, new: &Config) -> Plan {
        let mut keys = Keys::default();
        let config = match (old, new) {
            (Config::Switch(old), Config::Switch(new)) => Config::Switch(switch(&mut keys, old, new)),
            (Config::Sender(old), Config::Sender(new)) => Config::Sender(sender(&mut keys, old, new)),
            (Config::Receiver(old), Config::Receiver(new)) => Config::Receiver(receiver(&mut keys, old, new)),
            (old, new) => {
                keys.restart.push(new.role().to_owned());
                old.clone()
            }
        };
        Plan { config, changed: keys.changed, restart: keys.restart }
    }
}

// A new field of a configuration must also be added here. The patterns have no `..`, so the compiler checks this.

fn common(keys: &mut Keys, role: &str, old: &mut Common, new: &Common) {
    let Common { name: _, netns: _, metrics: _, log: Log { json: _, level: _ } } = new;
    compare!(keys, format_args!("{role}."), old, new; now:; restart: name, netns);
    compare!(keys, "", old, new; now:; restart: metrics);
    compare!(keys, "log.", old.log, new.log; now: level; restart: json);
    // The key for the field `json` is `format`.
    keys.restart.iter_mut().filter(|key| *key == "log.json").for_each(|key| *key = "log.format".to_owned());
}

fn sender(keys: &mut Keys, old: &Sender, new: &Sender) -> Sender {
    let Sender {
        common: _,
        scope: _,
        interfaces: _,
        mode: _,
        max_rate: _,
        designate: _,
        messages: _,
        choice: _,
        format: _,
        set_default: _,
        algorithm: _,
    } = new;
    let mut old = old.clone();
    common(keys, "sender", &mut old.common, &new.common);
    scope(keys, "sender", &mut old.scope, &new.scope);
    compare!(keys, "sender.", old, new; now:;
        restart: interfaces, mode, max_rate, choice, format, set_default, algorithm, designate, messages);
    old
}

fn receiver(keys: &mut Keys, old: &Receiver, new: &Receiver) -> Receiver {
    let Receiver { common: _, scope: _, ask: _ } = new;
    let mut old = old.clone();
    common(keys, "receiver", &mut old.common, &new.common);
    scope(keys, "receiver", &mut old.scope, &new.scope);
    compare!(keys, "receiver.", old, new; now:; restart: ask);
    old
}

/// Compares the scopes. The list of namespaces can change at any time. Any other change of the scope needs a restart,
/// because the loaded programs depend on it.
fn scope(keys: &mut Keys, role: &str, old: &mut Scope, new: &Scope) {
    match (&mut *old, new) {
        (old, new) if old == new => {}
        (Scope::Namespaces(old), Scope::Namespaces(new)) => {
            old.clone_from(new);
            keys.changed.push("namespaces".to_owned());
        }
        (Scope::Namespaces(_), _) | (_, Scope::Namespaces(_)) => keys.restart.push("namespaces".to_owned()),
        _ => keys.restart.push(format!("{role}.cgroup")),
    }
}

fn switch(keys: &mut Keys, old: &Switch, new: &Switch) -> Switch {
    let Switch {
        common: _,
        tick: _,
        max_flows: _,
        watchdog: _,
        vlans: _,
        gtp: _,
        format: _,
        feedback: _,
        pin: _,
        ports: _,
        interfaces: _,
        controller: _,
    } = new;
    let mut old = old.clone();
    common(keys, "switch", &mut old.common, &new.common);
    // The sizes of the loaded program's tables cannot change.
    compare!(keys, "switch.", old, new; now: tick, watchdog, vlans, gtp, format, feedback; restart: max_flows, pin);
    compare!(keys, "", old, new; now:; restart: controller);
    ports(keys, &mut old, new);
    // A port that is removed from the configuration stays controlled until the restart. Its interface cannot become an
    // uncontrolled interface before the restart.
    let is_port = |name: &String| old.ports.iter().any(|port| port.interface == *name);
    let interfaces: Vec<_> = new.interfaces.iter().filter(|name| !is_port(name)).cloned().collect();
    if interfaces != old.interfaces {
        old.interfaces = interfaces;
        keys.changed.push("switch.interfaces".to_owned());
    }
    old
}

/// Compares the ports. Flows identify a port by its number, so old ports keep their order, and new ports come last.
fn ports(keys: &mut Keys, old: &mut Switch, new: &Switch) {
    let same = |(old, new): (&Port, &Port)| old.interface == new.interface;
    if new.ports.len() < old.ports.len() || !old.ports.iter().zip(&new.ports).all(same) {
        keys.restart.push("ports".to_owned());
        return;
    }
    for (old_port, new_port) in old.ports.iter_mut().zip(&new.ports) {
        port(keys, old_port, new_port, old.controller.is_some());
    }
    for added in new.ports.iter().skip(old.ports.len()) {
        let name = format!("ports.{}", added.interface);
        // The new port's rate controller may need a channel to the SDN controller that does not exist yet, or tables of
        // another size. Either needs a restart.
        let counts_reports = old.ports.first().is_some_and(|port| port.counts_reports);
        if added.needs_controller && old.controller.is_none() || added.counts_reports != counts_reports {
            keys.restart.push(name);
            return;
        }
        keys.changed.push(name);
        old.ports.push(added.clone());
    }
}

fn port(keys: &mut Keys, old: &mut Port, new: &Port, has_channel: bool) {
    let Port {
        interface: _,
        capacity: _,
        shape: _,
        overhead: _,
        encapsulation: _,
        limit: _,
        mtu: _,
        syn_share: _,
        rate_controller: _,
        needs_controller: _,
        counts_reports: _,
        params: _,
    } = new;
    let name = format!("ports.{}.", old.interface);
    // `overhead`, `encapsulation` and `mtu` determine the conversion between HTB's rates and the rate controller's
    // rates. This conversion is built only once.
    compare!(keys, name, old, new; now: limit, syn_share; restart: overhead, encapsulation, mtu);
    match (old.capacity, new.capacity) {
        (Capacity::Known(before), Capacity::Known(after)) if before != after => {
            old.capacity = new.capacity;
            keys.changed.push(name.clone() + "rate");
        }
        (before, after) if before != after => keys.restart.push(name.clone() + "capacity"),
        (Capacity::Measured, _) if old.shape.is_some() && new.shape.is_some() => {
            compare!(keys, name, old, new; now: shape; restart:);
        }
        _ => {
            compare!(keys, name, old, new; now:; restart: shape);
        }
    }
    let (kind, params) = (old.rate_controller != new.rate_controller, differing(old, new));
    if (kind || !params.is_empty()) && new.needs_controller && !has_channel {
        keys.restart.push(name + "rate_controller");
        return;
    }
    // The sizes of the loaded program's tables cannot change.
    if old.counts_reports != new.counts_reports {
        keys.restart.push(name + "rate_controller");
        return;
    }
    if kind {
        keys.changed.push(name + "rate_controller");
    } else {
        keys.changed.extend(params.iter().map(|key| format!("{name}params.{key}")));
    }
    if kind || !params.is_empty() {
        let max_flows = old.params.get(MAX_FLOWS).cloned();
        (old.rate_controller, old.needs_controller) = (new.rate_controller.clone(), new.needs_controller);
        old.params = new.params.clone();
        // The size of the flow table cannot change, so keep its parameter.
        old.params.extend(max_flows.map(|flows| (MAX_FLOWS.to_owned(), flows)));
    }
}

/// The parameter that `switch.max_flows` determines.
const MAX_FLOWS: &str = "max_flows";

/// Returns the names of all differing parameters except [`MAX_FLOWS`].
fn differing(old: &Port, new: &Port) -> Vec<String> {
    let mut names: Vec<_> = old.params.keys().chain(new.params.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let differs =
        |name: &&&String| name.as_str() != MAX_FLOWS && old.params.get(**name) != new.params.get(**name);
    names.iter().filter(differs).map(|name| (*name).clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "[switch]\ninterfaces = ['eth0']\n[[ports]]\ninterface = 'eth1'\nrate = '100mbit'\n";

    fn plan(old: &str, new: &str) -> Plan {
        let parse = |text| Config::parse(text, "f").unwrap();
        Plan::new(&parse(old), &parse(new))
    }

    /// Returns the keys that change now, and the keys that need a restart.
    fn keys(new: &str) -> (String, String) {
        let plan = plan(OLD, new);
        (plan.changed.join(" "), plan.restart.join(" "))
    }

    #[test]
    fn the_same_configuration_changes_nothing() {
        assert_eq!(keys(OLD), (String::new(), String::new()));
    }

    #[test]
    fn rates_ticks_and_parameters_change_now() {
        let new = OLD.replace("100mbit'", "50mbit'\nlimit = '10p'\n[ports.params]\neta = 0.9");
        let new = new.replace("[switch]", "[switch]\ntick = '20ms'\nfeedback = 'once-per-rtt'");
        let changed = "switch.tick switch.feedback ports.eth1.limit ports.eth1.rate ports.eth1.params.eta";
        assert_eq!(keys(&new), (changed.to_owned(), String::new()));
        let Config::Switch(config) = plan(OLD, &new).config else { panic!() };
        let Config::Switch(expected) = Config::parse(&new, "f").unwrap() else { panic!() };
        assert_eq!(config, expected);
    }

    #[test]
    fn interfaces_and_ports_can_be_added() {
        let new = OLD.replace("'eth0'", "'eth3', 'eth0'") + "[[ports]]\ninterface = 'eth2'\nrate = '1gbit'\n";
        assert_eq!(keys(&new), ("ports.eth2 switch.interfaces".to_owned(), String::new()));
    }

    #[test]
    fn a_port_in_the_place_of_another_needs_a_restart() {
        let new = OLD.replace("eth1", "eth2");
        assert_eq!(keys(&new), (String::new(), "ports".to_owned()));
        // The old port stays controlled, so its interface does not become uncontrolled.
        let new = new.replace("'eth0'", "'eth0', 'eth1'");
        let plan = plan(OLD, &new);
        let Config::Switch(config) = plan.config else { panic!() };
        assert_eq!((config.interfaces.len(), plan.restart), (1, vec!["ports".to_owned()]));
    }

    #[test]
    fn sizes_and_names_need_a_restart_and_leave_the_parameters_unchanged() {
        let new = OLD.replace("[switch]", "[switch]\nname = 's'\nmax_flows = 10");
        let (changed, restart) =
            keys(&(new + "[metrics]\nenabled = false\n[log]\nformat = 'json'\nlevel = 'debug'\n"));
        assert_eq!(changed, "log.level");
        assert_eq!(restart, "switch.name metrics log.format switch.max_flows");
    }

    #[test]
    fn a_longer_tick_changes_now_together_with_its_watchdog() {
        let new = OLD
            .replace("[switch]", "[switch]\ntick = '400ms'\nwatchdog = '2s'\nvlans = 'routed'\ngtp = true");
        let changed = "switch.tick switch.watchdog switch.vlans switch.gtp";
        assert_eq!(keys(&new), (changed.to_owned(), String::new()));
    }

    #[test]
    fn a_measured_port_and_another_overhead_need_a_restart() {
        let (changed, restart) = keys(
            &OLD.replace("rate = '100mbit'", "capacity = 'measured'\noverhead = 38\nencapsulation = 36"),
        );
        let expected = "ports.eth1.overhead ports.eth1.encapsulation ports.eth1.capacity";
        assert_eq!((changed.as_str(), restart.as_str()), ("", expected));
    }

    #[test]
    fn a_change_to_bdr_or_from_it_waits_for_the_restart() {
        let bdr = OLD.to_owned() + "rate_controller = 'bdr'\n";
        assert_eq!(keys(&bdr), (String::new(), "ports.eth1.rate_controller".to_owned()));
        let two = bdr.clone() + "[[ports]]\ninterface = 'eth2'\nrate = '1gbit'\nrate_controller = 'bdr'\n";
        assert_eq!(keys(&two).1, "ports.eth1.rate_controller ports.eth2");
        let back = plan(&bdr, OLD);
        assert_eq!(
            (back.changed.len(), back.restart.join(" ")),
            (0, "ports.eth1.rate_controller".to_owned())
        );
    }

    #[test]
    fn a_rate_controller_that_needs_a_channel_waits_for_the_restart() {
        let new = OLD.to_owned() + "rate_controller = 'pacec'\n[controller]\naddress = '127.0.0.1:6690'\n";
        assert_eq!(keys(&new), (String::new(), "controller ports.eth1.rate_controller".to_owned()));
    }

    #[test]
    fn another_role_needs_a_restart() {
        assert_eq!(keys("[sender]"), (String::new(), "sender".to_owned()));
        let plan = plan("[sender]", "[sender]\nmode = 'cap'\n[log]\nlevel = 'debug'");
        assert_eq!(
            (plan.changed, plan.restart),
            (vec!["log.level".to_owned()], vec!["sender.mode".to_owned()])
        );
    }

    #[test]
    fn namespaces_change_now_and_other_scopes_need_a_restart() {
        let of = |table: &str| {
            let plan =
                plan("[receiver]\n[[namespaces]]\npath = '/run/netns/a'", &format!("[receiver]\n{table}"));
            (plan.changed.join(" "), plan.restart.join(" "))
        };
        let changed = |keys: &str| (keys.to_owned(), String::new());
        assert_eq!(of("[[namespaces]]\npath = '/run/netns/a'"), changed(""));
        let other = "[[namespaces]]\npath = '/run/netns/b'\ninterfaces = ['eth0']";
        assert_eq!(of(other), changed("namespaces"));
        let restart = |keys: &str| (String::new(), keys.to_owned());
        assert_eq!(of("cgroup = '/sys/fs/cgroup/a'"), restart("namespaces"));
        let plan = plan("[sender]", "[sender]\ncgroup = '/sys/fs/cgroup/a'");
        assert_eq!(plan.restart, ["sender.cgroup"]);
    }
}
