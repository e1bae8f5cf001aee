// Shows the values of the curves at the pointer, under a finger or with the arrow keys, and hides a curve when its name in
// a legend is clicked. The rest of the page works without this script.
"use strict";
const hidden = new Set();
const shown = (group) => !hidden.has(group.dataset.name);
function toggle(name) {
  if (!hidden.delete(name)) hidden.add(name);
  for (const group of document.querySelectorAll("g[data-name]")) group.style.display = shown(group) ? "" : "none";
  for (const entry of document.querySelectorAll("g[data-legend]")) entry.setAttribute("aria-pressed", !hidden.has(entry.dataset.legend));
}
for (const entry of document.querySelectorAll("g[data-legend]")) {
  const name = entry.dataset.legend;
  if (![...entry.ownerSVGElement.querySelectorAll("g[data-points]")].some((group) => group.dataset.name === name)) continue;
  entry.setAttribute("class", "legend");
  entry.setAttribute("role", "button");
  entry.setAttribute("tabindex", "0");
  entry.setAttribute("aria-pressed", "true");
  entry.addEventListener("click", () => toggle(name));
  entry.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.stopPropagation();
    toggle(name);
  });
}
for (const svg of document.querySelectorAll("svg.figure")) {
  const curves = [...svg.querySelectorAll("g[data-points]")].map((group) => ({
    group,
    name: group.dataset.name,
    key: group.querySelector("polyline, polygon")?.style,
    points: group.dataset.points.split(" ").filter(Boolean).map((point) => point.split(",").map(Number)),
  })).filter((curve) => curve.points.length);
  if (!curves.length) continue;

  // The browser would show the title over the values.
  const title = svg.querySelector("title");
  svg.setAttribute("aria-label", title.textContent);
  title.remove();
  svg.setAttribute("tabindex", "0");

  const [left, top, right, bottom] = svg.dataset.plot.split(" ").map(Number);
  const cursor = document.createElementNS(svg.namespaceURI, "line");
  cursor.setAttribute("class", "cursor");
  cursor.setAttribute("y1", top);
  cursor.setAttribute("y2", bottom);
  const box = document.createElement("div");
  box.className = "readout";
  box.setAttribute("role", "status");
  const nearest = (points, x) => points.reduce((a, b) => (Math.abs(b[0] - x) < Math.abs(a[0] - x) ? b : a));
  const steps = [...new Set(curves.flatMap((curve) => curve.points.map((point) => point[0])))].sort((a, b) => a - b);
  const short = (value) => String(Number(value.toPrecision(4)));
  const long = (value) => value.toExponential(2).replace(/e(.)(\d)$/, "e$10$2");
  let at = 0;

  function show(x) {
    at = nearest(steps.map((step) => [step]), x)[0];
    // Skip a curve that ended long before this point.
    const rows = curves.filter((curve) => shown(curve.group)).map((curve) => [curve, nearest(curve.points, at)]).filter(([, point]) => Math.abs(point[0] - at) <= 12);
    if (!rows.length) return hide();
    const same = rows.every(([, point]) => point[2] === rows[0][1][2]);
    const table = document.createElement("table");
    table.createCaption().textContent = same ? `${svg.dataset.x} ${short(rows[0][1][2])}` : svg.dataset.x;
    for (const [curve, [, , value, y]] of rows) {
      const row = table.insertRow();
      const name = row.appendChild(document.createElement("th"));
      name.textContent = "● " + curve.name;
      name.style.color = curve.key?.stroke || curve.key?.fill;
      if (!same) row.insertCell().textContent = short(value);
      row.insertCell().textContent = long(y);
    }
    box.replaceChildren(table);
    cursor.setAttribute("x1", at);
    cursor.setAttribute("x2", at);
    svg.append(cursor);
    svg.parentNode.append(box);
    // Below the figure or, if the window ends there, above the plot, so that it does not cover the data.
    const scale = svg.clientWidth / svg.viewBox.baseVal.width;
    const room = svg.clientWidth - box.offsetWidth;
    const below = svg.getBoundingClientRect().bottom + box.offsetHeight < innerHeight;
    box.style.left = `${Math.max(0, Math.min(room, at * scale - box.offsetWidth / 2))}px`;
    box.style.top = `${svg.parentNode.offsetHeight - (below ? 0 : svg.clientHeight - top * scale + box.offsetHeight + 2)}px`;
  }
  function hide() {
    cursor.remove();
    box.remove();
  }
  const point = (event) => {
    const frame = svg.getBoundingClientRect();
    const x = ((event.clientX - frame.left) / frame.width) * svg.viewBox.baseVal.width;
    if (x < left - 8 || x > right + 8) hide();
    else show(x);
  };
  svg.addEventListener("pointermove", point);
  svg.addEventListener("pointerdown", point);
  // The values stay after a tap, until the next one.
  svg.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && hide());
  document.addEventListener("pointerdown", (event) => svg.contains(event.target) || hide());
  svg.addEventListener("blur", hide);
  svg.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") hide();
    if (!move) return;
    event.preventDefault();
    const next = Math.min(steps.length - 1, Math.max(0, cursor.isConnected ? steps.indexOf(at) + move : 0));
    show(steps[next]);
  });
}
