//! Choices between several fits: the penalty, linear model or network; and scores by cross-validation.

use crate::{
    Error,
    assess::{Assessment, ScorePoints, assess, assess_parts},
    saved::ModelFamily,
    scored::MeasuredRows,
    setup::FitSetup,
    split::{folds, split},
    weights::{LayerSpace, Weights},
};
use serde::Serialize;

/// Parts of the rows that are held out in turn.
pub const FOLDS: usize = 5;
/// The penalties that are tried: half decades.
const PENALTIES: [f64; 13] = [1e-3, 3.16e-3, 1e-2, 3.16e-2, 0.1, 0.316, 1.0, 3.16, 10.0, 31.6, 100.0, 316.0, 1000.0];
/// Rows from which a penalty is chosen at most. The best one does not depend on their number.
const PENALTY_ROWS: usize = 10_000;
/// The share of the rows on which two models are compared.
const COMPARED: f64 = 0.2;
/// A network is tried unasked on at most this many rows, …
const TRIAL_ROWS: usize = 2000;
/// … if there are at least this many, …
const LEAST_ROWS: usize = 500;
/// … with at most this many rows × inputs × epochs, about a quarter of a second, …
const TRIAL_WORK: usize = 2_000_000;
/// … in at least and at most this many epochs.
const TRIAL_EPOCHS: std::ops::RangeInclusive<usize> = 10..=40;
/// The score must grow by this much, or the advice is not worth its words.
const WORTH: f64 = 0.01;

/// A linear model and a network on the same rows, which neither has learned from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NetworkTrial {
    /// The scores of the linear model.
    pub linear: Assessment,
    /// The scores of the network.
    pub network: Assessment,
    /// Whether the loss of the network is lower by more than two standard errors.
    pub is_better: bool,
}

impl NetworkTrial {
    /// The scores of the network and of the linear model in words, and the rows.
    #[must_use]
    pub fn compared(&self) -> String {
        let [network, linear] = [&self.network, &self.linear].map(score);
        match &self.network {
            Assessment::Classes(_) => {
                format!("{:.1} % against {:.1} % on {} rows", 100.0 * network, 100.0 * linear, self.network.rows())
            }
            Assessment::Regression(_) => {
                format!("R² {network:.2} against {linear:.2} on {} rows", self.network.rows())
            }
        }
    }
    fn choice(&self) -> String {
        let (chosen, why) =
            if self.is_better { ("the network", "has") } else { ("the linear model", "is not clearly better with") };
        format!("--model auto chose {chosen}: the network {why} {}", self.compared())
    }
}

/// Accuracy or R².
fn score(scores: &Assessment) -> f64 {
    match scores {
        Assessment::Classes(scores) => scores.accuracy,
        Assessment::Regression(scores) => scores.r2,
    }
}

/// Models of all parts but one, each with the part that it has not seen.
fn in_folds(setup: &FitSetup<'_>, own: MeasuredRows<'_>) -> Result<Vec<(Weights, Vec<usize>)>, Error> {
    let parts = folds(&own.data.targets, own.index, FOLDS, setup.options.seed);
    let model = |held: Vec<usize>| {
        // Both are sorted.
        let rest: Vec<usize> = own.index.iter().copied().filter(|i| held.binary_search(i).is_err()).collect();
        Ok((setup.weights(MeasuredRows { index: &rest, ..own })?, held))
    };
    parts.into_iter().map(model).collect()
}

/// The scores of all rows, each by a model that has not seen it.
pub(crate) fn scores_in_folds(setup: &FitSetup<'_>, own: MeasuredRows<'_>) -> Result<(Assessment, ScorePoints), Error> {
    let models = in_folds(setup, own)?;
    let parts: Vec<_> = models.iter().map(|(weights, held)| (weights, MeasuredRows { index: held, ..own })).collect();
    assess_parts(&parts)
}

/// Chooses what the options leave open. Returns sentences about the choices.
pub(crate) fn from_data(setup: &mut FitSetup<'_>, own: MeasuredRows<'_>) -> Result<Vec<String>, Error> {
    let (options, mut notes) = (setup.options, Vec::new());
    if options.choose_l2 {
        let (l2, note) = penalty(setup, own)?;
        setup.l2 = l2;
        notes.push(note);
    }
    if options.choose_model {
        let trial = between_models(setup, own)?;
        if trial.is_better {
            (setup.family, setup.l2) = (ModelFamily::Mlp, network_l2(setup));
        }
        notes.push(trial.choice());
    }
    Ok(notes)
}

