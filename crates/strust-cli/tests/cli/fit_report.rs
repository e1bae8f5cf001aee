//! What people read about a model of `strust fit`: its page, its weights and its predictions.

use crate::support::{Finished, Folder, finished, lines, refused, strust};

fn go(folder: &Folder, arguments: &[&str]) -> Finished {
    finished(&strust().args(arguments).current_dir(folder.0.path()).output().unwrap())
}

#[track_caller]
fn done(folder: &Folder, arguments: &[&str]) -> String {
    let result = go(folder, arguments);
    assert_eq!(result.code, Some(0), "{arguments:?}: {}", result.err);
    result.out
}

/// Rows with an identifier, a wide and a narrow number, a city, and a class or a price that follow from them.
fn shops(rows: usize) -> String {
    let row = |i: usize| {
        let (area, rate, city) = (1000 * (i * 7 % 13), (i * 5 % 11) as f64 / 100.0, ["Rome", "Oslo"][i % 2]);
        let price = area as f64 / 1000.0 + 200.0 * rate + (i * 3 % 5) as f64;
        let open = if price + (i * 11 % 7) as f64 > 20.0 { "yes" } else { "no" };
        format!("\"a, {i}\",{area},{rate},{city},{price},{open}\n")
    };
    format!("id,area,rate,city,price,open\n{}", lines(rows, row))
}

/// A folder with a model of two classes and one of prices.
fn with_models() -> Folder {
    let folder = Folder::new();
    folder.write("shops.csv", &shops(400));
    for (target, other, model) in [("open", "price", "open.json"), ("price", "open", "price.json")] {
        let fit = ["fit", "shops.csv", "--target", target, "--drop", "id", "--drop", other, "--save", model, "-q"];
        done(&folder, &fit);
    }
    folder.write(
        "new.csv",
        "id,area,rate,city\n007,1000,0.05,Rome\n\"a, \"\"b\"\"\",12000,0.10,Oslo\nNA,12000,0.1,Oslo\n",
    );
    folder
}

#[test]
fn kept_columns_are_copied_as_they_are() {
    let folder = with_models();
    let plain = done(&folder, &["predict", "open.json", "new.csv"]);
    let kept = done(&folder, &["predict", "open.json", "new.csv", "--keep", "id", "--keep", "rate"]);
    let expected: Vec<String> = ["id,rate", "007,0.05", "\"a, \"\"b\"\"\",0.10", "NA,0.1"]
        .iter()
        .zip(plain.lines())
        .map(|(kept, line)| format!("{kept},{line}"))
        .collect();
    assert_eq!(kept.lines().collect::<Vec<_>>(), expected);
    // A file without a header has the names of the model's file.
    folder.write("bare.csv", "x1,1000,0.05,Rome,3.5,yes\n");
    assert!(done(&folder, &["predict", "open.json", "bare.csv", "--keep", "id"]).contains("\nx1,no,"));
    for (arguments, code, message) in [
        (
            &["predict", "open.json", "new.csv", "--keep", "ids"][..],
            1,
            "error: new.csv: there is no column `ids` for --keep; did you mean `id`?\n",
        ),
        (
            &["predict", "open.json", "new.csv", "--keep", "id", "--keep", "id"],
            2,
            "error: --keep id: the output would have two columns of this name\n",
        ),
        (
            &["predict", "price.json", "new.csv", "--proba"],
            2,
            "error: --proba is for models of classes, but this one predicts the number `price`\n",
        ),
    ] {
        let result = go(&folder, arguments);
        refused(&result, code, &[]);
        assert_eq!((result.err.as_str(), result.out.as_str()), (message, ""));
    }
}

#[test]
fn more_texts_than_categories_are_kept() {
    let folder = with_models();
    let rows = lines(100_002, |i| format!("n{i},1000,0.05,Rome\n"));
    folder.write("many.csv", &format!("id,area,rate,city\n{rows}"));
    let out = done(&folder, &["predict", "price.json", "many.csv", "--keep", "id"]);
    assert!(out.lines().nth(100_002).unwrap().starts_with("n100001,"), "{}", out.lines().count());
}

#[test]
fn probabilities_alone_can_be_piped() {
    let folder = with_models();
    let all = done(&folder, &["predict", "open.json", "new.csv"]);
    let second: Vec<&str> = all.lines().map(|line| line.rsplit(',').next().unwrap()).collect();
    assert_eq!(second[0], "p(yes)");
    assert_eq!(done(&folder, &["predict", "open.json", "new.csv", "--proba"]).lines().collect::<Vec<_>>(), second);
}

