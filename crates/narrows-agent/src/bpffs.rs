//! The BPF file system (bpffs) at `/sys/fs/bpf`. This module mounts it once, and finds bpffs mounts that are hidden
//! below other mounts.
//!
//! Each mount of bpffs is a new file system. A second mount on the same folder therefore hides all pins of the first.
//! The kernel keeps the objects of hidden pins alive.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};

use crate::status::server::FOLDER;

/// Where Linux distributions mount bpffs.
pub const PATH: &str = "/sys/fs/bpf";

/// Default folder of the agents' pins.
pub const AGENTS: &str = "/sys/fs/bpf/narrows-agent";

/// Name of the lock file. Processes take the lock to mount or unmount bpffs, and to load or unload congestion control
/// algorithms.
///
/// The file is in the folder of the agents' sockets, because the systemd unit allows writes there. Only root can create
/// files in this folder. Other users can therefore neither put a symbolic link there nor open the file. A lock on
/// `/sys/fs` would be unsafe, because any user may open that folder and hold the lock for ever.
const LOCK: &str = "cc.lock";

/// A waiting process gives up if one other process holds the lock for longer than this.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two attempts to lock.
const POLL: Duration = Duration::from_millis(20);

/// Files that the kernel itself puts into every bpffs (`populate_bpffs()` in kernel/bpf/inode.c).
const PRELOADED: [&str; 2] = ["maps.debug", "progs.debug"];

/// Loops over the mounts on a folder stop after this many mounts.
const DEEPEST: usize = 64;

/// Why bpffs could not be mounted or locked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The lock file cannot be used.
    #[error("{}: {source}", path.display())]
    File {
        /// The lock file, or its folder.
        path: PathBuf,
        /// The error that the kernel returned.
        source: io::Error,
    },
    /// Another process has held the lock for too long.
    #[error(
        "{}: {holder} has held this lock for {} s; end that process or let it continue, then try again",
        path.display(), patience.as_secs()
    )]
    Held {
        /// The lock file.
        path: PathBuf,
        /// The process that holds the lock, in words.
        holder: String,
        /// How long this process has waited for this holder.
        patience: Duration,
    },
    /// The kernel refused to mount bpffs.
    #[error(
        "found no bpffs at {PATH}, and could not mount one: {0}; mount it yourself (`mount -t bpf bpf {PATH}`)"
    )]
    Mount(io::Error),
}

/// Locks bpffs against all other processes that use this module. The kernel releases the lock when the process dies. If
/// this process must wait, one line on standard error names the process that holds the lock.
///
/// # Errors
/// If the lock file cannot be created or does not belong to this user, or if one process holds it for too long.
pub fn lock() -> Result<Flock<File>, Error> {
    let folder = Path::new(FOLDER);
    // Other users list the agents' sockets in this folder, so its mode must not depend on the umask.
    let make =
        || fs::create_dir(folder).and_then(|()| fs::set_permissions(folder, Permissions::from_mode(0o755)));
    match make() {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
            Err(Error::File { path: folder.to_owned(), source })
        }
        _ => lock_file(&folder.join(LOCK), PATIENCE),
    }
}

fn lock_file(path: &Path, patience: Duration) -> Result<Flock<File>, Error> {
    let failed = |source: io::Error| Error::File { path: path.to_owned(), source };
    loop {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let file = options.open(path).map_err(failed)?;
        let opened = file.metadata().map_err(failed)?;
        if !opened.is_file() || opened.uid() != nix::unistd::geteuid().as_raw() {
            return Err(failed(io::Error::other(
                "found a file that is not a regular file or belongs to another user",
            )));
        }
        let lock = wait_for(file, path, patience)?;
        // The file may have been removed while this process waited. Processes that start later lock a new file, so this
        // process must lock the new file, too.
        if fs::symlink_metadata(path).is_ok_and(|now| (now.dev(), now.ino()) == (opened.dev(), opened.ino()))
        {
            return Ok(lock);
        }
    }
}

/// Locks a file. Fails if one other process holds the lock for longer than `patience`.
fn wait_for(mut file: File, path: &Path, patience: Duration) -> Result<Flock<File>, Error> {
    let (mut last, mut waited) = (None, Duration::ZERO);
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((back, Errno::EWOULDBLOCK)) => file = back,
            Err((_, errno)) => return Err(Error::File { path: path.to_owned(), source: errno.into() }),
        }
        let holder = holder(&file);
        if last.is_none() {
            eprintln!("narrows-agent: {}: waiting for {holder}, which holds this lock", path.display());
        }
        // If the holder has changed, the lock is not stuck, so restart the wait.
        if last.as_ref() != Some(&holder) {
            waited = Duration::ZERO;
        }
        if waited >= patience {
            return Err(Error::Held { path: path.to_owned(), holder, patience });
        }
        last = Some(holder);
        thread::sleep(POLL);
        waited += POLL;
    }
}

