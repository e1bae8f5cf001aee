//! `strust data`: downloads the original files of the data sets that the experiments use.

use crate::{
    CommandFailure, CommandResult,
    args::{DataSet, Shared},
    download::{self, Curl, FetchOutcome, Wanted},
    session::{print, print_json},
    show,
    signals::on_stop,
};
use std::path::Path;

/// The URL of a data set, and its files with their lengths and MD5.
type Published = (&'static str, &'static [(&'static str, u64, u128)]);

const CIFAR10: Published = (
    "https://www.cs.toronto.edu/~kriz/",
    &[("cifar-10-binary.tar.gz", 170_052_171, 0xc32a_1d4a_b5d0_3f12_84b6_7883_e8d8_7530)],
);
const MNIST: Published = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    &[
        ("train-images-idx3-ubyte.gz", 9_912_422, 0xf68b_3c2d_cbea_aa9f_bdd3_48bb_deb9_4873),
        ("train-labels-idx1-ubyte.gz", 28_881, 0xd53e_105e_e54e_a407_49a0_9fcb_cd1e_9432),
        ("t10k-images-idx3-ubyte.gz", 1_648_877, 0x9fb6_29c4_1895_51a2_d022_fa33_0f95_73f3),
        ("t10k-labels-idx1-ubyte.gz", 4_542, 0xec29_112d_d5af_a061_1ce8_0d1b_7f02_629c),
    ],
);
const FASHION_MNIST: Published = (
    // The publisher offers no https; the MD5 checks the files.
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    &[
        ("train-images-idx3-ubyte.gz", 26_421_880, 0x8d4f_b7e6_c68d_591d_4c3d_fef9_ec88_bf0d),
        ("train-labels-idx1-ubyte.gz", 29_515, 0x25c8_1989_df18_3df0_1b3e_8a0a_ad5d_ffbe),
        ("t10k-images-idx3-ubyte.gz", 4_422_102, 0xbef4_ecab_320f_06d8_554e_a638_0940_ec79),
        ("t10k-labels-idx1-ubyte.gz", 5_148, 0xbb30_0cfd_ad3c_16e7_a12a_480e_e83c_d310),
    ],
);

/// Downloads the missing files.
pub fn run(set: DataSet, to: &Path, from: Option<&str>, shared: &Shared) -> CommandResult {
    let (published, all) = match set {
        DataSet::Cifar10 => CIFAR10,
        DataSet::Mnist => MNIST,
        DataSet::FashionMnist => FASHION_MNIST,
    };
    let curl = Curl::new("curl", &[]);
    let (shared_copy, receiving) = (shared.clone(), curl.clone());
    // The received bytes are already in the file, so the program can exit at once.
    on_stop(move || {
        receiving.stop();
        show::error("stopped. The received bytes are saved; run the same command again to resume", &shared_copy);
        std::process::exit(1);
    })?;
    std::fs::create_dir_all(to).map_err(|e| {
        CommandFailure::Failed(format!("cannot create the folder {}: {e}. Choose another one with --to", to.display()))
    })?;
    let at = from.unwrap_or(published).trim_end_matches('/');
    let mut files = Vec::new();
    for &(name, bytes, md5) in all {
        let wanted = Wanted { url: format!("{at}/{name}"), path: to.join(name), bytes, md5 };
        let mut meter = show::Meter::new(name, bytes, shared);
        let outcome = download::fetch(&curl, &wanted, &mut |have| meter.at(have));
        drop(meter);
        let outcome = outcome.map_err(CommandFailure::Failed)?;
        if !shared.quiet && !shared.json {
            let what = match outcome {
                FetchOutcome::Kept => "already there",
                FetchOutcome::Downloaded => "downloaded",
            };
            print(&format!("{}: {what}, {bytes} bytes, MD5 correct\n", wanted.path.display()))?;
        }
        files.push(serde_json::json!({
            "path": wanted.path.display().to_string(),
            "url": wanted.url,
            "bytes": bytes,
            "md5": format!("{md5:032x}"),
            "downloaded": outcome == FetchOutcome::Downloaded,
        }));
    }
    if shared.json { print_json(&serde_json::json!({ "files": files })) } else { Ok(()) }
}
