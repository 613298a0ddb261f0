//! The command `narrows-agent cc`, which loads congestion control algorithms of the papers for any program.

use std::io::{self, Write};

use clap::{Args as ClapArgs, Subcommand};

use super::Failure;
use crate::bpffs;
use crate::cc::{self, CcError, Loaded, Options, Place, Variant};

#[derive(Debug, Subcommand)]
pub(super) enum CcCommand {
    /// Load and register algorithms; they stay until they are unloaded
    Load(LoadArgs),
    /// List the algorithms, whether each is loaded, and how many connections use it
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Unregister algorithms that no connection uses
    Unload {
        /// bbr, bbr-a, bbr-b, bbr-c, bbq, bbr2, bbr3, or all for every loaded algorithm
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
}

#[derive(Debug, ClapArgs)]
pub(super) struct LoadArgs {
    /// bbr, bbr-a, bbr-b, bbr-c, bbq, bbr2, bbr3, or all for every algorithm that is not loaded
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// End the probing phase at 1.25 BDP in flight, independently of its gain (bbr-a, bbr-b, bbr-c)
    #[arg(long)]
    exit_125: bool,
    /// Drain only after a probe that lost packets (bbr-a, bbr-b, bbr-c)
    #[arg(long)]
    down_needs_loss: bool,
}

const ALL: &str = "all";

pub(super) fn execute(command: &CcCommand) -> Result<u8, Failure> {
    let place = Place::default();
    match command {
        CcCommand::Load(args) => {
            let options = Options { exit_125: args.exit_125, down_needs_loss: args.down_needs_loss };
            // Check all algorithms before one is loaded, so that either all or none are loaded.
            let wanted = named(&args.names, || rest(options, &place))?;
            for &variant in &wanted {
                cc::loadable(variant, options, &place)?;
            }
            if args.names.iter().any(|name| name == ALL) {
                for line in left(&cc::list(&place)?, options, &place) {
                    println!("{line}");
                }
            }
            for variant in wanted {
                let loaded = cc::load(variant, options, &place)?;
                println!("{} is loaded", loaded.name);
            }
        }
        CcCommand::List { json } => {
            let mut text = shown(&cc::list(&place)?, &place, *json)?;
            if let Some(warning) = bpffs::warning().filter(|_| !json) {
                text += &format!("\n{warning}\n");
            }
            // `| head` closes the pipe early, which is no error.
            let _ = io::stdout().write_all(text.as_bytes());
        }
        CcCommand::Unload { names } => {
            let wanted = named(names, || there(&place))?;
            if wanted.is_empty() {
                println!("no algorithm is loaded");
            }
            let hidden = bpffs::covered().unwrap_or(0);
            for &variant in &wanted {
                cc::unloadable(variant, &place)?;
            }
            for variant in wanted {
                cc::unload(variant, &place)?;
                println!("{} is unloaded", place.registered(variant));
            }
            // Unloading may also unmount a bpffs. Compare the number of hidden mounts with the number before the
            // command.
            if cc::tidy(&place)?.pins {
                println!("removed pins of algorithms that are not registered");
            }
            if bpffs::covered().is_ok_and(|left| left < hidden) {
                println!("unmounted a bpffs that covered another one at {}", bpffs::PATH);
            }
        }
    }
    Ok(0)
}

/// Returns the loaded variants.
fn there(place: &Place) -> Result<Vec<Variant>, CcError> {
    Ok(cc::list(place)?.iter().map(|loaded| loaded.variant).collect())
}

/// Returns the variants that are not loaded and accept these options.
fn rest(options: Options, place: &Place) -> Result<Vec<Variant>, CcError> {
    let there = there(place)?;
    let fits = |variant: &Variant| variant.has_gain_model() || options == Options::default();
    Ok(Variant::ALL.into_iter().filter(|variant| !there.contains(variant) && fits(variant)).collect())
}

/// Returns one line for each variant that `load all` does not load. The line gives the reason.
fn left(there: &[Loaded], options: Options, place: &Place) -> Vec<String> {
    let with = |options: Options| match options.names().as_slice() {
        [] => "without options".to_owned(),
        names => format!("with {}", names.join(", ")),
    };
    let mut lines: Vec<String> = there
        .iter()
        .map(|loaded| format!("{} is already loaded, {}", loaded.name, with(loaded.options)))
        .collect();
    if options != Options::default() {
        let is_skipped = |variant: &Variant| {
            !variant.has_gain_model() && there.iter().all(|loaded| loaded.variant != *variant)
        };
        let skipped = Variant::ALL.into_iter().filter(is_skipped);
        lines.extend(
            skipped.map(|variant| format!("{} is skipped: it has no gain model", place.registered(variant))),
        );
    }
    lines
}

/// Returns the variants with these names. For the name `all`, returns the result of the function `all`.
fn named(
    names: &[String],
    all: impl FnOnce() -> Result<Vec<Variant>, CcError>,
) -> Result<Vec<Variant>, CcError> {
    let one = |name: &String| Variant::named(name).ok_or_else(|| CcError::Unknown(name.clone()));
    let ones = names.iter().filter(|name| *name != ALL).map(one).collect::<Result<Vec<_>, _>>()?;
    if names.iter().any(|name| name == ALL) {
        return all();
    }
    // Return each variant once. Otherwise, a repeated name would end the command half-way.
    let mut each: Vec<Variant> = Vec::new();
    for one in ones {
        if !each.contains(&one) {
            each.push(one);
        }
    }
    Ok(each)
}

fn shown(loaded: &[Loaded], place: &Place, json: bool) -> Result<String, serde_json::Error> {
    let of = |variant: Variant| loaded.iter().find(|loaded| loaded.variant == variant);
    if json {
        let rows = Variant::ALL.map(|variant| {
            let found = of(variant);
            serde_json::json!({
                "name": variant.name(),
                "registered": place.registered(variant),
                "what": variant.what(),
                "loaded": found.is_some(),
                "options": found.map(|f| f.options.names()).unwrap_or_default(),
                "connections": found.map(|f| f.connections),
                "begun": found.map(|f| f.begun),
                "pin_is_visible": found.map(|f| f.pin_is_visible),
                "state": found.map(|f| f.state.as_slice()).unwrap_or_default(),
            })
        });
        return Ok(serde_json::to_string_pretty(&rows)? + "\n");
    }
    let widest = |entry: &dyn Fn(Variant) -> String| {
        Variant::ALL.into_iter().map(|variant| entry(variant).chars().count()).max().unwrap_or(0)
    };
    let names = widest(&|variant| variant.name().to_owned());
    let registered = widest(&|variant| place.registered(variant));
    let descriptions = widest(&|variant| variant.what().to_owned());
    let mut text = String::new();
    for variant in Variant::ALL {
        let state = match of(variant) {
            None => "not loaded".to_owned(),
            Some(found) => {
                let options = found.options.names();
                let options =
                    if options.is_empty() { String::new() } else { format!(" ({})", options.join(", ")) };
                let pin = if found.pin_is_visible { "" } else { ", its pin is hidden" };
                format!("loaded{options}, {} connections now, {} begun{pin}", found.connections, found.begun)
            }
        };
        text += &format!(
            "{:names$} {:registered$} {:descriptions$} {state}\n",
            variant.name(),
            place.registered(variant),
            variant.what()
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &[&str], all: &[Variant]) -> Result<Vec<Variant>, String> {
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        named(&words, || Ok(all.to_vec())).map_err(|error| error.to_string())
    }

    #[test]
    fn a_variant_has_two_names_and_all_stands_for_every_candidate() {
        assert_eq!(names(&["bbr-c", "narrows_bbr_a"], &[]), Ok(vec![Variant::C, Variant::A]));
        assert_eq!(names(&["bbr-c", "bbr", "bbr-c", "narrows_bbr"], &[]), Ok(vec![Variant::C, Variant::V1]));
        assert_eq!(names(&["all"], &Variant::ALL), Ok(Variant::ALL.to_vec()));
        assert_eq!(names(&["all", "bbr"], &[Variant::B]), Ok(vec![Variant::B]));
        let error = names(&["all", "bbr_d"], &[]).unwrap_err();
        assert_eq!(
            error,
            "congestion control: found \"bbr_d\", expected one of bbr, bbr-a, bbr-b, bbr-c, \
             bbq, bbr2, bbr3, all"
        );
    }

    #[test]
    fn load_all_names_the_variants_that_it_does_not_load() {
        let place = Place::default();
        let b = Loaded {
            variant: Variant::B,
            name: place.registered(Variant::B),
            options: Options { exit_125: true, ..Options::default() },
            connections: 0,
            begun: 0,
            pin_is_visible: true,
            state: Vec::new(),
        };
        let stays = "narrows_bbr_b is already loaded, with exit-125";
        assert_eq!(left(core::slice::from_ref(&b), Options::default(), &place), [stays]);
        let lines = left(&[b], Options { down_needs_loss: true, ..Options::default() }, &place);
        let skipped = ["bbr", "bbq", "bbr2", "bbr3"]
            .map(|name| format!("narrows_{name} is skipped: it has no gain model"));
        assert_eq!(lines[0], stays);
        assert_eq!(lines[1..], skipped);
    }

    #[test]
    fn the_list_shows_whether_and_with_which_options_each_is_loaded() {
        let options = Options { down_needs_loss: true, ..Options::default() };
        let place = Place::default();
        let loaded = Loaded {
            variant: Variant::B,
            name: place.registered(Variant::B),
            options,
            connections: 2,
            begun: 3,
            pin_is_visible: true,
            state: Vec::new(),
        };
        let text = shown(core::slice::from_ref(&loaded), &place, false).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), Variant::ALL.len());
        let columns = |line: &&str| ["narrows_", "BBR ", "loaded"].map(|word| line.find(word));
        let first = columns(&lines[2]);
        assert!(first.iter().all(Option::is_some), "{text}");
        let begins = |line: &&str| line.replace("not loaded", "loaded    ");
        for line in lines.iter().map(begins) {
            assert_eq!(columns(&line.as_str()), first, "{text}");
        }
        assert!(
            lines[0].starts_with("bbr   narrows_bbr   BBR ") && lines[0].ends_with("not loaded"),
            "{text}"
        );
        assert!(lines[2].ends_with("loaded (down-needs-loss), 2 connections now, 3 begun"), "{text}");
        let rows: serde_json::Value =
            serde_json::from_str(&shown(core::slice::from_ref(&loaded), &place, true).unwrap()).unwrap();
        assert_eq!(rows[2]["registered"], "narrows_bbr_b");
        assert_eq!(rows[2]["options"][0], "down-needs-loss");
        assert_eq!((rows[2]["connections"].as_u64(), rows[1]["loaded"].as_bool()), (Some(2), Some(false)));
        assert_eq!(rows[2]["pin_is_visible"], true);
        let hidden = Loaded { pin_is_visible: false, ..loaded };
        let text = shown(&[hidden], &place, false).unwrap();
        assert!(text.contains("2 connections now, 3 begun, its pin is hidden"), "{text}");
    }
}
