//! Fits on several ranks, each with a part of the rows, give what one process gives of all rows.

use std::{
    fmt::Write as _,
    io::Write as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use strust::ranks::{Group, RowShare, ThreadRank, on_threads};
use strust_fit::{
    DataTable, Error, FitOptions, Fitted, ReadOptions,
    assess::Assessment,
    constrain::WeightConstraint,
    fair::FairOptions,
    fit::FitWatch,
    fit_on,
    saved::ModelFamily,
    table::{Cells, ReadProgress},
    task::{FitTask, RegressionChoice},
    train::TrainingEnd,
    transform::Encoding,
};

const LIMIT: Duration = Duration::from_secs(120);

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
    fn pattern(&self, pattern: &str) -> PathBuf {
        self.0.path().join(pattern)
    }
}

fn read_on(path: &Path, options: &ReadOptions, group: &mut dyn Group) -> Result<DataTable, Error> {
    let stop = AtomicBool::new(false);
    DataTable::read_on(path, options, &mut ReadProgress { at: &mut |_| {}, interrupt: &stop }, group)
}

/// Reads and fits on a rank.
fn fitted(path: &Path, test: Option<&Path>, options: &FitOptions, rank: &mut ThreadRank) -> Result<Fitted, Error> {
    let stop = AtomicBool::new(false);
    let reading = ReadOptions { target: options.target.clone(), ..ReadOptions::default() };
    let table = read_on(path, &reading, rank)?;
    assert_eq!(table.rows, RowShare::of(rank).count(table.all_rows));
    let like = ReadOptions { expected: Some(table.expected()), ..reading };
    let test = test.map(|path| read_on(path, &like, rank)).transpose()?;
    let watch = &mut FitWatch { report: &mut |_, _| {}, interrupt: &stop };
    fit_on(&table, test.as_ref(), options, watch, rank)
}

/// The fits of 1, 2 and 3 ranks. The ranks of a fit agree bit for bit.
fn on_ranks(path: &Path, test: Option<&Path>, options: &FitOptions) -> [Fitted; 3] {
    [1, 2, 3].map(|size| {
        let mut all: Vec<Fitted> = on_threads(size, LIMIT, |mut rank| fitted(path, test, options, &mut rank).unwrap());
        let first = all.swap_remove(0);
        for other in all {
            assert_eq!(other.model, first.model);
            assert_eq!(format!("{:?}", other.report), format!("{:?}", first.report));
        }
        first
    })
}

fn near(a: f64, b: f64, within: f64) -> bool {
    (a - b).abs() <= within * (1.0 + a.abs().max(b.abs())) || (a.is_nan() && b.is_nan())
}

