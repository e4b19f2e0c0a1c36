//! `handoff`: four producers allocate, a bounded channel carries, four consumers free: every block is freed on
//! another thread than the one that allocated it.

use std::time::Duration;

use crossbeam_channel::bounded;

use crate::lanes;
use crate::workload::{Size, Workload};

const SIDES: usize = 4;
const CAPACITY: usize = 1_024;

/// See the module.
#[derive(Debug)]
pub struct Handoff {
    blocks: usize,
}

impl Handoff {
    /// Returns the workload.
    #[must_use]
    pub fn new(size: Size) -> Self {
        Self {
            blocks: size.pick(8_000, 200_000, 20_000_000),
        }
    }
}

impl Workload for Handoff {
    fn name(&self) -> String {
        "handoff".into()
    }

    fn run(&self) -> Duration {
        let each = self.blocks / SIDES;
        let (sender, receiver) = bounded::<Vec<u8>>(CAPACITY);
        let (elapsed, bytes) = lanes::run(2 * SIDES, |lane| {
            let mut bytes = 0;
            if lane < SIDES {
                let mut random = fastrand::Rng::with_seed(lane as u64);
                for _ in 0..each {
                    let block = vec![1_u8; random.usize(16..512)];
                    bytes += block.len();
                    sender.send(block).expect("consumers stay to the end");
                }
            } else {
                for _ in 0..each {
                    let block = receiver.recv().expect("producers send enough");
                    bytes += block.iter().filter(|&&byte| byte == 1).count();
                }
            }
            bytes
        });
        let (sent, received) = bytes.split_at(SIDES);
        assert_eq!(
            sent.iter().sum::<usize>(),
            received.iter().sum::<usize>(),
            "bytes sent and received"
        );
        elapsed
    }
}
