//! NPY: NumPy's array format, versions 1.0, 2.0 and 3.0
//! (<https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>).
//!
//! A file contains the magic bytes, a version, the length of the header, the header and the numbers. The header is a
//! Python dictionary with the type, the order and the shape. The reader does not trust the header: it allocates memory
//! as data arrives.

use super::{
    DataError,
    input::{Input, Skip},
};
use crate::words::quoted;
use faer::Mat;
use std::{
    io::Read,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};
use strust::ranks::RowShare;

const MAGIC: &[u8] = b"\x93NUMPY";
/// NumPy itself refuses headers of more than 10,000 bytes.
const LONGEST_HEADER: usize = 1 << 20;
/// Bytes decoded at once; a multiple of every item size.
const PIECE: usize = 1 << 16;

/// The rows of a share, and the number of all rows. The array may have `most` numbers.
pub(super) fn read(
    reader: impl Skip,
    path: &Path,
    share: RowShare,
    most: usize,
    stop: &AtomicBool,
) -> Result<(Mat<f64>, usize), DataError> {
    let mut input = Input::new(reader, path);
    let header = read_header(&mut input)?;
    let (rows, columns) = header.shape;
    if rows.saturating_mul(columns) > most {
        let why = format!(
            "the header announces {rows}×{columns} numbers, but at most {most} are read from a compressed \
             file of this length: if you trust the file, unpack it first and use the unpacked file"
        );
        return Err(input.error(input.offset, why));
    }
    let values = read_values(&mut input, &header, share, stop)?;
    let kept = share.count(rows);
    let matrix = if header.fortran_order {
        Mat::from_fn(kept, columns, |i, j| values[j * kept + i])
    } else {
        Mat::from_fn(kept, columns, |i, j| values[i * columns + j])
    };
    Ok((matrix, rows))
}

/// How a number is stored.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Type {
    /// f, i or u.
    kind: u8,
    size: usize,
    big_endian: bool,
}

impl Type {
    fn parse(descr: &str) -> Option<Self> {
        let [order, number @ ..] = descr.as_bytes() else { return None };
        let size = match number {
            b"i1" | b"u1" => 1,
            b"i2" | b"u2" => 2,
            b"f4" | b"i4" | b"u4" => 4,
            b"f8" | b"i8" | b"u8" => 8,
            _ => return None,
        };
        let known = matches!(order, b'<' | b'>') || *order == b'|' && size == 1;
        known.then_some(Self { kind: number[0], size, big_endian: *order == b'>' })
    }

    /// The number in `bytes`, which has the length `size`.
    fn decode(self, bytes: &[u8]) -> f64 {
        let mut word = [0; 8];
        word[..self.size].copy_from_slice(bytes);
        if self.big_endian {
            word[..self.size].reverse();
        }
        let bits = u64::from_le_bytes(word);
        match (self.kind, self.size) {
            (b'f', 4) => f64::from(f32::from_bits(bits as u32)),
            (b'f', _) => f64::from_bits(bits),
            (b'u', _) => bits as f64,
            (_, size) => {
                // Shift up and down again to extend the sign.
                let shift = 64 - 8 * size as u32;
                ((bits << shift).cast_signed() >> shift) as f64
            }
        }
    }
}

#[derive(Debug, PartialEq)]
struct Header {
    kind: Type,
    fortran_order: bool,
    shape: (usize, usize),
}

