//! Tests the algorithms of `narrows-agent cc` on this kernel: loading, refused requests, and the gain model. The tests
//! need root.
#![allow(missing_docs, reason = "a test program")]

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};

use narrows_agent::cc::{self, CcError, Options, Place, Probe, Variant};
use narrows_agent::dataplane::cost;
use narrows_control::congestion::bbr::gain_model;
use narrows_lab::{Need, can_run};
use nix::sys::socket::{setsockopt, sockopt};

#[path = "kernel/own.rs"]
mod own;

use own::{available, own, soon};

#[test]
fn the_kernel_computes_the_gains_of_the_simulator() {
    if !can_run(&[Need::Root, Need::Btf]) {
        return;
    }
    let omegas = || 0..=gain_model::OMEGA_ONE + 1;
    let in_kernel = [Variant::A, Variant::B, Variant::C].map(|v| cc::gains(v, omegas()).unwrap());
    let simulated = [gain_model::Variant::A, gain_model::Variant::B, gain_model::Variant::C];
    for (kernel, simulated) in in_kernel.iter().zip(simulated) {
        for (omega, [up, down]) in omegas().zip(kernel) {
            let gains = [gain_model::up(simulated, omega), gain_model::down(simulated, omega)];
            let units = gains.map(|gain| (gain.as_f64() * 256.0) as u32);
            assert_eq!(units, [*up, *down], "{simulated:?} at {omega}");
        }
    }
    let vectors = include_str!("../../../tests/vectors/bbr-gains.csv");
    let rows = vectors.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let mut count = 0;
    for row in rows {
        let row: Vec<u32> = row.split(',').map(|field| field.parse().unwrap()).collect();
        let kernel = in_kernel.each_ref().map(|gains| gains[row[0] as usize]).concat();
        assert_eq!(kernel, row[1..], "omega {}", row[0]);
        count += 1;
    }
    assert_eq!(count, gain_model::OMEGA_ONE);
    // BBR v1 has constant gains, regardless of the RTT.
    assert!(cc::gains(Variant::V1, omegas()).unwrap().iter().all(|gains| *gains == [320, 192]));
}

#[test]
fn the_kernel_decides_about_bbqs_probes_as_the_vectors() {
    if !can_run(&[Need::Root, Need::Btf]) {
        return;
    }
    let vectors = include_str!("../../../tests/vectors/bbq-probes.csv");
    let rows: Vec<[u32; 7]> = vectors
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
        .map(|row| {
            let fields: Vec<u32> = row.split(',').map(|field| field.parse().unwrap()).collect();
            fields.try_into().unwrap()
        })
        .collect();
    assert_eq!(rows.len(), 21);
    let decided = cc::probe(rows.iter().map(|&[min_rtt, a, b, c, d, ..]| (min_rtt, [a, b, c, d]))).unwrap();
    for (row, decided) in rows.iter().zip(decided) {
        let &[.., is_short, length_us] = row;
        assert_eq!(decided, Probe { is_short: is_short == 1, length_us }, "{row:?}");
    }
}

#[test]
fn a_flow_of_each_algorithm_delivers_its_data() {
    own("flow", |place| {
        for variant in Variant::ALL {
            cc::load(variant, Options::default(), place).unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            setsockopt(&client, sockopt::TcpCongestion, &OsString::from(place.registered(variant))).unwrap();
            let (server, _) = listener.accept().unwrap();
            let bytes = 8 << 20;
            let sending = std::thread::spawn(move || client.write_all(&vec![7; bytes]));
            let received =
                std::io::copy(&mut std::io::Read::take(&server, bytes as u64), &mut std::io::sink());
            assert_eq!(received.unwrap(), bytes as u64, "{variant:?}");
            sending.join().unwrap().unwrap();
            drop(server);
            soon("the connection is closed", || {
                cc::find(variant, place).unwrap().is_some_and(|loaded| loaded.connections == 0)
            });
            assert_eq!(cc::find(variant, place).unwrap().map(|loaded| loaded.begun), Some(1), "{variant:?}");
            cc::unload(variant, place).unwrap();
        }
    });
}

