//! Linear models of `strust fit` end at their minimum, in double precision.

use crate::{
    fit::{done, go},
    support::{Folder, lines, refused},
};
use serde_json::Value;

/// The weights of the inputs in the units of the file.
fn weights(folder: &Folder, model: &str) -> Vec<f64> {
    let about: Value = serde_json::from_str(&done(folder, &["inspect", model, "--json"])).unwrap();
    let of_first = about["weights_in_units"]["weights"][0].as_array().unwrap();
    of_first.iter().map(|weight| weight.as_f64().unwrap()).collect()
}

/// A number between 0 and 1 that looks random.
fn noise(i: usize, stream: usize) -> f64 {
    let mixed = (i * 7919 + stream * 104_729 + 17).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

#[test]
fn a_linear_model_is_its_closed_form_whatever_the_seed() {
    let folder = Folder::new();
    // Two columns that are almost equal: weights that stop short of the minimum share the effect.
    let row = |i: usize| {
        let (a, rest) = (noise(i, 1), 1e-3 * noise(i, 2));
        format!("{a},{},{}\n", a + rest, 2.0 * a + 500.0 * rest + 0.1 * noise(i, 3))
    };
    folder.write("rows.csv", &format!("a,b,y\n{}", lines(400, row)));
    folder.write("test.csv", &format!("a,b,y\n{}", lines(50, |i| row(i + 1000))));
    let rows: Vec<[f64; 3]> = std::fs::read_to_string(folder.path("rows.csv"))
        .unwrap()
        .lines()
        .skip(1)
        .map(|line| {
            let mut cells = line.split(',').map(|cell| cell.parse().unwrap());
            [(); 3].map(|()| cells.next().unwrap())
        })
        .collect();
    // The closed form of two columns and an intercept, from a and b − a.
    let rows: Vec<[f64; 3]> = rows.iter().map(|[a, b, y]| [*a, b - a, *y]).collect();
    let mean = |of: &dyn Fn(&[f64; 3]) -> f64| rows.iter().map(of).sum::<f64>() / rows.len() as f64;
    let means = [0, 1, 2].map(|j: usize| mean(&|row| row[j]));
    let product = |i: usize, j: usize| mean(&|row| (row[i] - means[i]) * (row[j] - means[j]));
    let determinant = product(0, 0) * product(1, 1) - product(0, 1).powi(2);
    let of_a = (product(1, 1) * product(0, 2) - product(0, 1) * product(1, 2)) / determinant;
    let of_difference = (product(0, 0) * product(1, 2) - product(0, 1) * product(0, 2)) / determinant;
    let exact = [of_a - of_difference, of_difference];
    for seed in ["0", "1", "2"] {
        for more in [&[][..], &["--no-standardize"]] {
            let fit = ["fit", "rows.csv", "--target", "y", "--test", "test.csv", "--l2", "0", "--seed", seed];
            let out = done(&folder, &[&fit[..], &["--save", "m.json"], more].concat());
            assert!(out.contains("; converged after "), "{out}");
            for (found, exact) in weights(&folder, "m.json").iter().zip(exact) {
                assert!((found / exact - 1.0).abs() < 1e-6, "{found}, but the closed form has {exact}");
            }
        }
    }
}

#[test]
fn large_numbers_keep_their_digits() {
    let folder = Folder::new();
    // Unix seconds without standardization, and a cell beyond single precision.
    let row = |i: usize| {
        let time = 1_700_000_000 + 86_400 * (i * 37 % 300);
        format!("{time},{},{}\n", if i == 7 { "1e39" } else { "2" }, (i * 37 % 300) as f64 + 0.01 * noise(i, 1))
    };
    folder.write("rows.csv", &format!("time,large,y\n{}", lines(300, row)));
    let fit = ["fit", "rows.csv", "--target", "y", "--no-standardize", "--save", "m.json", "--test", "0.2"];
    let out = done(&folder, &fit);
    assert!(out.contains("R² 1.0000 on 60 held-out rows"), "{out}");
    let per_day = weights(&folder, "m.json")[0] * 86_400.0;
    assert!((per_day - 1.0).abs() < 1e-3, "{per_day} for a day");
    let predictions = done(&folder, &["predict", "m.json", "rows.csv"]);
    assert!(predictions.lines().skip(1).all(|line| line.parse::<f64>().unwrap().is_finite()), "{predictions}");
    refused(
        &go(&folder, &[&fit[..], &["--model", "mlp"]].concat()),
        2,
        &["error: row 8: `large` is 1e39 for the network, which computes in single precision: leave out \
           --no-standardize, use other units, or a linear model"],
    );
}

#[test]
fn classes_that_can_be_separated_have_no_minimum_without_a_penalty() {
    let folder = Folder::new();
    let rows = lines(60, |i| format!("{},{}\n", noise(i, 1) + f64::from(u8::from(i % 2 == 0)), ["a", "b"][i % 2]));
    folder.write("rows.csv", &format!("x,kind\n{rows}"));
    let fit = ["fit", "rows.csv", "--target", "kind", "--save", "m.json", "--test", "0.2"];
    let out = done(&folder, &[&fit[..], &["--l2", "0"]].concat());
    let expected = "; not converged: the classes can be separated, so without a penalty the weights would grow forever; \
                    use --l2 with a number above 0\n";
    assert!(out.contains(expected), "{out}");
    assert!(done(&folder, &fit).contains("; converged after "));
}
