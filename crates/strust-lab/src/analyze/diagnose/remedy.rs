//! One change with a value for the cause of a verdict, as settings that `--set` carries out.

use super::{
    facts::Facts,
    judge::{Cause, EARLY},
};
use crate::{
    data::{command::CommandLine, diagnosis::Remedy, parameters::Parameters},
    format::in_sentence as n,
    registry::methods::{self, StepKind},
};
use std::ffi::OsString;

/// A change with its settings as key and value, the reason and the effect.
struct AdvisedChange {
    set: Vec<(String, String)>,
    reason: String,
    effect: String,
}

#[allow(clippy::unnecessary_wraps, reason = "its callers return it as it is")]
fn advise(key: &str, value: impl Into<String>, reason: impl Into<String>, effect: &str) -> Option<AdvisedChange> {
    let set = vec![(key.to_string(), value.into())];
    Some(AdvisedChange { set, reason: reason.into(), effect: effect.into() })
}

/// The change for a cause; `None` if nothing is to be changed or no setting helps.
pub(super) fn remedy(facts: &Facts, cause: Cause, command: &CommandLine) -> Option<Remedy> {
    let change = match cause {
        Cause::None | Cause::Unmeasured => None,
        Cause::Early => enough_epochs(facts),
        Cause::Epochs(needed) => more_epochs(facts, needed),
        Cause::ShortSteps => standardized(facts).or_else(|| longer_steps(facts)).or_else(|| other_method(facts)),
        Cause::LongSteps => standardized(facts).or_else(|| shorter_steps(facts)).or_else(|| other_method(facts)),
        Cause::Range | Cause::Start => unscaled_loss(facts).or_else(|| standardized(facts)).or_else(|| {
            // Another method helps only if there is something to do.
            if facts.measured() && facts.failure.is_none() { other_method(facts) } else { None }
        }),
        Cause::Noise => less_noise(facts),
        Cause::SmallRegion => larger_region(facts),
        Cause::FrozenRegion => growing_region(facts),
        Cause::Overfit => regularized(facts).or_else(|| fewer_epochs(facts)),
        Cause::Features(_) | Cause::Conditioning => standardized(facts).or_else(|| other_method(facts)),
        Cause::Penalty | Cause::Constraint => other_method(facts),
    }?;
    let set: Vec<String> =
        change.set.iter().map(|(key, value)| format!("{}{key}={value}", owner(facts, key))).collect();
    let command = with_settings(command, &set);
    Some(Remedy { set, command, reason: change.reason, effect: change.effect })
}

/// `METHOD.` for a key of the method, if the experiment has several methods; the same for problems.
fn owner(facts: &Facts, key: &str) -> String {
    let (method, problem) = (&facts.job.method, &facts.job.problem);
    if method.hyperparameters.contains_key(key) {
        let several = facts.experiment.methods.iter().any(|other| other.name != method.name);
        return if several { format!("{}.", method.name) } else { String::new() };
    }
    let several = facts.experiment.problems.len() > 1 && problem.parameters.contains_key(key);
    if several { format!("{}.", problem.name) } else { String::new() }
}

/// The first digit of a number, rounded down: a rate is known only by its order, and a smaller one is safer.
fn one_digit(value: f64) -> f64 {
    let power = 10_f64.powi(value.log10().floor() as i32);
    let digit = (value / power + 1e-9).floor().clamp(1.0, 9.0);
    // Through text, so that the product is the nearest number to what is printed.
    format!("{digit}e{}", power.log10().round()).parse().unwrap_or(value)
}

/// A number as TOML writes it.
fn written(value: f64) -> String {
    format!("{:?}", one_digit(value))
}

/// Two digits, rounded up.
fn epochs(value: f64) -> u64 {
    let power = 10_f64.powi((value.max(1.0).log10().floor() as i32 - 1).max(0));
    ((value / power).ceil() * power).clamp(1.0, 1e9) as u64
}

fn more_epochs(facts: &Facts, needed: f64) -> Option<AdvisedChange> {
    let total = facts.stats.epochs as f64 + needed;
    if facts.unfinished() && total <= facts.planned() {
        return None;
    }
    // A quarter more, because the speed is an estimate.
    let total = epochs(1.25 * total);
    let reason = format!("at its speed it needs about {} more epochs", epochs(needed));
    advise(
        "epochs",
        total.to_string(),
        reason,
        "the error keeps falling; at this speed a thousandth of the start remains at the end",
    )
}

