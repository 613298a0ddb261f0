//! Tests that the bpffs at /sys/fs/bpf is mounted only once, and that pins below another mount are found. The tests
//! need root. Each test has its own mount namespace.
#![allow(missing_docs, reason = "a test program")]

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use std::{env, fs};

use libbpf_rs::{MapHandle, MapType};
use narrows_agent::cc::{self, CcError, Options, Place, Variant};
use narrows_agent::{bpffs, clean};
use narrows_lab::{Need, can_run, mount_bpffs, with_own_mounts};

#[path = "kernel/own.rs"]
mod own;

use own::{available, is_gone, own, soon};

/// Returns the number of bpffs mounts at /sys/fs/bpf in this mount namespace.
fn mounts() -> usize {
    let mounts = fs::read_to_string("/proc/thread-self/mountinfo").unwrap();
    mounts.lines().filter(|line| line.contains(" /sys/fs/bpf ") && line.contains(" - bpf ")).count()
}

fn load(variant: Variant, place: &Place) -> Result<(), CcError> {
    cc::load(variant, Options::default(), place).map(drop)
}

/// Returns the loaded algorithms, and whether their pins are visible.
fn listed(place: &Place) -> Vec<(Variant, bool)> {
    cc::list(place).unwrap().iter().map(|loaded| (loaded.variant, loaded.pin_is_visible)).collect()
}

/// Pins a map that does not belong to Narrows.
fn pin_foreign(path: &Path) {
    let opts = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as _,
        ..Default::default()
    };
    let mut map = MapHandle::create(MapType::Array, Some("foreign"), 4, 4, 1, &opts).unwrap();
    map.pin(path).unwrap();
}

const PROCESS: &str = "NARROWS_TEST_PROCESS";

/// Starts this program again in the calling thread's mount namespace. The process loads the algorithm. If `what` is
/// "load", the exit code of the process is the outcome. If `what` is "wait", the process waits after loading.
fn process(what: &str, variant: Variant, place: &Place) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "as_a_process", "--ignored", "--nocapture"]);
    command.env(PROCESS, format!("{what} {} {}", place.prefix, variant.name()));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    #[allow(unsafe_code, reason = "between fork and exec")]
    // SAFETY: a plain system call. It makes the kernel kill the process when the thread that started the process ends.
    unsafe {
        command.pre_exec(|| {
            nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL).map_err(Into::into)
        });
    }
    command.spawn().unwrap()
}

/// Exit codes of [`as_a_process`].
const IS_LOADED: i32 = 10;
const WAS_LOADED: i32 = 11;
const FAILED: i32 = 12;

#[test]
#[ignore = "runs as a process of the other tests"]
fn as_a_process() {
    let Ok(words) = env::var(PROCESS) else { return };
    let [what, prefix, variant] = words.split(' ').collect::<Vec<_>>()[..] else { panic!("{words}") };
    let place = Place { prefix: prefix.to_owned(), ..Place::default() };
    let variant = Variant::named(variant).unwrap();
    let load = || match load(variant, &place) {
        Ok(()) => IS_LOADED,
        Err(CcError::Loaded(_)) => WAS_LOADED,
        Err(_) => FAILED,
    };
    match what {
        "load" => std::process::exit(load()),
        // Like a test, this process has its own mount namespace. The test that started this process kills it.
        "wait" => with_own_mounts(|| {
            assert_eq!(load(), IS_LOADED);
            thread::sleep(Duration::from_secs(600));
        }),
        _ => panic!("{words}"),
    }
}

#[test]
fn load_mounts_a_missing_bpffs_and_unload_does_not() {
    own("none", |place| {
        assert!(matches!(cc::unload(Variant::A, place), Err(CcError::Absent(_))));
        assert_eq!(mounts(), 0);
        load(Variant::A, place).unwrap();
        assert_eq!(mounts(), 1);
        assert_eq!(listed(place), [(Variant::A, true)]);
        load(Variant::B, place).unwrap();
        assert_eq!(mounts(), 1);
        cc::unload(Variant::A, place).unwrap();
        cc::unload(Variant::B, place).unwrap();
        assert_eq!(listed(place), []);
        assert!(!place.folder.exists(), "the folder goes with the last pin");
    });
}