/// Returns the process that holds the lock of a file, in words.
fn holder(file: &File) -> String {
    let process = || {
        let locks = fs::read_to_string("/proc/locks").ok()?;
        let facts = file.metadata().ok()?;
        holding(&locks, (libc::major(facts.dev()), libc::minor(facts.dev()), facts.ino()))
    };
    let Some(process) = process() else { return "another process".to_owned() };
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    format!("process {process} ({})", name.trim())
}

/// Returns the id of the process that holds the lock of `file` (major and minor device number, inode). `locks` is the
/// text of proc_locks(5), which marks waiting processes with an arrow. A process of another PID namespace is listed as
/// 0.
fn holding(locks: &str, file: (u32, u32, u64)) -> Option<u32> {
    locks.lines().find_map(|line| {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        let [_, "FLOCK", _, _, process, place, ..] = fields[..] else { return None };
        let mut parts = place.split(':');
        let mut device = || u32::from_str_radix(parts.next()?, 16).ok();
        let (major, minor) = (device()?, device()?);
        let inode: u64 = parts.next()?.parse().ok()?;
        ((major, minor, inode) == file).then_some(process)?.parse().ok().filter(|process| *process > 0)
    })
}

/// Mounts bpffs at [`PATH`], unless a bpffs is mounted there already. The caller must hold the [`lock`].
///
/// # Errors
/// If the kernel refuses to mount it.
pub fn mount_once() -> Result<(), Error> {
    if is_bpffs(Path::new(PATH)) {
        return Ok(());
    }
    mount(Some("bpf"), PATH, Some("bpf"), MsFlags::empty(), Some("mode=0700"))
        .map_err(|errno| Error::Mount(errno.into()))?;
    // Programs that do not use this lock (systemd, bpftool) may have mounted bpffs at the same time. `uncover` removes
    // a covering mount only if it has no pins.
    uncover();
    Ok(())
}

/// Returns whether a file or folder is in a bpffs.
pub fn is_bpffs(path: &Path) -> bool {
    statfs(path).is_ok_and(|found| found.filesystem_type() == BPF_FS_MAGIC)
}

/// Returns how many bpffs mounts at [`PATH`] are hidden below other mounts in this mount namespace.
///
/// # Errors
/// If the list of mounts cannot be read.
pub fn covered() -> io::Result<usize> {
    Stack::read().map(|stack| stack.hidden)
}

/// Returns a one-line warning with the hidden mounts and a remedy, or `None` if no bpffs is hidden.
pub fn warning() -> Option<String> {
    let stack = Stack::read().ok().filter(|stack| stack.hidden > 0)?;
    if let Some(kind) = stack.foreign {
        return Some(format!(
            "{PATH}: found a mount of type {kind} over a bpffs, expected none; it hides the pins below it \
             (`umount {PATH}` removes it)"
        ));
    }
    Some(format!(
        "{PATH}: found {} mounts on top of each other, expected one; the upper mount hides the pins in the lower one \
         (`narrows-agent cc unload all` finds them, and unmounts the upper one if it has no pins)",
        stack.hidden + 1
    ))
}

/// Unmounts each bpffs that hides another bpffs, has no pins itself, and is not in use. Returns how many were
/// unmounted. The caller must hold the [`lock`].
pub fn uncover() -> usize {
    let can_go = || Stack::read().is_ok_and(|stack| stack.is_cover) && !has_pins(Path::new(PATH), true);
    // Without MNT_DETACH, the kernel does not unmount a file system that is in use. A later call can try again.
    (0..DEEPEST).take_while(|_| can_go() && umount2(PATH, MntFlags::UMOUNT_NOFOLLOW).is_ok()).count()
}

