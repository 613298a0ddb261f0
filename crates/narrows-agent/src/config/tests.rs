use std::path::Path;

use narrows_control::parameter::Value;
use narrows_control::units::{Bytes, Rate, Span};

use super::*;

fn problems(content: &str) -> Vec<String> {
    let invalid = Config::parse(content, "f.toml").err().map(|e| e.to_string()).unwrap_or_default();
    invalid.lines().map(str::to_owned).collect()
}

#[test]
fn the_shipped_examples_are_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/examples");
    for role in ROLES {
        let config = Config::load(&folder.join(format!("{role}.toml"))).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(config.role(), role);
    }
}

#[test]
fn a_minimal_switch_has_defaults() {
    let content = "[switch]\n[[ports]]\ninterface = 'eth1'\nrate = '100mbit'";
    let Config::Switch(switch) = Config::parse(content, "f").unwrap() else { panic!() };
    assert_eq!((switch.tick, switch.watchdog), (Span::from_millis(10), Span::from_secs(1)));
    assert_eq!((switch.format, switch.feedback), (Format::Insert, Feedback::EveryAck));
    assert_eq!(switch.pin, Pin::UntilStopped);
    assert_eq!(switch.common.metrics.unwrap().address.to_string(), "127.0.0.1:9471");
    let port = &switch.ports[0];
    assert_eq!(port.capacity, Capacity::Known(Rate::from_bits_per_sec(100_000_000)));
    assert_eq!((port.limit, port.overhead, port.mtu), (1000, 14, None));
    assert_eq!(port.syn_share, 0.02);
    assert_eq!(port.rate_controller(3, Bytes::new(1500)).unwrap().name(), "brf");
}

#[test]
fn all_errors_are_reported_one_line_each() {
    let content = r#"
        [switch]
        tick = 10
        formt = "insert"
        watchdog = "1ms"
        [[ports]]
        interface = "eth1"
        rate = 100
        [ports.params]
        eta = 2.0
        [[ports]]
        interface = "eth/2"
        capacity = "measured"
        [metrics]
        address = "nowhere"
        netns = "r1"
        [logs]
    "#;
    assert_eq!(
        problems(content),
        [
            "f.toml: metrics.address: found \"nowhere\", expected an address and port such as \"127.0.0.1:9471\"",
            "f.toml: metrics.netns: found \"r1\", expected one of \"start\", \"agent\"",
            "f.toml: switch.tick: found 10, expected a time such as \"20ms\" or \"30s\"",
            "f.toml: switch.watchdog: found 1ms, expected at least three ticks, 30ms",
            "f.toml: switch.formt: found an unknown key; did you mean \"format\"?",
            "f.toml: ports[0].rate: found 100, expected a rate such as \"100mbit\"",
            "f.toml: ports[0].params.eta: found 2, expected a number from 0.01 to 1",
            "f.toml: ports[1].interface: found \"eth/2\", expected the name of an interface, at most 15 bytes without / : and spaces",
            "f.toml: logs: found an unknown key; did you mean \"log\"?",
        ]
    );
}

#[test]
fn times_in_brfs_parameters_require_units() {
    let with =
        |params: &str| format!("[switch]\n[[ports]]\ninterface='a'\nrate='1gbit'\n[ports.params]\n{params}");
    assert_eq!(problems(&with("poll = '50ms'\neta = '95%'\nmode = 'literal'")), [""; 0]);
    assert_eq!(
        problems(&with("poll = 50")),
        ["f.toml: ports[0].params.poll: found 50, expected a time such as \"20ms\" or \"30s\""]
    );
    assert_eq!(
        problems(&with("poll = '50mbit'")),
        ["f.toml: ports[0].params.poll: found \"50mbit\", expected a time such as \"20ms\" or \"30s\""]
    );
    assert_eq!(
        problems(&with("eta = 2\nb_head = 0.5")),
        [
            "f.toml: ports[0].params.eta: found 2, expected a number from 0.01 to 1",
            "f.toml: ports[0].params.b_head: found 0.5, expected a number from 1 to 10",
        ]
    );
    assert_eq!(
        problems(&with("etta = 1.0")),
        ["f.toml: ports[0].params.etta: found an unknown key; did you mean \"eta\"?"]
    );
    assert_eq!(
        problems(&with("udp_ceiling = '95'")),
        ["f.toml: ports[0].params.udp_ceiling: found \"95\", expected a number from 0 to 1"]
    );
    assert_eq!(
        problems(&with("max_flows = [1]")),
        [
            "f.toml: ports[0].params.max_flows: found a list of 1, expected a whole number from 1 to 2147483647"
        ]
    );
}

