//! The description of a scenario that a page draws.

use narrows_plan::{FlowPlan, LinkPlan, RatePlan, TransportPlan};
use narrows_scenario::{Error, NoFiles, Result, Run, Scenario, Settings, Survey, expand, survey};
use serde_json::{Value, json};

use crate::SOURCE;

/// The first run of a scenario, and the number of all runs.
pub(crate) struct First {
    pub(crate) scenario: Scenario,
    pub(crate) run: Run,
    pub(crate) runs: usize,
    pub(crate) survey: Survey,
}

/// Reads a scenario and makes the plan of its first run.
pub(crate) fn first(toml: &str) -> Result<First> {
    let scenario = Scenario::parse(toml, SOURCE, &[])?;
    let runs = expand(&scenario, None)?;
    let count = runs.len();
    let Some(run) = runs.into_iter().next() else {
        return Err(Error::new("found no run, expected one", "sweep").in_source(SOURCE));
    };
    let survey = survey(&run.scenario(), &Settings::simulator(&NoFiles))?;
    if let Err(problem) = narrows_sim::plan::check(&survey.plan) {
        return Err(in_scenario(&survey, &problem.to_string()));
    }
    Ok(First { scenario, run, runs: count, survey })
}

/// An error of the simulator as an error about the scenario: `flows[0].cc: ...` is the key `flows.0.cc`.
fn in_scenario(survey: &Survey, problem: &str) -> Error {
    let is_key = |place: &str| place.chars().all(|c| c.is_ascii_alphanumeric() || "_.[]".contains(c));
    let parts = problem.split_once(": ").filter(|(place, _)| is_key(place));
    let (place, message) = parts.unwrap_or(("", problem));
    let key = place.replace('[', ".").replace(']', "");
    survey.in_scenario(Error::new(message, key)).in_source(SOURCE)
}

/// Describes a scenario as JSON.
pub(crate) fn describe(toml: &str) -> Result<String> {
    let First { scenario, runs, survey, .. } = first(toml)?;
    let plan = &survey.plan;
    let links = plan.links.iter().map(link).collect::<Vec<_>>();
    let flows = plan.flows.iter().zip(&survey.paths).zip(&survey.flows);
    let flows =
        flows.map(|((flow, paths), entry)| self::flow(flow, &paths.forth, *entry)).collect::<Vec<_>>();
    let described = json!({
        "scenario": scenario.full(),
        "set": scenario.raw(),
        "renamed": scenario.renamed().iter().map(|name| json!([name.old, name.new])).collect::<Vec<_>>(),
        "network": {
            "duration_s": plan.duration.as_secs_f64(),
            "warmup_s": plan.warmup.as_secs_f64(),
            "interval_s": plan.probes.interval.as_secs_f64(),
            "nodes": plan.nodes,
            "links": links,
            "flows": flows,
            "controlled": plan.rate_controllers.iter().map(|c| json!({ "link": c.link, "kind": c.kind })).collect::<Vec<_>>(),
            "sampled": plan.probes.links,
        },
        "runs": runs,
    });
    Ok(described.to_string())
}

fn link(link: &LinkPlan) -> Value {
    let rates = match &link.rate {
        RatePlan::Steps { steps, .. } => {
            steps.iter().map(|(at, rate)| (at.as_secs_f64(), rate.as_bits_per_sec())).collect()
        }
        RatePlan::Opportunities { millis, period_millis, bytes } => {
            let mean = millis.len() as f64 * f64::from(*bytes) * 8e3 / f64::from((*period_millis).max(1));
            vec![(0.0, mean)]
        }
    };
    json!({
        "name": link.name,
        "from": link.from,
        "to": link.to,
        "rates_bps": rates,
        "delay_s": link.delay.first().map_or(0.0, |(_, delay)| delay.as_secs_f64()),
        "queue": serde_json::to_value(&link.queue).unwrap_or_default(),
    })
}

fn flow(flow: &FlowPlan, path: &[u32], entry: usize) -> Value {
    let cc = match &flow.transport {
        TransportPlan::Tcp { cc, .. } => cc.name.as_str(),
        TransportPlan::Udp { .. } => "udp",
        TransportPlan::Stack(_) | TransportPlan::Program(_) => "",
    };
    json!({
        "name": flow.name,
        "cc": cc,
        "entry": entry,
        "from": flow.from,
        "to": flow.to,
        "start_s": flow.start.as_secs_f64(),
        "count": flow.count,
        "path": path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "[topology]\nkind = 'dumbbell'\nrate = '50mbit'\nrtt = '30ms'\n[[flows]]\n[[flows]]\ncc = 'bbr'\n";

    #[test]
    fn a_description_has_the_defaults_and_the_network() {
        let described: Value = serde_json::from_str(&describe(TEXT).unwrap()).unwrap();
        assert_eq!(described["scenario"]["duration"], "30s");
        assert_eq!(described["set"].get("duration"), None);
        let flows = &described["network"]["flows"];
        assert_eq!([&flows[0]["name"], &flows[1]["cc"]], ["cubic", "bbr"]);
        let link = &described["network"]["links"][flows[0]["path"][1].as_u64().unwrap() as usize];
        assert_eq!((&link["name"], &link["rates_bps"][0][1]), (&json!("bottleneck"), &json!(50e6)));
        assert_eq!(described["runs"], 1);
    }

    #[test]
    fn errors_are_those_of_the_command_line() {
        let problem = |text: &str| describe(text).unwrap_err().to_string();
        assert_eq!(
            problem(&TEXT.replace("50mbit", "fast")),
            "scenario.toml: topology.rate: found 'fast', expected a rate such as '100mbit'"
        );
        assert!(
            problem(&TEXT.replace("bbr", "bbb"))
                .starts_with("scenario.toml: flows.1.cc: found 'bbb', expected ")
        );
        // This error comes from the simulator's check of the plan.
        let problem = problem(&TEXT.replace("cc = 'bbr'", "cc = 'bbr'\ntransport = 'quinn'"));
        assert!(problem.contains("this program has no other transports"), "{problem}");
    }
}
