//! `tree_immutable` and `tree_mutable`: binary trees of boxed nodes, nearly all malloc and free.
//!
//! A stretch tree one deeper than the size, built and dropped; one of the size's depth that lives to the
//! end; then, for every second depth from 4 up, as many trees as make up the same number of nodes, spread over eight
//! lanes, each built, counted and dropped. At full size (21) 601,183,584 nodes in the loop. The mutable kind
//! builds each tree in one place and rotates every node of it to the right and back before it counts.

use std::time::Duration;

use crate::lanes;
use crate::pool::THREADS;
use crate::workload::{Size, Workload};

const SHALLOWEST: u32 = 4;

/// Which of the two workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Trees are only built and counted.
    Immutable,
    /// Trees are rotated in place as well.
    Mutable,
}

/// See the module.
#[derive(Debug)]
pub struct Tree {
    kind: Kind,
    depth: u32,
}

impl Tree {
    /// Returns the workload.
    #[must_use]
    pub fn new(size: Size, kind: Kind) -> Self {
        Self {
            kind,
            depth: size.pick(8, 14, 21),
        }
    }

    /// Builds, changes and counts one tree.
    fn one(&self, depth: u32) -> usize {
        let mut tree = Node::build(depth);
        if self.kind == Kind::Mutable {
            tree = tree.rotate_all();
        }
        tree.count()
    }
}

struct Node {
    left: Option<Box<Node>>,
    right: Option<Box<Node>>,
}

impl Node {
    fn build(depth: u32) -> Box<Self> {
        let child = || depth.checked_sub(1).map(Self::build);
        Box::new(Self {
            left: child(),
            right: child(),
        })
    }

    fn count(&self) -> usize {
        let below = |child: &Option<Box<Self>>| child.as_deref().map_or(0, Self::count);
        1 + below(&self.left) + below(&self.right)
    }

    /// Makes the left child the root of this tree, and this node its right child.
    fn rotate_right(mut self: Box<Self>) -> Box<Self> {
        let Some(mut root) = self.left.take() else {
            return self;
        };
        self.left = root.right.take();
        root.right = Some(self);
        root
    }

    /// Undoes [`rotate_right`](Self::rotate_right).
    fn rotate_left(mut self: Box<Self>) -> Box<Self> {
        let Some(mut root) = self.right.take() else {
            return self;
        };
        self.right = root.left.take();
        root.left = Some(self);
        root
    }

    /// Rotates at every node, children first.
    fn rotate_all(mut self: Box<Self>) -> Box<Self> {
        self.left = self.left.take().map(Self::rotate_all);
        self.right = self.right.take().map(Self::rotate_all);
        let turned = self.rotate_right();
        std::hint::black_box(turned).rotate_left()
    }
}

const fn nodes(depth: u32) -> usize {
    (2 << depth) - 1
}

impl Workload for Tree {
    fn name(&self) -> String {
        match self.kind {
            Kind::Immutable => "tree_immutable".into(),
            Kind::Mutable => "tree_mutable".into(),
        }
    }

    fn run(&self) -> Duration {
        let depths = || (SHALLOWEST..=self.depth).step_by(2);
        let trees = |depth: u32| 1_usize << (self.depth + SHALLOWEST - depth);
        let (elapsed, counted) = lanes::run(THREADS, |lane| {
            let mut counted = 0;
            let mut long_lived = None;
            if lane == 0 {
                counted += self.one(self.depth + 1);
                long_lived = Some(Node::build(self.depth));
            }
            for depth in depths() {
                for _ in (lane..trees(depth)).step_by(THREADS) {
                    counted += self.one(depth);
                }
            }
            counted + long_lived.map_or(0, |tree| tree.count())
        });
        let expected = depths()
            .map(|depth| trees(depth) * nodes(depth))
            .sum::<usize>()
            + nodes(self.depth + 1)
            + nodes(self.depth);
        assert_eq!(counted.iter().sum::<usize>(), expected, "nodes counted");
        elapsed
    }
}
