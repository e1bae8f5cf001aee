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

/// Decides who goes on. All prices are in passes over the data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Race {
    /// Whose point is the answer.
    pub leader: Leader,
    /// Where the race is.
    pub stage: Stage,
    /// Spent in this stage.
    pub spent: f64,
    /// The price of the last challenge, or the expected one of the first.
    pub challenge: f64,
    /// Races so far, and those that second-order steps have won.
    pub races: (u64, u64),
}

impl Race {
    /// First-order steps lead; the first challenge costs about this much.
    pub(super) fn new(challenge: f64) -> Self {
        Self { leader: Leader::First, stage: Stage::Alone, spent: 0.0, challenge, races: (0, 0) }
    }

    /// Who makes the next step.
    pub(super) fn runner(&self) -> Leader {
        if self.stage == Stage::Challenge { self.leader.other() } else { self.leader }
    }

    /// Whether the next step is the first of a challenge.
    pub(super) fn begins(&self) -> bool {
        self.stage == Stage::Challenge && self.spent == 0.0
    }

    /// Notes the price of a step. Returns true if the runner has spent its part and f must be measured.
    pub(super) fn spend(&mut self, passes: f64, share: f64) -> bool {
        self.spent += passes;
        match self.stage {
            Stage::Alone => {
                if self.spent * share >= self.challenge {
                    (self.stage, self.spent) = (Stage::Challenge, 0.0);
                }
                false
            }
            // One second-order step is the shortest challenge there is.
            Stage::Challenge => self.runner() == Leader::Second || self.spent >= self.challenge,
            Stage::Reply(_) => self.spent >= self.challenge,
        }
    }

    /// Second-order steps cannot go on.
    pub(super) fn give_up(&mut self) {
        (self.leader, self.stage, self.spent) = (Leader::First, Stage::Alone, 0.0);
        self.races.0 += 1;
    }

    /// Notes f at the end of a stage. The smaller one leads from here on.
    pub(super) fn measured(&mut self, value: f64) {
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
                }
                self.races.0 += 1;
                self.races.1 += u64::from(self.leader == Leader::Second);
                (self.stage, self.spent) = (Stage::Alone, 0.0);
            }
        }
    }
}
