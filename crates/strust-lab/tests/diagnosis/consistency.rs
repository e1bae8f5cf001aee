//! Rules that the text of a diagnosis must follow, so that no part of it contradicts another one.

use strust_lab::analyze::diagnose::{Diagnosis, RunVerdict as V};

/// A rule: a name, and whether a diagnosis breaks it.
type Rule = (&'static str, fn(&Parts) -> bool);

/// A diagnosis with the parts that rules are about.
struct Parts<'a> {
    diagnosis: &'a Diagnosis,
    verdict: V,
}

impl Parts<'_> {
    fn text(&self, about: &str) -> &str {
        self.diagnosis.findings.iter().find(|finding| finding.about == about).map_or("", |finding| &finding.text)
    }
    fn number(&self, about: &str, name: &str) -> Option<f64> {
        self.diagnosis.findings.iter().find(|finding| finding.about == about)?.numbers.get(name).copied()
    }
    fn is(&self, verdicts: &[V]) -> bool {
        verdicts.contains(&self.verdict)
    }
    fn why(&self, part: &str) -> bool {
        self.diagnosis.why.contains(part)
    }
    fn falls(&self) -> bool {
        self.text("remaining").contains("It falls by")
    }
    fn does_not_fall(&self) -> bool {
        self.text("remaining").contains("It does not fall")
    }
    fn done(&self) -> bool {
        self.text("remaining").contains("a thousandth or less")
    }
    fn overfits(&self) -> bool {
        self.text("generalization").contains("too closely")
    }
    /// The value of a setting of the change.
    fn set(&self, key: &str) -> Option<f64> {
        let set = &self.diagnosis.remedy.as_ref()?.set;
        set.iter().find_map(|one| one.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
    }
}

const RULES: &[Rule] = &[
    ("a converged run has a thousandth or less left", |d| d.is(&[V::Converged]) && !d.done()),
    ("a converged run needs no change", |d| d.is(&[V::Converged]) && d.diagnosis.remedy.is_some()),
    ("only a converged run has nothing to change", |d| {
        !d.is(&[V::Converged]) && d.diagnosis.outlook() == Some("Nothing to change.")
    }),
    ("a run with a thousandth or less left is not slow, stuck or early", |d| {
        d.done()
            && d.is(&[V::TooSlow, V::Stuck, V::StillImproving, V::TooEarly])
            && !d.text("remaining").contains("‖c‖")
    }),
    ("a stuck run does not fall", |d| d.is(&[V::Stuck]) && d.falls()),
    ("a run that no longer falls is not improving", |d| d.is(&[V::StillImproving]) && d.does_not_fall()),
    ("what falls too slowly falls", |d| d.why("it falls too slowly") && !d.falls()),
    ("what no longer falls does not fall", |d| d.why("it no longer falls") && d.falls()),
    ("an early run is short, and is not extrapolated", |d| {
        let epochs = d.number("progress", "epochs").unwrap_or(0.0);
        d.is(&[V::TooEarly]) && (epochs >= 5.0 || d.text("remaining").contains("at this speed"))
    }),
    ("a short run has no verdict that needs a trend", |d| {
        let epochs = d.number("progress", "epochs").unwrap_or(5.0);
        epochs < 5.0 && d.is(&[V::StillImproving, V::TooSlow, V::Stuck])
    }),
    ("an unclear run names no share", |d| d.is(&[V::Unclear]) && d.why("of what was to be done remains")),
    ("a run whose rest is not known is unclear or broke down", |d| {
        d.text("remaining").contains("is not known") && !d.is(&[V::Unclear, V::BrokeDown, V::Infeasible])
    }),
    ("the share of the reason is that of the evidence", |d| {
        let share = d.diagnosis.why.split_once(" of what was to be done remains").map(|(share, _)| share);
        share.is_some_and(|share| !d.text("remaining").contains(&format!("{share} of the")))
    }),
    ("the last value is that of the last epoch", |d| {
        let (last, progress) = (d.number("remaining", "last"), d.number("progress", "last"));
        let distance = d.text("remaining").contains("(the distance to the minimum)");
        distance && d.text("progress").contains("gap") && last != progress.map(f64::abs)
    }),
    ("a median is called one", |d| {
        let (last, level) = (d.number("remaining", "last"), d.number("remaining", "level"));
        level.is_some() && level != last && !d.text("remaining").contains("the median of the last")
    }),
    ("an overfitting run says so, and the evidence agrees", |d| d.is(&[V::Overfits]) && !d.overfits()),
    ("overfitting is not silently accepted", |d| {
        d.overfits() && d.is(&[V::Converged, V::StillImproving, V::TooSlow, V::Stuck])
    }),
    ("short steps are short", |d| d.why("the steps are too short") && !d.text("step length").contains("far below 1")),
    ("steps are not both short and not the cause", |d| {
        d.why("short steps are not the cause") && d.text("step length").contains("far below 1")
    }),
    ("long steps are long", |d| {
        d.why("the steps are too long") && d.number("step length", "product").is_none_or(|product| product <= 2.0)
    }),
    ("noise that exceeds the gradient exceeds it", |d| {
        d.why("noise of the mini-batches exceeds") && !d.text("gradient noise").contains("exceeds it")
    }),
    ("noise does not stop a run whose terms agree", |d| {
        d.why("noise of the mini-batches exceeds") && d.text("interpolation").starts_with("Interpolation holds")
    }),
    ("noise that explains nothing is small", |d| {
        d.why("does not explain it") && d.text("gradient noise").contains("exceeds it")
    }),
    ("the radius that cuts every step is not rarely active", |d| {
        d.why("cuts nearly every step") && !d.text("radius").contains("limits nearly every step")
    }),
    ("features are named as the cause only if they are not scaled", |d| {
        d.why("the features differ") && !d.text("features").contains("not scaled")
    }),
    ("a large enough penalty does not leave a violation", |d| {
        d.is(&[V::Infeasible]) && d.text("penalty").contains("is already small")
    }),
    ("more epochs are more, except for a run that overfits", |d| {
        let (epochs, now) = (d.set("epochs"), d.number("progress", "epochs"));
        epochs.zip(now).is_some_and(|(epochs, now)| (epochs > now) == d.is(&[V::Overfits]))
    }),
    ("advice is in the change, not in the evidence", |d| {
        d.diagnosis.findings.iter().any(|finding| finding.text.contains("Standardize") || finding.text.contains("Set "))
    }),
    ("a finding has no number that is none", |d| {
        d.diagnosis.findings.iter().any(|finding| finding.text.contains("NaN") || finding.text.contains("inf %"))
    }),
];