#[test]
fn a_bpffs_that_is_mounted_is_used() {
    own("one", |place| {
        mount_bpffs();
        load(Variant::A, place).unwrap();
        assert_eq!(mounts(), 1);
        assert_eq!((bpffs::covered().unwrap(), bpffs::warning()), (0, None));
        cc::unload(Variant::A, place).unwrap();
        assert_eq!(mounts(), 1);
    });
}

#[test]
fn a_hidden_pin_is_unloaded_and_the_mount_removed() {
    own("two", |place| {
        mount_bpffs();
        load(Variant::A, place).unwrap();
        mount_bpffs();
        assert_eq!(listed(place), [(Variant::A, false)]);
        let warning = bpffs::warning().unwrap();
        assert!(
            warning.contains("found 2 mounts on top of each other") && warning.contains("cc unload all"),
            "{warning}"
        );
        let list = Command::new(env!("CARGO_BIN_EXE_narrows-agent")).args(["cc", "list"]).output().unwrap();
        assert!(String::from_utf8_lossy(&list.stdout).contains(&warning), "{list:?}");
        cc::unload(Variant::A, place).unwrap();
        assert!(is_gone(place));
        assert_eq!((mounts(), bpffs::warning()), (1, None));
        assert!(!place.folder.exists(), "the pin is gone, too");
    });
}

#[test]
fn loading_again_below_an_empty_mount_unmounts_it_first() {
    own("lift", |place| {
        mount_bpffs();
        load(Variant::A, place).unwrap();
        mount_bpffs();
        mount_bpffs();
        let error = load(Variant::A, place).unwrap_err();
        assert!(matches!(error, CcError::Loaded(_)), "{error}");
        assert_eq!((mounts(), listed(place)), (1, vec![(Variant::A, true)]));
    });
}

#[test]
fn a_covering_mount_with_pins_stays_and_what_it_hides_is_unloaded() {
    own("pins", |place| {
        mount_bpffs();
        load(Variant::A, place).unwrap();
        mount_bpffs();
        let foreign = Path::new("/sys/fs/bpf/foreign");
        pin_foreign(foreign);
        let error = load(Variant::A, place).unwrap_err();
        assert!(matches!(error, CcError::Taken { .. }), "{error}");
        assert!(error.to_string().contains("`narrows-agent cc unload"), "{error}");
        load(Variant::B, place).unwrap();
        assert_eq!(listed(place), [(Variant::A, false), (Variant::B, true)]);
        cc::unload(Variant::A, place).unwrap();
        assert!(!available(&place.registered(Variant::A)));
        assert_eq!((mounts(), foreign.exists()), (2, true));
        cc::unload(Variant::B, place).unwrap();
        assert_eq!(mounts(), 2);
        fs::remove_file(foreign).unwrap();
        assert_eq!((cc::tidy(place).unwrap().mounts, mounts()), (1, 1));
    });
}

#[test]
fn concurrent_loads_mount_once_and_load_each_algorithm_once() {
    own("many", |place| {
        let loaders: Vec<_> = [Variant::ALL, Variant::ALL]
            .concat()
            .into_iter()
            .map(|variant| process("load", variant, place))
            .collect();
        let mut codes: Vec<_> = loaders.into_iter().map(|mut loader| loader.wait().unwrap().code()).collect();
        codes.sort_unstable();
        assert_eq!(mounts(), 1);
        let each = Variant::ALL.len();
        assert_eq!(codes, [vec![Some(IS_LOADED); each], vec![Some(WAS_LOADED); each]].concat());
        assert_eq!(listed(place), Variant::ALL.map(|variant| (variant, true)));
    });
}

#[test]
fn a_loader_that_is_killed_between_mount_and_pin_leaves_a_mount_that_the_next_one_uses() {
    let mut was_between = false;
    for _ in 0..20 {
        own("kill", |place| {
            let mut loader = process("load", Variant::C, place);
            while mounts() == 0 && loader.try_wait().unwrap().is_none() {
                thread::sleep(Duration::from_millis(1));
            }
            let _ = loader.kill();
            let end = loader.wait().unwrap();
            assert_eq!(mounts(), 1);
            // The loader may have made its pin before it was killed. If so, the loop tries again.
            was_between = end.code().is_none()
                && !place.folder.join(place.registered(Variant::C)).join("link").exists();
            if was_between {
                soon("half a congestion control goes with its loader", || is_gone(place));
                assert_eq!(listed(place), []);
                // The kernel has released the lock of the killed loader.
                load(Variant::C, place).unwrap();
                assert_eq!((mounts(), listed(place)), (1, vec![(Variant::C, true)]));
            }
        });
        if was_between || !can_run(&[Need::Root, Need::Btf]) {
            return;
        }
    }
    panic!("no loader was killed between its mount and its pin");
}

