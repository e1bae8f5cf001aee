//! `strust bench mpi`.

use crate::support::run;

#[cfg(not(feature = "mpi"))]
#[test]
fn a_build_without_mpi_prints_build_instructions() {
    for command in [&["bench", "mpi"][..], &["bench", "mpi", "--as-rank", "mpi"]] {
        let result = run(command);
        assert_eq!(result.code, Some(1), "{command:?}");
        assert!(result.err.contains("built without MPI") && result.err.contains("--features mpi"), "{}", result.err);
    }
}

#[test]
fn options_of_the_cluster_need_units_and_the_benchmark() {
    for (command, expected) in [
        (["bench", "subspace", "--latency", "2us"], "are only for `strust bench mpi`"),
        (["bench", "mpi", "--latency", "2"], "must be a time such as 2us"),
        (["bench", "mpi", "--latency", "0us"], "must be a time such as 2us"),
        (["bench", "mpi", "--bandwidth", "0GB/s"], "must be a rate such as 12.5GB/s"),
        (["bench", "mpi", "--ranks-per-node", "0"], "0 is not in"),
    ] {
        let result = run(&command);
        assert_eq!((result.code, result.err.contains(expected)), (Some(2), true), "{}", result.err);
    }
}