/// Enough epochs for a second half that shows a trend.
fn enough_epochs(facts: &Facts) -> Option<AdvisedChange> {
    let reason = format!("a trend needs {EARLY} epochs, and the second half of a run is judged");
    let effect = "the diagnosis has a verdict";
    if facts.unfinished() { None } else { advise("epochs", (2 * EARLY).to_string(), reason, effect) }
}

/// A parameter of the problem.
fn parameter<'a>(facts: &'a Facts, key: &str) -> Option<&'a toml::Value> {
    facts.job.problem.parameters.get(key)
}

/// Features of size 1, if theirs are the cause. The rate of a gradient step then is 1/d: the curvature of the loss is at
/// most about the sum of the squares of the d features.
fn standardized(facts: &Facts) -> Option<AdvisedChange> {
    let sizes = facts.unscaled()?;
    if parameter(facts, "standardize")?.as_str() != Some("off") {
        return None;
    }
    let why = format!("the features have root mean squares from {} to {}", n(sizes.low), n(sizes.largest));
    let mut change = advise("standardize", "on", why, "less of the error remains after the same epochs")?;
    if facts.steps() == StepKind::Rate {
        change.set.push(("learning_rate".into(), written(1.0 / sizes.count as f64)));
    }
    Some(change)
}

/// The loss without its factor.
fn unscaled_loss(facts: &Facts) -> Option<AdvisedChange> {
    let scale = crate::registry::problems::scale(&facts.job.problem);
    let why = format!("the loss is multiplied by {}, which takes its gradients out of range", n(scale));
    if scale.ln().abs() > 0.0 { advise("scale", "1.0", why, "the steps change the loss") } else { None }
}

/// Weights shrunk in the directions that have less than a tenth of the largest curvature, where the data say little.
fn regularized(facts: &Facts) -> Option<AdvisedChange> {
    let (found, now) = (facts.overfit()?, parameter(facts, "regularization")?.as_float()?);
    let l = facts.curvature? / crate::registry::problems::scale(&facts.job.problem);
    let why = format!("the fit to the test set is worse by {:.0} points", 100.0 * (found.train - found.test));
    let effect = "smaller weights, which follow the noise of the training set less";
    advise("regularization", written((0.1 * l).max(10.0 * now)), why, effect)
}

/// The epochs after which the test set was fitted best.
fn fewer_epochs(facts: &Facts) -> Option<AdvisedChange> {
    let (epoch, value) = facts.best_epoch()?;
    let why = format!("the test set was fitted best after epoch {epoch}, with {}", n(value));
    advise("epochs", epoch.to_string(), why, "a better fit to the test set")
}

/// The rate that the curvature allows: 1/L for gradient steps. A step of fixed length η√d crosses the distance to the
/// reference in a tenth of the run.
fn right_rate(facts: &Facts) -> Option<(f64, String)> {
    let (l, point) = (facts.curvature?, facts.point?);
    match facts.steps() {
        StepKind::Rate => {
            let friction = 1.0 - facts.number("momentum").filter(|_| facts.job.method.name == "sgd").unwrap_or(0.0);
            Some((
                friction / l,
                format!("the largest curvature of a mini-batch is L = {}, so 1/L is {}", n(l), n(1.0 / l)),
            ))
        }
        StepKind::Normalized => {
            let steps = facts.planned() * (point.terms as f64 / facts.experiment.batch as f64).max(1.0);
            let distance = point.reference?.distance;
            let rate = 10.0 * distance / ((point.dimension as f64).sqrt() * steps);
            let why = format!(
                "a step moves each unknown by about the rate, and {} away there is a better point",
                n(distance)
            );
            Some((rate, why))
        }
        _ => None,
    }
    .filter(|(rate, _)| rate.is_finite() && *rate > 0.0)
}

/// The effect of longer steps.
const FASTER: &str = "the error falls at least ten times as fast";