#[test]
fn an_algorithm_pinned_in_another_mount_namespace_is_unloaded() {
    own("away", |place| {
        load(Variant::A, place).unwrap();
        // This code runs in another mount namespace, which does not share the pins of the first one.
        let outcome = with_own_mounts(|| {
            assert_eq!(listed(place), [(Variant::A, false)]);
            cc::unload(Variant::A, place)
        });
        if let Err(error) = outcome {
            assert!(matches!(error, CcError::Elsewhere { .. }), "{error}");
            assert!(release() < (6, 11), "{error}");
            return;
        }
        assert!(is_gone(place));
        // The pin in this namespace is stale now.
        assert_eq!(listed(place), []);
        assert!(matches!(cc::unload(Variant::A, place), Err(CcError::Absent(_))));
        load(Variant::A, place).unwrap();
        assert_eq!(listed(place), [(Variant::A, true)]);
    });
}

#[test]
fn a_stale_pin_is_not_taken_for_the_registered_algorithm() {
    own("old", |place| {
        if release() < (6, 11) {
            return;
        }
        let stale = Options { exit_125: true, ..Options::default() };
        cc::load(Variant::A, stale, place).unwrap();
        let name = place.registered(Variant::A);
        // A thread in another mount namespace replaces the algorithm by a new one with the same name.
        let (replaced, replaced_by) = mpsc::channel();
        let (checked, check) = mpsc::channel::<()>();
        thread::scope(|scope| {
            let other = scope.spawn(move || {
                with_own_mounts(move || {
                    cc::unload(Variant::A, place).unwrap();
                    load(Variant::A, place).unwrap();
                    replaced.send(()).unwrap();
                    // Keep the namespace and its pin until the checks are done or have failed.
                    let _ = check.recv();
                });
            });
            if replaced_by.recv().is_ok() {
                let found = cc::find(Variant::A, place).unwrap().expect("the new one is registered");
                assert_eq!((found.options, found.pin_is_visible), (Options::default(), false));
                let error = load(Variant::A, place).unwrap_err();
                assert!(matches!(error, CcError::Taken { .. }), "{error}");
                cc::unload(Variant::A, place).unwrap();
                assert!(!available(&name), "it is unregistered when unload says so");
                assert!(!place.folder.exists(), "the stale pin is gone, too");
            }
            drop(checked);
            other.join().unwrap();
        });
    });
}

fn release() -> (u32, u32) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[test]
fn an_agents_pins_below_another_mount_are_found_and_cleaned() {
    own("agent", |_| {
        mount_bpffs();
        let pins = Path::new("/sys/fs/bpf/narrows-agent");
        fs::create_dir(pins).unwrap();
        pin_foreign(&pins.join("program"));
        assert!(!bpffs::is_hidden(&pins.join("program")).unwrap());
        mount_bpffs();
        assert!(bpffs::is_hidden(&pins.join("program")).unwrap());
        assert!(!bpffs::is_hidden(&pins.join("other")).unwrap());
        let cleaned = clean::clean(Path::new("/nonexistent"), pins);
        assert_eq!(cleaned.failed, Vec::<String>::new());
        assert!(cleaned.removed.iter().any(|what| what.contains("below another mount")), "{cleaned:?}");
        assert_eq!((mounts(), pins.exists()), (1, false));
    });
}

#[test]
fn an_agents_pins_in_every_hidden_mount_are_cleaned() {
    own("deep", |_| {
        let pins = Path::new("/sys/fs/bpf/narrows-agent");
        for _ in 0..2 {
            mount_bpffs();
            fs::create_dir(pins).unwrap();
            pin_foreign(&pins.join("program"));
        }
        mount_bpffs();
        let cleaned = clean::clean(Path::new("/nonexistent"), pins);
        assert_eq!(cleaned.failed, Vec::<String>::new());
        assert!(!bpffs::is_hidden(pins).unwrap(), "{cleaned:?}");
        assert_eq!((mounts(), pins.exists()), (1, false));
    });
}

