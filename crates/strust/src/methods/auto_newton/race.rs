use serde::{Deserialize, Serialize};

/// One of the two methods that compete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Leader {
    /// First-order steps on mini-batches.
    First,
    /// Second-order steps on the full sum.
    Second,
}

impl Leader {
    fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }
}

/// Where a race is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RaceStage {
    /// There is none: the leader goes on alone.
    Alone,
    /// The other method runs from the leader's point.
    Challenge,
    /// The leader spends the same price as the other method, which has reached this f.
    Reply(f64),
}

/// The price of the first challenge: a gradient, a value and four products of an eighth of the terms. It doubles whenever
/// the leader stays ahead.
const FIRST: f64 = 1.5;
/// The price of f of first-order steps: a forward pass.
pub(super) const MEASUREMENT: f64 = 0.25;
/// How long before a race f of first-order steps is measured, in prices of the challenge.
const WINDOW: f64 = 3.0;
/// How long second-order steps that have won a race are on probation, in prices of the challenge.
const PROBATION: f64 = 3.0;

/// Second-order steps lead only if they reduce f so many times as much as first-order ones. Without a margin chance often
/// decides, and first-order steps, whose average changes slowly, win back late.
const MARGIN: f64 = 2.0;

/// By how much f has fallen; 0 if it has grown or is not a number. A positive f falls towards 0 where data interpolate, so
/// its logarithm counts. Near another minimum this is the same up to a factor.
fn fall(before: f64, after: f64) -> f64 {
    let fall = if before > 0.0 && after > 0.0 { (before / after).ln() } else { before - after };
    fall.max(0.0)
}

/// What second-order steps must show after a race that they have won, perhaps by chance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Probation {
    /// f at the start of the race.
    pub value: f64,
    /// By how much f fell per pass with first-order steps before the race.
    pub speed: f64,
    /// The price of their trial.
    pub price: f64,
}

/// Decides who goes on. All prices are in passes over the data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Race {
    /// Whose point is the answer.
    pub leader: Leader,
    /// Where the race is.
    pub stage: RaceStage,
    /// Spent in this stage.
    pub spent: f64,
    /// Spent in all.
    pub total: f64,
    /// Spent by the losers of all races.
    pub wasted: f64,
    /// The price of the next challenge, or that of the present one.
    pub challenge: f64,
    /// The price of the last second-order step.
    pub step: f64,
    /// f at the start of the race, or after the last second-order step of a leader without a rival.
    pub value: f64,
    /// By how much f fell per pass with first-order steps in the last race.
    pub first_order: f64,
    /// f of first-order steps some time before the race, and what had been spent in all.
    pub earlier: Option<(f64, f64)>,
    /// Whether second-order steps are on probation.
    pub probation: Option<Probation>,
    /// Races so far, and those that second-order steps have won.
    pub races: (u64, u64),
}

impl Race {
    /// First-order steps lead.
    pub(super) fn new() -> Self {
        Self {
            leader: Leader::First,
            stage: RaceStage::Alone,
            spent: 0.0,
            total: 0.0,
            wasted: 0.0,
            challenge: FIRST,
            step: 0.0,
            value: 0.0,
            first_order: 0.0,
            earlier: None,
            probation: None,
            races: (0, 0),
        }
    }

    /// What the next second-order step may cost: twice as much as the last one, and in a race what is left.
    pub(super) fn remaining(&self) -> f64 {
        if self.stage == RaceStage::Alone { 2.0 * self.step } else { self.challenge - self.spent }
    }

    /// Who makes the next step.
    pub(super) fn runner(&self) -> Leader {
        if self.stage == RaceStage::Challenge { self.leader.other() } else { self.leader }
    }

    /// Whether the next step is the first of a challenge.
    pub(super) fn begins(&self) -> bool {
        self.stage == RaceStage::Challenge && self.spent == 0.0
    }

