//! The JSON schema of the agent's bodies. `tools/channel_types.py` generates the Python types of the channel from this
//! schema.

/// Returns the JSON schema of a body as the controller accepts it. Keys with a default are optional.
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(crate::ToController)
}