fn read_header<R: Read>(input: &mut Input<'_, R>) -> Result<Header, DataError> {
    let mut start = [0; 8];
    input.exact(&mut start)?;
    if !start.starts_with(MAGIC) {
        return Err(input.error(0, "this is not an NPY file: it does not start with \\x93NUMPY"));
    }
    let mut length = [0; 4];
    match start[6..] {
        [1, 0] => input.exact(&mut length[..2])?,
        [2 | 3, 0] => input.exact(&mut length)?,
        [major, minor, ..] => {
            let why = format!("NPY version {major}.{minor} is not supported; use 1.0, 2.0 or 3.0");
            return Err(input.error(6, why));
        }
        _ => unreachable!("two bytes of the version follow the magic"),
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST_HEADER {
        return Err(input.error(8, format!("a header of {length} bytes; at most {LONGEST_HEADER} are allowed")));
    }
    let begin = input.offset;
    let mut bytes = vec![0; length];
    input.exact(&mut bytes)?;
    // The encoding is Latin-1 up to version 2.0 and UTF-8 in 3.0. The header of a plain array is ASCII in all versions.
    if let Some(at) = bytes.iter().position(|b| !b.is_ascii()) {
        return Err(input.error(begin + at as u64, "the header of an array of numbers is plain ASCII; this one is not"));
    }
    let text = String::from_utf8_lossy(&bytes);
    let mut dictionary = Dictionary { text: &text, at: 0 };
    dictionary.parse().map_err(|(at, why)| input.error(begin + at as u64, why))
}

/// An error in the header: its byte and a description.
type Wrong = (usize, String);

/// The Python literal `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }`.
struct Dictionary<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Dictionary<'a> {
    fn parse(&mut self) -> Result<Header, Wrong> {
        let (mut kind, mut fortran_order, mut shape) = (None, None, None);
        self.expect("{")?;
        while !self.skip("}") {
            let at = self.begin();
            let key = self.string()?;
            self.expect(":")?;
            let repeated = match key {
                "descr" => kind.replace(self.kind()?).is_some(),
                "fortran_order" => fortran_order.replace(self.boolean()?).is_some(),
                "shape" => shape.replace(self.shape()?).is_some(),
                _ => return Err((at, format!("unknown key {} in the header", quoted(key)))),
            };
            if repeated {
                return Err((at, format!("the key {key:?} is repeated in the header")));
            }
            if !self.skip(",") {
                self.expect("}")?;
                break;
            }
        }
        if self.begin() < self.text.len() {
            return Err((self.at, "the header continues after its end".into()));
        }
        let missing = |key: &str| (0, format!("the key {key:?} is missing in the header"));
        let kind: Type = kind.ok_or_else(|| missing("descr"))?;
        let fortran_order = fortran_order.ok_or_else(|| missing("fortran_order"))?;
        let (at, rows, columns) = shape.ok_or_else(|| missing("shape"))?;
        let bytes = rows.checked_mul(columns).and_then(|count| count.checked_mul(kind.size));
        match bytes {
            None => Err((at, format!("the shape ({rows}, {columns}) is too large for the memory"))),
            Some(0) => Err((at, format!("the shape ({rows}, {columns}) has no entries"))),
            Some(_) => Ok(Header { kind, fortran_order, shape: (rows, columns) }),
        }
    }

    /// Skips blanks. Returns the position of the next token.
    fn begin(&mut self) -> usize {
        self.at = self.text.len() - self.text[self.at..].trim_ascii_start().len();
        self.at
    }
    fn skip(&mut self, token: &str) -> bool {
        self.begin();
        let found = self.text[self.at..].starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }
    fn expect(&mut self, token: &str) -> Result<(), Wrong> {
        if self.skip(token) { Ok(()) } else { Err(self.wrong(&format!("expected {token:?}"))) }
    }
    fn wrong(&self, expected: &str) -> Wrong {
        (self.at, format!("{expected} in the header, found {}", quoted(&self.text[self.at..])))
    }
    fn string(&mut self) -> Result<&'a str, Wrong> {
        self.begin();
        let rest = &self.text[self.at..];
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let end = quote.and_then(|quote| rest[1..].find(quote)).ok_or_else(|| self.wrong("expected a string"))?;
        self.at += end + 2;
        Ok(&rest[1..=end])
    }
    fn boolean(&mut self) -> Result<bool, Wrong> {
        let found = [("True", true), ("False", false)].into_iter().find(|(token, _)| self.skip(token));
        found.map(|(_, value)| value).ok_or_else(|| self.wrong("expected True or False"))
    }
    fn kind(&mut self) -> Result<Type, Wrong> {
        let at = self.begin();
        if self.text[at..].starts_with('[') {
            return Err((at, "a table with named fields; save a plain array of float64".into()));
        }
        let descr = self.string()?;
        Type::parse(descr).ok_or_else(|| {
            let understood = "f4, f8, i1 to i8 and u1 to u8, with < or >";
            (at, format!("type {} is not supported (only {understood}); save it as float64", quoted(descr)))
        })
    }
    fn shape(&mut self) -> Result<(usize, usize, usize), Wrong> {
        let at = self.begin();
        self.expect("(")?;
        let mut sizes = Vec::new();
        while !self.skip(")") {
            sizes.push(self.size()?);
            if !self.skip(",") {
                self.expect(")")?;
                break;
            }
        }
        match sizes[..] {
            [rows] => Ok((at, rows, 1)),
            [rows, columns] => Ok((at, rows, columns)),
            _ => Err((at, format!("an array of {} dimensions; only 1 and 2 are supported: reshape it", sizes.len()))),
        }
    }
    fn size(&mut self) -> Result<usize, Wrong> {
        let at = self.begin();
        let rest = &self.text[at..];
        let digits = &rest[..rest.bytes().take_while(u8::is_ascii_digit).count()];
        if digits.is_empty() {
            return Err(self.wrong("expected a whole number"));
        }
        self.at += digits.len();
        // Python 2 wrote long integers with an L.
        if self.text[self.at..].starts_with('L') {
            self.at += 1;
        }
        digits.parse().map_err(|_| (at, format!("the size {} is too large for the memory", quoted(digits))))
    }
}

