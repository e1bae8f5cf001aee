//! The command line as people see it.

use crate::support::run;

#[test]
fn help_and_lists_are_as_they_were() {
    insta::assert_snapshot!("help", run(&["--help"]).out);
    insta::assert_snapshot!("help_run", run(&["run", "--help"]).out);
    insta::assert_snapshot!("help_data", run(&["data", "--help"]).out);
    insta::assert_snapshot!("list", run(&["list"]).out);
}
