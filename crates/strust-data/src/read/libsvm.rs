//! LIBSVM text: `label index:value …`, indices from 1 and strictly increasing; `#` starts a comment.

use super::{
    DataError,
    lines::{TextLine, TextLines},
};
use crate::{
    features::{Csr, Features, Labeled},
    words::quoted,
};
use std::{
    io::BufRead,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};
use strust::ranks::RowShare;

/// The largest index. A dense point with more components would not fit into memory.
const LARGEST: u32 = 1_000_000_000;

/// The rows of a share, and the number of all rows. Only the rows of the share are checked.
pub(super) fn read(
    reader: impl BufRead,
    path: &Path,
    share: RowShare,
    stop: &AtomicBool,
) -> Result<(Labeled, usize), DataError> {
    let mut lines = TextLines::new(reader, path);
    let (mut labels, mut row_starts) = (Vec::new(), vec![0]);
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    let (mut columns, mut rows) = (0, 0);
    while let Some(line) = lines.next()? {
        if stop.load(Ordering::Relaxed) {
            return Err(DataError::Interrupted);
        }
        let content = line.text.split('#').next().unwrap_or_default();
        let mut tokens = content.split_ascii_whitespace();
        let Some(label) = tokens.next() else { continue };
        rows += 1;
        if !share.owns(rows - 1) {
            continue;
        }
        if let Some(colon) = label.find(':') {
            let why = format!("{} is not a label: a line must start with a label", quoted(label));
            return Err(line.error(line.position(label) + colon, why));
        }
        labels.push(line.number(label)?);
        let mut last = 0;
        for token in tokens {
            let (index, value) = entry(line, token, last)?;
            indices.push(index - 1);
            values.push(value);
            last = index;
        }
        columns = columns.max(last as usize);
        row_starts.push(indices.len());
    }
    if rows == 0 {
        return Err(lines.error_at_end("the file ends without a row"));
    }
    let matrix = Csr::new(columns, row_starts, indices, values).expect("every line was checked");
    Ok((Labeled { features: Features::Sparse(matrix), labels }, rows))
}