/// All that a fit reports is the same; fitted numbers to within a tolerance.
fn assert_same(one: &Fitted, many: &Fitted, within: f64) {
    let (a, b) = (&one.model.about, &many.model.about);
    assert_eq!((&a.order, &a.data, a.target_is_words), (&b.order, &b.data, b.target_is_words));
    assert_eq!((a.model, a.training.batch, a.training.end), (b.model, b.training.batch, b.training.end));
    assert_eq!((&one.report.task, &one.report.remarks), (&many.report.task, &many.report.remarks));
    match (&a.task, &b.task) {
        (FitTask::Regression { huber: Some(a), mean, .. }, FitTask::Regression { huber: Some(b), mean: other, .. }) => {
            assert!(near(*a, *b, within) && mean.to_bits() == other.to_bits());
        }
        (a, b) => assert_eq!(a, b),
    }
    assert_eq!(a.encoder.columns.len(), b.encoder.columns.len());
    assert_eq!(a.encoder.sparse_scales, b.encoder.sparse_scales);
    for (a, b) in a.encoder.columns.iter().zip(&b.encoder.columns) {
        assert_eq!(a.name, b.name);
        match (&a.encoding, &b.encoding) {
            (Encoding::Number { shift: s, scale: c, fill: f }, Encoding::Number { shift, scale, fill }) => {
                assert!(near(*s, *shift, 1e-12) && near(*c, *scale, 1e-12) && near(*f, *fill, 1e-12));
            }
            (a, b) => assert_eq!(a, b),
        }
    }
    let pairs = one.model.weights.flat.iter().zip(&many.model.weights.flat);
    let worst = pairs.map(|(a, b)| (a - b).abs() / (1.0 + a.abs())).fold(0.0, f64::max);
    assert!(worst <= within, "weights differ by {worst:e}");
    assert_eq!(one.report.curve.len(), many.report.curve.len());
    for (a, b) in one.report.curve.iter().zip(&many.report.curve) {
        assert!(near(a.training, b.training, within));
        assert!(a.held_out.is_some() == b.held_out.is_some());
        assert!(near(a.held_out.unwrap_or(0.0), b.held_out.unwrap_or(0.0), within));
    }
    assert_scores(&one.report.training, &many.report.training, within);
    match (&one.report.held_out, &many.report.held_out) {
        (Some(a), Some(b)) => assert_scores(a, b, within),
        (a, b) => assert_eq!(a, b),
    }
    let names = |fitted: &Fitted| fitted.report.importance.iter().map(|i| i.column.clone()).collect::<Vec<_>>();
    assert_eq!(names(one), names(many));
    assert_eq!(a.deviations.len(), b.deviations.len());
    assert!(a.deviations.iter().zip(&b.deviations).all(|(a, b)| near(*a, *b, 1e-12)));
    let (a, b) = (&one.report.points, &many.report.points);
    assert_eq!((a.roc.len(), a.residuals.len()), (b.roc.len(), b.residuals.len()));
    let pairs = a.roc.iter().zip(&b.roc).chain(a.residuals.iter().zip(&b.residuals));
    pairs.for_each(|(a, b)| assert!(near(a.0, b.0, within) && near(a.1, b.1, within), "{a:?} and {b:?}"));
    for (a, b) in one.report.importance.iter().zip(&many.report.importance) {
        assert!(near(a.loss_growth, b.loss_growth, within), "{a:?} and {b:?}");
    }
}

fn assert_scores(a: &Assessment, b: &Assessment, within: f64) {
    match (a, b) {
        (Assessment::Classes(a), Assessment::Classes(b)) => {
            assert_eq!((a.rows, &a.confusion), (b.rows, &b.confusion));
            assert!(near(a.log_loss, b.log_loss, within) && near(a.accuracy, b.accuracy, within));
            assert_eq!(a.auc.is_some(), b.auc.is_some());
            assert!(near(a.auc.unwrap_or(0.0), b.auc.unwrap_or(0.0), within));
            for (a, b) in a.calibration.iter().zip(&b.calibration) {
                assert_eq!(a.rows, b.rows);
                assert!(near(a.predicted, b.predicted, within) && near(a.observed, b.observed, within));
            }
        }
        (Assessment::Regression(a), Assessment::Regression(b)) => {
            assert_eq!(a.rows, b.rows);
            assert!(
                near(a.r2, b.r2, within) && near(a.rmse, b.rmse, within) && near(a.mean_error, b.mean_error, within)
            );
            for (a, b) in a.residuals.iter().zip(&b.residuals) {
                assert!(near(a.low, b.low, within) && near(a.high, b.high, within));
            }
        }
        _ => panic!("{a:?} and {b:?}"),
    }
}