#[test]
fn a_congestion_control_stays_until_it_is_unloaded_and_unused() {
    own("stay", |place| {
        let name = place.registered(Variant::C);
        let options = Options { down_needs_loss: true, ..Options::default() };
        assert_eq!(cc::list(place).unwrap(), []);
        cc::load(Variant::C, options, place).unwrap();
        assert!(available(&name));
        let [loaded] = &cc::list(place).unwrap()[..] else { panic!("one is loaded") };
        assert_eq!(
            (loaded.variant, loaded.options, loaded.connections, loaded.begun),
            (Variant::C, options, 0, 0)
        );

        let error = cc::load(Variant::C, options, place).unwrap_err();
        assert!(matches!(error, CcError::Loaded(_)), "{error}");
        let elsewhere = Place { folder: place.folder.join("elsewhere"), ..place.clone() };
        let error = cc::load(Variant::C, options, &elsewhere).unwrap_err();
        assert!(matches!(error, CcError::Taken { .. }), "{error}");

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        setsockopt(&client, sockopt::TcpCongestion, &OsString::from(&name)).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let sending = std::thread::spawn(move || {
            client.write_all(&[7; 1 << 20]).unwrap();
            client
        });
        let received = std::io::copy(&mut std::io::Read::take(&mut server, 1 << 20), &mut std::io::sink());
        assert_eq!(received.unwrap(), 1 << 20);
        let client = sending.join().unwrap();
        let loaded = cc::find(Variant::C, place).unwrap().expect("it is loaded");
        assert_eq!((loaded.connections, loaded.begun), (1, 1));
        let error = cc::unload(Variant::C, place).unwrap_err();
        assert!(matches!(error, CcError::InUse { connections: 1, .. }), "{error}");
        assert!(available(&name));

        setsockopt(&client, sockopt::TcpCongestion, &OsString::from("reno")).unwrap();
        assert_eq!(cc::find(Variant::C, place).unwrap().map(|loaded| loaded.connections), Some(0));
        setsockopt(&client, sockopt::TcpCongestion, &OsString::from(&name)).unwrap();
        assert_eq!(cc::find(Variant::C, place).unwrap().map(|loaded| loaded.connections), Some(1));
        drop((client, server));
        soon("a closed connection no longer counts", || {
            cc::find(Variant::C, place).unwrap().is_some_and(|loaded| loaded.connections == 0)
        });
        cc::unload(Variant::C, place).unwrap();
        assert!(!available(&name));
        let error = cc::unload(Variant::C, place).unwrap_err();
        assert!(matches!(error, CcError::Absent(_)), "{error}");
    });
}

/// Ends the threads that keep the processors busy, even if the test fails.
struct StopsLoad<'a>(&'a AtomicBool);

impl Drop for StopsLoad<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn the_name_is_free_when_unload_returns_on_a_busy_machine() {
    own("busy", |place| {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _stop = StopsLoad(&stop);
            for _ in 0..8 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let freed = (0..10).map(|_| {
                cc::load(Variant::A, Options::default(), place).unwrap();
                cc::unload(Variant::A, place).unwrap();
                let freed = !available(&place.registered(Variant::A));
                soon("it is gone", || !available(&place.registered(Variant::A)));
                freed
            });
            assert_eq!(freed.filter(|freed| *freed).count(), 10);
        });
    });
}

#[test]
fn unload_frees_a_name_whose_link_another_process_holds() {
    own("held", |place| {
        let name = place.registered(Variant::A);
        cc::load(Variant::A, Options::default(), place).unwrap();
        let pin = place.folder.join(&name).join("link");
        if !pin.exists() {
            // Without BPF links for algorithms, no other process can prevent the unloading.
            return;
        }
        let _held = libbpf_rs::Link::open(&pin).unwrap();
        match cc::unload(Variant::A, place) {
            Ok(()) => assert!(!available(&name)),
            // Before Linux 6.11, links cannot be detached.
            Err(error) => assert!(matches!(error, CcError::Elsewhere { .. }), "{error}"),
        }
    });
}