fn longer_steps(facts: &Facts) -> Option<AdvisedChange> {
    if let Some((rate, why)) = right_rate(facts) {
        let now = facts.number("learning_rate")?;
        return if one_digit(rate) > now { advise("learning_rate", written(rate), why, FASTER) } else { None };
    }
    let l = facts.curvature?;
    match facts.steps() {
        StepKind::Search if facts.number("max_step")? < 1.0 / l => {
            let why = format!("the search may not try longer steps, and 1/L is {}", n(1.0 / l));
            advise("max_step", written(2.0 / l), why, FASTER)
        }
        StepKind::Region if !facts.penalized() && facts.experiment.methods.len() == 1 => {
            let why = format!("H = I in the model is far above the curvature of the loss, {}", n(l));
            let scale = crate::registry::problems::scale(&facts.job.problem) / l;
            advise("scale", written(scale), why, FASTER)
        }
        _ => None,
    }
}

fn shorter_steps(facts: &Facts) -> Option<AdvisedChange> {
    let effect = "the error falls instead of bouncing";
    let now = facts.number("learning_rate").filter(|_| facts.steps() != StepKind::Free)?;
    match right_rate(facts) {
        Some((rate, why)) if one_digit(rate) < 0.7 * now => advise("learning_rate", written(rate), why, effect),
        known => {
            let why = match known {
                Some(_) => {
                    "the rate is at most about 1/L at the examined points, but the steps are too long on the way"
                }
                None => "the curvature was not measured, and a tenth of the rate is safer",
            };
            advise("learning_rate", written(0.1 * now), why, effect)
        }
    }
}

fn less_noise(facts: &Facts) -> Option<AdvisedChange> {
    let noise = facts
        .noise()
        .map_or_else(String::new, |noise| format!(": its mean square is {} times that of the gradient", n(noise)));
    if facts.text("schedule") == Some("constant") {
        let why = format!("the noise of the mini-batches keeps steps of constant length from settling{noise}");
        return advise("schedule", "cosine", why, "the error falls further while the steps shorten to 0");
    }
    other_method(facts).or_else(|| {
        let terms = facts.point?.terms as u64;
        let batch = (4 * facts.experiment.batch).min(terms);
        let why = format!("the noise of the mini-batches hides the gradient{noise}");
        let effect = "a quarter of the noise, and a smaller error";
        if batch > facts.experiment.batch { advise("batch", batch.to_string(), why, effect) } else { None }
    })
}

fn larger_region(facts: &Facts) -> Option<AdvisedChange> {
    let (now, usual) = (facts.region().max_radius, methods::with_defaults(&facts.job.method.name)?);
    let usual = usual.hyperparameters.get("max_radius").and_then(toml::Value::as_float)?;
    // The region itself shortens steps that are too long.
    let radius = if usual > 10.0 * now { usual } else { one_digit(100.0 * now) };
    let why = format!("the radius was at its largest value, {now}, and cut nearly all steps");
    advise("max_radius", format!("{radius:?}"), why, FASTER)
}

fn growing_region(facts: &Facts) -> Option<AdvisedChange> {
    let usual = methods::with_defaults(&facts.job.method.name)?.hyperparameters;
    let region = facts.region();
    let steps = region.shrink.ln() / region.grow.ln();
    let why = format!("after one rejection the radius needs {} accepted steps to recover", n(steps));
    advise("grow", crate::format::plain(usual.get("grow")?), why, "the radius recovers and the error falls")
}

/// The default method, which needs no rate and no penalty. If it runs already: with its own constants, or longer.
fn other_method(facts: &Facts) -> Option<AdvisedChange> {
    let name = if facts.constrained() { "str-sqp" } else { "auto" };
    if facts.job.method.name != name {
        let (why, effect) = if facts.ignores_constraint() {
            (format!("{} ignores the constraint", facts.job.method.name), "the constraint is satisfied")
        } else if facts.constrained() {
            ("it satisfies constraints without a penalty or a rate to choose".into(), "feasible, with a smaller error")
        } else {
            (
                "it learns the curvature along every unknown, and averages the noise".into(),
                "a smaller error in the same epochs",
            )
        };
        return advise("method", name, why, effect);
    }
    let usual: Parameters = methods::with_defaults(name)?.hyperparameters;
    let changed = facts.job.method.hyperparameters.iter().find(|(key, value)| usual.get(*key) != Some(*value));
    if let Some((key, _)) = changed {
        let value = crate::format::plain(usual.get(key)?);
        return advise(key, value, format!("`{key}` is not the default, which suits most problems"), FASTER);
    }
    let error = facts.error?;
    let needed = error.epochs_to(super::course::TOLERANCE * error.first);
    if needed.is_finite() { more_epochs(facts, needed) } else { None }
}

