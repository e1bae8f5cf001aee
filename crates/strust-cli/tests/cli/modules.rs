//! Reads the dependencies between the modules of a crate from its source, and finds circles without compiling.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// The path of a module from the crate's root. The root itself is empty.
type Module = Vec<String>;

/// The source of a crate.
pub struct Crate {
    /// The tokens of each module's file, without comments, strings and tests.
    files: BTreeMap<Module, Vec<String>>,
    /// The path of each `pub use` of a module, by name.
    exports: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
}

impl Crate {
    /// Reads the `.rs` files of a `src` folder.
    pub fn read(src: &Path) -> Self {
        let mut files = BTreeMap::new();
        collect(src, &Module::new(), &mut files);
        Self::new(files)
    }

    /// Builds the crate from the text of each module.
    pub fn new(files: BTreeMap<Module, String>) -> Self {
        let files: BTreeMap<Module, Vec<String>> = files.into_iter().map(|(m, text)| (m, tokens(&text))).collect();
        let mut whole = Self { files, exports: BTreeMap::new() };
        for (module, tokens) in &whole.files {
            let mut exported = BTreeMap::new();
            for (at, path, public) in paths(tokens, module) {
                if let (true, Some(name)) = (public && at == *module, path.last()) {
                    exported.insert(name.clone(), path);
                }
            }
            whole.exports.insert(module.clone(), exported);
        }
        whole
    }

    /// The circles among the children of each module. A child includes all its descendants. A module and its parent may
    /// use each other.
    pub fn circles(&self) -> Vec<String> {
        let mut siblings: BTreeMap<Module, BTreeMap<String, BTreeMap<String, String>>> = BTreeMap::new();
        for (module, tokens) in &self.files {
            for (_, path, _) in paths(tokens, module) {
                let used = self.resolve(&path, 0);
                let common = module.iter().zip(&used).take_while(|(a, b)| a == b).count();
                if common == module.len() || common == used.len() {
                    continue;
                }
                let example = format!("{} uses {}", module.join("::"), used.join("::"));
                siblings
                    .entry(module[..common].to_vec())
                    .or_default()
                    .entry(module[common].clone())
                    .or_default()
                    .entry(used[common].clone())
                    .or_insert(example);
            }
        }
        siblings.values().flat_map(circles_of).collect()
    }

    /// The module that a path refers to, resolved through re-exports.
    fn resolve(&self, path: &[String], depth: usize) -> Module {
        let mut here = Module::new();
        for (i, segment) in path.iter().enumerate() {
            let below: Module = here.iter().chain([segment]).cloned().collect();
            if self.files.contains_key(&below) {
                here = below;
                continue;
            }
            // The limit ends a circle of re-exports.
            if let (Some(target), true) = (self.exports.get(&here).and_then(|e| e.get(segment)), depth < 8) {
                let rest = target.iter().chain(&path[i + 1..]).cloned().collect::<Vec<_>>();
                if rest != path {
                    return self.resolve(&rest, depth + 1);
                }
            }
            break;
        }
        here
    }
}

fn collect(folder: &Path, module: &Module, files: &mut BTreeMap<Module, String>) {
    for entry in std::fs::read_dir(folder).expect("a folder of source") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let below = || module.iter().cloned().chain([name.clone()]).collect::<Module>();
        if path.is_dir() {
            collect(&path, &below(), files);
        } else if path.extension().is_some_and(|e| e == "rs") && name != "tests" {
            let own = ["mod", "lib", "main"].contains(&name.as_str());
            files.insert(if own { module.clone() } else { below() }, std::fs::read_to_string(&path).expect("source"));
        }
    }
}

