//! Provides quinn's QUIC as a transport of the simulator.
//!
//! | module | idea |
//! | --- | --- |
//! | `flow` | a connection with both ends as a [`Transport`](narrows_sim::transport::Transport) |
//! | `end` | one end: quinn's endpoint with its connection |
//! | `observer` | observations that quinn passes only to its congestion controller |
//! | `plaintext` | a handshake and packets without TLS |
//! | `seeded` | connection IDs and keys from a seed |

mod end;
mod flow;
mod objects;
mod observer;
mod plaintext;
mod seeded;

use std::io::Write;
use std::sync::Arc;

use narrows_control::catalogue::{Choice, Controllers, Problem};
use narrows_control::congestion::Controller;
use narrows_sim::plan;
pub use narrows_sim::plan::{CATALOGUE_PREFIX, QUINN_CONTROLLERS};
use narrows_sim::transport::{FlowSetup, StackPlan, Transport, Transports};
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};

use self::flow::Flow;
use crate::factory::refuse_unsupported;

/// The name of the stack in plans.
pub const STACK_NAME: &str = plan::QUINN;

/// A function that takes the name of a flow and opens the flow's log. It returns `None` if the flow has no log.
type OpenLog<'a> = dyn Fn(&str) -> Option<Box<dyn Write + Send + Sync>> + Sync + 'a;

/// The stack `quinn`, as [`Transports`] of a run.
#[derive(Clone, Copy, Default)]
pub struct Quinn<'a> {
    log: Option<&'a OpenLog<'a>>,
}

impl<'a> Quinn<'a> {
    /// Makes the sender of each flow write quinn's qlog, with simulated times, to the file that `open` returns for the
    /// flow's name.
    pub fn with_logs(open: &'a OpenLog<'a>) -> Self {
        Quinn { log: Some(open) }
    }
}

/// Returns the choice with the controller's name in the catalogue. Returns `None` if the choice is one of quinn's own
/// controllers.
fn catalogue_choice(cc: &Choice) -> Option<Choice> {
    match cc.name.strip_prefix(CATALOGUE_PREFIX) {
        Some(name) => Some(Choice { name: name.to_owned(), params: cc.params.clone() }),
        None if QUINN_CONTROLLERS.contains(&cc.name.as_str()) => None,
        None => Some(cc.clone()),
    }
}

impl Transports for Quinn<'_> {
    fn check(&self, stack: &StackPlan, controllers: &dyn Controllers) -> Result<(), Problem> {
        if stack.name != STACK_NAME {
            let (parameter, found) = (Some("transport".to_owned()), format!("{:?}", stack.name));
            return Err(Problem { parameter, found, expected: format!("tcp, udp or {STACK_NAME}") });
        }
        check_congestion(&stack.cc, controllers).map_err(|mut problem| {
            problem.parameter = Some(problem.parameter.map_or("cc".into(), |name| format!("cc.{name}")));
            problem
        })
    }

    fn build(&self, setup: FlowSetup<'_>) -> Option<Box<dyn Transport>> {
        let congestion = match catalogue_choice(&setup.stack.cc) {
            None => Congestion::Own(quinn_controller(&setup.stack.cc.name)),
            Some(choice) => Congestion::Catalogue(setup.controllers.build_for(&choice, setup.flow)?),
        };
        let log = self.log.and_then(|open| open(setup.name));
        Flow::new(setup, congestion, log).map(|flow| Box::new(flow) as Box<dyn Transport>)
    }
}

/// The congestion controller of a sender.
enum Congestion {
    Own(Arc<dyn ControllerFactory + Send + Sync>),
    Catalogue(Box<dyn Controller>),
}

fn check_congestion(cc: &Choice, controllers: &dyn Controllers) -> Result<(), Problem> {
    let Some(choice) = catalogue_choice(cc) else {
        return match cc.params.keys().next() {
            Some(given) => Err(Problem::unknown_parameter(given, &format!("quinn's {}", cc.name), &[])),
            None => Ok(()),
        };
    };
    controllers.check(&choice)?;
    match controllers.probe(&choice) {
        Some(controller) => refuse_unsupported(&choice.name, &*controller),
        None => Ok(()),
    }
}

/// Returns the factory of a controller of quinn.
fn quinn_controller(name: &str) -> Arc<dyn ControllerFactory + Send + Sync> {
    match name {
        "bbr" => Arc::new(BbrConfig::default()),
        "newreno" => Arc::new(NewRenoConfig::default()),
        _ => Arc::new(CubicConfig::default()),
    }
}
