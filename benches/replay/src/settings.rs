//! The five settings that were tuned by hand.

use crate::cost::SLOT_BYTES;
use crate::sizing::{Flag, Xs};

const MIB: usize = 1 << 20;

/// Initial and incremental sizes of XS's two pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// What people called it.
    pub name: &'static str,
    /// Chunks, initial and increment, in MiB.
    pub chunks: (usize, usize),
    /// Slots, initial and increment, in MiB of 32 bytes each.
    pub slots: (usize, usize),
}

impl Setting {
    /// XS with this setting.
    #[must_use]
    pub fn xs(&self, flag: Flag) -> Xs {
        let slots = |mib: usize| mib * MIB / SLOT_BYTES;
        Xs::new(
            (slots(self.slots.0), slots(self.slots.1)),
            (self.chunks.0 * MIB, self.chunks.1 * MIB),
            flag,
        )
    }

    /// Both pools together, initial and increment, in bytes: the setting as an engine with one heap
    /// would have it.
    #[must_use]
    pub const fn together(&self) -> (usize, usize) {
        (
            (self.chunks.0 + self.slots.0) * MIB,
            (self.chunks.1 + self.slots.1) * MIB,
        )
    }
}

/// The default, and the four that were tried instead.
pub const SETTINGS: [Setting; 5] = [
    Setting {
        name: "default",
        chunks: (32, 4),
        slots: (8, 4),
    },
    Setting {
        name: "2x heap, 16x slots",
        chunks: (64, 8),
        slots: (128, 64),
    },
    Setting {
        name: "8x, 32x",
        chunks: (256, 32),
        slots: (256, 128),
    },
    Setting {
        name: "16x, 32x",
        chunks: (512, 64),
        slots: (256, 128),
    },
    Setting {
        name: "6x, 32x",
        chunks: (128, 24),
        slots: (16, 128),
    },
];