#[test]
fn udp_borrows_by_default_where_the_capacity_is_configured() {
    let with = |rest: &str| format!("[switch]\n[[ports]]\ninterface='a'\n{rest}");
    let ceiling = |rest: &str| {
        let Config::Switch(switch) = Config::parse(&with(rest), "f").unwrap() else { panic!() };
        switch.ports[0].params.get("udp_ceiling").cloned()
    };
    assert_eq!(ceiling("rate = '1gbit'"), Some(Value::Number(0.95)));
    assert_eq!(
        ceiling("rate = '1gbit'\nparams = { udp_share = '20%', udp_ceiling = '50%' }"),
        Some(Value::Number(0.5))
    );
    assert_eq!(ceiling("rate = '1gbit'\nrate_controller = 'rcp'"), None);
    let refused =
        "f.toml: ports[0].params.udp_ceiling: found 0.1, expected 0, or a number from udp_share (0.2) to 1";
    assert_eq!(problems(&with("rate = '1gbit'\nparams = { udp_share = 0.2, udp_ceiling = 0.1 }")), [refused]);
    let refused = "f.toml: ports[0].params.udp_ceiling: found udp_ceiling with capacity = \"measured\", \
                   expected `rate`: UDP borrows only with a configured capacity";
    assert_eq!(problems(&with("capacity = 'measured'\nparams = { udp_ceiling = 0.5 }")), [refused]);
}

#[test]
fn a_share_names_its_subscribers_and_is_brfs() {
    let port = "[switch]\n[[ports]]\ninterface='a'\nrate='1gbit'";
    let with = |share: &str| problems(&format!("{port}\nparams = {{ share = {share} }}"));
    for share in ["flow", "sender-address", "receiver-address", "receiver-prefix/24/56", "vlan", "mark"] {
        assert_eq!(with(&format!("'{share}'")), [""; 0], "{share}");
    }
    // These values have no side (sender or receiver), have too long a prefix, or are not text.
    for share in ["'address'", "'prefix/24'", "'sender-prefix/33'", "24"] {
        let shown = share.replace('\'', "\"");
        let expected =
            format!("f.toml: ports[0].params.share: found {shown}, expected flow, sender-address, ");
        let found = with(share);
        assert!(found.len() == 1 && found[0].starts_with(&expected), "{found:?}");
    }
    for kind in ["rcp", "bdr"] {
        let found = problems(&format!("{port}\nrate_controller = '{kind}'\nparams = {{ share = 'vlan' }}"));
        assert!(found.len() == 1 && found[0].contains("params.share: found an unknown key"), "{found:?}");
    }
}

#[test]
fn the_share_of_syns_is_a_part_of_the_link() {
    let with = |share: &str| {
        let content = format!("[switch]\n[[ports]]\ninterface='a'\nrate='1gbit'\nsyn_share = {share}");
        Config::parse(&content, "f.toml")
    };
    for (text, share) in [("'5%'", 0.05), ("0.05", 0.05), ("'100%'", 1.0)] {
        let Config::Switch(switch) = with(text).unwrap() else { panic!() };
        assert_eq!(switch.ports[0].syn_share, share, "{text}");
    }
    for (text, trouble) in [
        ("'0%'", "found 0%, expected from 0.1% to 100%"),
        ("'1mbit'", "found \"1mbit\", expected a share such as \"2%\" or 0.02"),
        ("true", "found true, expected a share such as \"2%\" or 0.02"),
        ("1.5", "found 1.5, expected a share such as \"2%\" or 0.02"),
    ] {
        assert_eq!(with(text).unwrap_err().to_string(), format!("f.toml: ports[0].syn_share: {trouble}"));
    }
}