/// A number in [0, 1) that looks random.
fn noise(i: usize, stream: usize) -> f64 {
    let mut x =
        (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (stream as u64).wrapping_mul(0xd1b5_4a32_d192_ed03);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

const HEADER: &str = "size,town,note,code,twice,price,kind\n";

/// Words, blanks, quotes with line breaks, a column with one value, two equal columns, rows without a target.
fn row(i: usize) -> String {
    let (size, town) = (100.0 * noise(i, 1), (7.0 * noise(i, 2)) as usize);
    let price = 3.0 * size + [0.0, 50.0, -40.0, 10.0, 20.0, 0.0, 5.0][town] + 20.0 * noise(i, 3);
    let town = ["Rome", "Oslo", "\"San José, CR\"", "\"two\nlines\"", "\"say \"\"hi\"\"\"", "", "Bern"][town];
    let shown = if i % 17 == 3 { "NA".into() } else { size.to_string() };
    let kind = if i.is_multiple_of(41) { "?" } else { ["low", "mid", "top"][((price / 120.0) as usize).min(2)] };
    let price = if i % 37 == 5 { String::new() } else { price.to_string() };
    format!("{shown},{town},the same,{},{shown},{price},{kind}\n", i % 5)
}

fn csv(rows: std::ops::Range<usize>) -> String {
    HEADER.to_string() + &rows.map(row).collect::<String>()
}

fn to(target: &str) -> FitOptions {
    FitOptions { target: Some(target.into()), ..FitOptions::default() }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

#[test]
fn a_csv_file_gives_the_same_fit_on_any_number_of_ranks() {
    let folder = Folder::new();
    // 1501 rows do not divide by the ranks.
    let path = folder.write("data.csv", csv(0..1501));
    for (options, within) in [
        (FitOptions { ..to("price") }, 1e-9),
        (FitOptions { ..to("kind") }, 1e-9),
        (FitOptions { intercept: false, test_share: Some(0.0), ..to("price") }, 1e-9),
        (FitOptions { standardize: false, epochs: Some(5), ..to("kind") }, 1e-9),
        (
            FitOptions {
                fair: FairOptions { rules: vec!["town=0.5".parse().unwrap()], limits: vec![] },
                ..to("price")
            },
            1e-6,
        ),
        (
            FitOptions {
                constraint: WeightConstraint { nonnegative: true, ..WeightConstraint::default() },
                ..to("price")
            },
            1e-9,
        ),
    ] {
        let [one, two, three] = on_ranks(&path, None, &options);
        assert_same(&one, &two, within);
        assert_same(&one, &three, within);
        assert!(one.report.remarks.iter().any(|remark| remark.contains("blank cells")), "{:?}", one.report.remarks);
        assert!(one.report.remarks.iter().any(|remark| remark.contains("are equal in every row")));
        assert!(one.report.remarks.iter().any(|remark| remark.contains("rows without a target")));
    }
}

#[test]
fn dirty_data_give_the_same_fit_on_any_number_of_ranks() {
    let row = |i: usize| {
        let (size, day) = (1000.0 * noise(i, 1), format!("{}/{}/{}", 1 + i % 28, 1 + i % 12, 2020 + i % 4));
        let age = if i % 11 == 4 { "unknown".into() } else { (i % 70).to_string() };
        let name = (i * 5) % 301 + 1;
        format!(
            "{name}\t{}\t{day}\t{age}\t{i}\t$1,{:06.2}\n",
            format!("{size:.2}").replace('.', ","),
            900.0 * noise(i, 2)
        )
    };
    let text = format!("id\tsize\tday\tage\tt\tprice\n{}", (0..301).map(row).collect::<String>());
    let folder = Folder::new();
    let path = folder.write("data.tsv", &text);
    let [one, two, three] = on_ranks(&path, None, &to("price"));
    assert_same(&one, &two, 1e-9);
    assert_same(&one, &three, 1e-9);
    for part in
        ["left out `id`", "left out `t`", "`size` is read as numbers", "`price` is read", "days, month and weekday"]
    {
        assert!(one.report.remarks.iter().any(|remark| remark.contains(part)), "{part}: {:#?}", one.report.remarks);
    }
    let forms = |fitted: &Fitted| fitted.model.about.encoder.columns.iter().map(|c| c.form).collect::<Vec<_>>();
    assert_eq!((forms(&one), one.model.about.target_form), (forms(&three), three.model.about.target_form));
}

#[test]
fn choices_from_data_are_those_of_one_process() {
    let folder = Folder::new();
    let path = folder.write("data.csv", csv(0..800));
    let few = folder.write("few.csv", csv(0..120));
    let rules = ["size <= 2", "town = Oslo + town = Rome = 3", "0 <= code <= 1"].map(String::from).to_vec();
    let robust = RegressionChoice { log: false, huber: true };
    for (path, options) in [
        (&path, FitOptions { constraint: WeightConstraint { rules, ..WeightConstraint::default() }, ..to("price") }),
        (&path, FitOptions { regression: robust, ..to("price") }),
        (&path, FitOptions { regression: RegressionChoice { log: true, huber: false }, ..to("size") }),
        (&few, FitOptions { choose_l2: true, ..to("price") }),
        (&few, to("kind")),
    ] {
        let [one, two, three] = on_ranks(path, None, &options);
        assert_same(&one, &two, 1e-7);
        assert_same(&one, &three, 1e-7);
        assert_eq!(one.model.about.training.folds, (path == &few).then_some(5));
        let texts = |fitted: &Fitted| fitted.report.constraints.iter().map(|c| (c.text.clone(), c.active)).collect();
        let found: [Vec<_>; 2] = [texts(&one), texts(&three)];
        assert_eq!(found[0], found[1]);
        assert_eq!(found[0].is_empty(), options.constraint.rules.is_empty());
    }
}

#[test]
fn a_network_of_single_precision_starts_and_learns_alike() {
    let folder = Folder::new();
    let path = folder.write("data.csv", csv(0..900));
    let options = FitOptions { model: Some(ModelFamily::Mlp), hidden: vec![8], epochs: Some(20), ..to("price") };
    let [one, two, three] = on_ranks(&path, None, &options);
    // f32 gradients are rounded after the sum, so the runs part slowly.
    assert_same(&one, &two, 1e-3);
    assert_same(&one, &three, 1e-3);
}

#[test]
fn several_files_are_one_table_with_rows_numbered_through() {
    let folder = Folder::new();
    let whole = folder.write("whole.csv", csv(0..1000));
    folder.write("part-1.csv", csv(0..334));
    folder.write("part-2.csv.gz", gzip(csv(334..335).as_bytes()));
    folder.write("part-3.csv", csv(335..1000));
    let pattern = folder.pattern("part-*.csv*");
    let options = to("price");
    let [expected, ..] = on_ranks(&whole, None, &options);
    for fitted in on_ranks(&pattern, None, &options) {
        let about = &fitted.model.about;
        assert_eq!(about.data.file, Path::new("part-*.csv*"));
        assert_eq!(about.data.training_rows, expected.model.about.data.training_rows);
        assert_eq!(fitted.report.remarks, expected.report.remarks);
        assert!(near(
            fitted.report.curve.last().unwrap().training,
            expected.report.curve.last().unwrap().training,
            1e-9
        ));
    }
    // On one rank it is the same table, but for the name and the checksum of the files.
    for whole in on_threads(1, LIMIT, |mut rank| {
        let [parts, one] = [&pattern, &whole].map(|path| read_on(path, &ReadOptions::default(), &mut rank).unwrap());
        let renamed = DataTable { path: one.path.clone(), fingerprint: one.fingerprint.clone(), ..parts };
        format!("{renamed:?}") == format!("{one:?}")
    }) {
        assert!(whole);
    }
}

#[test]
fn libsvm_text_and_arrays_are_dealt_out_plain_and_compressed() {
    let folder = Folder::new();
    let (mut svm, mut npy) = (String::new(), Vec::new());
    for i in 0..700 {
        let (a, b, c) = (noise(i, 4), noise(i, 5), noise(i, 6));
        let label = if a + 0.5 * b > 0.7 + 0.1 * c { 1 } else { -1 };
        let _ = writeln!(svm, "{label} 1:{a} {}", if i % 3 == 0 { format!("2:{b} 7:{c}") } else { format!("2:{b}") });
        for value in [a, b, 2.0 * a - b + 0.1 * c] {
            npy.extend(value.to_le_bytes());
        }
    }
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (700, 3), }\n";
    let npy = [b"\x93NUMPY\x01\x00", &[header.len() as u8, 0][..], header.as_bytes(), &npy].concat();
    for (path, options) in [
        (folder.write("a.svm", &svm), FitOptions::default()),
        (folder.write("b.svm.gz", gzip(svm.as_bytes())), FitOptions { test_share: Some(0.5), ..FitOptions::default() }),
        (folder.write("c.npy", &npy), to("column3")),
        (folder.write("d.npy.gz", gzip(&npy)), to("3")),
    ] {
        let [one, two, three] = on_ranks(&path, None, &options);
        assert_same(&one, &two, 1e-9);
        assert_same(&one, &three, 1e-9);
        assert_eq!(one.model.about.data.md5.len(), 32);
    }
}

#[test]
fn held_out_rows_of_another_file_are_scored_together() {
    let folder = Folder::new();
    let (path, test) = (folder.write("data.csv", csv(0..800)), folder.write("test.csv", csv(5000..5201)));
    for options in [to("price"), to("kind")] {
        let [one, two, three] = on_ranks(&path, Some(&test), &options);
        assert!(one.model.about.data.held_out_rows > 190);
        assert_same(&one, &two, 1e-9);
        assert_same(&one, &three, 1e-9);
    }
}

#[test]
fn more_ranks_than_rows_are_right() {
    let folder = Folder::new();
    let path = folder.write("few.csv", "x,y\n1,2.5\n2,4.5\n4,8\n5,10.5\n");
    let options = FitOptions { test_share: Some(0.0), epochs: Some(3), ..to("y") };
    let [one, ..] = on_ranks(&path, None, &options);
    for many in on_threads(6, LIMIT, |mut rank| fitted(&path, None, &options, &mut rank).unwrap()) {
        assert_same(&one, &many, 1e-9);
    }
}

/// A rank keeps every R-th row, and the words and kinds of all of them.
#[test]
fn a_rank_keeps_its_own_rows_only() {
    let folder = Folder::new();
    let path = folder.write("data.csv", csv(0..1000));
    let tables = |size| on_threads(size, LIMIT, |mut rank| read_on(&path, &ReadOptions::default(), &mut rank).unwrap());
    let whole = &tables(1)[0];
    for (rank, table) in tables(3).iter().enumerate() {
        assert_eq!((table.rows, table.all_rows), ([334, 333, 333][rank], 1000));
        assert_eq!(table.fingerprint, whole.fingerprint);
        for (part, all) in table.columns.iter().zip(&whole.columns) {
            match (&part.cells, &all.cells) {
                (Cells::Numbers(part), Cells::Numbers(all)) => {
                    let expected = all.iter().skip(rank).step_by(3).map(|v| v.to_bits());
                    assert_eq!(part.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
                    assert_eq!(part.len(), table.rows);
                }
                (Cells::Words { codes, words }, Cells::Words { codes: all, words: all_words }) => {
                    assert_eq!(words, all_words);
                    assert_eq!(*codes, all.iter().copied().skip(rank).step_by(3).collect::<Vec<_>>());
                }
                (part, all) => panic!("{part:?} and {all:?}"),
            }
        }
    }
}

/// Words after the rows from which the kind is guessed change the kind on all ranks.
#[test]
fn late_words_change_the_kind_of_a_column_on_every_rank() {
    let folder = Folder::new();
    let table_of = |x: &dyn Fn(usize) -> String| -> String {
        let rows = (0..2100).map(|i| format!("{},{i}\n", x(i)));
        "x,y\n".to_string() + &rows.collect::<String>()
    };
    let path = folder.write("data.csv", table_of(&|i| format!("{}{}", if i < 1040 { "" } else { "w" }, i % 9)));
    for table in on_threads(3, LIMIT, |mut rank| read_on(&path, &ReadOptions::default(), &mut rank).unwrap()) {
        let Cells::Words { words, .. } = &table.column("x").unwrap().cells else { panic!("words are expected") };
        assert_eq!(words.len(), 18);
    }
    // Two of them are typing errors: every rank reports the first one and their number.
    let path =
        folder.write("data.csv", table_of(&|i| if i == 1405 || i == 1407 { format!("x{i}") } else { "7".into() }));
    for read in on_threads(3, LIMIT, |mut rank| read_on(&path, &ReadOptions::default(), &mut rank)) {
        let message = read.map(|table| table.rows).unwrap_err().to_string();
        assert!(
            message.contains("data.csv:1407: \"x1405\" is not a number") && message.contains("the 2 such cells"),
            "{message}"
        );
    }
}

fn messages(results: Vec<Result<DataTable, Error>>) -> Vec<String> {
    results.into_iter().map(|result| result.unwrap_err().to_string()).collect()
}

#[test]
fn a_rank_that_cannot_read_its_file_ends_all_ranks() {
    let folder = Folder::new();
    let path = folder.write("data.csv", csv(0..100));
    let found = messages(on_threads(3, LIMIT, |mut rank| {
        let path = if rank.rank() == 1 { folder.pattern("missing.csv") } else { path.clone() };
        read_on(&path, &ReadOptions::default(), &mut rank)
    }));
    assert!(found[1].contains("missing.csv: No such file"), "{}", found[1]);
    assert!(found[0].starts_with("rank 1: ") && found[0].contains("missing.csv"), "{}", found[0]);
    assert_eq!(found[0], found[2]);
    // A row that only its owner parses.
    let path = folder.write("inf.csv", "x,y\n1,2\n3,4\n5,inf\n7,8\n");
    let found = messages(on_threads(3, LIMIT, |mut rank| read_on(&path, &ReadOptions::default(), &mut rank)));
    assert!(found[2].contains("inf.csv:4: column `y`: \"inf\" is not a finite number"), "{}", found[2]);
    assert!(found[0].starts_with("rank 2: "), "{}", found[0]);
}

#[test]
fn an_interrupt_of_one_rank_ends_the_reading_of_all() {
    let folder = Folder::new();
    let path = folder.write("data.csv", csv(0..100));
    for read in on_threads(3, LIMIT, |mut rank| {
        let stop = AtomicBool::new(rank.rank() == 1);
        let progress = &mut ReadProgress { at: &mut |_| {}, interrupt: &stop };
        DataTable::read_on(&path, &ReadOptions::default(), progress, &mut rank)
    }) {
        assert!(matches!(read, Err(Error::Interrupted)));
    }
}

#[test]
fn ranks_with_different_files_are_named() {
    let folder = Folder::new();
    for (text, expected) in [
        (csv(0..101), "rank 1: has a file with other columns or another number of rows than rank 0"),
        (csv(1..101), "rank 1: has a file with other contents than rank 0"),
        ("p,q\n1,2\n".into(), "rank 1: has a file with other columns than rank 0"),
    ] {
        let paths = [folder.write("a.csv", csv(0..100)), folder.write("b.csv", text)];
        let found = messages(on_threads(3, LIMIT, |mut rank| {
            let path = &paths[usize::from(rank.rank() == 1)];
            read_on(path, &ReadOptions::default(), &mut rank)
        }));
        assert_eq!(found, [expected; 3]);
    }
}

#[test]
fn an_interrupt_of_one_rank_stops_all_at_the_same_step() {
    let folder = Folder::new();
    let path = folder.write("data.csv", csv(0..2000));
    for constraint in
        [WeightConstraint::default(), WeightConstraint { nonnegative: true, ..WeightConstraint::default() }]
    {
        // Huber's loss takes several steps.
        let regression = RegressionChoice { log: false, huber: true };
        let options = FitOptions { constraint, regression, ..to("price") };
        let models = on_threads(3, LIMIT, |mut rank| {
            let stop = AtomicBool::new(false);
            let table = read_on(&path, &ReadOptions::default(), &mut rank).unwrap();
            let stops = rank.rank() == 1;
            let mut report = |epoch: f64, _: f64| stop.store(stops && epoch >= 1.0, Ordering::Relaxed);
            let watch = &mut FitWatch { report: &mut report, interrupt: &stop };
            fit_on(&table, None, &options, watch, &mut rank).unwrap().model
        });
        assert_eq!(models[0].about.training.end, TrainingEnd::Interrupted);
        assert!(models[1] == models[0] && models[2] == models[0]);
    }
}

/// A rank that is interrupted after some collectives.
struct Interrupted<'a> {
    rank: ThreadRank,
    left: usize,
    stop: &'a AtomicBool,
}

impl Interrupted<'_> {
    fn count(&mut self) {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => self.stop.store(true, Ordering::Relaxed),
        }
    }
}