/// The penalty of a network: `--l2 auto` chooses only that of a linear model.
fn network_l2(setup: &FitSetup<'_>) -> f64 {
    setup.options.l2.unwrap_or(1.0)
}

/// The penalty with the lowest loss in cross-validation, and a sentence about it.
fn penalty(setup: &FitSetup<'_>, own: MeasuredRows<'_>) -> Result<(f64, String), Error> {
    let rows = drawn(own, PENALTY_ROWS, setup.options.seed);
    let own = MeasuredRows { index: &rows, ..own };
    let (mut best, mut space) = ((f64::INFINITY, setup.l2), LayerSpace::default());
    for l2 in PENALTIES {
        let mut sum = 0.0;
        for (weights, held) in in_folds(&FitSetup { l2, fair: None, ..*setup }, own)? {
            let held = MeasuredRows { index: &held, ..own };
            sum += held.mean_loss(&weights, &mut space).unwrap_or(0.0) * held.index.len() as f64;
        }
        if sum < best.0 {
            best = (sum, l2);
        }
    }
    let edge = match best.1 {
        least if least <= PENALTIES[0] => ", the least that it tries",
        most if most >= PENALTIES[PENALTIES.len() - 1] => ", the most that it tries: the columns may say nothing",
        _ => "",
    };
    Ok((best.1, format!("--l2 auto chose {} by {FOLDS}-fold cross-validation{edge}", best.1)))
}

/// At most this many of the rows, drawn at random.
fn drawn(own: MeasuredRows<'_>, most: usize, seed: u64) -> Vec<usize> {
    let share = most as f64 / own.index.len() as f64;
    if share < 1.0 { split(&own.data.targets, own.index, share, seed, 3).1 } else { own.index.to_vec() }
}

/// Compares the linear model of a fit with a network, on rows that are held out of these.
fn between_models(setup: &FitSetup<'_>, own: MeasuredRows<'_>) -> Result<NetworkTrial, Error> {
    let (learned, judged) = split(&own.data.targets, own.index, COMPARED, setup.options.seed, 2);
    let (learned, judged) = (MeasuredRows { index: &learned, ..own }, MeasuredRows { index: &judged, ..own });
    let linear = setup.weights(learned)?;
    let network = FitSetup { family: ModelFamily::Mlp, l2: network_l2(setup), ..*setup }.weights(learned)?;
    let [of_linear, of_network] = [judged.row_losses(&linear)?, judged.row_losses(&network)?];
    let n = of_linear.len() as f64;
    let gains: Vec<f64> = of_linear.iter().zip(of_network).map(|(linear, network)| linear - network).collect();
    let mean = gains.iter().sum::<f64>() / n;
    let error = (gains.iter().map(|gain| (gain - mean).powi(2)).sum::<f64>()).sqrt() / n;
    Ok(NetworkTrial {
        linear: assess(&linear, judged)?.0,
        network: assess(&network, judged)?.0,
        is_better: mean > 2.0 * error,
    })
}

/// A network that is tried on a part of the rows of a linear fit; `None` if it is not better, or too much work. The work is
/// counted and not timed, so that the same command gives the same answer.
pub(crate) fn quick_trial(setup: &FitSetup<'_>, own: MeasuredRows<'_>) -> Result<Option<NetworkTrial>, Error> {
    let options = setup.options;
    let asked = options.model.is_some() || options.choose_model || !setup.rules.is_empty() || setup.fair.is_some();
    let asked = asked || !options.intercept;
    let rows = own.index.len().min(TRIAL_ROWS);
    let epochs = TRIAL_WORK / (rows * own.data.rows.inputs());
    if asked || own.index.len() < LEAST_ROWS || epochs < *TRIAL_EPOCHS.start() {
        return Ok(None);
    }
    let epochs = epochs.min(*TRIAL_EPOCHS.end()).min(options.epochs.map_or(usize::MAX, |most| most as usize));
    let rows = drawn(own, TRIAL_ROWS, options.seed);
    let short = FitSetup { epochs: Some(epochs as u64), ..*setup };
    let trial = match between_models(&short, MeasuredRows { index: &rows, ..own }) {
        // A network of these rows would be too large.
        Err(Error::Option(_)) => return Ok(None),
        trial => trial?,
    };
    let worth = score(&trial.network) - score(&trial.linear) >= WORTH;
    Ok((trial.is_better && worth).then_some(trial))
}