/// The command with these settings, for another folder.
fn with_settings(command: &CommandLine, set: &[String]) -> CommandLine {
    let words = command.words();
    let given: Vec<_> = words.iter().take(2).map(|word| word.to_str()).collect();
    let words = match given[..] {
        [Some("strust"), Some("run" | "reproduce")] => words,
        _ => ["strust", "run", "FILE"].map(OsString::from).to_vec(),
    };
    let (mut kept, mut words) = (Vec::new(), words.into_iter());
    while let Some(word) = words.next() {
        match word.as_encoded_bytes() {
            b"--out" => drop(words.next()),
            b"-q" | b"--quiet" | b"--json" => {}
            other if other.starts_with(b"--out=") => {}
            _ => kept.push(word),
        }
    }
    kept.extend(set.iter().flat_map(|one| ["--set", one]).map(OsString::from));
    CommandLine::new(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        analyze::diagnose::{Examination, FeatureSizes, Generalization, RecordStats, ReferencePoint, course::Course},
        data::plan::Plan,
        experiment::{Experiment, Setting},
    };
    use std::path::Path;

    const CAUSES: [Cause; 11] = [
        Cause::Early,
        Cause::Epochs(70.0),
        Cause::ShortSteps,
        Cause::LongSteps,
        Cause::Noise,
        Cause::SmallRegion,
        Cause::FrozenRegion,
        Cause::Features(1e4),
        Cause::Penalty,
        Cause::Constraint,
        Cause::Conditioning,
    ];

    fn examined() -> Examination {
        Examination {
            terms: 1000,
            dimension: 10,
            gradient_norm: 1.0,
            noise: 4.0,
            curvature: Some(3.0),
            reference: Some(ReferencePoint { value: 0.0, halfway: 0.0, distance: 2.0, steps: 100 }),
            ..Examination::unknown(20)
        }
    }

    #[test]
    fn every_change_for_every_method_can_be_carried_out() {
        for entry in methods::all() {
            let kinds = if entry.constrained { &["pca"][..] } else { &["least-squares", "pca", "logistic"] };
            for (kind, more) in kinds.iter().flat_map(|kind| [(kind, ""), (kind, "[[method]]\nname = \"str-sqp\"\n")]) {
                // STR-SQP needs a constraint.
                let more = if *kind == "pca" { more } else { &more.replace("str-sqp", "dog") };
                let text = format!(
                    "name = \"a\"\nepochs = 20\nbatch = 8\nseeds = 1\n[[problem]]\nkind = \"{kind}\"\n[[method]]\nname = \"{}\"\n{more}",
                    entry.name
                );
                let experiment = Experiment::parse(Path::new("a.toml"), &text).unwrap();
                let plan =
                    Plan::new(experiment, "strust run a.toml -q --out 'b c' --seeds 1", crate::this_machine(1, None));
                let job = &plan.jobs[0];
                let mut stats = RecordStats::read(Path::new("nowhere"), job).unwrap();
                stats.epochs = 20;
                let point = examined();
                let mut facts = Facts::new(&plan.experiment, job, &stats, Some(&point), None);
                facts.error = Course::new(&(0..20).map(|k| 0.99_f64.powi(k)).collect::<Vec<_>>(), false, false);
                for cause in CAUSES {
                    let what = format!("{} on {kind}, {cause:?}", entry.name);
                    // These two are causes only of methods with a region.
                    let region = facts.steps() == StepKind::Region;
                    if matches!(cause, Cause::SmallRegion | Cause::FrozenRegion) && !region {
                        continue;
                    }
                    let found = remedy(&facts, cause, &plan.command).unwrap_or_else(|| panic!("{what}: no remedy"));
                    let settings: Vec<Setting> = found.set.iter().map(|s| s.parse().unwrap()).collect();
                    let changed = Experiment::parse_with(Path::new("a.toml"), &text, &settings);
                    let changed = changed.unwrap_or_else(|error| panic!("{what}: {error}"));
                    assert_ne!(changed, plan.experiment, "{what}: {:?} changes nothing", found.set);
                    let expected = format!("strust run a.toml --seeds 1 --set {}", found.set.join(" --set "));
                    assert_eq!(found.command.to_string(), expected, "{what}");
                }
                assert_eq!(remedy(&facts, Cause::None, &plan.command), None);
            }
        }
    }

    #[test]
    fn a_batch_of_all_terms_is_never_enlarged() {
        let text =
            "name = \"a\"\nepochs = 20\nbatch = 1000\nseeds = 1\n[[problem]]\nkind = \"least-squares\"\nn = 1000\n";
        let experiment = Experiment::parse(Path::new("a.toml"), text).unwrap();
        let plan = Plan::new(experiment, String::new(), crate::this_machine(1, None));
        let stats = RecordStats::read(Path::new("nowhere"), &plan.jobs[0]).unwrap();
        let point = examined();
        let facts = Facts::new(&plan.experiment, &plan.jobs[0], &stats, Some(&point), None);
        assert_eq!(remedy(&facts, Cause::Noise, &plan.command), None);
    }

    #[test]
    fn settings_of_a_problem_name_it_if_there_are_several() {
        let problem = |name: &str| format!("[[problem]]\nkind = \"logistic\"\nname = \"{name}\"\ntest_share = 0.5\n");
        let method = "[[method]]\nname = \"sgd\"\n";
        let head = "name = \"a\"\nepochs = 20\nbatch = 8\nseeds = 1\n";
        let one = format!("{head}{}{method}", problem("first"));
        let two = format!("{head}{}{}{method}", problem("first"), problem("second"));
        let features = FeatureSizes { count: 50, low: 1e-80, largest: 1e-75 };
        let found = Generalization { accuracy: true, train: 1.0, test: 0.7, standard_error: 0.03 };
        let point = Examination { features: Some(features), generalization: Some(found), ..examined() };
        for (text, owner) in [(one, ""), (two, "first.")] {
            let experiment = Experiment::parse(Path::new("a.toml"), &text).unwrap();
            let plan = Plan::new(experiment, "strust run a.toml", crate::this_machine(1, None));
            let stats = RecordStats::read(Path::new("nowhere"), &plan.jobs[0]).unwrap();
            let facts = Facts::new(&plan.experiment, &plan.jobs[0], &stats, Some(&point), None);
            for (cause, expected) in [
                (Cause::Overfit, vec![format!("{owner}regularization=0.3")]),
                (Cause::ShortSteps, vec![format!("{owner}standardize=on"), "learning_rate=0.02".into()]),
                (Cause::Start, vec![format!("{owner}standardize=on"), "learning_rate=0.02".into()]),
            ] {
                let set = remedy(&facts, cause, &plan.command).unwrap().set;
                assert_eq!(set, expected, "{cause:?}");
                let settings: Vec<Setting> = set.iter().map(|s| s.parse().unwrap()).collect();
                assert_ne!(Experiment::parse_with(Path::new("a.toml"), &text, &settings).unwrap(), plan.experiment);
            }
        }
    }

    #[test]
    fn values_have_one_digit_and_epochs_two() {
        let digits: Vec<String> = [0.16, 6.03, 1.0, 2.9e-7, 123.0, 0.1].into_iter().map(written).collect();
        assert_eq!(digits, ["0.1", "6.0", "1.0", "2e-7", "100.0", "0.1"]);
        assert_eq!([3.2, 41.0, 123.0, 98765.0].map(epochs), [4, 41, 130, 99_000]);
    }

    #[test]
    fn the_command_of_another_kind_of_run_becomes_a_template() {
        let set = ["a=1".to_string()];
        let command = |text: &str| with_settings(&text.into(), &set).to_string();
        assert_eq!(command("strust train x.toml --save y"), "strust run FILE --set a=1");
        assert_eq!(command("rm run x.toml"), "strust run FILE --set a=1");
        assert_eq!(command("strust reproduce digits --out=x --json"), "strust reproduce digits --set a=1");
        assert_eq!(command("strust run 'my file.toml'"), "strust run 'my file.toml' --set a=1");
    }

    #[test]
    fn a_value_of_an_edited_plan_means_nothing_to_a_shell() {
        let command = with_settings(&"strust run a.toml;reboot $(x)".into(), &["a=`b`".into()]);
        assert_eq!(command.to_string(), "strust run 'a.toml;reboot' '$(x)' --set 'a=`b`'");
    }
}
