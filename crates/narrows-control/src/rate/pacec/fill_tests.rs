use proptest::prelude::*;

use super::*;

fn filled(
    capacities: &[u64],
    paths: &[&[u32]],
    claims: &[(u32, u64, u64)],
    least: u64,
) -> (Vec<u64>, Filler) {
    let mut all = Paths::new(capacities.len());
    for path in paths {
        all.push(path);
    }
    let claims: Vec<_> = claims
        .iter()
        .map(|(path, demand, flows)| Claim { path: *path, demand: *demand, flows: *flows })
        .collect();
    let mut filler = Filler::default();
    filler.fill(capacities, &all, &claims, least);
    (filler.rates().to_vec(), filler)
}

#[test]
fn tv_p4_water_filling() {
    // Link 1 has a capacity of 100 and carries flows a and b. Link 2 has a capacity of 40 and carries flows b and c.
    let paths: [&[u32]; 3] = [&[0], &[0, 1], &[1]];
    let claims = [(0, UNBOUNDED, 1), (1, UNBOUNDED, 1), (2, UNBOUNDED, 1)];
    let (rates, _) = filled(&[100, 40], &paths, &claims, 0);
    assert_eq!(rates, [80, 20, 20]);
}

#[test]
fn the_rest_of_a_limited_flow_goes_to_the_others() {
    let (rates, _) = filled(&[100], &[&[0]], &[(0, 10, 1), (0, UNBOUNDED, 2)], 0);
    assert_eq!(rates, [10, 45]);
    let (rates, filler) = filled(&[100], &[&[0]], &[(0, 10, 1), (0, 20, 2)], 0);
    assert_eq!(rates, [10, 20]);
    assert_eq!(filler.spare(&[0]), 50);
}

#[test]
fn a_newcomer_is_offered_the_rest() {
    let (_, filler) = filled(&[100, 41, 1000], &[&[0, 1]], &[(0, UNBOUNDED, 2)], 0);
    assert_eq!([&[0][..], &[1], &[0, 2], &[2], &[]].map(|p| filler.spare(p)), [60, 1, 60, 1000, UNBOUNDED]);
}

#[test]
fn floors_come_first() {
    // The floors of ten flows (20 each) exceed the capacity of the first link (100). The second link still reserves
    // 200 for these flows.
    let paths: [&[u32]; 2] = [&[0, 1], &[1]];
    let (rates, _) = filled(&[100, 1000], &paths, &[(0, UNBOUNDED, 10), (1, UNBOUNDED, 1), (1, 5, 1)], 20);
    assert_eq!(rates, [20, 780, 20]);
}

#[test]
fn no_flows_and_no_links() {
    assert_eq!(filled(&[], &[], &[], 0).0, [0; 0]);
    assert_eq!(
        filled(&[5], &[&[]], &[(0, 7, 1), (9, UNBOUNDED, 1), (u32::MAX, 1, 1)], 2).0,
        [7, UNBOUNDED, 2]
    );
    assert_eq!(
        filled(&[5], &[&[0, 0, 7]], &[(0, UNBOUNDED, 2)], 0).0,
        [2],
        "a repeated link counts once, and the unknown link 7 is ignored"
    );
    assert_eq!(filled(&[5], &[&[0]], &[(0, UNBOUNDED, u64::MAX), (0, 3, u64::MAX)], 1).0, [1, 1]);
}

