//! Snapshots of help and list output.

use crate::support::run;

#[test]
fn help_and_list_match_the_snapshots() {
    insta::assert_snapshot!("help", run(&["--help"]).out);
    insta::assert_snapshot!("help_run", run(&["run", "--help"]).out);
    insta::assert_snapshot!("help_data", run(&["data", "--help"]).out);
    insta::assert_snapshot!("list", run(&["list"]).out);
    insta::assert_snapshot!("list_str_newton", run(&["list", "str-newton"]).out);
}
