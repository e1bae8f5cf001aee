//! Experiment files, and the files of a results folder.

use crate::fixture::{folder, job, run, write};
use std::path::Path;
use strust_lab::{
    analyze::diagnose::diagnose, data::plan::Plan, experiment::Experiment, pipeline, report, suite::SuitePlan,
    this_machine,
};
use strust_suites::{
    constrained::ConstrainedSuite,
    tasks::{BenchmarkSpec, Resources},
    theory::{Theory, TheorySuite},
    zero_tuning::BenchmarkSuite,
};

pub fn experiment(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let file = Path::new("experiment.toml");
    if let Ok(experiment) = Experiment::parse(file, text) {
        let plan = Plan::new(experiment, String::new(), this_machine(1, None));
        for job in &plan.jobs {
            let _ = job.checksum(&plan.experiment);
        }
    }
    let _ = Theory::parse(file, text);
    let _ = BenchmarkSpec::parse(file, text, &Resources::default());
}

/// The first byte selects the kind of plan.
pub fn plan(data: &[u8]) {
    let Some((selected, rest)) = data.split_first() else { return };
    let kinds = ["plan.json", "theory.json", "benchmark.json", "constrained.json"];
    let name = kinds[usize::from(*selected) % kinds.len()];
    let place = folder().join("planned");
    let _ = std::fs::create_dir(&place);
    let path = write(&format!("planned/{name}"), rest);
    match name {
        "plan.json" => drop(pipeline::load_summary_so_far(&place)),
        "theory.json" => drop(SuitePlan::<TheorySuite>::load_summary(&place)),
        "benchmark.json" => drop(SuitePlan::<BenchmarkSuite>::load(&place)),
        _ => drop(SuitePlan::<ConstrainedSuite>::load(&place)),
    }
    std::fs::remove_file(path).expect("the file of the plan");
}

/// The records of a job and, after a zero byte, its timings.
pub fn records(data: &[u8]) {
    let Some((folder_of_job, rest)) = job(data) else { return };
    let end = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
    let (records, timings) = (&rest[..end], rest.get(end + 1..).unwrap_or_default());
    let checkpoint = folder_of_job.join("checkpoint.bin");
    // The checkpoint would refuse records of another length, which is the end of an unfinished run's records.
    let _ = std::fs::remove_file(checkpoint);
    std::fs::write(folder_of_job.join("records.jsonl"), records).expect("a file in memory");
    std::fs::write(folder_of_job.join("timings.jsonl"), timings).expect("a file in memory");
    let _ = diagnose(&folder_of_job);
    let _ = pipeline::load_summary_so_far(&run().0);
}

/// The map of a checkpoint. The target adds the first line, because no mutation finds a checksum.
pub fn checkpoint(data: &[u8]) {
    let Some((folder_of_job, body)) = job(data) else { return };
    let sum = body
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let file = [format!("strust-checkpoint 2 {sum:016x}\n").as_bytes(), body].concat();
    std::fs::write(folder_of_job.join("checkpoint.bin"), file).expect("a file in memory");
    let _ = diagnose(&folder_of_job);
    let _ = pipeline::load_summary_so_far(&run().0);
}

/// A published summary and the page made of it.
pub fn summary(data: &[u8]) {
    let place = folder().join("published");
    let _ = std::fs::create_dir(&place);
    write("published/summary.json", data);
    if let Ok(summary) = pipeline::load_summary(&place) {
        let style = summary.figures.clone();
        let _ = report::html(&report::arranged(vec![summary], &style));
    }
}