/// The words and symbols of a source text, without comments, strings, characters and `#[cfg(test)]` modules.
fn tokens(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let (mut found, mut i) = (Vec::new(), 0);
    let starts = |i: usize, with: &str| letters[i..].iter().copied().take(with.chars().count()).eq(with.chars());
    while i < letters.len() {
        let c = letters[i];
        if starts(i, "//") {
            i += letters[i..].iter().position(|&c| c == '\n').unwrap_or(letters.len() - i);
        } else if starts(i, "/*") {
            i += 2;
            while i < letters.len() && !starts(i, "*/") {
                i += 1;
            }
            i += 2;
        } else if let Some(hashes) = raw_string(&letters[i..]) {
            let end = format!("\"{}", "#".repeat(hashes));
            i += hashes + 2;
            while i < letters.len() && !starts(i, &end) {
                i += 1;
            }
            i += end.len();
        } else if c == '"' {
            i += 1;
            while i < letters.len() && letters[i] != '"' {
                i += if letters[i] == '\\' { 2 } else { 1 };
            }
            i += 1;
        } else if c == '\'' && letters.get(i + 1) == Some(&'\\') {
            i += 3;
            while i < letters.len() && letters[i] != '\'' {
                i += 1;
            }
            i += 1;
        } else if c == '\'' && letters.get(i + 2) == Some(&'\'') {
            i += 3;
        } else if c.is_alphanumeric() || c == '_' {
            let word: String = letters[i..].iter().take_while(|c| c.is_alphanumeric() || **c == '_').collect();
            i += word.chars().count();
            found.push(word);
        } else if starts(i, "::") {
            found.push("::".into());
            i += 2;
        } else {
            if !c.is_whitespace() {
                found.push(c.into());
            }
            i += 1;
        }
    }
    without_tests(&found)
}

/// The number of `#` if a raw string starts here.
fn raw_string(letters: &[char]) -> Option<usize> {
    let rest = letters.strip_prefix(&['r'])?;
    let hashes = rest.iter().take_while(|c| **c == '#').count();
    (rest.get(hashes) == Some(&'"')).then_some(hashes)
}

/// Removes test modules: `#[cfg(test)] mod tests { … }`, also with `cfg(all(test, …))`.
fn without_tests(tokens: &[String]) -> Vec<String> {
    let (mut kept, mut i) = (Vec::new(), 0);
    while i < tokens.len() {
        let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| token == word);
        if is(i, "#") && is(i + 1, "[") && is(i + 2, "cfg") {
            let end = (i..tokens.len()).find(|&j| is(j, "]")).unwrap_or(tokens.len());
            let test = tokens[i..end].iter().any(|token| token == "test") && is(end + 1, "mod");
            if test && is(end + 3, "{") {
                i = closing(tokens, end + 3) + 1;
                continue;
            }
        }
        kept.push(tokens[i].clone());
        i += 1;
    }
    kept
}

/// The position of the bracket that closes the one at `open`.
fn closing(tokens: &[String], open: usize) -> usize {
    let mut depth = 0;
    for (i, token) in tokens.iter().enumerate().skip(open) {
        match token.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i;
        }
    }
    tokens.len()
}

/// The paths that start with `crate`, `super` or `self`, relative to the root. Each comes with its module and whether it
/// is exported. An inline module counts as part of its file.
fn paths(tokens: &[String], file: &Module) -> Vec<(Module, Vec<String>, bool)> {
    let mut found = Vec::new();
    // The closing tokens of the inline modules around the current token.
    let mut inside: Vec<usize> = Vec::new();
    let (mut i, mut public, mut importing) = (0, false, false);
    while i < tokens.len() {
        inside.retain(|&end| i <= end);
        match tokens[i].as_str() {
            "mod" if tokens.get(i + 2).is_some_and(|t| t == "{") => inside.push(closing(tokens, i + 2)),
            "use" => {
                importing = true;
                public = i > 0 && (tokens[i - 1] == "pub" || tokens[i - 1] == ")");
                // A re-export of a child: `pub use child::Name`.
                let relative =
                    tokens.get(i + 1).is_some_and(|t| !["crate", "super", "self", "::"].contains(&t.as_str()));
                if public && relative && inside.is_empty() {
                    let (all, _) = tree(tokens, i + 1);
                    found.extend(all.into_iter().map(|path| (file.clone(), [file.clone(), path].concat(), true)));
                }
            }
            ";" => importing = false,
            "crate" | "super" | "self"
                if tokens.get(i + 1).is_some_and(|t| t == "::") && (i == 0 || tokens[i - 1] != "::") =>
            {
                let mut base = file.clone();
                let (mut start, mut up) = (i, inside.len());
                if tokens[start] == "crate" {
                    base.clear();
                    start += 2;
                } else if tokens[start] == "self" {
                    start += 2;
                }
                while tokens.get(start).is_some_and(|t| t == "super") {
                    if up > 0 {
                        up -= 1;
                    } else {
                        base.pop();
                    }
                    start += 2;
                }
                // `pub(super)` has no `::` after it, so `super::` always starts a path.
                let (all, end) = tree(tokens, start);
                let exported = importing && public;
                found.extend(all.into_iter().map(|path| (file.clone(), [base.clone(), path].concat(), exported)));
                i = end;
                continue;
            }
            _ => {}
        }
        i += 1;
    }
    found
}