/// Checks the error of a switch whose pins are hidden by a second mount. `before` is the beginning of the command line,
/// in front of the switch's program.
fn start_below_hidden_pins(tag: &str, before: &[&str], expected: &str) {
    own(tag, |_| {
        mount_bpffs();
        let pins = Path::new("/sys/fs/bpf/narrows-agent");
        fs::create_dir(pins).unwrap();
        pin_foreign(&pins.join("program"));
        mount_bpffs();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("switch.toml");
        let config = format!(
            "[switch]\nname = \"{tag}{}\"\npin = {pins:?}\n[[ports]]\ninterface = \"lo\"\nrate = \"1mbit\"\n\
             [metrics]\nenabled = false\n",
            std::process::id()
        );
        fs::write(&file, config).unwrap();
        let command = [before, &[env!("CARGO_BIN_EXE_narrows-agent"), "switch"]].concat();
        let output = Command::new(command[0]).args(&command[1..]).arg(&file).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(error, format!("narrows-agent: {}: pin: found {expected}\n", pins.display()));
        assert_eq!(output.status.code(), Some(2));
        assert!(!pins.exists(), "nothing is pinned in the upper mount");
    });
}

#[test]
fn a_switch_whose_pinned_data_plane_is_hidden_does_not_start() {
    let expected = "a pinned data plane that a second mount at /sys/fs/bpf hides, expected one mount \
                    (narrows-agent clean removes the hidden one)";
    start_below_hidden_pins("deny", &[], expected);
}

#[test]
fn a_switch_that_cannot_look_below_a_mount_does_not_start() {
    if !can_run(&[Need::Root, Need::Tool("setpriv --version")]) {
        return;
    }
    let expected = "several mounts at /sys/fs/bpf, and looking below the upper one failed (Operation not \
                    permitted (os error 1)); expected one mount (run narrows-agent clean in a root shell)";
    // Without CAP_SYS_ADMIN, the switch cannot make a mount namespace.
    start_below_hidden_pins("look", &["setpriv", "--bounding-set=-sys_admin", "--"], expected);
}

#[test]
fn pins_of_a_killed_loader_in_an_upper_mount_are_removed_with_the_mount() {
    own("left", |place| {
        mount_bpffs();
        load(Variant::A, place).unwrap();
        mount_bpffs();
        // A loader leaves this state if it is killed after its first pin and before its second.
        let folder = place.folder.join(place.registered(Variant::B));
        let leave = || {
            fs::create_dir_all(&folder).unwrap();
            pin_foreign(&folder.join("facts"));
        };
        leave();
        assert_eq!(cc::tidy(place).unwrap(), cc::Tidied { pins: true, mounts: 1 });
        assert_eq!((mounts(), listed(place)), (1, vec![(Variant::A, true)]));
        assert_eq!(cc::tidy(place).unwrap(), cc::Tidied::default());
        leave();
        mount_bpffs();
        let cleaned = clean::clean(Path::new("/nonexistent"), Path::new("/sys/fs/bpf/narrows-agent"));
        assert_eq!(cleaned.failed, Vec::<String>::new());
        assert!(cleaned.removed.iter().any(|what| what.contains("not registered")), "{cleaned:?}");
        assert_eq!((mounts(), folder.exists(), listed(place)), (1, false, vec![(Variant::A, true)]));
    });
}

#[test]
fn a_mount_of_another_type_over_a_bpffs_is_named() {
    own("tmp", |place| {
        mount_bpffs();
        load(Variant::A, place).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "tmpfs", bpffs::PATH]).status().unwrap();
        assert!(mounted.success());
        let warning = bpffs::warning().unwrap();
        assert!(warning.contains("type tmpfs") && warning.contains("`umount /sys/fs/bpf`"), "{warning}");
        assert!(Command::new("umount").arg(bpffs::PATH).status().unwrap().success());
        assert_eq!((bpffs::warning(), listed(place)), (None, vec![(Variant::A, true)]));
    });
}

#[test]
fn a_test_that_panics_leaves_nothing_registered() {
    let mut name = String::new();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        own("fail", |place| {
            load(Variant::A, place).unwrap();
            name = place.registered(Variant::A);
            panic!("on purpose");
        });
    }));
    if name.is_empty() {
        return;
    }
    assert!(outcome.is_err());
    soon("nothing stays registered", || !available(&name));
}

#[test]
fn a_test_that_is_killed_leaves_nothing_registered() {
    own("dead", |place| {
        let mut test = process("wait", Variant::A, place);
        soon("it is loaded", || available(&place.registered(Variant::A)));
        test.kill().unwrap();
        test.wait().unwrap();
        soon("nothing stays registered", || is_gone(place));
    });
}
