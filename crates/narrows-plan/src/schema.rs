//! The JSON schema of plans. `tools/plan_types.py` generates the Python types of the plan from this schema.

/// Returns the JSON schema of the plans that a reader accepts. Keys with a default are optional.
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(crate::Plan)
}
