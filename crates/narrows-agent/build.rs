//! Compiles the eBPF programs of bpf/, and writes a skeleton for each program.

use std::path::{Path, PathBuf};
use std::{env, process};

use libbpf_cargo::SkeletonBuilder;

/// The programs: `bpf/NAME/NAME.bpf.c`.
const PROGRAMS: [&str; 4] = ["switch", "sender", "receiver", "cc"];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let bpf = root.join("bpf");
    // BTF names the source file of each line. Replace the paths, so that artifacts contain no paths of the build
    // machine. The new paths are absolute, because clang prepends the current folder to relative ones.
    let source_map = format!("-ffile-prefix-map={}=/narrows-agent", root.display());
    // On Debian, <asm/types.h> is in a folder with the architecture's name. For cross-compilation, it is in another
    // folder. For the BPF target, clang searches neither folder.
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    // libbpf's own headers, from the build of libbpf-sys.
    let libbpf_headers = env::var("DEP_BPF_INCLUDE").unwrap_or_default();
    let libbpf = format!("-I{libbpf_headers}");
    let libbpf_map = format!("-ffile-prefix-map={libbpf_headers}=/libbpf");
    let asm = format!("-idirafter/usr/include/{arch}-linux-gnu");
    let cross_asm = format!("-idirafter/usr/{arch}-linux-gnu/include");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    println!("cargo:rerun-if-changed={}", bpf.join("include").display());
    for name in PROGRAMS {
        let source = bpf.join(name).join(format!("{name}.bpf.c"));
        println!("cargo:rerun-if-changed={}", bpf.join(name).display());
        if !source.exists() {
            continue;
        }
        let include = format!("-I{}", bpf.join("include").display());
        let built = SkeletonBuilder::new()
            .source(&source)
            // Version 3 of the BPF instruction set (Linux 5.12) has atomic operations that return the previous value.
            .clang_args([
                "-O2",
                "-mcpu=v3",
                "-Wall",
                "-Werror",
                source_map.as_str(),
                libbpf_map.as_str(),
                include.as_str(),
                libbpf.as_str(),
                asm.as_str(),
                cross_asm.as_str(),
            ])
            .build_and_generate(out.join(format!("{name}.skel.rs")));
        if let Err(error) = built {
            eprintln!(
                "{}: {error:#}\nneeds clang 14 or later and the user-space headers of the kernel (linux-libc-dev)",
                source.display()
            );
            process::exit(1);
        }
    }
}