impl Group for Interrupted<'_> {
    fn rank(&self) -> usize {
        self.rank.rank()
    }
    fn size(&self) -> usize {
        self.rank.size()
    }
    fn sum(&mut self, numbers: &mut [f64]) -> Result<(), strust::Error> {
        self.count();
        self.rank.sum(numbers)
    }
    fn gather(&mut self, numbers: &[f64], all: &mut Vec<f64>) -> Result<(), strust::Error> {
        self.count();
        self.rank.gather(numbers, all)
    }
    fn broadcast(&mut self, bytes: &mut Vec<u8>) -> Result<(), strust::Error> {
        self.count();
        self.rank.broadcast(bytes)
    }
}

#[test]
fn an_interrupt_of_one_rank_at_any_collective_ends_all_ranks_alike() {
    let folder = Folder::new();
    let path = folder.write("data.csv", csv(0..600));
    let sums = WeightConstraint { nonnegative: true, ..WeightConstraint::default() };
    for (model, constraint) in
        [(None, WeightConstraint::default()), (Some(ModelFamily::Mlp), WeightConstraint::default()), (None, sums)]
    {
        let options = FitOptions { model, constraint, hidden: vec![4], epochs: Some(3), ..to("price") };
        let fit_after = |collectives: usize| {
            on_threads(3, LIMIT, |rank| {
                let stop = AtomicBool::new(false);
                let left = if rank.rank() == 1 { collectives } else { usize::MAX };
                let group = &mut Interrupted { rank, left, stop: &stop };
                let progress = &mut ReadProgress { at: &mut |_| {}, interrupt: &stop };
                let table = DataTable::read_on(&path, &ReadOptions::default(), progress, group)?;
                let watch = &mut FitWatch { report: &mut |_, _| {}, interrupt: &stop };
                let model = fit_on(&table, None, &options, watch, group)?.model;
                Ok::<_, Error>((model, usize::MAX - group.left))
            })
        };
        let undisturbed = fit_after(usize::MAX);
        let all = undisturbed[0].as_ref().unwrap().1;
        let (mut nothing, mut early, mut whole) = (0, 0, 0);
        for collectives in (0..all).step_by(all / 60) {
            let found = fit_after(collectives);
            match &found[0] {
                Err(Error::Interrupted) => {
                    nothing += 1;
                    assert!(
                        found.iter().all(|other| matches!(other, Err(Error::Interrupted))),
                        "{collectives} of {all}"
                    );
                }
                Ok((model, _)) => {
                    let end = model.about.training.end;
                    early += usize::from(end == TrainingEnd::Interrupted);
                    whole += usize::from(end != TrainingEnd::Interrupted);
                    let same =
                        |other: &Result<(_, usize), Error>| other.as_ref().is_ok_and(|(other, _)| other == model);
                    assert!(found.iter().all(same), "{collectives} of {all}");
                }
                Err(other) => panic!("{collectives} of {all}: {other}"),
            }
        }
        assert!(nothing > 0 && early > 0 && whole > 0, "{nothing} {early} {whole}");
    }
}

