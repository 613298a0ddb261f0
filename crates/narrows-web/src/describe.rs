//! The description of a scenario that a page draws.

use narrows_plan::{FlowPlan, LinkPlan, RatePlan, TransportPlan};
use narrows_scenario::{Error, Point, Result, Scenario, Survey, points};
use serde_json::{Value, json};

use crate::SOURCE;

/// A point of a scenario's sweep, ready to run.
pub(crate) struct Chosen {
    pub(crate) scenario: Scenario,
    pub(crate) points: Vec<Point>,
    pub(crate) seeds: Vec<u64>,
    pub(crate) survey: Survey,
}

/// Reads a scenario and makes the plan of a point of its sweep. A number that is too large selects the last point.
pub(crate) fn choose(toml: &str, point: usize) -> Result<Chosen> {
    let scenario = Scenario::parse(toml, SOURCE, &[])?;
    let points = points(&scenario, None)?;
    let chosen = &points[point.min(points.len() - 1)];
    let (seeds, survey) = (chosen.seeds.clone(), chosen.survey_closed()?);
    if let Err(problem) = narrows_sim::plan::check(&survey.plan) {
        return Err(in_scenario(&survey, &problem.to_string()));
    }
    Ok(Chosen { scenario, points, seeds, survey })
}

/// Converts an error of the simulator to an error about the scenario. The key of `flows[0].cc: ...` is `flows.0.cc`.
fn in_scenario(survey: &Survey, problem: &str) -> Error {
    let is_key = |place: &str| place.chars().all(|c| c.is_ascii_alphanumeric() || "_.[]".contains(c));
    let parts = problem.split_once(": ").filter(|(place, _)| is_key(place));
    let (place, message) = parts.unwrap_or(("", problem));
    let key = place.replace('[', ".").replace(']', "");
    survey.in_scenario(Error::new(message, key)).in_source(SOURCE)
}

/// Describes a point of a scenario's sweep as JSON.
pub(crate) fn describe(toml: &str, point: usize) -> Result<String> {
    let Chosen { scenario, points, seeds, survey } = choose(toml, point)?;
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
        "points": points.iter().map(|point| &*point.factors).collect::<Vec<_>>(),
        "seeds": seeds,
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
        let described: Value = serde_json::from_str(&describe(TEXT, 0).unwrap()).unwrap();
        assert_eq!(described["scenario"]["duration"], "30s");
        assert_eq!(described["set"].get("duration"), None);
        let flows = &described["network"]["flows"];
        assert_eq!([&flows[0]["name"], &flows[1]["cc"]], ["cubic", "bbr"]);
        let link = &described["network"]["links"][flows[0]["path"][1].as_u64().unwrap() as usize];
        assert_eq!((&link["name"], &link["rates_bps"][0][1]), (&json!("bottleneck"), &json!(50e6)));
        assert_eq!((&described["points"], &described["seeds"]), (&json!([{}]), &json!([1])));
    }

    #[test]
    fn each_point_of_a_sweep_has_its_network_and_seeds() {
        let text = format!("{TEXT}[sweep]\nseeds = 2\nvary = {{ 'topology.rate' = ['10mbit', '20mbit'] }}\n");
        let described = |point| serde_json::from_str::<Value>(&describe(&text, point).unwrap()).unwrap();
        for (point, rate) in [(0, "10mbit"), (1, "20mbit"), (7, "20mbit")] {
            let described = described(point);
            let factors = json!([{ "topology.rate": "10mbit" }, { "topology.rate": "20mbit" }]);
            assert_eq!((&described["points"], &described["seeds"]), (&factors, &json!([1, 2])));
            let link = &described["network"]["links"]
                [described["network"]["flows"][0]["path"][1].as_u64().unwrap() as usize];
            let bps = rate.trim_end_matches("mbit").parse::<f64>().unwrap() * 1e6;
            assert_eq!(link["rates_bps"][0][1], bps);
        }
    }

    #[test]
    fn errors_are_those_of_the_command_line() {
        let problem = |text: &str| describe(text, 0).unwrap_err().to_string();
        assert_eq!(
            problem(&TEXT.replace("50mbit", "fast")),
            "scenario.toml: topology.rate: found 'fast', expected a rate such as '100mbit'"
        );
        assert!(
            problem(&TEXT.replace("bbr", "bbb"))
                .starts_with("scenario.toml: flows.1.cc: found 'bbb', expected ")
        );
        assert_eq!(
            problem(&TEXT.replace("cc = 'bbr'", "cc = 'mine.py:Mine'")),
            "scenario.toml: flows.1.cc: found 'mine.py:Mine', expected a built-in congestion controller, because this \
             program does not run Python"
        );
        assert_eq!(
            problem(&TEXT.replace("rate = '50mbit'", "trace = { file = 'lte.csv' }")),
            "scenario.toml: topology.trace.file: found 'lte.csv', expected a readable file (this program reads no files)"
        );
        // This error comes from the simulator's check of the plan.
        let problem = problem(&TEXT.replace("cc = 'bbr'", "cc = 'bbr'\ntransport = 'quinn'"));
        assert!(problem.contains("this program has no other transports"), "{problem}");
    }
}
