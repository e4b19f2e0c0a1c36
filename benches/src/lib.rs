//! The workloads, shared by every bench.
