//! What shards and the shared totals do to each other.

use loom::sync::Arc;
use loom::thread;

use crate::account::Account;
use crate::operation::Operation;

/// Two threads publish into one ledger; when they are done it holds what both counted.
#[test]
fn publishing_loses_nothing() {
    loom::model(|| {
        let account = Arc::new(Account::new());
        account.ledger.set_threshold(8);
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let account = account.clone();
                thread::spawn(move || {
                    let (shard, _room) = account.claim(8).expect("the first slab has room");
                    shard.count(Operation::Allocate, 5);
                    account.ledger.settle(shard, 5);
                    shard.count(Operation::Allocate, 5);
                    account.ledger.settle(shard, 5);
                    account.release(shard);
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(account.ledger.published.live_bytes(), 20);
        assert_eq!(account.sum().totals.live_bytes(), 20);
        assert_eq!(account.ledger.error_bound(), 0);
    });
}
