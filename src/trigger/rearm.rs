//! Arming a trigger again: after a cycle, and as it was when its policy panics.

use super::Trigger;
use super::history::History;
use crate::policy::Policy;
use crate::watermark::Evidence;

impl<P: Policy> Trigger<'_, P> {
    /// Arms the trigger after a cycle. A request that was announced while the policy was asked makes it due at once, unless it
    /// fits.
    pub(super) fn arm_again(&self, history: &mut History, limit: usize) {
        self.arm(limit, history.allocated);
        let request = history.take_request();
        if request == 0 {
            return;
        }
        let live = self.figure(&self.account.sum(), history.allocated);
        let needed = live.saturating_add(request);
        if needed >= limit {
            history.ask_again(request);
            if let Some(armed) = self.mark.armed() {
                self.mark.reach(armed, needed, Evidence::Request);
            }
        }
    }
}

/// Arms a trigger as it was, when dropped: forgotten once its policy has answered.
pub(super) struct Rearm<'a, 't, P: Policy> {
    pub(super) trigger: &'a Trigger<'t, P>,
    /// The request that the policy was asked to make room for.
    pub(super) request: usize,
}

impl<P: Policy> Drop for Rearm<'_, '_, P> {
    fn drop(&mut self) {
        let mut history = self.trigger.history();
        history.ask_again(self.request);
        self.trigger.arm_again(&mut history, self.trigger.limit());
    }
}