/// The numbers of the rows of a share, in the order of the file.
fn read_values<R: Skip>(
    input: &mut Input<'_, R>,
    header: &Header,
    share: RowShare,
    stop: &AtomicBool,
) -> Result<Vec<f64>, DataError> {
    let Header { kind, shape: (rows, columns), fortran_order } = *header;
    let (count, size) = (rows * columns, kind.size);
    let place = |n: usize| if fortran_order { (n % rows, n / rows) } else { (n / columns, n % columns) };
    let ends = |input: &Input<'_, R>, after: usize| {
        let why = format!("the file ends after {after} of the {rows}×{columns} numbers that its header announces");
        input.error(input.offset, why)
    };
    let (mut values, mut at) = (Vec::new(), 0);
    let mut piece = vec![0; PIECE.min(count * size)];
    while at < count {
        if stop.load(Ordering::Relaxed) {
            return Err(DataError::Interrupted);
        }
        let (skipped, read) = next_part(at, header, share);
        let passed = input.skip((skipped * size) as u64)?;
        if passed < (skipped * size) as u64 {
            return Err(ends(input, at + passed as usize / size));
        }
        at += skipped;
        let wanted = piece.len().min(read * size);
        let begin = input.offset;
        let filled = input.fill(&mut piece[..wanted])?;
        for (k, bytes) in piece[..filled].chunks_exact(size).enumerate() {
            let (i, j) = place(at + k);
            if !share.owns(i) {
                continue;
            }
            let value = kind.decode(bytes);
            if !value.is_finite() {
                let why = format!("{value} at row {i}, column {j} (from 0) is not a finite number");
                return Err(input.error(begin + (k * size) as u64, why));
            }
            values.push(value);
        }
        at += filled / size;
        if filled < wanted {
            return Err(ends(input, at));
        }
    }
    let end = input.offset;
    if input.fill(&mut [0])? > 0 {
        return Err(input
            .error(end, format!("the file continues after the {rows}×{columns} numbers that its header announces")));
    }
    Ok(values)
}

