//! External transport stacks for simulated flows, and the names of congestion controllers.

/// The prefix of `cc` that selects a controller of the catalogue instead of the stack's own controller.
pub const CATALOGUE_PREFIX: &str = "narrows:";

/// The congestion controllers that are a part of quinn.
pub const QUINN_CONTROLLERS: [&str; 3] = ["bbr", "cubic", "newreno"];

/// For each stack, the congestion controllers that are a part of the stack.
pub const STACKS: [(&str, &[&str]); 1] = [("quinn", &QUINN_CONTROLLERS)];

/// Returns the stack's own congestion controllers.
pub(crate) fn controllers(stack: &str) -> &'static [&'static str] {
    STACKS.iter().find(|(name, _)| *name == stack).map_or(&[], |(_, names)| names)
}

/// Returns the name that a flow's congestion controller has in the catalogue. The result is `None` if the flow is UDP,
/// or if it uses a controller of its stack.
pub(crate) fn catalogue_name<'n>(transport: &str, cc: &'n str) -> Option<&'n str> {
    match transport {
        "tcp" => Some(cc),
        "udp" => None,
        _ if controllers(transport).contains(&cc) => None,
        _ => Some(cc.strip_prefix(CATALOGUE_PREFIX).unwrap_or(cc)),
    }
}

/// Returns the default name of a flow: its stack and its congestion controller.
pub(crate) fn default_name(transport: &str, cc: &str) -> String {
    format!("{transport}-{}", cc.strip_prefix(CATALOGUE_PREFIX).unwrap_or(cc))
}

/// Returns the file and the class that a value of `cc` names, e.g. `copa.py:Copa`.
pub(crate) fn class_file(name: &str) -> Option<(&str, &str)> {
    let (file, class) = name.rsplit_once(':')?;
    let is_class = class.starts_with(|c: char| c == '_' || c.is_alphabetic())
        && class.chars().all(|c| c == '_' || c.is_alphanumeric());
    let is_file = file.len() > 3 && file.ends_with(".py") && !file.contains('\n');
    (is_class && is_file).then_some((file, class))
}