/// Computes the reference: it examines all open flows and links at every step.
fn reference(capacities: &[u64], paths: &Paths, claims: &[Claim], least: u64) -> Vec<u64> {
    let mut rates: Vec<Option<u64>> = vec![None; claims.len()];
    while rates.contains(&None) {
        let on =
            |link: u32| claims.iter().zip(&rates).filter(move |(c, _)| paths.get(c.path).contains(&link));
        let level = |link: u32| {
            let taken: u64 = on(link).filter_map(|(c, rate)| Some((*rate)? * c.flows)).sum();
            let open: u64 = on(link).filter(|(_, rate)| rate.is_none()).map(|(c, _)| c.flows).sum();
            let left = capacities[link as usize].saturating_sub(taken);
            left.checked_div(open).map(|level| (level.max(least), link))
        };
        let full = (0..capacities.len() as u32).filter_map(level).min();
        let open = claims.iter().enumerate().filter(|(at, _)| rates[*at].is_none());
        let modest = open.map(|(at, c)| (c.demand.max(least), at)).min();
        match (full, modest) {
            (Some((level, _)), Some((demand, at))) if demand <= level => rates[at] = Some(demand),
            (Some((level, link)), _) => {
                for (at, claim) in claims.iter().enumerate() {
                    if rates[at].is_none() && paths.get(claim.path).contains(&link) {
                        rates[at] = Some(level);
                    }
                }
            }
            (None, Some((demand, at))) => rates[at] = Some(demand),
            (None, None) => unreachable!(),
        }
    }
    rates.into_iter().flatten().collect()
}

prop_compose! {
    fn network()(links in 1usize..12)(
        capacities in proptest::collection::vec(prop_oneof![Just(0u64), 0u64..50, 0u64..1_000_000_000], links),
        paths in proptest::collection::vec(proptest::collection::vec(0..links as u32, 1..6), 1..20),
        claims in proptest::collection::vec(
            (0u32..20, prop_oneof![Just(UNBOUNDED), 0u64..60, 0u64..1_000_000_000], 1u64..5), 0..40),
        least in prop_oneof![Just(0u64), 0u64..30],
    ) -> (Vec<u64>, Paths, Vec<Claim>, u64) {
        let mut all = Paths::new(capacities.len());
        for path in &paths {
        all.push(path);
    }
        let claims = claims.into_iter()
            .map(|(path, demand, flows)| Claim { path: path % paths.len() as u32, demand, flows }).collect();
        (capacities, all, claims, least)
    }
}

proptest! {
    #[test]
    fn equals_the_reference((capacities, paths, claims, least) in network()) {
        let mut filler = Filler::default();
        filler.fill(&capacities, &paths, &claims, least);
        prop_assert_eq!(filler.rates(), reference(&capacities, &paths, &claims, least));
    }

    /// The conditions of max-min fairness, except for rounding to whole bytes.
    #[test]
    fn feasible_and_everyone_satisfied_or_first_at_a_bottleneck((capacities, paths, claims, least) in network()) {
        let mut filler = Filler::default();
        filler.fill(&capacities, &paths, &claims, least);
        let rates = filler.rates();
        let (paths, claims) = (&paths, &claims);
        let on = |link: u32| claims.iter().zip(rates).filter(move |(c, _)| paths.get(c.path).contains(&link));
        let sum = |link: u32| on(link).map(|(c, rate)| rate * c.flows).sum::<u64>();
        for link in 0..capacities.len() as u32 {
            let flows: u64 = on(link).map(|(c, _)| c.flows).sum();
            prop_assert!(sum(link) <= capacities[link as usize].max(flows * least));
        }
        for (claim, rate) in claims.iter().zip(rates) {
            prop_assert!(*rate >= least);
            let bottleneck = |link: &&u32| {
                let most = on(**link).map(|(_, rate)| *rate).max();
                let flows: u64 = on(**link).filter(|(_, r)| *r == rate).map(|(c, _)| c.flows).sum();
                most == Some(*rate) && capacities[**link as usize].saturating_sub(sum(**link)) < flows
            };
            prop_assert!(
                *rate == claim.demand.max(least) || paths.get(claim.path).iter().any(|l| bottleneck(&l)),
                "{:?} has {}", claim, rate
            );
        }
    }

    #[test]
    fn reused_buffers_do_not_change_results(a in network(), b in network()) {
        let (mut used, mut fresh) = (Filler::default(), Filler::default());
        used.fill(&a.0, &a.1, &a.2, a.3);
        used.fill(&b.0, &b.1, &b.2, b.3);
        fresh.fill(&b.0, &b.1, &b.2, b.3);
        prop_assert_eq!(used.rates(), fresh.rates());
        for path in 0..b.1.len() as u32 {
            prop_assert_eq!(used.spare(b.1.get(path)), fresh.spare(b.1.get(path)));
        }
    }

    #[test]
    fn step_by_step_equals_from_scratch((capacities, paths, claims, least) in network(), steps in steps()) {
        let (mut capacities, mut paths, mut claims, mut least) = (capacities, paths, claims, least);
        let mut used = Filler::default();
        for step in steps {
            step.apply(&mut capacities, &mut paths, &mut claims, &mut least);
            let mut fresh = Filler::default();
            used.fill(&capacities, &paths, &claims, least);
            fresh.fill(&capacities, &paths, &claims, least);
            prop_assert_eq!(used.rates(), fresh.rates(), "{:?}", step);
            for link in 0..capacities.len() as u32 {
                prop_assert_eq!(used.spare(&[link]), fresh.spare(&[link]), "{:?}", step);
            }
        }
    }
}

