//! Real processes under `mpirun`. Each test starts `one_rank` of this program on 2 or 4 ranks.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use strust::{
    objective::{Evaluation, ObjectiveWrapper, Sliced},
    prelude::*,
    ranks::{Alone, Group, Reduction, Sharded},
};

/// The limit on waiting, and what ends a run after it: the exchange of messages and `mpirun` itself.
const LIMIT: Duration = Duration::from_secs(3);
const AFTER_LIMIT: Duration = Duration::from_secs(12);

const CASE: &str = "STRUST_MPI_CASE";

/// The convex problem of all tests: 33 terms that do not divide by the ranks.
fn problem() -> impl Objective<Point = Vec<f64>> {
    from_residuals(33, |i, x: &Vec<f64>, g: &mut Vec<f64>| {
        let row = |j: usize| ((7 * i + 3 * j + 1) as f64).sin();
        (0..x.len()).for_each(|j| g[j] = row(j));
        (0..x.len()).map(|j| row(j) * (x[j] - 1.0)).sum::<f64>() + 0.1 * (i as f64).cos()
    })
}

/// A problem that announces its gradient in two pieces.
struct InPieces<F>(F);

impl<F: Objective<Point = Vec<f64>>> ObjectiveWrapper for InPieces<F> {
    type Inner = F;
    fn wrapped(&self) -> &F {
        &self.0
    }
    fn wrapped_mut(&mut self) -> &mut F {
        &mut self.0
    }
    fn sliced(this: &mut Self) -> Option<&mut dyn Sliced<Point = Vec<f64>>> {
        Some(this)
    }
}

impl<F: Objective<Point = Vec<f64>>> Sliced for InPieces<F> {
    fn slices(&self) -> Vec<usize> {
        vec![4, 2]
    }
    fn value_and_gradient_in_slices(
        &mut self,
        x: &Vec<f64>,
        sample: &Sample,
        gradient: &mut Vec<f64>,
        ready: &mut dyn FnMut(&Vec<f64>, usize),
    ) -> Evaluation {
        let f = self.value_and_gradient(x, sample, gradient);
        ready(gradient, 4);
        assert!(!x[0].is_nan(), "a mistake after the first slice");
        ready(gradient, 2);
        f
    }
}

fn run_in_slices<G: Group>(group: G, batch: usize, least: usize) -> Result<Vec<f64>, Error> {
    let mut f = Sharded::new(InPieces(problem()), group).slices_of(least);
    let run = minimize(&mut f).method(Str::default()).batch(batch).seed(5).stop(Stop::steps(200));
    let report = run.start(vec![0.0; 5])?;
    report.breakdown.map_or(Ok(report.state.into_point()), Err)
}

fn run<G: Group>(group: G, reduction: Reduction, steps: u64) -> Result<Vec<f64>, Error> {
    let mut f = Sharded::new(problem(), group).reduction(reduction);
    let run = minimize(&mut f).method(Str::default()).batch(10).seed(5).stop(Stop::steps(steps));
    let report = run.start(vec![0.0; 5])?;
    report.breakdown.map_or(Ok(report.state.into_point()), Err)
}

const IN_ORDER: Reduction = Reduction::FixedOrder { block: 3 };

/// The work of one rank. The tests below start it by `mpirun`.
#[test]
#[ignore = "only under mpirun"]
fn one_rank() {
    let case = std::env::var(CASE).expect("the tests below name a case");
    let point = strust_mpi::on_ranks(LIMIT, |rank| {
        let me = rank.rank();
        // In one piece, because the ranks share the stream.
        std::io::stderr().write_all(format!("\nprocess {me} {}\n", std::process::id()).as_bytes()).unwrap();
        match case.as_str() {
            "fast" => run(&mut *rank, Reduction::Fast, 1000),
            "in-order" => run(&mut *rank, IN_ORDER, 1000),
            "in-slices" => {
                // A batch of 3 leaves one of four ranks without a term. Sums of two or more ranks need not have the same
                // bits in slices, but sums of two numbers do not depend on the order.
                let [whole, found] = [usize::MAX, 1].map(|least| run_in_slices(&mut *rank, 3, least));
                let (whole, found) = (whole?, found?);
                assert!(rank.size() > 2 || whole == found, "{whole:?} {found:?}");
                Ok(found)
            }
            "panic-in-slices" => {
                let mut f = Sharded::new(InPieces(problem()), &mut *rank).slices_of(1);
                let (x, mut gradient) = (vec![if me == 1 { f64::NAN } else { 0.0 }; 5], vec![0.0; 5]);
                f.value_and_gradient(&x, &Sample::range(0..33), &mut gradient);
                Ok(gradient)
            }
            "bytes" => {
                let mut nothing = if me == 0 { Vec::new() } else { vec![1, 2] };
                rank.broadcast(&mut nothing)?;
                assert!(nothing.is_empty(), "rank 0 sent nothing");
                let mut bytes = if me == 0 { b"of rank 0".to_vec() } else { Vec::new() };
                rank.broadcast(&mut bytes)?;
                Ok(bytes.iter().map(|&b| b.into()).collect())
            }
            "other-start" => {
                let mut f = Sharded::new(problem(), &mut *rank);
                let start = vec![if me == 1 { 1e-9 } else { 0.0 }; 5];
                let report = minimize(&mut f).method(Str::default()).start(start)?;
                report.breakdown.map_or(Ok(report.best), Err)
            }
            "nan" => {
                let mut f = from_terms(8, |_, x: &Vec<f64>, g| {
                    g[0] += x[0];
                    if me == 1 { f64::NAN } else { x[0] * x[0] }
                });
                let mut f = Sharded::new(&mut f, &mut *rank);
                minimize(&mut f).start(vec![1.0]).map(|report| report.best)
            }
            "no-data" if me == 1 => Err(Error::Start { why: "cannot read rows.csv".into() }),
            "panic" if me == 1 => panic!("an index is out of range"),
            "endless" | "no-data" | "panic" => run(&mut *rank, Reduction::Fast, u64::MAX),
            other => panic!("no case {other}"),
        }
    });
    let bits: Vec<String> = point.iter().map(|v| format!("{:016x}", v.to_bits())).collect();
    std::io::stdout().write_all(format!("\npoint {}\n", bits.join(" ")).as_bytes()).unwrap();
}

