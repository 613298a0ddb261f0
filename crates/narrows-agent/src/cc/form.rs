//! Determines the form of `cong_control` from the kernel's types. The kernel's version is not enough, because
//! distributions backport features.

use libbpf_rs::btf::types::{FuncProto, Ptr, Struct};
use libbpf_rs::btf::{Btf, ReferencesType};

use super::CcError;
use super::error::REMEDY;

/// The two forms of `cong_control`. `bpf/cc` has a program for each.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Before Linux 6.10: `cong_control(sk, rs)`. Kernels before 6.4 have no `struct_ops` links, and Linux 6.1 does not
    /// let programs write `app_limited`. The programs of this form need neither feature.
    Old,
    /// Since Linux 6.10: `cong_control(sk, ack, flag, rs)`.
    New,
}

/// Returns the form that the running kernel needs.
///
/// # Errors
/// If the kernel's types do not show the form. The message is one line.
pub(super) fn kernel_form() -> Result<Form, CcError> {
    let what = "looking at the kernel's congestion controls";
    let types = Btf::from_vmlinux().map_err(CcError::refused(what, REMEDY))?;
    match argument_count(&types) {
        Some(2) => Ok(Form::Old),
        Some(_) => Ok(Form::New),
        None => Err(CcError::Missing {
            what,
            found: "found no cong_control in its tcp_congestion_ops".to_owned(),
            remedy: REMEDY,
        }),
    }
}

/// Returns the number of arguments of `cong_control`.
fn argument_count(types: &Btf<'_>) -> Option<usize> {
    let callbacks: Struct<'_> = types.type_by_name("tcp_congestion_ops")?;
    let callback = callbacks.iter().find(|member| member.name.is_some_and(|name| name == "cong_control"))?;
    let pointer: Ptr<'_> = types.type_by_id(callback.ty)?;
    FuncProto::try_from(pointer.referenced_type()).ok().map(|function| function.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_running_kernel_has_the_form_of_its_version() {
        let Ok(types) = Btf::from_vmlinux() else { return };
        let found = argument_count(&types);
        assert!(matches!(found, Some(2 | 4)), "{found:?}");
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
        // Kernels before 6.10 may have the new form as a backport. Kernels from 6.10 on always have it.
        if (numbers.next(), numbers.next()) >= (Some(6), Some(10)) {
            assert_eq!(kernel_form().unwrap(), Form::New, "{release}");
        }
    }
}
