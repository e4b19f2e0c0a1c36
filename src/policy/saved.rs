//! What is read from a saved state goes through the checks that resuming from it makes, so that a state that no
//! policy can have left is an error where it is read.

use serde::de::{Deserialize, Deserializer, Error};

use super::error::{Parameter, above_zero};
use super::{rate, thrash};

pub(super) fn limit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    above_zero(usize::deserialize(deserializer)?, Parameter::Limit).map_err(D::Error::custom)
}

pub(super) fn mean<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    rate::mean(f64::deserialize(deserializer)?).map_err(D::Error::custom)
}

pub(super) fn level<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    thrash::possible_level(u32::deserialize(deserializer)?).map_err(D::Error::custom)
}