/// A run that is ended with the test.
struct Launched {
    child: Child,
    /// The process of each rank.
    processes: Vec<u32>,
    errors: BufReader<std::process::ChildStderr>,
}

struct Ended {
    success: bool,
    output: String,
    errors: String,
    after: Duration,
}

impl Launched {
    fn new(ranks: usize, case: &str) -> Self {
        let mut child = Command::new("mpirun")
            .args(["--allow-run-as-root", "--oversubscribe", "-n", &ranks.to_string()])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "one_rank", "--ignored", "--nocapture"])
            .env(CASE, case)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut processes = vec![0; ranks];
        while processes.contains(&0) {
            let mut line = String::new();
            assert!(errors.read_line(&mut line).unwrap() > 0, "the ranks did not start");
            if let Some((rank, id)) = line.trim().strip_prefix("process ").and_then(|rest| rest.split_once(' ')) {
                processes[rank.parse::<usize>().unwrap()] = id.parse().unwrap();
            }
        }
        Self { child, processes, errors }
    }

    fn signal(&self, rank: usize, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.processes[rank].to_string()]).status();
        assert!(status.unwrap().success());
    }

    /// Waits for the end, which must come within `limit`.
    fn end(mut self, limit: Duration) -> Ended {
        let began = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            if began.elapsed() > limit {
                self.child.kill().unwrap();
                panic!("the ranks still run after {limit:?}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let (mut output, mut errors) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        self.errors.read_to_string(&mut errors).unwrap();
        let after = began.elapsed();
        Ended { success: self.child.wait().unwrap().success(), output, errors, after }
    }
}

/// Skips a test without `mpirun`, unless `STRUST_REQUIRE` names `mpi`.
fn requires_mpi() -> bool {
    let available = Command::new("mpirun").arg("--version").output().is_ok_and(|output| output.status.success());
    let required = std::env::var("STRUST_REQUIRE").unwrap_or_default();
    let named = required.split(',').any(|name| name.trim() == "mpi");
    assert!(available || !named, "STRUST_REQUIRE names `mpi`, but `mpirun` is not available here");
    if !available {
        eprintln!("skipped: `mpirun` is not available here");
    }
    available
}

/// The points that all ranks print.
fn points(ranks: usize, case: &str) -> Vec<Vec<f64>> {
    let ended = Launched::new(ranks, case).end(Duration::from_secs(120));
    assert!(ended.success, "{}", ended.errors);
    let lines = ended.output.lines().filter_map(|line| line.strip_prefix("point "));
    let number = |word: &str| f64::from_bits(u64::from_str_radix(word, 16).unwrap());
    let points: Vec<Vec<f64>> = lines.map(|line| line.split(' ').map(number).collect()).collect();
    assert_eq!(points.len(), ranks, "{}", ended.output);
    points
}

#[test]
fn two_and_four_ranks_equal_one_process_to_rounding() {
    if !requires_mpi() {
        return;
    }
    let mut expected = problem();
    let report = minimize(&mut expected).method(Str::default()).batch(10).seed(5).stop(Stop::steps(1000));
    let expected = report.start(vec![0.0; 5]).unwrap().state.into_point();
    for ranks in [2, 4] {
        let found = points(ranks, "fast");
        assert!(found.iter().all(|point| *point == found[0]), "the ranks must agree bit for bit: {found:?}");
        let mut difference = found[0].clone();
        difference.add(-1.0, &expected);
        assert!(difference.norm() <= 1e-12 * expected.norm(), "{ranks} ranks: {:e}", difference.norm());
        assert_eq!(points(ranks, "fast"), found, "the same number of ranks must give the same bits again");
    }
}

#[test]
fn a_gradient_in_slices_is_the_same_on_all_ranks_and_that_of_one_process_to_rounding() {
    if !requires_mpi() {
        return;
    }
    let expected = run_in_slices(Alone, 3, 1).unwrap();
    for ranks in [2, 4] {
        let found = points(ranks, "in-slices");
        assert!(found.iter().all(|point| *point == found[0]), "the ranks must agree bit for bit: {found:?}");
        let mut difference = found[0].clone();
        difference.add(-1.0, &expected);
        assert!(difference.norm() <= 1e-12 * expected.norm(), "{ranks} ranks: {:e}", difference.norm());
        assert_eq!(points(ranks, "in-slices"), found, "the same number of ranks must give the same bits again");
    }
}

#[test]
fn a_fixed_order_gives_the_bits_of_one_process_on_any_number_of_ranks() {
    if !requires_mpi() {
        return;
    }
    let expected = run(Alone, IN_ORDER, 1000).unwrap();
    for ranks in [1, 2, 4] {
        assert_eq!(points(ranks, "in-order"), vec![expected.clone(); ranks]);
    }
}

#[test]
fn rank_0_sends_its_bytes_to_all() {
    if !requires_mpi() {
        return;
    }
    let expected: Vec<f64> = b"of rank 0".iter().map(|&b| b.into()).collect();
    assert_eq!(points(3, "bytes"), vec![expected; 3]);
}

/// Lines of our own messages that begin with a rank.
fn messages(ended: &Ended) -> Vec<&str> {
    let is_ours =
        |line: &&str| line.strip_prefix("rank ").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    ended.errors.lines().filter(is_ours).collect()
}

#[test]
fn a_killed_rank_ends_the_others_with_a_message_that_names_it() {
    if !requires_mpi() {
        return;
    }
    for (ranks, killed) in [(2, 0), (4, 2)] {
        let launched = Launched::new(ranks, "endless");
        std::thread::sleep(Duration::from_millis(300));
        launched.signal(killed, "KILL");
        let ended = launched.end(LIMIT + AFTER_LIMIT);
        assert!(!ended.success && ended.errors.contains(&format!("rank {killed} ")), "{}", ended.errors);
        eprintln!("ended {:?} after SIGKILL", ended.after);
    }
}

#[test]
fn a_stopped_rank_ends_all_after_the_limit_with_one_message_that_names_it() {
    if !requires_mpi() {
        return;
    }
    for (ranks, stopped) in [(2, 0), (4, 3)] {
        let launched = Launched::new(ranks, "endless");
        std::thread::sleep(Duration::from_millis(300));
        launched.signal(stopped, "STOP");
        let ended = launched.end(LIMIT + AFTER_LIMIT);
        let found = messages(&ended);
        assert_eq!(found.len(), 1, "{}", ended.errors);
        assert!(!ended.success && found[0].starts_with(&format!("rank {stopped}: did not arrive")), "{}", ended.errors);
        assert!(ended.after >= LIMIT, "{:?}", ended.after);
        eprintln!("ended {:?} after SIGSTOP", ended.after);
    }
}

#[test]
fn a_pause_shorter_than_the_limit_changes_nothing() {
    if !requires_mpi() {
        return;
    }
    let launched = Launched::new(2, "endless");
    launched.signal(1, "STOP");
    std::thread::sleep(LIMIT / 3);
    launched.signal(1, "CONT");
    std::thread::sleep(LIMIT + Duration::from_secs(2));
    launched.signal(1, "KILL");
    let ended = launched.end(AFTER_LIMIT);
    assert!(messages(&ended).is_empty(), "the run went on after the pause: {}", ended.errors);
}

#[test]
fn a_rank_that_fails_ends_all_with_one_message() {
    if !requires_mpi() {
        return;
    }
    for (case, expected) in [
        ("no-data", "rank 1: start: cannot read rows.csv"),
        ("panic", "rank 1: it panicked"),
        ("panic-in-slices", "rank 1: it panicked"),
        ("nan", "rank 0: the objective is NaN at the start"),
        ("other-start", "rank 1: the state after step 1 differs"),
    ] {
        let ended = Launched::new(4, case).end(LIMIT + AFTER_LIMIT);
        let found = messages(&ended);
        assert!(!ended.success && found.len() == 1 && found[0].starts_with(expected), "{case}: {}", ended.errors);
    }
}
