//! The JSON schema of plans. `tools/plan_types.py` generates the Python types of the plan from it.

/// Returns the JSON schema of a plan as a reader accepts it. Keys with a default are optional.
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(crate::Plan)
}
