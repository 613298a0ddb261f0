//! A simulation that a page advances step by step.

use std::rc::Rc;

use js_sys::{Array, Float64Array, Object, Reflect};
use narrows_control::units::Time;
use narrows_plan::Plan;
use narrows_sim::{Column, LiveFlow, Results, Run, Running, Table};
use self_cell::self_cell;
use wasm_bindgen::prelude::*;

use crate::describe::choose;
use crate::packets::{Row, Rows, Watch};
use crate::thrown;

/// JavaScript's whole numbers are exact up to this number (`Number.MAX_SAFE_INTEGER`).
const MOST_SEED: f64 = 9_007_199_254_740_991.0;

/// A run; `None` after its end.
struct Slot<'p>(Option<Running<'p>>);

self_cell!(
    /// A run together with its plan, from which the run borrows.
    struct Active {
        owner: Plan,
        #[not_covariant]
        dependent: Slot,
    }
);

/// A run of a scenario: a point of its sweep, with a seed.
#[wasm_bindgen]
pub struct Simulation {
    /// `None` after the end of the run.
    active: Option<Active>,
    /// The results after the end of the run.
    results: Option<Results>,
    packets: Rows,
    now: f64,
    events: f64,
    duration: f64,
}

#[wasm_bindgen]
impl Simulation {
    /// Prepares a run of a point of the sweep (0 is the first; scenarios without a sweep have one point).
    ///
    /// `seed` replaces the scenario's seed. If `watched` is the number of a link, `packets` returns the packets of its
    /// queue.
    ///
    /// # Errors
    /// Throws the line that the command line prints for this scenario.
    #[wasm_bindgen(constructor)]
    pub fn new(
        toml: &str,
        point: usize,
        seed: Option<f64>,
        watched: Option<u32>,
    ) -> Result<Simulation, JsError> {
        let chosen = choose(toml, point).map_err(thrown)?;
        let mut plan = chosen.survey.plan;
        plan.seed = match seed {
            None => chosen.seeds[0],
            Some(seed) if seed >= 0.0 && seed.fract() == 0.0 && seed <= MOST_SEED => seed as u64,
            Some(seed) => {
                return Err(JsError::new(&format!(
                    "seed: found {seed}, expected a whole number from 0 to {MOST_SEED}"
                )));
            }
        };
        // Captures write files, which a page does not have.
        plan.capture = None;
        let mut plan = Run::new(&plan).with_times().map_err(thrown)?.into_owned();
        let packets = Rows::default();
        let watch = watched.and_then(|link| Watch::start(&mut plan, link, Rc::clone(&packets)));
        let duration = plan.duration.as_secs_f64();
        let active = Active::try_new(plan, |plan| {
            let run = Run::new(plan);
            let run = if let Some(watch) = watch { run.tap(watch) } else { run };
            run.begin().map(|running| Slot(Some(running)))
        });
        let active = active.map_err(thrown)?;
        Ok(Simulation { active: Some(active), results: None, packets, now: 0.0, events: 0.0, duration })
    }

    /// Simulated time in seconds.
    #[wasm_bindgen(getter)]
    pub fn now(&self) -> f64 {
        self.now
    }

    /// Duration of the run in seconds.
    #[wasm_bindgen(getter)]
    pub fn duration(&self) -> f64 {
        self.duration
    }

    /// Number of events so far.
    #[wasm_bindgen(getter)]
    pub fn events(&self) -> f64 {
        self.events
    }

    /// Simulates until a time in seconds, or until the end of the run. Returns whether the run is complete.
    ///
    /// The time is rounded to nanoseconds, so that steps of 0.1 s reach 0.8 s. In floating point, 0.7 + 0.1 is less
    /// than 0.8.
    pub fn advance(&mut self, until: f64) -> bool {
        let Some(active) = &mut self.active else { return true };
        let until = Time::from_nanos((until.max(0.0) * 1e9).round() as u64);
        let reached = active.with_dependent_mut(|_, slot| {
            let running = slot.0.as_mut()?;
            running.advance(until);
            Some((running.now(), running.events(), running.is_complete()))
        });
        let Some((now, events, is_complete)) = reached else { return true };
        (self.now, self.events) = (now.as_secs_f64(), events as f64);
        if is_complete {
            self.finish();
        }
        is_complete
    }

