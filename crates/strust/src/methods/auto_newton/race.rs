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
pub enum Stage {
    /// There is none: the leader goes on alone.
    Alone,
    /// The other method runs from the leader's point.
    Challenge,
    /// The leader spends the same price as the other method, which has reached this f.
    Reply(f64),
}

/// The price of the first challenge. It doubles whenever the leader stays ahead.
const FIRST: f64 = 1.5;

/// Decides who goes on. All prices are in passes over the data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Race {
    /// Whose point is the answer.
    pub leader: Leader,
    /// Where the race is.
    pub stage: Stage,
    /// Spent in this stage.
    pub spent: f64,
    /// Spent in all.
    pub total: f64,
    /// The price of the next challenge, or that of the present one.
    pub challenge: f64,
    /// f at the start of the race, or after the last second-order step of a leader without a rival.
    pub value: f64,
    /// By how much first-order steps reduced f per pass in the last race.
    pub first_order: f64,
    /// Races so far, and those that second-order steps have won.
    pub races: (u64, u64),
}

impl Race {
    /// First-order steps lead.
    pub(super) fn new() -> Self {
        Self {
            leader: Leader::First,
            stage: Stage::Alone,
            spent: 0.0,
            total: 0.0,
            challenge: FIRST,
            value: 0.0,
            first_order: 0.0,
            races: (0, 0),
        }
    }

    /// What the next step may cost. A leader without a rival may spend as much as the run so far.
    pub(super) fn remaining(&self) -> f64 {
        if self.stage == Stage::Alone { self.total } else { self.challenge - self.spent }
    }

    /// Who makes the next step.
    pub(super) fn runner(&self) -> Leader {
        if self.stage == Stage::Challenge { self.leader.other() } else { self.leader }
    }

    /// Whether the next step is the first of a challenge.
    pub(super) fn begins(&self) -> bool {
        self.stage == Stage::Challenge && self.spent == 0.0
    }

    /// Notes the price of a step, and f before and after it if it is known. Returns true if the runner has spent its part
    /// and f must be measured. A leader that reduces f by less per pass than its rival did last has a race at once.
    pub(super) fn spend(&mut self, passes: f64, values: Option<(f64, f64)>, share: f64) -> bool {
        if let Some((before, after)) = values {
            match self.stage {
                Stage::Challenge if self.spent == 0.0 => self.value = before,
                Stage::Alone => self.value = after,
                _ => {}
            }
        }
        self.spent += passes;
        self.total += passes;
        match self.stage {
            Stage::Alone => {
                let slow = values.is_some_and(|(before, after)| before - after < self.first_order * passes);
                if slow || self.spent * share >= self.challenge {
                    (self.stage, self.spent) = (Stage::Challenge, 0.0);
                }
                false
            }
            Stage::Challenge | Stage::Reply(_) => self.spent >= self.challenge,
        }
    }

    /// Second-order steps cannot go on.
    pub(super) fn give_up(&mut self) {
        (self.leader, self.stage, self.spent) = (Leader::First, Stage::Alone, 0.0);
        self.races.0 += 1;
    }

    /// Notes f at the end of a stage. The smaller one leads from here on.
    pub(super) fn measured(&mut self, value: f64) {
        if self.runner() == Leader::First {
            // 0 if it is not a number.
            self.first_order = ((self.value - value) / self.spent).max(0.0);
        }
        match self.stage {
            Stage::Alone => {}
            Stage::Challenge => {
                self.challenge = self.spent;
                (self.stage, self.spent) = (Stage::Reply(value), 0.0);
            }
            Stage::Reply(other) => {
                // A value that is not finite never wins.
                if other < value || (other.is_finite() && !value.is_finite()) {
                    self.leader = self.leader.other();
                    self.challenge = FIRST;
                } else {
                    self.challenge *= 2.0;
                }
                self.races.0 += 1;
                self.races.1 += u64::from(self.leader == Leader::Second);
                (self.stage, self.spent) = (Stage::Alone, 0.0);
            }
        }
    }
}
