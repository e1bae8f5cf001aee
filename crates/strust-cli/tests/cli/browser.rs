//! Opens the report in a browser.

use crate::support::{Folder, SMALL, experiment, requires, run};
use std::{path::Path, process::Command};

/// The first Chromium found on this machine. The variable `CHROMIUM` may name another one.
fn chromium() -> Option<String> {
    let named = std::env::var("CHROMIUM").ok();
    let known = ["chromium", "chromium-browser", "google-chrome", "chrome"].map(String::from);
    named
        .into_iter()
        .chain(known)
        .find(|name| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success()))
}

fn browse(browser: &str, profile: &Path, page: &Path, more: &[&str]) -> (String, String) {
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"])
        .args(["--disable-background-networking", "--disable-component-update", "--allow-file-access-from-files"])
        .args(["--enable-logging=stderr", "--v=0", "--virtual-time-budget=5000"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(more)
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("the browser starts");
    (String::from_utf8_lossy(&output.stdout).into(), String::from_utf8_lossy(&output.stderr).into())
}

#[test]
fn the_report_works_in_a_browser_on_a_desktop_and_on_a_phone() {
    let browser = chromium();
    if !requires("chromium", browser.is_some()) {
        return;
    }
    let browser = browser.expect("a browser is available");
    let folder = Folder::new();
    let methods = "[[method]]\nname = \"str-p\"\n\n[[method]]\nname = \"sgd-proj\"\n\n[[method]]\nname = \"auglag\"\n";
    let file = folder.write("experiment.toml", &experiment(SMALL, methods));
    let out = folder.path("out");
    let result = run(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "-q"]);
    assert_eq!(result.code, Some(0), "{}", result.err);

    // This page contains the report and measures it at the widths of a desktop and of a phone.
    let frame = r#"<body><iframe id="f" src="out/report.html" style="border:0;height:900px"></iframe><pre id="r"></pre><script>
        const f = document.getElementById("f"), lines = [];
        f.onload = () => {
            for (const width of [1200, 360]) {
                f.style.width = width + "px";
                const d = f.contentDocument, root = d.documentElement;
                const shown = [...d.querySelectorAll("svg")].filter(s => s.getBoundingClientRect().width > 0);
                const escaped = shown.filter(s => s.getBoundingClientRect().right > width + 1).length;
                lines.push(`width=${width} scroll=${root.scrollWidth} figures=${shown.length} escaped=${escaped} headings=${d.querySelectorAll("h1").length} tables=${d.querySelectorAll("table").length}`);
            }
            // A click on a name hides the curve; a tap shows values.
            const d = f.contentDocument, w = f.contentWindow;
            const svg = [...d.querySelectorAll("svg.figure")].find(s => s.getBoundingClientRect().width > 0);
            const entry = svg.querySelector("g.legend"), name = entry.dataset.legend;
            const hidden = () => [...svg.querySelectorAll("g[data-name]")].filter(g => g.dataset.name === name).every(g => w.getComputedStyle(g).display === "none");
            const click = () => entry.dispatchEvent(new w.MouseEvent("click", { bubbles: true }));
            const states = [hidden()];
            click(); states.push(hidden(), entry.getAttribute("aria-pressed"));
            click(); states.push(hidden());
            const box = svg.getBoundingClientRect();
            svg.dispatchEvent(new w.PointerEvent("pointerdown", { bubbles: true, pointerType: "touch", clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 }));
            states.push(d.querySelectorAll(".readout tr").length);
            lines.push("states=" + states.join(","));
            document.getElementById("r").textContent = "measured: " + lines.join("; ") + " end";
        };</script></body>"#;
    let frame = folder.write("frame.html", frame);
    let (dom, log) = browse(&browser, &folder.path("profile"), &frame, &["--dump-dom"]);
    let measured = dom.split("measured: ").nth(1).and_then(|rest| rest.split(" end").next());
    let measured = measured.unwrap_or_else(|| panic!("the page did not load: {log}"));
    for (line, width) in measured.split("; ").zip([1200, 360]) {
        let number = |key: &str| -> u32 {
            let value = line.split(' ').find_map(|part| part.strip_prefix(&format!("{key}=")));
            value.and_then(|v| v.parse().ok()).unwrap_or_else(|| panic!("{key} in {line}"))
        };
        assert_eq!(number("width"), width);
        assert!(number("scroll") <= width, "the page scrolls sideways: {line}");
        assert!(number("figures") >= 2, "both metrics must be drawn: {line}");
        assert_eq!((number("escaped"), number("headings")), (0, 1), "{line}");
        assert!(number("tables") >= 2, "{line}");
    }
    assert!(
        measured.ends_with("states=false,true,false,false,3"),
        "hidden by a click and shown again; values of three: {measured}"
    );
    let errors: Vec<&str> =
        log.lines().filter(|line| line.contains("CONSOLE") || line.contains("Refused to")).collect();
    assert!(errors.is_empty(), "{errors:#?}");

    // Light and dark. The image of a blank page would be much smaller.
    for scheme in ["light", "dark"] {
        let shot = folder.path(&format!("{scheme}.png"));
        let preferred = format!("--blink-settings=preferredColorScheme={}", u8::from(scheme == "light"));
        let screenshot = format!("--screenshot={}", shot.display());
        browse(
            &browser,
            &folder.path("profile"),
            &out.join("report.html"),
            &[&preferred, &screenshot, "--window-size=1200,1600"],
        );
        let size = std::fs::metadata(&shot).map_or(0, |m| m.len());
        assert!(size > 30_000, "{scheme}: {size} bytes");
    }

    // In print, every panel is shown.
    let paper = folder.path("page.pdf");
    let print = format!("--print-to-pdf={}", paper.display());
    browse(&browser, &folder.path("profile"), &out.join("report.html"), &[&print]);
    let size = std::fs::metadata(&paper).map_or(0, |m| m.len());
    assert!(size > 30_000, "print: {size} bytes");
}