#[test]
fn all_algorithms_can_be_loaded_together() {
    own("all", |place| {
        for variant in Variant::ALL {
            cc::load(variant, Options::default(), place).unwrap();
        }
        assert!(Variant::ALL.iter().all(|variant| available(&place.registered(*variant))));
        assert_eq!(cc::list(place).unwrap().len(), Variant::ALL.len());
        // The bound of this test is far below the verifier's limit of a million, because another kernel's verifier may
        // examine more instructions.
        let mut looked_at = 0;
        for id in cost::loaded() {
            // Another test may have unloaded the program in the meantime.
            let Ok((name, cost)) = cost::by_id(id) else { continue };
            if name == "nrw_cong_contro" {
                looked_at += 1;
                assert!(cost.verified_instructions < 100_000, "{cost:?}");
            }
        }
        assert!(looked_at >= Variant::ALL.len(), "{looked_at}");
        for variant in Variant::ALL {
            cc::unload(variant, place).unwrap();
        }
        assert_eq!(cc::list(place).unwrap(), []);
    });
}

fn run(program: &mut Command, arguments: &[&str]) -> Output {
    program.args(arguments).output().unwrap()
}

/// Checks that the program has printed one line and ended with exit code 2. Returns the line.
fn refused(output: &Output) -> String {
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    said
}

/// A failed load must not remove the pins of an earlier, successful load.
#[test]
fn only_one_of_two_concurrent_loads_succeeds() {
    own("both", |place| {
        let load = || cc::load(Variant::A, Options::default(), place);
        let outcomes = std::thread::scope(|scope| {
            [(); 2].map(|()| scope.spawn(load)).map(|loading| loading.join().unwrap())
        });
        assert!(outcomes.iter().any(Result::is_ok), "{outcomes:?}");
        assert!(outcomes.iter().any(|o| matches!(o, Err(CcError::Loaded(_)))), "{outcomes:?}");
        assert_eq!(cc::list(place).unwrap().len(), 1);
        cc::unload(Variant::A, place).unwrap();
    });
}

/// A process leaves an incomplete pin if it is killed after its first pin and before its second.
#[test]
fn an_incomplete_pin_does_not_prevent_loading() {
    own("half", |place| {
        cc::load(Variant::A, Options::default(), place).unwrap();
        let folder = place.folder.join(place.registered(Variant::A));
        for pin in ["link", "element"] {
            let _ = fs::remove_file(folder.join(pin));
        }
        assert!(folder.join("facts").exists());
        assert_eq!(cc::list(place).unwrap(), []);
        soon("it is gone", || !available(&place.registered(Variant::A)));
        cc::load(Variant::A, Options::default(), place).unwrap();
        assert!(available(&place.registered(Variant::A)));
        cc::unload(Variant::A, place).unwrap();
    });
}

/// If the name were truncated, it could be the name of another congestion control algorithm.
#[test]
fn a_too_long_name_is_refused() {
    own("long", |place| {
        let place = Place { prefix: "eleven_more".to_owned(), ..place.clone() };
        let error = cc::load(Variant::A, Options::default(), &place).unwrap_err();
        assert!(
            error.to_string().contains("found the name \"eleven_morebbr_a\", expected at most 15"),
            "{error}"
        );
    });
}

#[test]
fn invalid_input_gives_one_line_and_exit_code_2() {
    let agent = || Command::new(env!("CARGO_BIN_EXE_narrows-agent"));
    let said = refused(&run(&mut agent(), &["cc", "load", "bbr-d"]));
    assert!(
        said.contains("found \"bbr-d\", expected one of bbr, bbr-a, bbr-b, bbr-c, bbq, bbr2, bbr3, all"),
        "{said}"
    );
    for name in ["bbr", "bbq", "bbr2", "bbr3"] {
        let said = refused(&run(&mut agent(), &["cc", "load", name, "--exit-125"]));
        assert!(said.contains(&format!("exit-125: found with {name}, which has no gain model")), "{said}");
    }
}

#[test]
fn missing_privileges_are_named() {
    if !can_run(&[Need::Root, Need::Tool("setpriv --version")]) {
        return;
    }
    // Any user may execute a program in this folder.
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let program = folder.path().join("narrows-agent");
    // Let another process copy the program. If this process wrote the file, a concurrent test's child could inherit the
    // descriptor. Executing the copy would then fail with ETXTBSY.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_narrows-agent")).arg(&program).status().unwrap();
    assert!(copied.success());
    for command in [["load", "bbr"], ["unload", "bbr"], ["list", "--json"]] {
        let mut nobody = Command::new("setpriv");
        nobody.args(["--reuid=65534", "--clear-groups", "--inh-caps=-all", "--"]).arg(&program).arg("cc");
        let said = refused(&run(&mut nobody, &command));
        assert!(said.contains("lacks CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON"), "{said}");
    }
}