/// Calls `work` once for each hidden bpffs at [`PATH`], from top to bottom, until `work` returns true. Returns whether
/// a call has returned true. During a call, the hidden bpffs is visible at [`PATH`] in a private mount namespace. The
/// caller's mounts do not change.
///
/// # Errors
/// If the kernel refuses to make a mount namespace, or if `work` fails.
pub fn below<E: From<io::Error> + Send>(work: impl Fn() -> Result<bool, E> + Sync) -> Result<bool, E> {
    if covered()? == 0 {
        return Ok(false);
    }
    thread::scope(|scope| {
        let in_namespace = || {
            unshare(CloneFlags::CLONE_NEWNS).map_err(io::Error::from)?;
            let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
            mount(None::<&str>, "/", None::<&str>, private, None::<&str>).map_err(io::Error::from)?;
            for _ in 0..DEEPEST {
                // The unmount fails if nothing is mounted here any more, or if a mount covers /sys.
                if umount2(PATH, MntFlags::MNT_DETACH).is_err() {
                    break;
                }
                if is_bpffs(Path::new(PATH)) && work()? {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        scope.spawn(in_namespace).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Returns whether a path is in a bpffs that another mount hides.
///
/// # Errors
/// If the kernel does not let this process look into hidden mounts.
pub fn is_hidden(path: &Path) -> io::Result<bool> {
    below(|| path.try_exists())
}

/// Returns whether something is pinned below a folder. Folders are not pins.
fn has_pins(folder: &Path, is_root: bool) -> bool {
    // An unreadable entry counts as a pin.
    let Ok(entries) = fs::read_dir(folder) else { return true };
    entries.into_iter().any(|entry| {
        let Ok(entry) = entry else { return true };
        let is_preloaded = is_root && PRELOADED.iter().any(|name| entry.file_name() == *name);
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => has_pins(&entry.path(), false),
            _ => !is_preloaded,
        }
    })
}

/// Returns the id of the mount that a lookup of [`PATH`] finds (`mnt_id` of proc_pid_fdinfo(5)).
fn visible_mount() -> io::Result<u64> {
    let folder = OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(PATH)?;
    let facts = fs::read_to_string(format!("/proc/thread-self/fdinfo/{}", folder.as_raw_fd()))?;
    let id = facts.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok());
    id.ok_or_else(|| io::Error::other("found no mnt_id in /proc/thread-self/fdinfo"))
}

/// The state of the mounts at [`PATH`].
#[derive(Debug, PartialEq, Eq)]
struct Stack {
    /// Number of bpffs mounts that are hidden below other mounts.
    hidden: usize,
    /// Whether the visible mount is a bpffs directly on top of another bpffs.
    is_cover: bool,
    /// Type of the uppermost mount that is not a bpffs, if any.
    foreign: Option<String>,
}

impl Stack {
    fn read() -> io::Result<Stack> {
        // Read the mounts of this thread, which may be in another mount namespace than the process.
        let mounts = fs::read_to_string("/proc/thread-self/mountinfo")?;
        Ok(Stack::parse(&mounts, visible_mount()?))
    }

    /// Parses the text of proc_pid_mountinfo(5). `visible` is the id of the visible mount.
    fn parse(mountinfo: &str, visible: u64) -> Stack {
        let found: Vec<_> = mountinfo.lines().filter_map(Mount::parse).collect();
        let shown = found.iter().find(|mount| mount.id == visible);
        // If the same file system is mounted twice, the upper mount hides nothing.
        let is_hidden =
            |mount: &&Mount<'_>| mount.kind == BPF && shown.is_none_or(|shown| shown.files != mount.files);
        let hidden: Vec<_> = found.iter().filter(is_hidden).collect();
        let is_cover = shown
            .is_some_and(|shown| shown.kind == BPF && hidden.iter().any(|mount| mount.id == shown.parent));
        let foreign = found.iter().rfind(|mount| mount.kind != BPF).map(|mount| mount.kind.to_owned());
        let mut systems: Vec<_> = hidden.iter().map(|mount| mount.files).collect();
        systems.sort_unstable();
        systems.dedup();
        Stack { hidden: systems.len(), is_cover, foreign }
    }
}

/// The type of a bpffs in mountinfo.
const BPF: &str = "bpf";

/// A mount at [`PATH`].
struct Mount<'a> {
    id: u64,
    parent: u64,
    /// The file system (major:minor) and its mounted folder.
    files: (&'a str, &'a str),
    kind: &'a str,
}

impl Mount<'_> {
    /// Parses a line of mountinfo. Returns `None` for a mount at another path.
    fn parse(line: &str) -> Option<Mount<'_>> {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ');
        let (id, parent) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let files = (fields.next()?, fields.next()?);
        let kind = kind.split(' ').next()?;
        (fields.next()? == PATH).then_some(Mount { id, parent, files, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSFS: &str = "23 28 0:22 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n";

    fn bpffs(id: u64, parent: u64, device: &str) -> String {
        format!("{id} {parent} {device} / /sys/fs/bpf rw,relatime shared:9 - bpf bpf rw,mode=700\n")
    }

    fn stack(mounts: &[String], visible: u64) -> (usize, bool) {
        let found = Stack::parse(&(SYSFS.to_owned() + &mounts.concat()), visible);
        (found.hidden, found.is_cover)
    }

    #[test]
    fn a_bpffs_below_another_mount_is_hidden() {
        let (a, b, c) = (bpffs(30, 23, "0:30"), bpffs(31, 30, "0:31"), bpffs(32, 31, "0:32"));
        assert_eq!(stack(&[], 23), (0, false));
        assert_eq!(stack(std::slice::from_ref(&a), 30), (0, false));
        assert_eq!(stack(&[a.clone(), b.clone()], 31), (1, true));
        assert_eq!(stack(&[c, a.clone(), b], 32), (2, true));
        // A bpffs below a tmpfs, and then another bpffs on top. Unmounting the top bpffs would only show the tmpfs.
        let tmpfs = "40 30 0:40 / /sys/fs/bpf rw - tmpfs none rw\n".to_owned();
        assert_eq!(stack(&[a.clone(), tmpfs.clone()], 40), (1, false));
        assert_eq!(stack(&[a, tmpfs, bpffs(41, 40, "0:41")], 41), (1, false));
    }

    #[test]
    fn a_mount_of_another_type_is_named() {
        let mounts = bpffs(30, 23, "0:30") + "40 30 0:40 / /sys/fs/bpf rw - tmpfs none rw\n";
        assert_eq!(Stack::parse(&mounts, 40).foreign.as_deref(), Some("tmpfs"));
    }

    #[test]
    fn the_same_file_system_mounted_twice_hides_nothing() {
        assert_eq!(stack(&[bpffs(30, 23, "0:30"), bpffs(31, 30, "0:30")], 31), (0, false));
    }

    #[test]
    fn other_mounts_and_invalid_lines_are_ignored() {
        let elsewhere = "41 23 0:41 / /mnt rw - bpf none rw\nnonsense\n".to_owned();
        assert_eq!(stack(&[elsewhere], 23), (0, false));
        assert_eq!(Stack::parse("", 1), Stack { hidden: 0, is_cover: false, foreign: None });
    }

    #[test]
    fn the_lock_excludes_others_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = lock_file(&path, PATIENCE).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let other = File::open(&path).unwrap();
        let (other, _) = Flock::lock(other, FlockArg::LockExclusiveNonblock).unwrap_err();
        drop(held);
        Flock::lock(other, FlockArg::LockExclusiveNonblock).unwrap();
    }

    #[test]
    fn a_lock_that_stays_held_is_an_error_that_names_the_holder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let _held = lock_file(&path, PATIENCE).unwrap();
        let error = lock_file(&path, 2 * POLL).unwrap_err().to_string();
        let process = std::process::id();
        assert!(error.contains(&format!("process {process} (")) && error.lines().count() == 1, "{error}");
    }

    #[test]
    fn the_holder_is_the_process_that_does_not_wait() {
        let locks = "1: POSIX  ADVISORY  WRITE 11 00:1a:77 0 EOF\n2: FLOCK  ADVISORY  WRITE 12 00:1a:77 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 13 00:1a:77 0 EOF\n3: FLOCK  ADVISORY  WRITE 14 fd:01:77 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 0 00:1a:78 0 EOF\nnonsense\n";
        assert_eq!(holding(locks, (0, 0x1a, 77)), Some(12));
        assert_eq!(holding(locks, (0xfd, 1, 77)), Some(14));
        assert_eq!((holding(locks, (0, 0x1a, 78)), holding(locks, (0, 0x1a, 79))), (None, None));
    }

    #[test]
    fn a_symbolic_link_is_refused_as_a_lock_file() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("lock"));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(lock_file(&link, PATIENCE).unwrap_err().to_string().contains("lock: "));
        assert!(!target.exists());
    }

    #[test]
    fn a_waiter_on_a_removed_lock_file_locks_the_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = lock_file(&path, PATIENCE).unwrap();
        let waiting = thread::scope(|scope| {
            let waiter = scope.spawn(|| lock_file(&path, PATIENCE).unwrap());
            // The waiter may have opened the old file, but must lock the new file.
            fs::remove_file(&path).unwrap();
            drop(held);
            waiter.join().unwrap()
        });
        assert_eq!(waiting.metadata().unwrap().ino(), fs::metadata(&path).unwrap().ino());
    }

    #[test]
    fn empty_folders_and_the_kernels_files_do_not_count_as_pins() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("narrows-cc/empty")).unwrap();
        fs::write(folder.path().join("maps.debug"), "").unwrap();
        assert!(!has_pins(folder.path(), true));
        fs::write(folder.path().join("narrows-cc/link"), "").unwrap();
        assert!(has_pins(folder.path(), true));
    }
}
