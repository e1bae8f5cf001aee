//! A rank that works for rank 0: it runs the items that rank 0 gives it, or takes part in items that all run together.

use crate::{
    Error,
    data::plan::{Job, Plan},
    io::{
        data_file,
        results::{job_folder, seal},
    },
    run::{
        JOBS, JobWatch, join, no_item,
        orders::{Answer, Order, Pool, Relay, between_rounds},
        run_job,
        workers::{FirstError, Halt, caught, locked},
    },
    suite::{RunChecks, SuiteKind},
    team::Team,
};
use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::channel,
    },
    time::{Duration, Instant},
};
use strust::ranks::Group;

/// Follows the orders of rank 0 until the program ends, and returns its exit code. `interrupt` asks all ranks to stop;
/// `suites` are those of the program.
pub fn serve(team: &Team, interrupt: &AtomicBool, suites: &[SuiteKind]) -> Result<u8, Error> {
    loop {
        match team.of_leader(None)? {
            Order::Bye { code } => return Ok(code),
            Order::Begin(pool) => Member { team, interrupt, suites }.work_on(&pool)?,
            Order::Wait | Order::Go { .. } | Order::Together(_) | Order::End => {
                team.of_all(&Answer { interrupted: interrupt.load(Ordering::Relaxed), ..Answer::default() })?;
                std::thread::sleep(between_rounds(team.size()));
            }
        }
    }
}

/// The items of a pool.
enum Items {
    Jobs(Vec<Plan>),
    Checks(Box<dyn RunChecks + Sync>),
}

impl Items {
    /// Reads a plan, and checks that this rank has the same data and the same folder as rank 0.
    fn open(pool: &Pool, suites: &[SuiteKind]) -> Result<Self, Error> {
        let differ =
            |e| Error::Ranks(format!("the plan of rank 0 cannot be read: start the same program on all ranks: {e}"));
        let items = if pool.kind == JOBS {
            Self::Jobs(serde_json::from_slice(pool.plan.as_bytes()).map_err(differ)?)
        } else {
            let unknown = || Error::Ranks("rank 0 runs a suite that this rank does not have".into());
            let kind = suites.iter().find(|kind| kind.file == pool.kind).ok_or_else(unknown)?;
            Self::Checks((kind.checks)(pool.plan.as_bytes()).map_err(differ)?)
        };
        if pool.together {
            // Each job checks its data, and only rank 0 writes.
            return Ok(items);
        }
        check_folder(pool)?;
        if let Self::Jobs(plans) = &items {
            let mut seen = Vec::new();
            for problem in plans.iter().flat_map(|plan| &plan.experiment.problems) {
                let data = data_file::path(&problem.parameters);
                if data.is_some() && !seen.contains(&data) {
                    data_file::check_same_as_rank_0(problem)?;
                    seen.push(data);
                }
            }
        }
        Ok(items)
    }

    /// The job with this number, and its plan.
    fn job(&self, item: usize) -> Option<(&Plan, &Job)> {
        let Self::Jobs(plans) = self else { return None };
        plans.iter().flat_map(|plan| plan.jobs.iter().map(move |job| (plan, job))).nth(item)
    }

    fn run(&self, item: usize, pool: &Pool, halt: Halt, relay: &Relay) -> Result<(), Error> {
        match self {
            Self::Jobs(_) => {
                let (plan, job) = self.job(item).ok_or_else(|| Error::Ranks(no_item(item)))?;
                let watch = JobWatch { progress: relay, save_every: pool.save_every };
                run_job(&pool.folder, plan, job, None, halt, watch)
            }
            Self::Checks(checks) => checks.run_check(&pool.folder, item, halt, relay),
        }
    }
}

/// How long a network file system may take to show what another machine has written.
const VISIBLE_WITHIN: Duration = Duration::from_secs(10);

