//! Fits a model to a data file and prints its scores: `cargo run --example fit_file -- DATA TARGET [MODEL]`.

use std::{path::Path, sync::atomic::AtomicBool, time::Instant};
use strust_fit::{
    DataTable, FitOptions, ReadOptions, assess::Assessment, fit, fit::FitWatch, saved::ModelFamily, table::ReadProgress,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [data, target, model @ ..] = &arguments[..] else { return Err("usage: fit_file DATA TARGET [MODEL]".into()) };
    let (began, stop) = (Instant::now(), AtomicBool::new(false));
    let reading = ReadOptions { target: Some(target.clone()), ..ReadOptions::default() };
    let table = DataTable::read(Path::new(data), &reading, &mut ReadProgress { at: &mut |_| {}, interrupt: &stop })?;
    println!("read {} rows in {:.2} s", table.rows, began.elapsed().as_secs_f64());
    let model = model.first().map(|_| ModelFamily::Mlp);
    let options = FitOptions { target: Some(target.clone()), model, ..FitOptions::default() };
    let mut report = |epoch: f64, score: f64| println!("epoch {epoch:.0}: {score:.6}");
    let fitted = fit(&table, None, &options, &mut FitWatch { report: &mut report, interrupt: &stop })?;
    fitted.report.remarks.iter().for_each(|remark| println!("{remark}"));
    match &fitted.report.held_out {
        Some(Assessment::Classes(scores)) => {
            println!("accuracy {:.4}, log-loss {:.5}", scores.accuracy, scores.log_loss);
        }
        Some(Assessment::Regression(scores)) => println!("R² {:.5}, RMSE {:.5}", scores.r2, scores.rmse),
        None => println!("no held-out rows"),
    }
    println!("{:.2} s", began.elapsed().as_secs_f64());
    Ok(())
}