#[test]
fn a_rank_that_leaves_ends_the_fit_of_the_others() {
    let folder = Folder::new();
    let path = folder.write("data.csv", csv(0..500));
    let found = on_threads(3, LIMIT, |mut rank| {
        let stop = AtomicBool::new(false);
        let table = read_on(&path, &ReadOptions::default(), &mut rank).unwrap();
        if rank.rank() == 2 {
            return None;
        }
        let watch = &mut FitWatch { report: &mut |_, _| {}, interrupt: &stop };
        Some(fit_on(&table, None, &to("price"), watch, &mut rank).unwrap_err().to_string())
    });
    for message in found.into_iter().flatten() {
        assert_eq!(message, "rank 2: ended while the others went on");
    }
}

#[test]
fn a_table_of_another_group_is_refused() {
    let folder = Folder::new();
    let path = folder.write("data.csv", csv(0..100));
    let mut tables = on_threads(2, LIMIT, |mut rank| read_on(&path, &ReadOptions::default(), &mut rank).unwrap());
    let part = tables.swap_remove(1);
    let stop = AtomicBool::new(false);
    let watch = &mut FitWatch { report: &mut |_, _| {}, interrupt: &stop };
    let message = strust_fit::fit(&part, None, &to("price"), watch).unwrap_err().to_string();
    assert!(message.contains("rank 1 of 2, but this is rank 0 of 1"), "{message}");
}
