//! Models of the protocol: each is named as the claim it explores.

mod publishing;