#[test]
fn contradicting_keys_are_refused() {
    let twice = "[switch]\ninterfaces=['a']\n[[ports]]\ninterface='a'\nrate='1mbit'";
    assert_eq!(problems(twice), ["f.toml: ports[0].interface: found \"a\", which is named twice"]);
    let both = "[switch]\n[[ports]]\ninterface='a'\nrate='1mbit'\ncapacity='measured'";
    assert!(problems(both)[0].contains("ports[0].rate: found rate and capacity"));
    assert!(
        problems("[sender]\nmode='cap'\nset_default=true")[0]
            .contains("does not change the kernel's default")
    );
    assert!(problems("[switch]")[0].contains("found 0, expected from 1 to 63 tables [[ports]]"));
    assert!(problems("[sender]\n[receiver]")[0].contains("found sender, receiver, expected one of"));
    assert!(problems("[swich]")[0].contains("did you mean \"switch\"?"));
    assert!(problems("[sender]\n\n x = = 1")[0].starts_with("f.toml: line 3 is not TOML: "));
    assert!(problems("[sender]\n[[ports]]\ninterface = 'a'")[0].contains("ports: found an unknown key"));
}

#[test]
fn a_bandwidth_model_is_read_from_its_file() {
    let folder = std::env::temp_dir().join(format!("narrows-model-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("model.json");
    let model = |version: u64| {
        format!(
            "{{\"format\": \"narrows-bandwidth-model\", \"version\": {version}, \"base\": 14, \"trees\": []}}"
        )
    };
    let given = |predictor: &str| port_of("brf", &format!("params = {{ predictor = '{predictor}' }}"));
    let path = file.to_str().unwrap();
    std::fs::write(&file, model(1)).unwrap();
    for predictor in [path, &model(1)] {
        let Config::Switch(switch) = Config::parse(&given(predictor), "f").unwrap() else { panic!() };
        assert_eq!(switch.ports[0].params["predictor"], Value::Word(model(1).into()));
        assert_eq!(switch.ports[0].rate_controller(0, Bytes::new(1500)).unwrap().name(), "brf");
    }
    std::fs::write(&file, model(2)).unwrap();
    let wrong = port_problem(&given(path));
    assert_eq!(wrong, "params.predictor: found 2 at version of the model, expected 1");
    let expected = "expected off, average, or the file of a bandwidth model (at most 256 KiB)";
    for (predictor, reason) in [("model.json", "not an absolute path"), ("/", "not a file")] {
        let wrong = port_problem(&given(predictor));
        assert_eq!(wrong, format!("params.predictor: found {predictor:?}, {expected} ({reason})"));
    }
    std::fs::write(&file, " ".repeat((256 << 10) + 1)).unwrap();
    assert!(port_problem(&given(path)).ends_with("(the file is too long)"));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// On real switches, RCP and BDR send rates in ACKs and need a configured capacity.
#[test]
fn rcp_and_bdr_are_configured() {
    let port = |rest: &str| format!("[switch]\nmax_flows = 99\n[[ports]]\ninterface = 'a'\n{rest}");
    for (kind, time) in [("rcp", "rtt"), ("bdr", "tau_max")] {
        let content =
            port(&format!("rate = '1mbit'\nrate_controller = '{kind}'\nparams = {{ {time} = '1500ms' }}"));
        let Config::Switch(switch) = Config::parse(&content, "f").unwrap() else { panic!() };
        let port = &switch.ports[0];
        let (number, signal) = (Value::Number, Value::Word("ack".into()));
        let mut expected = vec![(time, number(1.5e9)), ("signal", signal)];
        if kind == "rcp" {
            expected.push(("max_flows", number(99.0)));
        }
        let expected = expected.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        assert_eq!(port.params, expected);
        assert_eq!(switch.keeps_flows(), kind == "rcp");
        assert_eq!(port.rate_controller(0, Bytes::new(1500)).unwrap().name(), kind);
        assert_eq!(port.thresholds(Bytes::new(1500)), None);
        let header = port_problem(&port_of(kind, "params = { signal = 'header' }"));
        assert_eq!(
            header,
            "params.signal: found \"header\", which stock hosts do not support, expected \"ack\""
        );
        let word = port_problem(&port_of(kind, &format!("params = {{ {time} = 20 }}")));
        assert_eq!(word, format!("params.{time}: found 20, expected a time such as \"20ms\" or \"30s\""));
    }
    let measured = port("capacity = 'measured'\nrate_controller = 'rcp'");
    assert_eq!(
        problems(&measured),
        ["f.toml: ports[0].capacity: found \"measured\", expected `rate`: rcp needs a configured rate"]
    );
    let expected = "rate_controller: found \"xcp\", which real switches do not support, expected one of \"bdr\", \"brf\", \"pacec\", \"rcp\"";
    assert_eq!(port_problem(&port_of("xcp", "")), expected);
    assert_eq!(port_problem(&port_of("brv", "")), expected.replace("xcp", "brv"));
    assert_eq!(
        port_problem(&port_of("bdr", "params = { t_rep_max = '5s' }")),
        "params.t_rep_max: found 5s, expected a time up to the longest time in a report (4194303us)"
    );
    assert_eq!(problems(&port_of("bdr", "params = { t_rep_max = '4s' }")), [""; 0]);
    let literal = port_problem(&port_of("bdr", "params = { mode = 'literal' }"));
    assert!(
        literal.starts_with("params.mode: found \"literal\", expected resolved if signal is ack"),
        "{literal}"
    );
}

/// A switch with BDR has no room for flows, so none of its ports can keep flows.
#[test]
fn bdr_controls_all_ports_or_none() {
    let port = |name: &str, kind: &str| {
        format!("[[ports]]\ninterface = '{name}'\nrate = '1mbit'\nrate_controller = '{kind}'\n")
    };
    let both = |a: &str, b: &str| format!("[switch]\n{}{}", port("a", a), port("b", b));
    assert!(Config::parse(&both("bdr", "bdr"), "f").is_ok());
    assert_eq!(
        problems(&both("brf", "bdr")),
        [
            "f.toml: ports: found \"brf\" and \"bdr\", expected bdr at all ports or at none, because a switch with bdr keeps no flows"
        ]
    );
}

/// The program of `brf` marks designated packets at interfaces.
#[test]
fn a_sender_that_designates_packets_needs_interfaces_and_brf() {
    let sender = |rest: &str| format!("[sender]\ndesignate = true\n{rest}");
    let Config::Sender(read) = Config::parse(&sender("interfaces = ['a']"), "f").unwrap() else { panic!() };
    assert!(read.designate);
    assert_eq!(
        problems(&sender("")),
        [
            "f.toml: sender.designate: found true without interfaces, expected the interfaces by which data leaves"
        ]
    );
    // Each namespace needs its own interfaces.
    let namespace = |rest: &str| format!("[[namespaces]]\npath = '/run/netns/{rest}\n");
    let all = [namespace("a'\ninterfaces = ['x']"), namespace("b'"), namespace("c'")].concat();
    assert_eq!(
        problems(&sender(&all)),
        [
            "f.toml: sender.designate: found true without interfaces in the namespace \"/run/netns/b\", expected the \
          interfaces by which data leaves"
        ]
    );
    let each = [namespace("a'\ninterfaces = ['x']"), namespace("b'\ninterfaces = ['x']")].concat();
    assert_eq!(problems(&sender(&each)), [""; 0]);
    let cap = problems(&sender("interfaces = ['a']\nmode = 'cap'"));
    assert!(
        cap.len() == 1 && cap[0].contains("sender.designate: found true together with mode = \"cap\""),
        "{cap:?}"
    );
}

/// A port with PACEC needs the SDN controller.
#[test]
fn pacec_is_signalled_in_band_by_default_and_needs_its_controller() {
    let own = port_of("pacec", "params = { sample = '20ms', edge = false }");
    assert_eq!(
        problems(&own),
        ["f.toml: controller: found no table, expected [controller], because pacec needs the SDN controller"]
    );
    let with = |own: &str| format!("{own}\n[controller]\naddress = '127.0.0.1:6690'");
    let Config::Switch(switch) = Config::parse(&with(&own), "f").unwrap() else { panic!() };
    let port = &switch.ports[0];
    assert_eq!(port.params.get("sample"), Some(&Value::Number(2e7)));
    assert_eq!(port.params.get("signal"), Some(&Value::Word("in-band".into())));
    assert_eq!(port.rate_controller(0, Bytes::new(1500)).unwrap().name(), "pacec");
    let aside = with(&port_of("pacec", "params = { signal = 'out-of-band' }"));
    let Config::Switch(switch) = Config::parse(&aside, "f").unwrap() else { panic!() };
    let built = switch.ports[0].rate_controller(0, Bytes::new(1500)).unwrap();
    assert!(built.sends_messages());
}

fn port_of(kind: &str, rest: &str) -> String {
    format!("[switch]\n[[ports]]\ninterface = 'a'\nrate = '1mbit'\nrate_controller = '{kind}'\n{rest}")
}

/// Returns the only error of a configuration with one port, without the port's path.
fn port_problem(content: &str) -> String {
    let problems = problems(content);
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems[0].trim_start_matches("f.toml: ports[0].").to_owned()
}

#[test]
fn a_receiver_has_no_required_keys() {
    assert_eq!(problems("[receiver]"), [""; 0]);
    let Config::Receiver(receiver) = Config::parse("[receiver]\ncgroup='/sys/fs/cgroup/x'", "f").unwrap()
    else {
        panic!()
    };
    assert_eq!(receiver.scope, Scope::Cgroup("/sys/fs/cgroup/x".into()));
}

#[test]
fn shape_is_accepted_only_with_a_measured_capacity() {
    let port = "[switch]\n[[ports]]\ninterface = 'eth1'\n";
    let content = format!("{port}capacity = 'measured'\nshape = '50mbit'");
    let Config::Switch(switch) = Config::parse(&content, "f").unwrap() else { panic!() };
    assert_eq!(switch.ports[0].capacity, Capacity::Measured);
    assert_eq!(switch.ports[0].shape, Some(Rate::from_bits_per_sec(50_000_000)));
    assert_eq!(
        problems(&format!("{port}rate = '100mbit'\nshape = '50mbit'")),
        ["f.toml: ports[0].shape: found shape without capacity = \"measured\"; `rate` also shapes the port"]
    );
}

#[test]
fn a_congestion_control_name_longer_than_linux_allows_is_refused() {
    let Config::Sender(sender) = Config::parse("[sender]\nalgorithm = 'brf2'", "f").unwrap() else {
        panic!()
    };
    assert_eq!(sender.algorithm, "brf2");
    let Config::Sender(sender) = Config::parse("[sender]", "f").unwrap() else { panic!() };
    assert_eq!(sender.algorithm, "brf");
    for bad in ["a name", "sixteen_letters_"] {
        let expected = format!(
            "f.toml: sender.algorithm: found \"{bad}\", expected 1 to 15 printable ASCII characters without spaces"
        );
        assert_eq!(problems(&format!("[sender]\nalgorithm = '{bad}'")), [expected]);
    }
}

#[test]
fn the_keys_of_the_channel_are_all_or_none_and_an_old_secret_is_refused() {
    let with = |own: &str| {
        let content = format!(
            "[switch]\n[[ports]]\ninterface = 'a'\nrate = '1mbit'\n[controller]\naddress = '192.0.2.1:6690'\n{own}"
        );
        Config::parse(&content, "f.toml").map_err(|invalid| invalid.to_string())
    };
    let files = "key = '/k'\ncertificate = '/c'\ntrusted = '/t'";
    let Config::Switch(switch) = with(files).unwrap() else { panic!() };
    assert_eq!(switch.controller.unwrap().keys.unwrap().trusted, std::path::Path::new("/t"));
    for (own, expected) in [
        (
            "",
            "f.toml: controller.key: found nothing, expected a file, because the controller is on another host",
        ),
        (
            "key = '/k'\ntrusted = '/t'",
            "f.toml: controller.certificate: found nothing, expected all or none of key, certificate, trusted",
        ),
        (
            "secret_file = '/s'",
            "f.toml: controller.secret_file: found the secret of an earlier version, expected key, certificate \
             and trusted: make them with 'narrows-agent key NAME'",
        ),
    ] {
        assert_eq!(with(own).unwrap_err(), expected);
    }
}

#[test]
fn a_switch_can_have_several_controllers() {
    let with = |address: &str| {
        let content = format!(
            "[switch]\n[[ports]]\ninterface = 'a'\nrate = '1mbit'\n[controller]\naddress = {address}"
        );
        Config::parse(&content, "f.toml").map_err(|invalid| invalid.to_string())
    };
    let addresses = ["127.0.0.1:6690", "127.0.0.2:6690"];
    let Config::Switch(switch) = with(&format!("{addresses:?}")).unwrap() else { panic!() };
    assert_eq!(switch.controller.unwrap().addresses, addresses);
    let expected = "expected a host and port such as \"127.0.0.1:6690\", or a list of them";
    for wrong in ["[]", "['127.0.0.1:6690', 'x']", "'127.0.0.1:0'", "7"] {
        let refused = with(wrong).unwrap_err();
        assert!(refused.ends_with(expected), "{refused}");
    }
    let refused = with("['127.0.0.1:6690', '192.0.2.1:6690']").unwrap_err();
    assert!(refused.contains("controller.key: found nothing"), "{refused}");
}
