//! Calls of the C interface, in any order that its contract permits, beside plain numbers.
//!
//! Accounts come and go, blocks of hostile sizes are asked for, triggers are made with parameters that mean nothing, null
//! goes wherever it may. Each status is the documented one, each figure is the model's, and each block keeps its bytes.

#![allow(unsafe_code, reason = "calls functions that take pointers")]

mod account;
mod block;
mod nothing;
mod trigger;

use arbitrary::Arbitrary;

use crate::figures::{Amount, Fraction};
use account::Model;
use block::Kind;

/// An input.
#[derive(Arbitrary, Debug)]
pub struct Input {
    exact: bool,
    calls: Vec<(bool, Call)>,
}

/// One call, of one of two accounts.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Call {
    /// The account goes, and another takes its place, in a mode that there may not be.
    Renew {
        mode: u8,
    },
    Allocate {
        kind: Kind,
        size: Amount,
    },
    Resize {
        block: u8,
        size: Amount,
    },
    Free {
        block: u8,
    },
    Add(Amount),
    Sub {
        charge: u8,
    },
    Change {
        charge: u8,
        size: Amount,
    },
    SetThreshold(Amount),
    Flush,
    ResetPeak,
    Trigger {
        policy: trigger::Choice,
        measure: u8,
    },
    Poll {
        trigger: u8,
    },
    Wait {
        trigger: u8,
        nanoseconds: u8,
    },
    Announce {
        trigger: u8,
        amount: Amount,
    },
    Collected {
        trigger: u8,
        nanoseconds: u64,
    },
    Untrigger {
        trigger: u8,
    },
    /// Null for whatever may be null, and numbers that mean nothing.
    Nothing {
        size: Amount,
        fraction: Fraction,
        status: i32,
    },
}

/// Makes the calls.
pub fn run(input: &Input) {
    let mut accounts = [Model::new(input.exact), Model::new(!input.exact)];
    for &(first, call) in &input.calls {
        let account = &mut accounts[usize::from(first)];
        match call {
            Call::Renew { mode } => account.renew(mode),
            Call::Allocate { kind, size } => account.allocate(kind, size.get()),
            Call::Resize { block, size } => account.resize(block, size.get()),
            Call::Free { block } => account.free(block),
            Call::Add(size) => account.add(size.get()),
            Call::Sub { charge } => account.sub(charge),
            Call::Change { charge, size } => account.change(charge, size.get()),
            Call::SetThreshold(bytes) => account.set_threshold(bytes.get()),
            Call::Flush => account.flush(),
            Call::ResetPeak => account.reset_peak(),
            Call::Trigger { policy, measure } => account.watch(policy, measure),
            Call::Poll { trigger } => account.poll(trigger, None),
            Call::Wait {
                trigger,
                nanoseconds,
            } => account.poll(trigger, Some(nanoseconds)),
            Call::Announce { trigger, amount } => account.announce(trigger, amount.get()),
            Call::Collected {
                trigger,
                nanoseconds,
            } => account.collected(trigger, nanoseconds),
            Call::Untrigger { trigger } => account.unwatch(trigger),
            Call::Nothing {
                size,
                fraction,
                status,
            } => {
                nothing::call(size.get(), fraction.get(), status);
            }
        }
        account.check();
    }
}