    /// Ends the run at the current time. Afterwards, all tables are available.
    pub fn finish(&mut self) {
        if let Some(mut active) = self.active.take() {
            self.results = active.with_dependent_mut(|_, slot| slot.0.take().map(Running::finish));
        }
    }

    /// The rows of a table from row `from` on, as an object of columns. During the run, the available tables are
    /// `flow_samples`, `link_samples`, `events`, `traces` and (for flows that have ended) `flows`. After the run, all
    /// tables are available. An unknown table gives an empty object.
    #[wasm_bindgen(unchecked_return_type = "Record<string, Float64Array | string[]>")]
    pub fn rows(&self, table: &str, from: usize) -> Object {
        match (&self.active, &self.results) {
            (Some(active), _) => active.with_dependent(|_, slot| {
                columns(slot.0.as_ref().and_then(|running| running.table(table)), from)
            }),
            (None, Some(results)) => columns(results.table(table), from),
            (None, None) => Object::new(),
        }
    }

    /// The flows that exist now and have at least the number `from`, as an object of columns: `flow`, `name`, `source`.
    /// The page needs these rows before the flows end, because random starts decide which flow gets which number.
    #[wasm_bindgen(unchecked_return_type = "Record<string, Float64Array | string[]>")]
    pub fn live_flows(&self, from: u32) -> Object {
        let object = Object::new();
        let Some(active) = &self.active else { return object };
        active.with_dependent(|_, slot| {
            let Some(running) = &slot.0 else { return };
            let flows: Vec<_> = running.live_flows(from).collect();
            let numbers: Vec<f64> = flows.iter().map(|flow| flow.flow.into()).collect();
            let text = |value: fn(&LiveFlow<'_>) -> JsValue| flows.iter().map(value).collect::<Array>();
            put(&object, "flow", &Float64Array::from(&*numbers));
            put(&object, "name", &text(|flow| JsValue::from_str(&flow.name)));
            put(&object, "source", &text(|flow| JsValue::from_str(flow.source)));
        });
        object
    }

    /// Removes and returns the packets at the watched link, as an object of columns: `t_s`, `through` (0: the packet
    /// reaches the link's queue, 1: the packet is at the end of the link), `flow`, `seq`, `bytes`, `marked`.
    #[wasm_bindgen(unchecked_return_type = "Record<string, Float64Array | string[]>")]
    pub fn packets(&self) -> Object {
        let rows = self.packets.take();
        let column =
            |value: fn(&Row) -> f64| Float64Array::from(&*rows.iter().map(value).collect::<Vec<_>>());
        let object = Object::new();
        put(&object, "t_s", &column(|row| row.at));
        put(&object, "through", &column(|row| f64::from(row.is_through)));
        put(&object, "flow", &column(|row| f64::from(row.flow)));
        put(&object, "seq", &column(|row| f64::from(row.seq)));
        put(&object, "bytes", &column(|row| f64::from(row.bytes)));
        put(&object, "marked", &column(|row| f64::from(row.is_marked)));
        object
    }
}

fn columns(table: Option<&Table>, from: usize) -> Object {
    let object = Object::new();
    let Some(table) = table else { return object };
    let from = from.min(table.rows());
    for (name, column) in &table.columns {
        match column {
            Column::F64(values) => put(&object, name, &Float64Array::from(&values[from..])),
            Column::U64(values) => {
                let values: Vec<f64> = values[from..].iter().map(|value| *value as f64).collect();
                put(&object, name, &Float64Array::from(&*values));
            }
            Column::Str(values) => {
                put(
                    &object,
                    name,
                    &values[from..].iter().map(|value| JsValue::from_str(value)).collect::<Array>(),
                );
            }
        }
    }
    object
}

/// Sets a property of a new object. This cannot fail, because the object is an ordinary one.
fn put(object: &Object, name: &str, value: &JsValue) {
    let _ = Reflect::set(object, &JsValue::from_str(name), value);
}