/// The rules that a diagnosis breaks.
pub fn contradictions(diagnosis: &Diagnosis) -> Vec<&'static str> {
    let Some(verdict) = diagnosis.verdict else { return Vec::new() };
    let parts = Parts { diagnosis, verdict };
    RULES.iter().filter(|(_, broken)| broken(&parts)).map(|(name, _)| *name).collect()
}

#[test]
fn the_rules_find_the_contradictions_of_made_up_texts() {
    use strust_lab::analyze::diagnose::{Finding, Remedy};
    let finding = |about: &str, text: &str, numbers: &[(&str, f64)]| Finding {
        about: about.into(),
        text: text.into(),
        numbers: numbers.iter().map(|(name, value)| ((*name).to_string(), *value)).collect(),
    };
    let made = |verdict, why: &str, findings: Vec<Finding>, set: Option<&str>| Diagnosis {
        problem: "p".into(),
        method: "m".into(),
        seed: 0,
        state: "finished".into(),
        verdict: Some(verdict),
        why: why.into(),
        findings,
        remedy: set.map(|set| Remedy {
            set: vec![set.into()],
            command: String::new().into(),
            reason: String::new(),
            effect: String::new(),
        }),
        advice: Vec::new(),
    };
    let rest = |text: &str| vec![finding("remaining", text, &[])];
    let gap = |text: &str| finding("generalization", text, &[]);
    let epochs = |epochs: f64| vec![finding("progress", "", &[("epochs", epochs)])];
    let cases = [
        ("a converged run has", made(V::Converged, "", rest("20 % of the start. It does not fall."), None)),
        ("a converged run needs", made(V::Converged, "", rest("This is a thousandth or less."), Some("epochs=10"))),
        ("a stuck run", made(V::Stuck, "", rest("It falls by 6 % an epoch."), None)),
        ("the share", made(V::Stuck, "0.15 % of what was to be done remains", rest("0.2 % of the start."), None)),
        ("an early run", made(V::TooEarly, "", epochs(9.0), None)),
        ("a short run", made(V::Stuck, "", epochs(4.0), None)),
        ("a median", made(V::Stuck, "", vec![finding("remaining", "", &[("last", 1.0), ("level", 2.0)])], None)),
        ("overfitting is not", made(V::StillImproving, "", vec![gap("it fits the training set too closely")], None)),
        ("an overfitting run", made(V::Overfits, "", vec![gap("no overfitting")], None)),
        ("long steps", made(V::Unstable, "the steps are too long", Vec::new(), None)),
        ("more epochs", made(V::StillImproving, "", epochs(20.0), Some("epochs=10"))),
        ("an unclear run", made(V::Unclear, "0 % of what was to be done remains", rest("0 % of the start"), None)),
        ("advice", made(V::TooSlow, "", rest("Standardize the columns."), None)),
    ];
    for (rule, diagnosis) in cases {
        let broken = contradictions(&diagnosis);
        assert!(broken.len() == 1 && broken[0].starts_with(rule), "{rule}: {broken:?}");
    }
}