/// How many numbers to skip from the number `at`, and how many to read then. Rows of others are skipped if they are
/// contiguous.
fn next_part(at: usize, header: &Header, share: RowShare) -> (usize, usize) {
    let (rows, columns) = header.shape;
    if header.fortran_order || share.is_all() {
        return (0, rows * columns - at);
    }
    let row = at / columns;
    match (row..rows).find(|&i| share.owns(i)) {
        None => (rows * columns - at, 0),
        Some(next) => {
            let start = at.max(next * columns);
            (start - at, (next + 1) * columns - start)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranks::NEVER;
    use proptest::prelude::*;

    fn parsed(bytes: &[u8]) -> Result<Mat<f64>, String> {
        read(bytes, Path::new("f.npy"), RowShare::default(), usize::MAX, &NEVER)
            .map(|(matrix, _)| matrix)
            .map_err(|e| e.to_string())
    }

    fn file(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([version, 0]);
        match version {
            1 => bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes()),
            _ => bytes.extend(u32::try_from(header.len()).unwrap().to_le_bytes()),
        }
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn header(descr: &str, fortran: bool, shape: &str) -> String {
        let fortran = if fortran { "True" } else { "False" };
        format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}   \n")
    }

    fn array(rows: usize, columns: usize, values: &[f64]) -> Mat<f64> {
        Mat::from_fn(rows, columns, |i, j| values[i * columns + j])
    }

    fn f8(values: &[f64]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    #[test]
    fn every_type_order_and_version_is_read() {
        let expected = array(2, 2, &[1.0, 2.0, -3.0, 100.0]);
        let values = [1_i8, 2, -3, 100];
        macro_rules! check {
            ($($descr:literal $type:ty: $bytes:ident),*) => {$(
                let data: Vec<u8> = values.iter().flat_map(|&v| (v as $type).$bytes()).collect();
                assert_eq!(parsed(&file(1, &header($descr, false, "(2, 2)"), &data)).unwrap(), expected, $descr);
            )*};
        }
        check!("<f8" f64: to_le_bytes, ">f8" f64: to_be_bytes, "<f4" f32: to_le_bytes, ">f4" f32: to_be_bytes,
            "<i8" i64: to_le_bytes, ">i8" i64: to_be_bytes, "<i4" i32: to_le_bytes, ">i4" i32: to_be_bytes,
            "<i2" i16: to_le_bytes, ">i2" i16: to_be_bytes, "|i1" i8: to_le_bytes, "<i1" i8: to_le_bytes);
        let unsigned = array(1, 2, &[1.0, 200.0]);
        for (descr, data) in [
            ("|u1", vec![1, 200]),
            ("<u2", vec![1, 0, 200, 0]),
            (">u4", vec![0, 0, 0, 1, 0, 0, 0, 200]),
            ("<u8", [1_u64, 200].iter().flat_map(|v| v.to_le_bytes()).collect()),
        ] {
            assert_eq!(parsed(&file(1, &header(descr, false, "(1, 2)"), &data)).unwrap(), unsigned, "{descr}");
        }
        let data = f8(&[1.0, -3.0, 2.0, 100.0]);
        for version in [1, 2, 3] {
            assert_eq!(parsed(&file(version, &header("<f8", true, "(2L, 2L)"), &data)).unwrap(), expected);
        }
        let column = parsed(&file(1, &header("<f8", false, "(4,)"), &data)).unwrap();
        assert_eq!((column.nrows(), column.ncols(), column[(3, 0)]), (4, 1, 100.0));
    }

    #[test]
    fn a_file_written_by_numpy_is_read() {
        // numpy.save of numpy.array([[1.5, -2.0]]): the header is padded to a multiple of 64 bytes.
        let mut text = String::from("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2), }");
        text.extend(std::iter::repeat_n(' ', 127 - 10 - text.len()));
        text.push('\n');
        assert_eq!(parsed(&file(1, &text, &f8(&[1.5, -2.0]))).unwrap(), array(1, 2, &[1.5, -2.0]));
    }

    #[test]
    fn a_wrong_header_is_an_error_and_causes_no_large_allocation() {
        let message = |shape: &str, data: &[u8]| parsed(&file(1, &header("<f8", false, shape), data)).unwrap_err();
        assert_eq!(
            message("(1000000000, 100)", &[0; 20]),
            "f.npy: at byte 104: the file ends after 2 of the 1000000000×100 numbers that its header announces"
        );
        assert!(message("(4611686018427387904, 8)", &[]).contains("at byte 60: the shape"));
        assert!(message("(1, 1152921504606846976)", &[0; 8]).contains("the file ends after 1 of"));
        assert!(message("(99999999999999999999, 1)", &[]).contains("too large for the memory"));
        assert!(message("(0, 3)", &[]).contains("has no entries"));
        assert!(message("(1, 1)", &[0; 9]).contains("continues after the 1×1 numbers"));
        let mut long = file(2, "", &[]);
        long[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(parsed(&long).unwrap_err().contains("at byte 8: a header of 4294967295 bytes"));
    }

    #[test]
    fn unsupported_contents_are_an_error_that_names_the_byte() {
        let with = |text: &str| parsed(&file(1, text, &[])).unwrap_err();
        assert_eq!(parsed(b"").unwrap_err(), "f.npy: at byte 0: the file ends within the header");
        assert!(parsed(b"PK\x03\x04....").unwrap_err().contains("at byte 0: this is not an NPY file"));
        assert!(parsed(b"\x93NUMPY\x04\x00..").unwrap_err().contains("at byte 6: NPY version 4.0 is not supported"));
        assert!(with(&header("<c16", false, "(1,)")).contains("at byte 20: type \"<c16\" is not supported"));
        assert!(with(&header("<f2", false, "(1,)")).contains("save it as float64"));
        assert!(with(&header("|b1", false, "(1,)")).contains("type \"|b1\""));
        assert!(with(&header("<f8", false, "()")).contains("an array of 0 dimensions"));
        assert!(with(&header("<f8", false, "(1, 2, 3)")).contains("an array of 3 dimensions"));
        assert!(with(&header("<f8", false, "(-1, 2)")).contains("expected a whole number in the header"));
        assert!(with("{'descr': [('a', '<f8')]}").contains("a table with named fields"));
        assert!(with("{'descr': '<f8', 'descr': '<f8'}").contains("\"descr\" is repeated"));
        assert!(with("{'descr': '<f8'}").contains("\"fortran_order\" is missing"));
        assert!(with("{'other': 1}").contains("unknown key \"other\""));
        assert!(with("{'descr': '<f8").contains("expected a string"));
        assert!(with("{} x").contains("the header continues after its end"));
        assert!(with("{'é': 1}").contains("at byte 12: the header of an array of numbers is plain ASCII"));
    }

    #[test]
    fn a_number_that_is_not_finite_is_an_error_that_names_byte_row_and_column() {
        let data = f8(&[1.0, 2.0, f64::NAN, 4.0]);
        let c = parsed(&file(1, &header("<f8", false, "(2, 2)"), &data)).unwrap_err();
        assert!(c.contains("NaN at row 1, column 0"), "{c}");
        let f = parsed(&file(1, &header("<f8", true, "(2, 2)"), &data)).unwrap_err();
        assert!(f.contains("NaN at row 0, column 1"), "{f}");
        let f4 = f32::INFINITY.to_le_bytes();
        assert!(parsed(&file(1, &header("<f4", false, "(1,)"), &f4)).unwrap_err().contains("inf at row 0"));
    }

    #[test]
    fn a_file_that_ends_too_early_or_too_late_is_an_error_for_every_share() {
        let whole = file(1, &header("<f8", false, "(4, 2)"), &f8(&[1.0; 8]));
        for rank in 0..3 {
            let of = |bytes: &[u8]| read(bytes, Path::new("f.npy"), RowShare { rank, size: 3 }, usize::MAX, &NEVER);
            assert_eq!(of(&whole).unwrap().1, 4);
            let short = of(&whole[..whole.len() - 9]).unwrap_err().to_string();
            assert!(short.contains("the file ends after 6 of the 4×2"), "{short}");
            let long = of(&[&whole[..], &[0]].concat()).unwrap_err().to_string();
            assert!(long.contains("the file continues"), "{long}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            text in "[-{}()',:0-9LTF a-z<>|]{0,80}",
            version in 1..4_u8,
        ) {
            let _ = parsed(&bytes);
            let _ = parsed(&file(version, &text, &bytes));
            let with_magic: Vec<u8> = MAGIC.iter().copied().chain([version, 0]).chain(bytes).collect();
            let _ = parsed(&with_magic);
        }

        #[test]
        fn a_mutated_file_never_panics(at in any::<prop::sample::Index>(), byte in any::<u8>(), keep in any::<prop::sample::Index>()) {
            let mut bytes = file(1, &header("<f8", false, "(3, 2)"), &f8(&[1.0; 6]));
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = parsed(&bytes);
            let _ = parsed(&bytes[..keep.index(bytes.len())]);
        }

        #[test]
        fn any_shape_never_panics(rows in any::<u64>(), columns in any::<u64>(), descr in "[<>|][fiu][1248]") {
            let _ = parsed(&file(1, &header(&descr, false, &format!("({rows}, {columns})")), &[0; 64]));
        }

        #[test]
        fn written_numbers_are_read_bit_for_bit(
            rows in 1..40_usize,
            columns in 1..300_usize,
            fortran in any::<bool>(),
            seed in any::<u64>(),
        ) {
            let mut next = crate::numerics::normals(seed, 0);
            let matrix = Mat::from_fn(rows, columns, |_, _| next());
            let stored = if fortran { matrix.clone() } else { matrix.transpose().to_owned() };
            let data: Vec<u8> = (0..stored.ncols()).flat_map(|j| f8(stored.col_as_slice(j))).collect();
            let bytes = file(1, &header("<f8", fortran, &format!("({rows}, {columns})")), &data);
            for rank in 0..3 {
                let share = RowShare { rank, size: 3 };
                let (part, all) = read(&bytes[..], Path::new("f.npy"), share, usize::MAX, &NEVER).unwrap();
                let expected = Mat::from_fn(share.count(rows), columns, |i, j| matrix[(share.row(i), j)]);
                prop_assert_eq!((part, all), (expected, rows));
            }
            prop_assert_eq!(parsed(&bytes).unwrap(), matrix);
        }
    }
}
