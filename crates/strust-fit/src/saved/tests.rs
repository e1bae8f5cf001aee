use super::*;
use crate::{
    assess::Assessment,
    task::FitTask,
    transform::{EncodedColumn, Encoding},
};
use proptest::prelude::*;

/// A small network of two classes with numbers and categories.
fn model(seed: u64) -> FittedModel {
    let number = |name: &str, form: &str| EncodedColumn {
        name: name.into(),
        form: form.to_string().try_into().unwrap(),
        encoding: Encoding::Number { shift: 0.1 * seed as f64, scale: 2.5, fill: -1e-300 },
    };
    let category = EncodedColumn {
        name: "city, \"x\"".into(),
        form: CellForm::Plain,
        encoding: Encoding::Category { levels: vec![String::new(), "Rome".into(), "Ünal\n".into()] },
    };
    let widths: Vec<usize> = vec![5, 3, 1];
    let size = widths.windows(2).map(|pair| (pair[0] + 1) * pair[1]).sum::<usize>();
    let flat = (0..size).map(|k| (k as f64 + seed as f64).sin() / 3.0).collect();
    FittedModel {
        about: ModelAbout {
            format: FORMAT.into(),
            version: "0.1.0".into(),
            model: ModelFamily::Mlp,
            target: "income".into(),
            task: FitTask::Classes { names: vec!["no".into(), "yes".into()] },
            target_is_words: true,
            target_form: CellForm::Plain,
            intercept: true,
            constraint: WeightConstraint::default(),
            fair: None,
            order: vec!["a".into(), "b".into(), "city, \"x\"".into(), "income".into()],
            encoder: Encoder {
                columns: vec![number("a", "1234.5"), number("b", "$1,234.5"), category],
                sparse_scales: vec![],
            },
            data: DataOrigin { file: "f.csv".into(), md5: "0".repeat(32), training_rows: 8, held_out_rows: 2 },
            training: TrainingOrigin {
                method: "auto".into(),
                seed,
                batch: 2,
                epochs: 3.5,
                end: TrainingEnd::Converged,
                l2: 0.0,
                held_out: None,
                folds: None,
            },
            deviations: vec![],
        },
        weights: Weights { widths, flat },
    }
}

fn back(bytes: &[u8]) -> Result<FittedModel, String> {
    FittedModel::from_bytes(Path::new("f"), bytes).map_err(|e| e.to_string())
}

#[test]
fn only_numbers_that_are_not_plain_have_a_form_in_the_file() {
    let text = String::from_utf8(model(0).to_json()).unwrap();
    assert!(text.matches("\"form\": ").count() == 1 && !text.contains("target_form"), "{text}");
    let other = text.replace("$1,234.5", "1-2-3");
    let why = "cells are written like \"1-2-3\", which this program does not read";
    assert!(back(other.as_bytes()).unwrap_err().contains(why));
}

#[test]
fn both_forms_are_read_back_bit_for_bit() {
    for seed in 0..20 {
        let model = model(seed);
        for bytes in [model.to_json(), model.to_safetensors()] {
            assert_eq!(back(&bytes).unwrap(), model);
        }
    }
}

#[test]
fn scores_that_are_not_numbers_are_read_back() {
    let mut model = model(0);
    model.about.training.held_out = Some(Assessment::Regression(crate::assess::NumberAssessment {
        rows: 1,
        r2: f64::NAN,
        r2_error: f64::NAN,
        rmse: 1.0,
        mean_error: 1.0,
        mean_guess_error: 0.0,
        residuals: vec![],
    }));
    let read = back(&model.to_json()).unwrap();
    let Some(Assessment::Regression(scores)) = read.about.training.held_out else { panic!() };
    assert!(scores.r2.is_nan());
}

#[test]
fn deviations_are_left_out_without_any_and_checked_otherwise() {
    let mut model = model(0);
    assert!(!String::from_utf8(model.to_json()).unwrap().contains("deviations"));
    model.about.deviations = vec![1.0, 0.0, 0.5, 0.5, 0.5];
    assert_eq!(back(&model.to_json()).unwrap(), model);
    model.about.deviations[1] = -1.0;
    assert!(back(&model.to_json()).unwrap_err().ends_with("an input has the deviation -1"));
    model.about.deviations.pop();
    assert!(back(&model.to_safetensors()).unwrap_err().ends_with("4 deviations of 5 inputs"));
}

#[test]
fn every_wrong_model_is_an_error_with_a_reason() {
    let text = String::from_utf8(model(0).to_json()).unwrap();
    let edited = |from: &str, to: &str| {
        assert!(text.contains(from), "{from} is not in {text}");
        back(text.replacen(from, to, 1).as_bytes()).unwrap_err()
    };
    for (from, to, expected) in [
        ("strust-fit 1", "strust-fit 2", "its format has the number 2"),
        ("strust-fit 1", "other", "its format is \"other\""),
        ("\"scale\": 2.5", "\"scale\": 0.0", "the scale 0"),
        ("\"scale\": 2.5", "\"scale\": -1.0", "the scale -1"),
        ("\"scale\": 2.5", "\"scale\": 1e999", "number out of range"),
        ("\"name\": \"b\"", "\"name\": \"a\"", "two of a kind: column `a`"),
        ("\"no\",\n", "\"yes\",\n", "two of a kind: class `yes`"),
        ("\"no\",\n", "", "fewer than two classes"),
        ("\"no\",\n", "\"no\", \"maybe\",\n", "needs 3"),
        ("\"Rome\",\n", "", "layer 0 does not have 4 weights"),
        ("\"model\": \"mlp\"", "\"model\": \"logistic\"", "a logistic model with 2 layers"),
        ("\"model\": \"mlp\"", "\"model\": \"linear\"", "does not fit its task"),
        ("\"bias\": [", "\"bias\": [1,", "layer 0 does not have"),
        ("\"layers\"", "\"levels\"", "missing field `layers`"),
    ] {
        let message = edited(from, to);
        assert!(message.contains(expected), "{message}\ndoes not contain\n{expected}");
    }
    assert!(back(b"").is_err() && back(b"{}").is_err() && back(b"[1]").is_err());
}

#[test]
fn a_length_that_is_too_large_allocates_nothing() {
    let mut bytes = model(0).to_safetensors();
    bytes[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(back(&bytes).unwrap_err().contains("the length of its header is wrong"));
    let shape = "\"shape\":[18446744073709551615,5]";
    let text =
        format!("{{\"__metadata__\":{{}},\"layers.0.weight\":{{\"dtype\":\"F64\",{shape},\"data_offsets\":[0,8]}}}}");
    let bytes = [&(text.len() as u64).to_le_bytes()[..], text.as_bytes(), &[0; 8]].concat();
    assert!(back(&bytes).is_err());
}

proptest! {
    #[test]
    fn a_damaged_file_never_panics(at in any::<prop::sample::Index>(), byte in any::<u8>(), keep in any::<prop::sample::Index>()) {
        for bytes in [model(1).to_json(), model(1).to_safetensors()] {
            let mut damaged = bytes.clone();
            damaged[at.index(bytes.len())] = byte;
            if let Ok(model) = back(&damaged) {
                prop_assert!(model.weights.flat.iter().all(|w| w.is_finite()));
            }
            prop_assert!(back(&bytes[..keep.index(bytes.len() - 1)]).is_err());
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(back(&bytes).is_err());
    }
}
