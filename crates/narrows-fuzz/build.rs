//! Compiles the eBPF programs of senders and receivers as normal code, with libFuzzer's counters.

fn main() {
    let bpf = "../narrows-agent/bpf";
    let counters = "-fsanitize-coverage=inline-8bit-counters,pc-table,trace-cmp";
    println!("cargo:rerun-if-changed=native");
    println!("cargo:rerun-if-changed={bpf}");
    cc::Build::new()
        .compiler("clang")
        .files(["native/host.c", "native/receiver.c"])
        .includes(["native", bpf, "../narrows-agent/bpf/include"])
        .std("gnu11")
        .opt_level(1)
        .warnings(false)
        .flags(["-Wall", "-Werror", counters])
        // With these flags, undefined behaviour ends the process.
        .flags(["-fsanitize=undefined", "-fsanitize-trap=undefined"])
        // Normal code needs no relocation of the kernel's structures.
        .flag("-Dpreserve_access_index=annotate(\"host\")")
        .compile("nrw_fuzz_host");
}
