//! Arms a trigger again as it was, when its policy panics.

use super::Trigger;
use crate::policy::Policy;

/// See the module. Forgotten when the policy has answered.
pub(super) struct Rearm<'a, 't, P: Policy> {
    pub(super) trigger: &'a Trigger<'t, P>,
    /// The request that the policy was asked to make room for.
    pub(super) request: usize,
}

impl<P: Policy> Drop for Rearm<'_, '_, P> {
    fn drop(&mut self) {
        let mut history = self.trigger.history();
        history.ask_again(self.request);
        self.trigger.arm(self.trigger.limit(), history.allocated);
    }
}