/// The paths of a tree such as `a::{b, c::d}`, and the position of its end.
fn tree(tokens: &[String], start: usize) -> (Vec<Vec<String>>, usize) {
    let mut path = Vec::new();
    let mut i = start;
    loop {
        match tokens.get(i).map(String::as_str) {
            Some("{") => {
                let (mut all, end) = (Vec::new(), closing(tokens, i));
                i += 1;
                while i < end {
                    let (below, next) = tree(tokens, i);
                    all.extend(below.into_iter().map(|p| [path.clone(), p].concat()));
                    // Skip the comma, and an `as` with its name.
                    i = (next..end).find(|&j| tokens[j] == ",").map_or(end, |j| j + 1);
                }
                return (all, end + 1);
            }
            Some(word) if word.chars().all(|c| c.is_alphanumeric() || c == '_') => {
                path.push(word.to_string());
                i += 1;
            }
            _ => return (vec![path], i),
        }
        if tokens.get(i).is_some_and(|t| t == "::") {
            i += 1;
        } else {
            return (vec![path], i);
        }
    }
}

/// The circles of a graph: each set of nodes that reach each other, with the edges between them.
fn circles_of(graph: &BTreeMap<String, BTreeMap<String, String>>) -> Vec<String> {
    let reach = |from: &String| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(node) = next.pop() {
            for used in graph.get(node).into_iter().flat_map(BTreeMap::keys) {
                if seen.insert(used) {
                    next.push(used);
                }
            }
        }
        seen
    };
    let mut reported: BTreeSet<&String> = BTreeSet::new();
    let mut found = Vec::new();
    for node in graph.keys() {
        if reported.contains(node) || !reach(node).contains(node) {
            continue;
        }
        let circle: Vec<&String> = reach(node).into_iter().filter(|other| reach(other).contains(node)).collect();
        let inner = |from: &&String| {
            let used = graph.get(*from).into_iter().flatten();
            used.filter(|(to, _)| circle.contains(to)).map(|(_, example)| example.clone()).collect::<Vec<_>>()
        };
        found.push(circle.iter().flat_map(inner).collect::<Vec<_>>().join(", "));
        reported.extend(circle);
    }
    found
}

#[test]
fn circles_are_found_through_folders_and_reexports_but_not_with_the_parent() {
    let source = |files: &[(&str, &str)]| {
        let module = |path: &str| path.split("::").filter(|s| !s.is_empty()).map(String::from).collect::<Module>();
        Crate::new(files.iter().map(|(path, text)| (module(path), (*text).to_string())).collect())
    };
    let one_way = source(&[
        ("", "mod a; mod b; pub use a::X;"),
        ("a", "pub struct X; mod child; use child::Y; // crate::b::Z\n#[cfg(test)] mod tests { use crate::b::Z; }"),
        ("a::child", "use super::X; pub struct Y; const TEXT: &str = \"crate::b::Z\";"),
        ("b", "use crate::{X, a::{self, child::Y}}; pub struct Z;"),
    ]);
    assert_eq!(one_way.circles(), Vec::<String>::new());
    // Through a folder: a::one uses b, and b uses a::two.
    let folders = source(&[
        ("a", "mod one; mod two;"),
        ("a::one", "fn f() { crate::b::g() }"),
        ("a::two", "pub struct T;"),
        ("b", "use super::a::two::T; pub fn g() {}"),
    ]);
    assert_eq!(folders.circles(), ["a::one uses b, b uses a::two"]);
    // Through a re-export of the root, used in an inline module.
    let exported = source(&[
        ("", "pub use b::Z;"),
        ("a", "mod inner { use super::super::Z; }"),
        ("b", "pub struct Z; use crate::a;"),
    ]);
    assert_eq!(exported.circles(), ["a uses b, b uses a"]);
}