/// `index:value`, with an index above `last`.
fn entry(line: TextLine<'_>, token: &str, last: u32) -> Result<(u32, f64), DataError> {
    let refuse = |why: String| Err(line.error(line.position(token), why));
    let Some((digits, value)) = token.split_once(':') else {
        return refuse(format!("{} has no colon; expected index:value", quoted(token)));
    };
    // Check the digits here, because `parse` accepts a sign and an index may be too long for any type.
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return refuse(format!("{} is not an index; expected a whole number from 1", quoted(digits)));
    }
    match digits.parse::<u32>() {
        Ok(0) => refuse("index 0: indices start at 1".into()),
        Ok(index) if index <= LARGEST && index > last => Ok((index, line.number(value)?)),
        Ok(index) if index <= LARGEST => refuse(format!("index {index} after {last}: indices must increase")),
        _ => refuse(format!("index {} is above {LARGEST}", quoted(digits))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranks::NEVER;
    use proptest::prelude::*;
    use std::fmt::Write;

    fn parsed(text: &str) -> Result<Labeled, String> {
        read(text.as_bytes(), Path::new("f"), RowShare::default(), &NEVER)
            .map(|(data, _)| data)
            .map_err(|e| e.to_string())
    }

    #[test]
    fn a_file_with_every_allowed_feature_is_read() {
        let data = parsed("# head\n+1 1:2 5:-1e-3 # tail 7:9\r\n\n  \n-1\n2\t3:.5  \n").unwrap();
        assert_eq!(data.labels, [1.0, -1.0, 2.0]);
        let expected = Csr::new(5, vec![0, 2, 2, 3], vec![0, 4, 2], vec![2.0, -1e-3, 0.5]).unwrap();
        assert_eq!(data.features, Features::Sparse(expected));
        let Features::Sparse(wide) = parsed("1 1000000000:1").unwrap().features else { panic!() };
        assert_eq!(wide.columns(), 1_000_000_000);
    }

    #[test]
    fn every_malformed_line_is_an_error_that_names_the_position() {
        for (text, expected) in [
            ("", "f:1:1: the file ends without a row"),
            ("# only this\n", "f:2:1: the file ends without a row"),
            ("1 1:2\nx 1:2\n", "f:2:1: \"x\" is not a number"),
            ("1:2 2:3\n", "f:1:2: \"1:2\" is not a label: a line must start with a label"),
            ("1 0:2\n", "f:1:3: index 0: indices start at 1"),
            ("1 2:1 2:1\n", "f:1:7: index 2 after 2: indices must increase"),
            ("1 3:1 2:1\n", "f:1:7: index 2 after 3: indices must increase"),
            ("1 3:1 4\n", "f:1:7: \"4\" has no colon; expected index:value"),
            ("1 é:1\n", "f:1:3: \"é\" is not an index; expected a whole number from 1"),
            ("1 1:1 é\n", "f:1:7: \"é\" has no colon; expected index:value"),
            ("1 qid:3 1:2\n", "f:1:3: \"qid\" is not an index; expected a whole number from 1"),
            ("1 +1:2\n", "f:1:3: \"+1\" is not an index; expected a whole number from 1"),
            ("1 1:\n", "f:1:5: a number is missing here"),
            ("1 1:2:3\n", "f:1:5: \"2:3\" is not a number"),
            ("1 1:nan\n", "f:1:5: \"nan\" is not a finite number; remove or replace such rows"),
            ("inf 1:1\n", "f:1:1: \"inf\" is not a finite number; remove or replace such rows"),
            ("1 1000000001:1\n", "f:1:3: index \"1000000001\" is above 1000000000"),
            ("1 99999999999999999999:1\n", "f:1:3: index \"99999999999999999999\" is above 1000000000"),
        ] {
            assert_eq!(parsed(text).unwrap_err(), expected);
        }
    }

    #[test]
    fn a_share_has_its_rows_and_counts_all_of_them() {
        let text = "1 1:2\n# none\n2 3:1\n\n3 2:5\nx y\n";
        let of = |rank| read(text.as_bytes(), Path::new("f"), RowShare { rank, size: 3 }, &NEVER);
        assert!(of(0).unwrap_err().to_string().starts_with("f:6:1: \"x\" is not a number"));
        for (rank, label, columns) in [(1, 2.0, 3), (2, 3.0, 2)] {
            let (data, rows) = of(rank).unwrap();
            assert_eq!((&data.labels[..], data.features.columns(), rows), (&[label][..], columns, 4));
        }
    }

    fn written(rows: &[(f64, Vec<(u32, f64)>)]) -> String {
        let mut text = String::new();
        for (label, entries) in rows {
            write!(text, "{label:e}").unwrap();
            for (i, v) in entries {
                write!(text, " {}:{v:e}", i + 1).unwrap();
            }
            text.push('\n');
        }
        text
    }

    fn rows() -> impl Strategy<Value = Vec<(f64, Vec<(u32, f64)>)>> {
        let number = || any::<f64>().prop_filter("finite", |v| v.is_finite());
        let entries = prop::collection::btree_map(0..50_u32, number(), 0..6).prop_map(|m| m.into_iter().collect());
        prop::collection::vec((number(), entries), 1..8)
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes[..], Path::new("f"), RowShare::default(), &NEVER);
        }

        #[test]
        fn arbitrary_text_of_the_alphabet_never_panics(text in "[-+0-9.eE:# \r\n\tnaif\u{e9}]{0,120}") {
            let _ = read(text.as_bytes(), Path::new("f"), RowShare::default(), &NEVER);
        }

        #[test]
        fn a_mutated_file_never_panics(rows in rows(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut bytes = written(&rows).into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = read(&bytes[..], Path::new("f"), RowShare::default(), &NEVER);
        }

        #[test]
        fn written_numbers_are_read_bit_for_bit(rows in rows()) {
            let data = parsed(&written(&rows)).unwrap();
            let Features::Sparse(matrix) = data.features else { panic!("LIBSVM text is sparse") };
            prop_assert_eq!(matrix.rows(), rows.len());
            for (i, (label, entries)) in rows.iter().enumerate() {
                prop_assert_eq!(label.to_bits(), data.labels[i].to_bits());
                let (indices, values) = matrix.row(i);
                let read: Vec<_> = indices.iter().zip(values).map(|(&j, v)| (j, v.to_bits())).collect();
                prop_assert_eq!(read, entries.iter().map(|&(j, v)| (j, v.to_bits())).collect::<Vec<_>>());
            }
        }
    }
}
