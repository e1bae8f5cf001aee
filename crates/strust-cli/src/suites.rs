//! The suites and benchmarks: `strust reproduce theory`, `zero-tuning`, `second-order`, `constrained` and `fairness`,
//! `strust run` for their files, and `strust bench`.

use crate::{
    CommandResult,
    args::{BenchArgs, Benchmark, Cluster, Network, Reproducible, Runs, Shared},
    failure,
    session::{ResultsFolder, command_line, conclude, escaped, jobs_on, print, print_data, resume_command, save_every},
    show::{self, Activity, heading, table},
    usage,
};
use std::path::Path;
use strust_lab::{
    experiment::ExperimentText,
    suite::{Suite, SuiteKind, SuitePlan},
};
pub use strust_suites::{SUITES, built_in::open};
use strust_suites::{
    bench::{self, BenchBlock, BenchProgress, BenchResults},
    built_in,
    constrained::{ConstrainedSettings, ConstrainedSuite, ReferenceFile},
    fairness::{FairnessSettings, FairnessSuite},
    tasks::{BenchmarkSpec, Resources},
    theory::{Theory, TheorySuite},
    zero_tuning::BenchmarkSuite,
};

/// The kind of the suite in a folder; `None` if there is none.
#[allow(clippy::unnecessary_wraps, reason = "without suites it fails")]
pub fn kind_in(folder: &Path) -> CommandResult<Option<SuiteKind>> {
    Ok(SUITES.into_iter().find(|kind| kind.is_in(folder)))
}

/// Runs a built-in suite.
pub fn reproduce(
    what: Reproducible,
    quick: bool,
    reference: Option<&Path>,
    runs: &Runs,
    shared: &Shared,
) -> CommandResult {
    check_no_settings(runs)?;
    let name = match what {
        Reproducible::Constrained => return constrained(quick, reference, runs, shared),
        Reproducible::Fairness => return fairness(runs, shared),
        Reproducible::Theory => {
            let open = |(name, text): &(&str, &str)| Theory::parse(Path::new(name), text);
            let experiments = built_in::THEORY.iter().map(open).collect::<Result<_, _>>()?;
            let (name, title) = ("theory".into(), "The theory, measured".into());
            return theory(TheorySuite { name, title, experiments }, runs, shared);
        }
        Reproducible::SecondOrder => "second-order",
        _ => "zero-tuning",
    };
    if run(&open(Path::new(name))?, runs, shared)? { Ok(()) } else { unreachable!("it is a benchmark") }
}

/// Runs a theory experiment or a benchmark; `false` if the text is another kind of experiment.
pub fn run(text: &ExperimentText, runs: &Runs, shared: &Shared) -> CommandResult<bool> {
    if let Some(one) = Theory::from_text(text)? {
        check_no_settings(runs)?;
        let suite = TheorySuite { name: one.name.clone(), title: one.title.clone(), experiments: vec![one] };
        theory(suite, runs, shared)?;
        return Ok(true);
    }
    // The options are those of a benchmark only if the file is one.
    if BenchmarkSpec::from_text(text, &Resources::default())?.is_none() {
        return Ok(false);
    }
    check_no_settings(runs)?;
    if let Some(benchmark) = BenchmarkSpec::from_text(text, &resources(&runs.network)?)? {
        self::benchmark(benchmark, runs, shared)?;
    }
    Ok(true)
}

fn theory(mut suite: TheorySuite, runs: &Runs, shared: &Shared) -> CommandResult {
    let name = &suite.name;
    if runs.single.epochs.is_some() {
        return usage(format!(
            "--epochs has no effect on `{name}`: leave it out, and change the settings in the file instead"
        ));
    }
    if runs.network.is_given() {
        return usage(format!(
            "--data, --device and --precision are only for networks that run on libtorch, and `{name}` has none"
        ));
    }
    if let Some(seeds) = runs.seeds {
        suite.experiments.iter_mut().for_each(|experiment| experiment.seeds = seeds);
    }
    start(suite, None, runs, shared)
}

fn benchmark(mut benchmark: BenchmarkSpec, runs: &Runs, shared: &Shared) -> CommandResult {
    check_no_epochs(&benchmark.name, runs)?;
    if benchmark.tasks.is_empty() {
        let why = benchmark.skipped.iter().map(|task| format!("{}: {}", task.name, task.why)).collect::<Vec<_>>();
        let name = &benchmark.name;
        return failure(format!("every task of `{name}` is skipped; {}", why.join("; ")));
    }
    let device = seeded(&mut benchmark, runs).open_devices()?;
    start(BenchmarkSuite { benchmark }, device, runs, shared)
}

fn constrained(quick: bool, reference: Option<&Path>, runs: &Runs, shared: &Shared) -> CommandResult {
    check_no_epochs("constrained", runs)?;
    let reference = reference.map(ReferenceFile::open).transpose()?.map_or(Vec::new(), |file| file.problems);
    let mut benchmark = ConstrainedSuite::tasks(&resources(&runs.network)?)?;
    let mut settings = ConstrainedSettings::default();
    if quick {
        settings = ConstrainedSettings::quick();
        benchmark.shorten();
    }
    if let Some(seeds) = runs.seeds {
        (settings.starts, settings.noise_seeds) = (seeds, seeds);
    }
    let device = seeded(&mut benchmark, runs).open_devices()?;
    start(ConstrainedSuite { settings, reference, benchmark }, device, runs, shared)
}

