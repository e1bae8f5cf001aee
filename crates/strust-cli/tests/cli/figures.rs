//! Figures and tables for publication.

use crate::support::{Folder, SMALL, experiment, records, run, same_records};

const TWO: &str = "[[method]]\nname = \"str-p\"\n\n[[method]]\nname = \"sgd-proj\"\n";

/// A run of a small experiment with more lines in its file.
fn small_run(folder: &Folder, name: &str, methods: &str, more: &[&str]) -> String {
    let file = folder.write(&format!("{name}.toml"), &experiment(SMALL, methods));
    let out = folder.path(name).to_str().unwrap().to_owned();
    let result = run(&[&["run", file.to_str().unwrap(), "--out", &out, "-q"], more].concat());
    assert_eq!(result.code, Some(0), "{}", result.err);
    out
}

#[test]
fn figures_have_the_formats_the_size_the_names_and_the_order_of_their_style() {
    let folder = Folder::new();
    let style =
        "\n[figures]\nformats = [\"svg\", \"pdf\"]\nlabels = { \"str-p\" = \"Ours\" }\norder = [\"sgd-proj\"]\n";
    let out = small_run(&folder, "a", &format!("{TWO}{style}"), &[]);
    let stem = folder.path("a/figures/subspace-objective_gap-epoch");
    let svg = std::fs::read_to_string(stem.with_extension("svg")).unwrap();
    assert!(svg.contains(">Ours<") && !svg.contains(">str-p<") && svg.contains("width=\"440\""));
    assert!(svg.find(">sgd-proj<") < svg.find(">Ours<"), "the order of the legend");
    assert!(std::fs::read(stem.with_extension("pdf")).unwrap().starts_with(b"%PDF-"));
    assert!(!stem.with_extension("png").exists());

    let flags =
        ["--formats", "png,svg", "--size", "300x120", "--no-titles", "--label", "str-p=Theirs", "--order", "str-p"];
    let other = folder.path("styled").to_str().unwrap().to_owned();
    let result = run(&[&["report", &out, "--out", &other][..], &flags].concat());
    assert_eq!(result.code, Some(0), "{}", result.err);
    let svg = std::fs::read_to_string(folder.path("styled/figures/subspace-objective_gap-epoch.svg")).unwrap();
    assert!(svg.contains("width=\"300\"") && svg.find(">Theirs<") < svg.find(">sgd-proj<"));
    assert!(!svg.contains("d = 20, k = 2, n = 40</text>"), "there is no title");
    assert!(folder.path("styled/figures/subspace-objective_gap-epoch.png").exists());

    for (flags, message) in [
        (["--order", "adam"], "`order` has `adam`, but the methods are sgd-proj, str-p"),
        (["--label", "adam=x"], "`labels` has `adam`"),
        (["--size", "300"], "two numbers such as 440x250"),
        (["--size", "3x3"], "must be in [100, 4000]"),
        (["--formats", "gif"], "gif"),
    ] {
        let result = run(&[&["report", &out][..], &flags].concat());
        assert!(result.code == Some(2) && result.err.contains(message), "{flags:?}: {}", result.err);
    }
}

#[test]
fn runs_are_compared_in_figures_and_in_one_table() {
    let folder = Folder::new();
    let runs = ["a", "b"].map(|name| small_run(&folder, name, TWO, &[]));
    let both = folder.path("both").to_str().unwrap().to_owned();
    let result = run(&["report", &runs[0], &runs[1], "--out", &both]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    let svg = std::fs::read_to_string(folder.path("both/figures/together-subspace-objective_gap-epoch.svg")).unwrap();
    assert_eq!(svg.matches(">str-p (").count(), 2, "a line for each run");
    let table = std::fs::read_to_string(folder.path("both/comparison.csv")).unwrap();
    let mut lines = table.lines();
    assert!(lines.next().unwrap().starts_with("run,problem,method,epoch,seeds,"));
    // Two runs, two methods, the start and every epoch.
    let epochs = std::fs::read_to_string(folder.path("a/summary.csv")).unwrap().lines().count() - 1;
    assert_eq!(lines.count(), 2 * epochs);
}

#[test]
fn tables_for_latex_are_complete_and_escaped() {
    let folder = Folder::new();
    let out = small_run(&folder, "a", "[[method]]\nname = \"str-p\"\nlabel = \"50 % & more_\"\n", &[]);
    let result = run(&["report", &out, "--latex", "--at", "0,1"]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    assert!(result.out.contains("50 \\% \\& more\\_ & "), "{}", result.out);
    assert_eq!(result.out.matches("\\begin{tabular}{lrr}").count(), result.out.matches("\\end{tabular}").count());
    assert!(result.out.contains(" & {\\bfseries\\boldmath $") && result.out.contains("\\cdot 10^{"), "{}", result.out);
}

#[test]
fn a_finished_run_can_be_lengthened() {
    let folder = Folder::new();
    let short = small_run(&folder, "short", TWO, &["--epochs", "2"]);
    small_run(&folder, "long", TWO, &["--epochs", "5"]);
    let result = run(&["resume", &short, "--epochs", "5", "-q"]);
    assert_eq!(result.code, Some(0), "{}", result.err);
    same_records(&folder.path("short"), &folder.path("long"));
    // Once more, after it was lengthened and without a change.
    let before = records(&folder.path("short"));
    assert_eq!(run(&["resume", &short, "-q"]).code, Some(0));
    assert_eq!(records(&folder.path("short")), before);
    assert_eq!(run(&["resume", &short, "--epochs", "7", "-q"]).code, Some(0));

    let result = run(&["resume", &short, "--epochs", "7"]);
    assert!(result.code == Some(1) && result.err.contains("have 7 epochs already"), "{}", result.err);
    let cosine = "[[method]]\nname = \"sgd-proj\"\nschedule = \"cosine\"\n";
    let out = small_run(&folder, "cosine", cosine, &[]);
    let result = run(&["resume", &out, "--epochs", "99"]);
    assert!(result.code == Some(1) && result.err.contains("schedule of sgd-proj ends with epoch"), "{}", result.err);
}
