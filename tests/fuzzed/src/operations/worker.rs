//! A thread that does what it is told, one act at a time.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use tally_alloc::{Measured, Scope, Totals, heap};

use super::Act;
use super::subjects::Subjects;

/// Scopes that a thread has open at once, at the most.
pub(super) const SCOPES: usize = 2;

enum Order {
    Begin(Arc<Subjects>),
    Act(Act, bool),
    Finish,
}

/// What a thread has seen after an act: of the counter in batches, the exact one and the process's account.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) own: [Totals; 3],
    /// Of the scopes opened last.
    pub(super) scoped: Option<[Measured; 3]>,
}

pub(super) struct Worker {
    orders: Option<SyncSender<Order>>,
    answers: Receiver<Answer>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    pub(super) fn start() -> Self {
        let (orders, received) = sync_channel(1);
        let (answer, answers) = sync_channel(1);
        let thread = thread::spawn(move || {
            while let Ok(order) = received.recv() {
                if let Order::Begin(subjects) = order {
                    serve(
                        &subjects,
                        &received,
                        &answer,
                        &mut [const { None }; SCOPES],
                        0,
                    );
                }
            }
        });
        Self {
            orders: Some(orders),
            answers,
            thread: Some(thread),
        }
    }

    fn send(&self, order: Order) {
        let orders = self.orders.as_ref().expect("not ended");
        orders.send(order).expect("the thread waits");
    }

    pub(super) fn begin(&self, subjects: Arc<Subjects>) {
        self.send(Order::Begin(subjects));
    }

    /// Lets it act, and look at what its scopes say afterwards.
    pub(super) fn does(&self, act: Act, look: bool) -> Answer {
        self.send(Order::Act(act, look));
        self.answers.recv().expect("the thread answers")
    }

    pub(super) fn finish(&self) {
        self.send(Order::Finish);
    }

    pub(super) fn end(&mut self) {
        self.orders = None;
        let thread = self.thread.take().expect("not ended");
        thread.join().expect("the thread ends well");
    }
}

type Scopes<'a> = Option<[Scope<'a>; 3]>;

/// Does what it is told until it is finished or ends.
fn serve<'a>(
    subjects: &'a Subjects,
    orders: &Receiver<Order>,
    answer: &SyncSender<Answer>,
    scopes: &mut [Scopes<'a>; SCOPES],
    mut open: usize,
) {
    while let Ok(Order::Act(act, look)) = orders.recv() {
        match act {
            Act::OpenScope => {
                let all = [
                    subjects.batched.scope(),
                    subjects.exact.scope(),
                    heap().scope(),
                ];
                scopes[open] = Some(all);
                open += 1;
            }
            Act::CloseScope => {
                open -= 1;
                scopes[open] = None;
            }
            _ => subjects.act(act),
        }
        let last = open.checked_sub(1).filter(|_| look);
        let last = last.and_then(|last| scopes[last].as_ref());
        let seen = Answer {
            own: [
                subjects.batched.thread_totals(),
                subjects.exact.thread_totals(),
                heap().thread_totals(),
            ],
            scoped: last.map(|all| all.each_ref().map(Scope::measured)),
        };
        answer.send(seen).expect("the model waits");
    }
}
