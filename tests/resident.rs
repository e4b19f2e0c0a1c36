//! The program of `examples/resident.rs`: what it says of requested and usable bytes on every machine. Of resident
//! bytes it says nothing here, since they are the system's affair.
//!
//! A process of its own: the figures are exact, and a test harness would allocate beside them.

#[path = "../examples/resident.rs"]
mod resident;

fn main() {
    // What a runner that lists tests first expects of a test program.
    if std::env::args().any(|argument| argument == "--list") {
        if !std::env::args().any(|argument| argument == "--ignored") {
            println!("resident: test");
        }
        return;
    }
    let mut report = Vec::with_capacity(64 << 10);
    let steps = resident::run(&mut report).unwrap_or_else(|failure| panic!("{failure}"));
    for step in &steps {
        let requested = usize::try_from(step.requested);
        assert_eq!(requested, Ok(step.arithmetic), "{step:?}");
        assert!(
            step.usable.is_none_or(|usable| usable >= step.arithmetic),
            "{step:?}"
        );
    }
    let peak = steps.iter().map(|step| step.requested).max();
    assert!(peak >= Some(64 << 20), "{steps:?}");
    let last = steps[steps.len() - 1];
    assert_eq!(last.requested, 0, "all was freed: {last:?}");
    let report = String::from_utf8(report).expect("the report is text");
    assert!(report.contains("| the end | 0 |"), "\n{report}");
    println!("test resident ... ok");
}