#[test]
fn json_lines_have_the_same_numbers() {
    let folder = with_models();
    let csv = done(&folder, &["predict", "open.json", "new.csv"]);
    let out = done(&folder, &["predict", "open.json", "new.csv", "--keep", "id", "--keep", "area", "--jsonl"]);
    let kept = [("\"007\"", "1000"), ("\"a, \\\"b\\\"\"", "12000"), ("\"NA\"", "12000")];
    for ((line, cells), (id, area)) in out.lines().zip(csv.lines().skip(1)).zip(kept) {
        let cells: Vec<&str> = cells.split(',').collect();
        let (class, no, yes) = (cells[0], cells[1], cells[2]);
        let probabilities = format!("\"probabilities\":{{\"no\":{no},\"yes\":{yes}}}");
        assert_eq!(line, format!("{{\"id\":{id},\"area\":{area},\"prediction\":\"{class}\",{probabilities}}}"));
    }
    assert_eq!(out.lines().count(), 3);
    assert_eq!(done(&folder, &["predict", "price.json", "new.csv", "--out", "p.jsonl"]), "3 predictions: p.jsonl\n");
    let written = std::fs::read_to_string(folder.path("p.jsonl")).unwrap();
    let first: serde_json::Value = serde_json::from_str(written.lines().next().unwrap()).unwrap();
    let price: f64 = done(&folder, &["predict", "price.json", "new.csv"]).lines().nth(1).unwrap().parse().unwrap();
    assert_eq!(first, serde_json::json!({ "prediction": price }));
}

/// The names of the inputs of a table of weights, in its order.
fn inputs(text: &str) -> Vec<&str> {
    let rows = text.split("Weights ").nth(1).unwrap().lines().skip(2);
    rows.map(|line| line.split("  ").next().unwrap().trim()).filter(|name| !name.is_empty()).collect()
}

#[test]
fn inspect_orders_by_what_it_says() {
    let folder = with_models();
    let units = done(&folder, &["inspect", "price.json"]);
    assert!(
        units.contains("\nWeights in the units of the file, ordered by weight × standard deviation of the input\n")
    );
    // rate has the weight 200 and the deviation 0.03, area 0.001 and 3700.
    assert_eq!(inputs(&units)[..3], ["intercept", "rate", "area"], "{units}");
    let deviations = done(&folder, &["inspect", "price.json", "--per-deviation"]);
    assert!(deviations.contains("\nWeights per standard deviation of the input, the largest first\n"), "{deviations}");
    assert_eq!(inputs(&deviations)[..2], ["rate", "area"], "{deviations}");
    // A file of an older version has no deviations.
    let text = std::fs::read_to_string(folder.path("price.json")).unwrap();
    let mut model: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(model.as_object_mut().unwrap().remove("deviations").unwrap().as_array().unwrap().len(), 4);
    folder.write("old.json", &model.to_string());
    assert_eq!(inputs(&done(&folder, &["inspect", "old.json", "--per-deviation"]))[..2], ["rate", "area"]);
}

#[test]
fn the_page_shows_what_its_captions_say() {
    let folder = with_models();
    let (open, price) = (folder.path("open.html"), folder.path("price.html"));
    let (open, price) = (std::fs::read_to_string(open).unwrap(), std::fs::read_to_string(price).unwrap());
    for part in [
        "<title>ROC curve</title>",
        "<title>Calibration</title>",
        "area under the ROC curve",
        "The mean loss without the penalty, of the same model on a sample of the training rows and on the held-out rows.",
        "Coefficients: what an input adds to the logit of “yes”.",
    ] {
        assert!(open.contains(part), "{part}");
    }
    for part in [
        "<title>Residuals</title>",
        "of all rows, and in ten groups",
        "Coefficients: what an input adds to the predicted price.",
    ] {
        assert!(price.contains(part), "{part}");
    }
    for page in [&open, &price] {
        assert!(page.contains("held-out rows</th>") && page.contains("training rows</th>"));
        assert!(page.matches("class=\"bar\"").count() >= 6, "bars of features and of coefficients");
        assert!(!page.contains('█') && !page.contains("http://127") && !page.contains("src="));
    }
}

#[test]
fn json_has_the_new_numbers() {
    let folder = Folder::new();
    folder.write("shops.csv", &shops(400));
    let fit = ["fit", "shops.csv", "--target", "open", "--drop", "id", "--drop", "price", "--json"];
    let out: serde_json::Value = serde_json::from_str(&done(&folder, &fit)).unwrap();
    let auc = out["held_out"]["auc"].as_f64().unwrap();
    let roc: Vec<(f64, f64)> = serde_json::from_value(out["roc"].clone()).unwrap();
    let area: f64 = roc.windows(2).map(|pair| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0).sum();
    assert!((0.8..1.0).contains(&auc) && (area - auc).abs() < 0.02, "{area} and {auc}");
    let first = &out["coefficients"][0];
    let product = first["weight"].as_f64().unwrap() * first["deviation"].as_f64().unwrap();
    assert!((first["per_deviation"].as_f64().unwrap() - product).abs() < 1e-9, "{first}");
    let text = done(&folder, &["evaluate", "model.json", "shops.csv"]);
    assert!(text.contains("\narea under the ROC curve 0."), "{text}");
    // Points of figures are no part of the model file.
    let model = std::fs::read_to_string(folder.path("model.json")).unwrap();
    assert!(model.contains("\"auc\"") && !model.contains("\"roc\""));
}
