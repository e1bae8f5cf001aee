//! The tables of the methods: defaults, ranges and messages.

use serde_json::Value;
use strust::{
    config::{Allowed, Config, Field},
    constraints::{Sphere, Stiefel},
    methods::AveragedConfig,
    prelude::*,
    radius::RegionConfig,
};
use strust_baselines::{
    Adam, AdamConfig, AugLag, AugLagConfig, DoGConfig, LineSearch, LineSearchConfig, PonosConfig, ProdigyConfig,
    ProjectedSgdConfig, RiemannianConfig, ScheduleFreeAdamWConfig, ScheduleFreePlusConfig, ScheduleFreeSgdConfig, Sgd,
    SgdConfig,
};

/// Sets every field of a table to numbers outside its range, by the same path as an experiment file.
fn every_field_is_checked<C: Config>() {
    let table = |field: &Field, value: Value| -> Result<C, serde_json::Error> {
        let mut json = serde_json::to_value(C::default()).unwrap();
        let map = json.as_object_mut().unwrap();
        assert_eq!(map.len(), C::FIELDS.len(), "{}: the table must list every field", C::NAME);
        *map.get_mut(field.name).unwrap_or_else(|| panic!("{}: no field `{}`", C::NAME, field.name)) = value;
        serde_json::from_value(json)
    };
    C::default().check().expect("the default is valid");
    for field in C::FIELDS {
        assert!(!field.meaning.is_empty());
        let (range, candidates): (_, Vec<Value>) = match field.allowed {
            Allowed::Number(range) => (range, [-1.0, 0.0, 1.0, 1.5, 1e300].map(Value::from).to_vec()),
            Allowed::Whole(range) => (range, [0_u64, 1, 2, 1 << 40].map(Value::from).to_vec()),
            Allowed::OneOf(words) => {
                for word in words {
                    table(field, (*word).into()).unwrap().check().unwrap();
                }
                let error = table(field, "sideways".into()).unwrap_err().to_string();
                assert!(error.contains("sideways") && words.iter().all(|w| error.contains(w)), "{error}");
                continue;
            }
            Allowed::Text(_) => continue,
        };
        let refused: Vec<f64> = candidates
            .into_iter()
            .filter(|v| !range.contains(v.as_f64().unwrap()))
            .map(|v| {
                let error = table(field, v.clone()).unwrap().check().unwrap_err().to_string();
                let number = v.as_f64().unwrap();
                let expected = format!("{}: `{}` is {number}, but must be {}", C::NAME, field.name, field.allowed);
                assert_eq!(error, expected);
                number
            })
            .collect();
        assert!(!refused.is_empty(), "{}: `{}` accepts every number", C::NAME, field.name);
    }
    let mut json = serde_json::to_value(C::default()).unwrap();
    json.as_object_mut().unwrap().insert("learning_rat".into(), 1.0.into());
    let error = serde_json::from_value::<C>(json).unwrap_err().to_string();
    assert!(error.contains("unknown field `learning_rat`"), "{}: {error}", C::NAME);
    let empty = serde_json::from_str::<C>("{}").unwrap();
    assert_eq!(
        format!("{empty:?}"),
        format!("{:?}", C::default()),
        "{}: missing fields must have the default value",
        C::NAME
    );
}

#[test]
fn a_field_out_of_range_is_an_error_that_names_field_value_and_range() {
    every_field_is_checked::<AutoConfig>();
    every_field_is_checked::<StrConfig>();
    every_field_is_checked::<StrPConfig>();
    every_field_is_checked::<SgdConfig>();
    every_field_is_checked::<AdamConfig>();
    every_field_is_checked::<LineSearchConfig>();
    every_field_is_checked::<ProjectedSgdConfig>();
    every_field_is_checked::<RiemannianConfig>();
    every_field_is_checked::<AugLagConfig>();
    every_field_is_checked::<AveragedConfig>();
    every_field_is_checked::<ProdigyConfig>();
    every_field_is_checked::<DoGConfig>();
    every_field_is_checked::<ScheduleFreeSgdConfig>();
    every_field_is_checked::<ScheduleFreeAdamWConfig>();
    every_field_is_checked::<ScheduleFreePlusConfig>();
    every_field_is_checked::<PonosConfig>();
}

#[test]
fn configuration_errors_have_clear_messages() {
    let text = |r: Result<(), Error>| r.unwrap_err().to_string();
    let str_p = |c: StrPConfig| text(StrP::new(c, Sphere::<Vec<f64>>::new(1.0).unwrap()).map(drop));
    assert_eq!(
        text(Sgd::<Vec<f64>>::new(SgdConfig { momentum: 1.0, ..Default::default() }).map(drop)),
        "sgd: `momentum` is 1, but must be in [0, 1)"
    );
    assert_eq!(
        text(Adam::<Vec<f64>>::new(AdamConfig { epsilon: f64::NAN, ..Default::default() }).map(drop)),
        "adam: `epsilon` is NaN, but must be > 0"
    );
    assert_eq!(
        text(LineSearch::<Vec<f64>>::new(LineSearchConfig { max_backtracks: 0, ..Default::default() }).map(drop)),
        "sls: `max_backtracks` is 0, but must be a whole number ≥ 1"
    );
    assert_eq!(
        str_p(StrPConfig { penalty: f64::INFINITY, ..Default::default() }),
        "str-p: `penalty` is inf, but must be > 0"
    );
    let region = RegionConfig { shrink: 0.5, ..RegionConfig::constrained() };
    assert_eq!(str_p(StrPConfig { region, ..Default::default() }), "str-p: `shrink` is 0.5, but must be > 1");
    let region = RegionConfig { shrink_below: 0.95, ..RegionConfig::constrained() };
    assert_eq!(
        str_p(StrPConfig { region, ..Default::default() }),
        "trust region: `shrink_below` is 0.95, but must be at most `grow_above` = 0.9"
    );
    assert_eq!(
        text(
            AugLag::new(AugLagConfig { damping: 0.0, ..Default::default() }, Stiefel::<f64>::new(6, 2).unwrap())
                .map(drop)
        ),
        "auglag: `damping` is 0, but must be in (0, 1]"
    );
}