/// One change of the input: a capacity, demands, claims, paths or the floor.
#[derive(Clone, Debug)]
enum Step {
    Nothing,
    Capacity(prop::sample::Index, u64),
    Demands(Vec<(prop::sample::Index, u64)>),
    Flows(prop::sample::Index, u64),
    Moves(prop::sample::Index, prop::sample::Index),
    Begins(Claim),
    Ends(prop::sample::Index),
    Path(Vec<u32>),
    Least(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let at = any::<prop::sample::Index>;
    let demand = || prop_oneof![Just(UNBOUNDED), 0u64..60, 0u64..1_000_000_000];
    let step = prop_oneof![
        Just(Step::Nothing),
        (at(), 0u64..100).prop_map(|(at, capacity)| Step::Capacity(at, capacity)),
        // A few changed demands are moved in the sorted list. After many changes, the list is sorted again.
        proptest::collection::vec((at(), demand()), 1..4).prop_map(Step::Demands),
        proptest::collection::vec((at(), demand()), 2 * FEW).prop_map(Step::Demands),
        (at(), 1u64..5).prop_map(|(at, flows)| Step::Flows(at, flows)),
        (at(), at()).prop_map(|(at, path)| Step::Moves(at, path)),
        (0u32..4, demand(), 1u64..5).prop_map(|(path, demand, flows)| Step::Begins(Claim {
            path,
            demand,
            flows
        })),
        at().prop_map(Step::Ends),
        proptest::collection::vec(0u32..8, 1..4).prop_map(Step::Path),
        (0u64..30).prop_map(Step::Least),
    ];
    proptest::collection::vec(step, 1..30)
}

impl Step {
    fn apply(&self, capacities: &mut [u64], paths: &mut Paths, claims: &mut Vec<Claim>, least: &mut u64) {
        match self {
            Step::Capacity(at, capacity) => capacities[at.index(capacities.len())] = *capacity,
            Step::Begins(claim) => claims.push(*claim),
            Step::Path(path) => {
                paths.push(path);
            }
            Step::Least(new) => *least = *new,
            _ if claims.is_empty() => {}
            Step::Nothing => {}
            Step::Demands(all) => all.iter().for_each(|(at, demand)| {
                let at = at.index(claims.len());
                claims[at].demand = *demand;
            }),
            Step::Flows(at, flows) => {
                let at = at.index(claims.len());
                claims[at].flows = *flows;
            }
            Step::Moves(at, path) => {
                let at = at.index(claims.len());
                claims[at].path = path.index(paths.len()) as u32;
            }
            Step::Ends(at) => {
                claims.swap_remove(at.index(claims.len()));
            }
        }
    }
}