/// Checks that this rank sees the folder of results.
fn check_folder(pool: &Pool) -> Result<(), Error> {
    let began = Instant::now();
    while seal(&pool.folder) != pool.seal {
        if began.elapsed() > VISIBLE_WITHIN {
            let folder = pool.folder.display();
            return Err(Error::Ranks(format!(
                "{folder} is not the folder that rank 0 sees: choose one with --out on a file system that all ranks share"
            )));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

struct Member<'a> {
    team: &'a Team,
    interrupt: &'a AtomicBool,
    suites: &'a [SuiteKind],
}

impl Member<'_> {
    /// Runs items of a pool until rank 0 ends it.
    fn work_on(&self, pool: &Pool) -> Result<(), Error> {
        let (relay, error) = (Relay::default(), FirstError::default());
        let (halt, began) = (error.halt(self.interrupt), Instant::now());
        // The items that rank 0 gives to this rank, those that are not done, and those that are.
        let (give, given) = channel::<usize>();
        let (given, open, done) = (Mutex::new(given), AtomicUsize::new(0), AtomicUsize::new(0));
        let items = caught(|| Items::open(pool, self.suites));
        let worker = |items: &Items| {
            loop {
                // The items end with the pool, which drops the sender.
                let Ok(item) = locked(&given).recv() else { return };
                // Items that have not begun are left for another run.
                if !halt.requested()
                    && let Err(why) = caught(|| items.run(item, pool, halt, &relay))
                {
                    error.put(why);
                }
                open.fetch_sub(1, Ordering::Relaxed);
                done.fetch_add(1, Ordering::Relaxed);
            }
        };
        let pause = between_rounds(self.team.size());
        let answer = || {
            let done = done.load(Ordering::Relaxed);
            // As many more as this rank finishes between two rounds.
            let ahead = done as f64 * pause.as_secs_f64() / began.elapsed().as_secs_f64();
            let wanted = (pool.jobs + ahead as usize).saturating_sub(open.load(Ordering::Relaxed));
            let interrupted = self.interrupt.load(Ordering::Relaxed);
            let wanted = if items.is_ok() { wanted } else { 0 };
            self.team.of_all(&Answer { wanted, done, interrupted, failed: error.text(), events: relay.take() })
        };
        std::thread::scope(|scope| {
            let give = give;
            match &items {
                Ok(_) if pool.together => {}
                Ok(items) => (0..pool.jobs).for_each(|_| drop(scope.spawn(|| worker(items)))),
                Err(why) => error.put(Error::Ranks(why.to_string())),
            }
            answer()?;
            loop {
                match self.team.of_leader(None)? {
                    Order::End => return answer().map(drop),
                    Order::Together(item) => {
                        answer()?;
                        self.together(&items, item, pool, halt)?;
                    }
                    Order::Go { items, halt } => {
                        if halt {
                            error.stop();
                        }
                        let me = self.team.rank();
                        for (_, item) in items.into_iter().filter(|(rank, _)| *rank == me) {
                            open.fetch_add(1, Ordering::Relaxed);
                            give.send(item).expect("the receiver lives as long as the pool");
                        }
                        answer()?;
                        std::thread::sleep(pause);
                    }
                    Order::Wait | Order::Begin(_) | Order::Bye { .. } => answer().map(drop)?,
                }
            }
        })
    }

    /// Takes part in a job that all ranks run. If it fails on all of them, rank 0 reports it.
    fn together(&self, items: &Result<Items, Error>, item: usize, pool: &Pool, halt: Halt) -> Result<(), Error> {
        let refuse = |why: String| self.team.agreed(Err(Error::Ranks(why)));
        let outcome = match items {
            Err(why) => refuse(why.to_string()),
            Ok(items) => match items.job(item) {
                None => refuse(no_item(item)),
                Some((plan, job)) => join(self.team, plan, job, &job_folder(&pool.folder, job), halt),
            },
        };
        if self.team.is_broken() { outcome } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        data::{experiment::Experiment, summary::Summary},
        pipeline,
        run::{Options, Silent},
        this_machine,
    };
    use std::path::Path;
    use strust::ranks::on_threads;

    const LIMIT: Duration = Duration::from_secs(60);
    const TEXT: &str = r#"
        name = "ranks"
        epochs = 4
        batch = 10
        seeds = 2
        [[problem]]
        kind = "least-squares"
        n = 47
        d = 6
        [[method]]
        name = "str"
        [[method]]
        name = "sgd"
        learning_rate = [0.01, 1e9]
        [tune]
        metric = "objective_gap"
        epochs = 2
        seeds = 3
    "#;

    /// Runs the experiment on so many ranks, and returns the codes with which the others end.
    fn run(text: &str, folder: &Path, ranks: usize, stop: bool) -> (Result<Summary, String>, Vec<u8>) {
        let outcomes = on_threads(ranks, LIMIT, |rank| {
            let (leads, team) = (rank.rank() == 0, Team::new(rank));
            let interrupt = AtomicBool::new(stop && !leads);
            if !leads {
                return (None, serve(&team, &interrupt, &[]).unwrap());
            }
            let experiment = Experiment::parse(Path::new("ranks.toml"), text).unwrap();
            let mut plan = Plan::new(experiment, String::new(), this_machine(1, None));
            let (progress, save_every) = (&Silent, Duration::MAX);
            let options = Options { jobs: 1, save_every, interrupt: &interrupt, progress, team: &team };
            let summary = pipeline::start(folder, &mut plan, &options).map_err(|e| e.to_string());
            team.dismiss(7).unwrap();
            (Some(summary), 7)
        });
        let codes = outcomes.iter().map(|(_, code)| *code).collect();
        (outcomes.into_iter().find_map(|(summary, _)| summary).unwrap(), codes)
    }

    fn records(folder: &Path) -> Vec<(String, Vec<u8>)> {
        let jobs = std::fs::read_dir(folder.join("runs")).unwrap().map(|job| job.unwrap().path());
        let mut records: Vec<_> = jobs
            .map(|job| {
                let name = job.file_name().unwrap().to_string_lossy().into_owned();
                (name, std::fs::read(job.join("records.jsonl")).unwrap())
            })
            .collect();
        records.sort();
        records
    }

    #[test]
    fn a_team_of_any_size_writes_the_same_records() {
        let in_order = TEXT.replacen("batch", "parallel = \"data\"\nblock = 3\nbatch", 1);
        for text in [TEXT, &in_order] {
            let folder = tempfile::tempdir().unwrap();
            let mut expected = Vec::new();
            for ranks in [1, 2, 3, 5] {
                let out = folder.path().join(ranks.to_string());
                let (summary, codes) = run(text, &out, ranks, false);
                assert!(summary.unwrap().problems[0].methods.len() == 2 && codes == vec![7; ranks]);
                let records = records(&out);
                if ranks == 1 {
                    assert_eq!(records.len(), 9 + 4);
                    expected = records;
                } else {
                    assert!(records == expected, "{ranks} ranks");
                }
            }
        }
    }

    #[test]
    fn a_rank_that_is_asked_to_stop_stops_all() {
        let folder = tempfile::tempdir().unwrap();
        let data = TEXT.replacen("batch", "parallel = \"data\"\nbatch", 1);
        for (name, text) in [("jobs", TEXT), ("data", &data)] {
            let long = text.replace("epochs = 2", "epochs = 1000000");
            let (summary, codes) = run(&long, &folder.path().join(name), 3, true);
            assert_eq!((summary.err().as_deref(), codes), (Some("interrupted"), vec![7; 3]), "{name}");
        }
    }

    #[test]
    fn an_error_of_one_rank_is_the_error_of_all_and_names_it() {
        let errors = on_threads(3, LIMIT, |rank| {
            let team = Team::new(rank);
            let result = if team.rank() == 1 { Err(Error::Network("no memory".into())) } else { Ok(()) };
            team.agreed(result).unwrap_err().to_string()
        });
        assert_eq!(errors, ["rank 1: no memory"; 3]);
    }
}
