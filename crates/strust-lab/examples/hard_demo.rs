//! Hard cases.
use strust_lab::figure::*;
fn fig(title: &str, log: bool, series: Vec<(&str, Vec<f64>)>) -> Figure {
    Figure { title: title.into(), x: Axis { label: "epoch".into(), log: false }, y: Axis { label: "test accuracy with a label that is so long that it is cut somewhere".into(), log },
        series: series.into_iter().enumerate().map(|(i, (n, v))| Series { name: n.into(), colour: i, points: v.iter().enumerate().map(|(k, &y)| Point { x: k as f64, y, low: y - 0.3 * y.abs(), high: y + 0.3 * y.abs() }).collect() }).collect() }
}
fn main() {
    let out = std::path::PathBuf::from(std::env::args().nth(1).unwrap());
    let many: Vec<(String, Vec<f64>)> = (0..12).map(|i| (format!("method number {i}"), (0..40).map(|k| (-(0.05 * (i + 1) as f64) * k as f64).exp()).collect())).collect();
    let cases = vec![
        fig("single points", true, vec![("str", vec![0.3]), ("sgd", vec![0.01])]),
        fig("all equal", true, vec![("str", vec![0.3; 20])]),
        fig("all zero, linear", false, vec![("str", vec![0.0; 20])]),
        fig("zeros and NaN between", true, vec![("str", vec![1.0, 0.5, 0.0, 0.1, f64::NAN, 0.01, 0.02])]),
        fig("accuracy", false, vec![("str", (0..20).map(|k| 0.9 - 0.8 * (-0.3 * k as f64).exp()).collect()), ("sgd", (0..20).map(|k| 0.85 - 0.7 * (-0.2 * k as f64).exp()).collect())]),
        fig("one decade", true, vec![("str", (0..20).map(|k| 9.0 - 0.4 * k as f64).collect())]),
        fig("a narrow range", true, vec![("a very long method name (learning_rate = 0.001, momentum = 0.9, batch = 128, seed)", (0..20).map(|k| 2.3 - 0.01 * k as f64).collect())]),
        fig("diverged to 1e200", true, vec![("str", (0..20).map(|k| 10f64.powi(-k)).collect()), ("sgd", (0..20).map(|k| 10f64.powi(10 * k)).collect())]),
        fig("large numbers", false, vec![("str", (0..20).map(|k| 1e7 * k as f64 - 3e7).collect())]),
        fig("twelve", true, many.iter().map(|(n, v)| (n.as_str(), v.clone())).collect()),
        fig("no data", true, vec![("str", vec![])]),
        fig("two decades", true, vec![("str", (0..20).map(|k| (-0.2 * k as f64).exp()).collect())]),
    ];
    let mut page = String::from("<body style='margin:0;background:#888;display:grid;grid-template-columns:repeat(4,440px);gap:6px;align-items:start'>");
    let mut svgs = page.clone();
    for (i, f) in cases.iter().enumerate() {
        std::fs::write(out.join(format!("hard-{i}.png")), f.png(1.0).unwrap()).unwrap();
        page += &format!("<img src=hard-{i}.png>");
        svgs += &f.svg(Theme::File);
    }
    std::fs::write(out.join("hard.html"), page).unwrap();
    std::fs::write(out.join("hardsvg.html"), svgs).unwrap();
}