fn fairness(runs: &Runs, shared: &Shared) -> CommandResult {
    check_no_epochs("fairness", runs)?;
    let mut settings = FairnessSettings::default();
    if let Some(seeds) = runs.seeds {
        settings.seeds = seeds;
    }
    let data = resources(&runs.network)?.data;
    start(FairnessSuite { settings, data }, None, runs, shared)
}

fn check_no_settings(runs: &Runs) -> CommandResult {
    let why = "--set is for experiments with [[problem]] and [[method]]: change the file instead";
    if runs.set.is_empty() { Ok(()) } else { usage(why) }
}

fn check_no_epochs(name: &str, runs: &Runs) -> CommandResult {
    let why = || format!("--epochs has no effect on `{name}`: every task of the file has its own");
    if runs.single.epochs.is_some() { usage(why()) } else { Ok(()) }
}

/// The tasks with the seeds of the command line.
fn seeded<'a>(benchmark: &'a mut BenchmarkSpec, runs: &Runs) -> &'a mut BenchmarkSpec {
    if let Some(seeds) = runs.seeds {
        benchmark.tasks.iter_mut().for_each(|task| task.experiment.seeds = (0..seeds).collect());
    }
    benchmark
}

/// The data and the device of tasks.
fn resources(Network { data, device, precision }: &Network) -> CommandResult<Resources> {
    if let Some(data) = data.as_ref().filter(|data| !data.is_dir()) {
        let why =
            format!("--data {}: there is no such folder; the data sets of a benchmark are in one", data.display());
        return usage(why);
    }
    Ok(Resources { data: data.clone(), device: device.clone(), precision: precision.clone() })
}

fn start<S: Suite>(suite: S, device: Option<String>, runs: &Runs, shared: &Shared) -> CommandResult {
    let jobs = jobs_on(runs.jobs, suite.on_gpu());
    let plan = SuitePlan::new(suite, command_line(), strust_lab::this_machine(jobs, device));
    let pace = (jobs, save_every(runs.single.saving)?);
    let results = ResultsFolder::new(runs.single.out.clone(), plan.suite.names()[0])?;
    let folder = results.path();
    conclude(folder, shared, pace, &resume_command(folder), |options| plan.start(folder, options))
}

/// `strust bench`.
pub fn bench(args: &BenchArgs, shared: &Shared) -> CommandResult {
    if args.device.is_some() && args.what != Benchmark::Cifar10 {
        return usage("--device is only for `strust bench cifar10`");
    }
    if is_given(&args.cluster) && args.what != Benchmark::Mpi {
        let options = "--latency, --bandwidth, --ranks-per-node, --quick and --out";
        return usage(format!("{options} are only for `strust bench mpi`"));
    }
    let (data, reference) = (args.second_order.data.as_deref(), args.second_order.reference.as_deref());
    if (data.is_some() || reference.is_some()) && args.what != Benchmark::SecondOrder {
        let why = "--data and --reference are only for `strust bench second-order`";
        return usage(why);
    }
    if let Some(folder) = data.filter(|folder| !folder.is_dir()) {
        return usage(format!("--data {}: there is no such folder", folder.display()));
    }
    let activity = Activity::new(shared);
    let results = match args.what {
        Benchmark::Cifar10 => match &args.memory_of {
            Some(method) => return print(&format!("{}\n", bench::cifar10::peak_memory(method)?)),
            None => bench::cifar10::cifar10(args.device.as_deref().unwrap_or("auto"))?,
        },
        Benchmark::Subspace => bench::subspace()?,
        Benchmark::Instruments => bench::instruments()?,
        Benchmark::Constraints => bench::constraints(&activity)?,
        Benchmark::SecondOrder => bench::second_order(data, reference, &activity)?,
        Benchmark::Mpi => match mpi(&args.cluster, &activity)? {
            Some(results) => results,
            None => return Ok(()),
        },
    };
    drop(activity);
    if shared.json {
        return print_data(&escaped(&results.json));
    }
    let text =
        |BenchBlock { title, rows, notes }: &BenchBlock| format!("{}\n{}{notes}", heading(title, shared), table(rows));
    print(&results.blocks.iter().map(text).collect::<Vec<_>>().join("\n"))
}

/// Whether any option of the cluster is given.
fn is_given(cluster: &Cluster) -> bool {
    let Cluster { latency, bandwidth, ranks_per_node, quick, out, as_rank } = cluster;
    latency.is_some() || bandwidth.is_some() || ranks_per_node.is_some() || *quick || out.is_some() || as_rank.is_some()
}

impl BenchProgress for Activity {
    fn say(&self, what: String) {
        Activity::say(self, &what);
    }
    fn warn(&self, why: &str) {
        show::warning(why);
    }
}

#[cfg(not(feature = "mpi"))]
fn mpi(_: &Cluster, _: &Activity) -> CommandResult<Option<BenchResults>> {
    failure(format!("this program {}", crate::session::WITHOUT_MPI))
}

/// The measurements; `None` if this process only answers those of another one.
#[cfg(feature = "mpi")]
fn mpi(cluster: &Cluster, activity: &Activity) -> CommandResult<Option<BenchResults>> {
    let &Cluster { latency, bandwidth, ranks_per_node, quick, ref out, ref as_rank } = cluster;
    match as_rank.as_deref() {
        Some("alone") => bench::answer_alone()?,
        Some(_) => bench::answer_as_rank(),
        None => {
            let ranks_per_machine = ranks_per_node.map(|ranks| ranks as usize);
            let cluster = bench::ClusterModel { latency, bandwidth, ranks_per_machine, quick, curves: out.clone() };
            return Ok(Some(bench::mpi(&cluster, activity)?));
        }
    }
    Ok(None)
}