    /// Notes the price of a step, and f before and after it if it is known. Returns true if f must be measured: the runner has
    /// spent its part, or first-order steps will soon have a race. They have one when its loser leaves the waste within
    /// `share` of the rest; second-order ones twice as often, and at once if they reduce f by less per pass than their rival
    /// did last.
    pub(super) fn spend(&mut self, passes: f64, values: Option<(f64, f64)>, share: f64) -> bool {
        if let Some((before, after)) = values {
            self.step = passes;
            match self.stage {
                RaceStage::Challenge if self.spent == 0.0 => self.value = before,
                RaceStage::Alone => self.value = after,
                _ => {}
            }
        }
        self.spent += passes;
        self.total += passes;
        match self.stage {
            RaceStage::Alone => {
                if let Some(trial) = self.failed() {
                    self.hand_back(&trial);
                    return false;
                }
                let slow = values.is_some_and(|(before, after)| fall(before, after) < self.first_order * passes);
                let due = match self.leader {
                    Leader::First => {
                        let measurements = if self.earlier.is_none() { 2.0 } else { 1.0 };
                        self.wasted + (self.wasted + measurements * MEASUREMENT + self.challenge) / share
                    }
                    Leader::Second => self.total - self.spent + 0.5 * self.challenge / share,
                };
                if slow || self.total >= due {
                    (self.stage, self.spent) = (RaceStage::Challenge, 0.0);
                    return false;
                }
                let soon = self.total >= due - WINDOW * self.challenge;
                self.leader == Leader::First && self.earlier.is_none() && soon
            }
            RaceStage::Challenge | RaceStage::Reply(_) => self.spent >= self.challenge,
        }
    }

    /// Second-order steps cannot go on.
    pub(super) fn give_up(&mut self) {
        self.end(self.leader == Leader::Second);
    }

    /// The probation if it is over, and f has fallen by less per pass than before the race.
    fn failed(&mut self) -> Option<Probation> {
        let over = self.probation.take_if(|trial| self.spent >= PROBATION * trial.price)?;
        (fall(over.value, self.value) < over.speed * (over.price + self.spent)).then_some(over)
    }

    /// First-order steps lead again, without a race.
    fn hand_back(&mut self, trial: &Probation) {
        self.wasted += trial.price + self.spent;
        self.challenge = 2.0 * trial.price;
        (self.leader, self.spent) = (Leader::First, 0.0);
    }

    /// Notes f some time before a race, or at the end of a stage. Second-order steps lead from here on if they have reduced f
    /// enough.
    pub(super) fn measured(&mut self, value: f64) {
        if self.runner() == Leader::First {
            if self.stage != RaceStage::Alone {
                self.first_order = fall(self.value, value) / self.spent;
            }
            (self.total, self.wasted) = (self.total + MEASUREMENT, self.wasted + MEASUREMENT);
        }
        match self.stage {
            RaceStage::Alone => self.earlier = Some((value, self.total)),
            RaceStage::Challenge => {
                self.challenge = self.spent;
                (self.stage, self.spent) = (RaceStage::Reply(value), 0.0);
                if !value.is_finite() {
                    self.end(false);
                }
            }
            RaceStage::Reply(other) => {
                let (first, second) = if self.leader == Leader::First { (value, other) } else { (other, value) };
                let earlier = self.earlier;
                let lowest = earlier.map_or(first, |(earlier, _)| first.min(earlier));
                let is_better = fall(self.value, second) >= MARGIN * fall(self.value, first);
                let wins = second.is_finite() && (!first.is_finite() || second < lowest && is_better);
                if wins && let Some((earlier, at)) = earlier {
                    let passes = self.total - MEASUREMENT - self.spent - self.challenge - at;
                    let speed = fall(earlier, self.value) / passes;
                    self.probation = Some(Probation { value: self.value, speed, price: self.challenge });
                }
                self.end(wins != (self.leader == Leader::Second));
            }
        }
    }

