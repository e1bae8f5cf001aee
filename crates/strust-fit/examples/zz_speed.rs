use std::time::Instant;
use strust_fit::arrays::{ArrayOptions, ArrayRows, ArrayTask, InputUnits, OutputLoss, fit_arrays};
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let (loss, n, d, k): (&str, usize, usize, usize) = (&args[1], args[2].parse().unwrap(), args[3].parse().unwrap(), args[4].parse().unwrap());
    let path = &args[5];
    let bytes = std::fs::read(path).unwrap();
    let all: Vec<f64> = bytes.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect();
    let (values, goals) = all.split_at(n * d);
    let rows = ArrayRows::Double(values, d);
    let t = Instant::now();
    let units = InputUnits::measure(&rows, None, true, true);
    let t_units = t.elapsed().as_secs_f64();
    let loss = match loss { "squares" => OutputLoss::Squares, "logistic" => OutputLoss::Logistic, _ => OutputLoss::Softmax };
    let task = ArrayTask { rows: &rows, goals, weights: None, units: &units, loss, outputs: k };
    let t = Instant::now();
    let model = fit_arrays(&task, &ArrayOptions::default(), &|| false).unwrap();
    println!("units {:.3} s, fit {:.3} s, {} steps, {:?}, f {:?}", t_units, t.elapsed().as_secs_f64(), model.epochs, model.end, model.scores);
}