    /// Ends a race.
    fn end(&mut self, rival_wins: bool) {
        self.wasted += self.challenge;
        if rival_wins {
            self.leader = self.leader.other();
            self.challenge = FIRST;
        } else {
            self.challenge *= 2.0;
        }
        self.earlier = None;
        if self.leader == Leader::First {
            self.probation = None;
        }
        self.races.0 += 1;
        self.races.1 += u64::from(self.leader == Leader::Second);
        (self.stage, self.spent) = (RaceStage::Alone, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARE: f64 = 0.1;

    /// First-order steps of half a pass each until a challenge begins, with this f some time before.
    fn challenged(earlier: f64) -> Race {
        let mut race = Race::new();
        while race.stage == RaceStage::Alone {
            if race.spend(0.5, None, SHARE) {
                assert!((race.total - 15.5).abs() < 1e-12, "measured after {}", race.total);
                race.measured(earlier);
            }
        }
        assert!((race.total - 20.25).abs() < 1e-12, "a trial of 1.5 passes and two values after {}", race.total);
        race
    }

    /// A race of one second-order step from 1 to `second`, and first-order steps to `first`. Before it, f fell from 2.7 to 1.
    fn raced(second: f64, first: f64) -> Race {
        let mut race = challenged(2.7);
        assert!(race.begins() && race.runner() == Leader::Second);
        assert!(race.spend(2.0, Some((1.0, second)), SHARE));
        race.measured(second);
        if race.stage == RaceStage::Alone {
            return race;
        }
        assert_eq!((race.runner(), race.stage), (Leader::First, RaceStage::Reply(second)));
        assert!(!race.spend(1.0, None, SHARE), "the leader spends as much as its rival, 2 passes");
        assert!(race.spend(1.0, None, SHARE));
        race.measured(first);
        race
    }

    #[test]
    fn the_larger_reduction_leads() {
        let race = raced(0.5, 0.9);
        assert_eq!((race.leader, race.stage, race.races), (Leader::Second, RaceStage::Alone, (1, 1)));
        assert!((race.challenge - FIRST).abs() < 1e-12, "a new leader is challenged soon");
        assert_eq!(raced(0.5, 0.55).leader, Leader::First, "the margin is not reached");
        assert_eq!(raced(1e-9, 1e-4).leader, Leader::Second, "the logarithm counts");
        assert_eq!(raced(-0.5, 0.9).leader, Leader::Second, "f may be negative");
        let race = raced(0.9, 0.5);
        assert_eq!((race.leader, race.races), (Leader::First, (1, 0)));
        assert!((race.challenge - 4.0).abs() < 1e-12, "the next trial costs twice as much");
        assert!((race.first_order - 0.5 * 2_f64.ln()).abs() < 1e-12, "{}", race.first_order);
    }

    #[test]
    fn races_that_are_lost_cost_at_most_a_tenth_of_the_rest() {
        let mut race = Race::new();
        for _ in 0..4000 {
            let values = (race.runner() == Leader::Second).then_some((1.0, 0.9));
            if race.spend(0.5, values, SHARE) {
                race.measured(if values.is_some() { 0.9 } else { 0.5 });
            }
            assert!(race.wasted <= SHARE * (race.total - race.wasted) + 1e-9, "{race:?}");
        }
        assert!(race.races.0 >= 4 && race.races.1 == 0, "{race:?}");
    }

    #[test]
    fn second_order_steps_that_fail_are_not_tried_again_at_once() {
        let mut race = challenged(1.0);
        race.give_up();
        assert_eq!((race.leader, race.stage, race.earlier), (Leader::First, RaceStage::Alone, None));
        let mut winner = raced(0.5, 0.9);
        assert!(winner.probation.is_some());
        winner.give_up();
        assert_eq!((winner.leader, winner.probation), (Leader::First, None));
        assert!(!race.spend(1.0, None, SHARE) && race.stage == RaceStage::Alone);
    }

    #[test]
    fn a_value_that_is_not_finite_never_wins() {
        assert_eq!(raced(f64::NAN, 0.9).leader, Leader::First);
        assert_eq!(raced(0.9, f64::INFINITY).leader, Leader::Second);
    }

    #[test]
    fn a_second_order_leader_that_becomes_slow_is_challenged_at_once() {
        // First-order steps reduced f by 5 % per pass.
        let mut race = raced(0.5, 0.9);
        race.spend(2.0, Some((0.5, 0.3)), SHARE);
        assert_eq!(race.stage, RaceStage::Alone);
        race.spend(2.0, Some((0.3, 0.28)), SHARE);
        assert_eq!((race.stage, race.runner()), (RaceStage::Challenge, Leader::First));
    }

    #[test]
    fn second_order_steps_that_are_slower_than_the_others_before_the_race_hand_back() {
        // Before the race, 4.75 passes reduced f from 2.7 to 1, which is 1.7 in the 8 passes of the trial and the probation.
        let after = |value: f64| {
            let mut race = raced(0.8, 1.5);
            assert_eq!(race.leader, Leader::Second);
            race.spend(5.0, Some((0.8, 0.7)), SHARE);
            assert_eq!((race.leader, race.stage), (Leader::Second, RaceStage::Alone), "the probation is not over");
            race.spend(1.0, Some((0.7, value)), SHARE);
            race
        };
        let race = after(0.3);
        assert_eq!((race.leader, race.stage), (Leader::First, RaceStage::Alone));
        assert!((race.challenge - 4.0).abs() < 1e-12, "the next trial costs twice as much");
        assert!((race.wasted - 10.5).abs() < 1e-12, "the reply, the trial, the probation, two values: {}", race.wasted);
        assert_eq!(after(0.1).leader, Leader::Second);
    }

    #[test]
    fn second_order_steps_must_beat_every_f_that_was_measured() {
        // First-order steps have jumped up before the race.
        let mut race = challenged(0.6);
        race.spend(2.0, Some((1.0, 0.8)), SHARE);
        race.measured(0.8);
        race.spend(2.0, None, SHARE);
        race.measured(1.5);
        assert_eq!((race.leader, race.races), (Leader::First, (1, 0)));
    }
}
