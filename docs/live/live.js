// The live page: runs the library, which `library.js` holds as WebAssembly, and draws each step.
"use strict";

(async () => {
  const FUNCTIONS = [
    { name: "Bowl", start: [-1.9, 0.9] },
    { name: "Rosenbrock", start: [-1.2, 1] },
    { name: "Himmelblau", start: [-0.2, 0.3] },
  ];
  const STR = 1, STR_SQP = 2; // of the library's methods; 0 is Auto
  const LEFT = -2.4, BOTTOM = -1.75, DISK = 1; // the part of the plane that is shown, and the constraint's radius
  const WIDTH = 800, HEIGHT = 600, SCALE = WIDTH / 4.8; // the plot in its own units, and how many are 1
  const LEVELS = 16, CELL = 4;
  const CONVERGED = 1e-6, MOST_STEPS = 3000;
  const TRIALS_SHOWN = 400;

  const byId = (id) => document.getElementById(`live-${id}`);
  const root = document.getElementById("live");
  if (!root || !globalThis.strustLibrary) return;
  const bytes = Uint8Array.from(atob(globalThis.strustLibrary), (c) => c.charCodeAt(0));
  const library = (await WebAssembly.instantiate(bytes)).instance.exports;

  // ---- Numbers and elements

  const number = (n) => {
    if (!Number.isFinite(n)) return "–";
    const size = Math.abs(n);
    const text = size === 0 ? "0" : size >= 1e-3 && size < 1e4 ? `${+n.toPrecision(3)}` : n.toExponential(1);
    return text.replace(".0e", "e").replace(/-/g, "−");
  };

  const element = (parent, tag, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    parent.append(made);
    return made;
  };

  // ---- The plot: contours on a canvas, the run on an SVG above it

  const canvas = root.querySelector("canvas");
  const plot = element(byId("plot"), "svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true" });
  const shapes = {};
  for (const [name, tag, classes] of [
    ["feasible", "circle", "feasible"], ["region", "ellipse", "region"], ["halo", "polyline", "halo"],
    ["answer", "polyline", "answer"], ["accepted", "path", "yes past"], ["rejected", "path", "no past"],
    ["arrow", "path", "arrow"], ["start", "circle", "start"], ["here", "path", "here"], ["trial", "path", "now"],
  ]) shapes[name] = element(plot, tag, { class: classes });

  const toPlot = ([x, y]) => [(x - LEFT) * SCALE, HEIGHT - (y - BOTTOM) * SCALE];
  const fromPlot = ([x, y]) => [LEFT + x / SCALE, BOTTOM + (HEIGHT - y) / SCALE];
  const text = (point) => point.map((n) => n.toFixed(1)).join(" ");
  const dot = (point) => `M${text(toPlot(point))}h0`;
  const cross = (point, r) => {
    const [x, y] = toPlot(point);
    return `M${text([x - r, y - r])}l${2 * r} ${2 * r}m0 ${-2 * r}l${-2 * r} ${2 * r}`;
  };

  /** The function on a grid, and levels at quantiles, closer where it is low. */
  const sampleFunction = () => {
    const columns = WIDTH / CELL + 1, rows = HEIGHT / CELL + 1;
    const values = new Float64Array(columns * rows);
    for (let i = 0; i < values.length; i++) {
      const [x, y] = fromPlot([(i % columns) * CELL, Math.floor(i / columns) * CELL]);
      values[i] = library.value_at(settings.function, x, y);
    }
    const order = Array.from(values.keys()).sort((a, b) => values[a] - values[b]);
    const rank = new Float64Array(values.length);
    order.forEach((index, place) => { rank[index] = place / values.length; });
    const quantile = (q) => values[order[Math.floor(q * values.length)]];
    const levels = Array.from({ length: LEVELS }, (_, i) => quantile(((i + 1) / (LEVELS + 1)) ** 1.8));
    return { columns, rows, values, rank, levels };
  };

  /** The contour of one level through the cells of the grid (marching squares). */
  const contour = ({ columns, rows, values }, level) => {
    const path = new Path2D();
    for (let row = 0; row + 1 < rows; row++) {
      for (let column = 0; column + 1 < columns; column++) {
        const corners = [[0, 0], [1, 0], [1, 1], [0, 1]].map(([dx, dy]) => {
          const [i, j] = [column + dx, row + dy];
          return [i, j, values[j * columns + i] - level];
        });
        const crossings = [];
        corners.forEach(([i, j, here], n) => {
          const [k, l, there] = corners[(n + 1) % 4];
          if (here < 0 === there < 0) return;
          const share = here / (here - there);
          crossings.push([(i + share * (k - i)) * CELL, (j + share * (l - j)) * CELL]);
        });
        for (let n = 0; n + 1 < crossings.length; n += 2) {
          path.moveTo(...crossings[n]);
          path.lineTo(...crossings[n + 1]);
        }
      }
    }
    return path;
  };

  const drawFunction = () => {
    const color = (name) => getComputedStyle(root).getPropertyValue(name).trim();
    const { columns, rows, rank } = surface;
    const small = document.createElement("canvas");
    [small.width, small.height] = [columns, rows];
    const paper = small.getContext("2d", { willReadFrequently: true });
    // The colors of the ranks, as one row of pixels.
    const gradient = paper.createLinearGradient(0, 0, columns, 0);
    gradient.addColorStop(0, color("--valley"));
    gradient.addColorStop(1, color("--hill"));
    paper.fillStyle = gradient;
    paper.fillRect(0, 0, columns, 1);
    const colors = paper.getImageData(0, 0, columns, 1).data;
    const image = paper.createImageData(columns, rows);
    rank.forEach((share, i) => {
      const from = 4 * Math.floor(Math.sqrt(share) * columns);
      image.data.set(colors.subarray(from, from + 4), 4 * i);
    });
    paper.putImageData(image, 0, 0);
    const ink = canvas.getContext("2d");
    const zoom = canvas.width / WIDTH;
    ink.setTransform(zoom, 0, 0, zoom, 0, 0);
    ink.imageSmoothingQuality = "high";
    ink.drawImage(small, 0, 0, columns, rows, -CELL / 2, -CELL / 2, columns * CELL, rows * CELL);
    ink.strokeStyle = color("--contour");
    ink.lineWidth = 1.3;
    surface.paths.forEach((path) => ink.stroke(path));
  };

  // ---- The curves

  const curves = ["value", "radius"].map((id) => {
    const figure = byId(id);
    figure.innerHTML = "<figcaption><span></span><output></output></figcaption>";
    const svg = element(figure, "svg", { viewBox: "0 0 300 124", role: "img" });
    return { figure, svg, key: id };
  });

  const drawCurve = ({ figure, svg, key }, name) => {
    const points = history.map((at) => [at.steps, Math.log10(Math.max(at[key], 1e-16))]).filter((at) => Number.isFinite(at[1]));
    const logs = points.map((at) => at[1]);
    const low = Math.floor(Math.min(-1, ...logs)), high = Math.max(0, Math.ceil(Math.max(...logs, low)));
    const most = Math.max(40, history.at(-1).steps);
    const x = (step) => 42 + (252 * step) / most;
    const y = (log) => 8 + (92 * (high - log)) / (high - low);
    svg.replaceChildren();
    const every = Math.ceil((high - low) / 4);
    for (let decade = high; decade >= low; decade -= every) {
      element(svg, "path", { class: "grid", d: `M42 ${y(decade)}H294` });
      element(svg, "text", { x: 36, y: y(decade) + 4, "text-anchor": "end" }).textContent = number(10 ** decade);
    }
    element(svg, "text", { x: 42, y: 118 }).textContent = "step 0";
    element(svg, "text", { x: 294, y: 118, "text-anchor": "end" }).textContent = most;
    element(svg, "polyline", { class: "line", points: points.map(([step, log]) => text([x(step), y(log)])).join(" ") });
    const now = number(history.at(-1)[key]);
    figure.querySelector("span").textContent = name;
    figure.querySelector("output").textContent = now;
    svg.setAttribute("aria-label", `${name} over the steps, now ${now}`);
  };

  // ---- The run

  const settings = { function: 0, method: 0, noise: 0, seed: 0 };
  let chosen = "0"; // the method without the constraint
  let start, surface, history, ended, timer;
  let trials = []; // { point, accepted }

  const converged = () => library.gradient() < CONVERGED && !(library.constraint() > CONVERGED);
  const remember = () => history.push({
    steps: library.steps(), point: [library.x(), library.y()], value: library.value(), radius: library.radius(),
  });

  const readSettings = () => {
    settings.function = byId("function").selectedIndex;
    settings.noise = +byId("noise").value;
    settings.seed = Math.max(0, Math.floor(+byId("seed").value) || 0);
    const [method, constraint] = [byId("method"), byId("constraint").checked];
    if (!method.disabled) chosen = method.value;
    method.disabled = constraint;
    method.value = constraint ? STR_SQP : chosen;
    settings.method = +method.value;
  };

  const restart = () => {
    library.reset(settings.function, settings.method, settings.noise, settings.seed, ...start);
    [history, trials, ended] = [[], [], false];
    remember();
    draw();
  };

  const changeFunction = () => {
    start = FUNCTIONS[settings.function].start;
    surface = sampleFunction();
    surface.paths = surface.levels.map((level) => contour(surface, level));
    drawFunction();
  };

  /** Makes a step. Returns whether the run goes on. */
  const advance = () => {
    if (ended) return false;
    ended = !library.step();
    if (!ended) {
      remember();
      trials.push({ point: [library.trial_x(), library.trial_y()], accepted: library.accepted() === 1 });
    }
    ended ||= converged() || history.length > MOST_STEPS;
    return !ended;
  };

  // ---- What a step means, in words

  const change = (fall) => `a ${fall < 0 ? "rise" : "fall"} of ${number(Math.abs(fall))}`;

  const outcome = () => {
    const accepted = library.accepted() === 1;
    const region = { "-1": "shrinks", 0: "stays", 1: "grows" }[library.change()];
    if (settings.method === STR) return `${accepted ? "accepted" : "rejected"}, the region ${region}`;
    if (!accepted) return "rejected, the next step is shorter";
    const outside = Math.hypot(library.base_x(), library.base_y()) > DISK + CONVERGED;
    if (settings.method === STR_SQP) return outside ? "accepted, on the way into the disk" : "accepted";
    return library.actual() < 0 ? "accepted, because the curvature is as expected" : "accepted";
  };

  const verdict = () => {
    if (!trials.length) return "Press Step. Click on the plot to move the start.";
    const [predicted, actual] = [library.predicted(), library.actual()];
    const sentences = [];
    if (!Number.isFinite(actual)) {
      sentences.push("No trial: no step reduces the value further.");
    } else if (!Number.isFinite(predicted)) {
      const all = trials.length > 1 ? "A step on all terms: the" : "The";
      sentences.push(`${all} trial found ${change(actual)}: ${outcome()}.`);
    } else {
      const found = predicted < 0 === actual < 0 ? number(Math.abs(actual)) : change(actual);
      sentences.push(`The model predicted ${change(predicted)}, the trial found ${found}: ${outcome()}.`);
    }
    if (settings.method === STR_SQP) {
      sentences.push(`The answer has c = ${number(library.constraint())} and the multiplier ${number(library.multiplier())}.`);
    }
    if (converged()) sentences.push(`Over all terms the gradient is ${number(library.gradient())}: converged.`);
    return sentences.join(" ");
  };

  // ---- Drawing

  const set = (shape, attributes) => {
    for (const [name, value] of Object.entries(attributes)) shapes[shape].setAttribute(name, value);
  };
  const circle = (shape, point, r) => {
    const [cx, cy] = toPlot(point);
    set(shape, { cx, cy, r });
  };

  const draw = () => {
    const points = history.map(({ point }) => text(toPlot(point))).join(" ");
    set("answer", { points });
    set("halo", { points });
    circle("start", start, 7);
    set("here", { d: dot(history.at(-1).point) });
    circle("feasible", [0, 0], settings.method === STR_SQP ? DISK * SCALE : 0);
    const past = trials.slice(-TRIALS_SHOWN, -1).filter(({ point }) => Number.isFinite(point[0]));
    set("accepted", { d: past.filter((t) => t.accepted).map((t) => dot(t.point)).join("") });
    set("rejected", { d: past.filter((t) => !t.accepted).map((t) => cross(t.point, 4)).join("") });
    const now = trials.at(-1);
    const shown = Boolean(now) && Number.isFinite(now.point[0]);
    for (const name of ["trial", "region", "arrow"]) shapes[name].style.display = shown ? "" : "none";
    if (shown) {
      const base = [library.base_x(), library.base_y()];
      const [cx, cy] = toPlot(base);
      set("region", { cx, cy, rx: library.region_x() * SCALE, ry: library.region_y() * SCALE });
      set("arrow", { class: `arrow ${now.accepted ? "yes" : "no"}`, d: `M${text([cx, cy])}L${text(toPlot(now.point))}` });
      set("trial", { class: `now ${now.accepted ? "yes" : "no"}`, d: now.accepted ? dot(now.point) : cross(now.point, 7) });
    }
    const kind = now ? (now.accepted ? "yes" : "no") : "";
    [byId("verdict").textContent, byId("verdict").className] = [verdict(), kind];
    byId("steps").textContent = `step ${library.steps()}, epoch ${library.epoch()}`;
    drawCurve(curves[0], "Value");
    drawCurve(curves[1], settings.method === STR ? "Radius" : "Step length");
    Object.assign(root.dataset, { steps: library.steps(), converged: converged(), verdict: kind });
  };

  // ---- Controls

  const pause = () => {
    clearTimeout(timer);
    timer = undefined;
    byId("play").textContent = "Play";
    byId("verdict").setAttribute("aria-live", "polite");
  };
  const tick = () => {
    const goesOn = advance();
    draw();
    if (!goesOn) return pause();
    // Slow enough to read at first, then faster.
    timer = setTimeout(tick, Math.max(16, 150 * 0.97 ** history.length));
  };
  const play = () => {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      for (let i = 0; i < 300 && advance(); i++);
      return draw();
    }
    byId("play").textContent = "Pause";
    byId("verdict").setAttribute("aria-live", "off");
    tick();
  };

  byId("function").append(...FUNCTIONS.map(({ name }) => new Option(name)));
  byId("step").addEventListener("click", () => { pause(); advance(); draw(); });
  byId("play").addEventListener("click", () => (timer ? pause() : play()));
  byId("reset").addEventListener("click", () => { pause(); restart(); });
  byId("settings").addEventListener("submit", (event) => event.preventDefault());
  byId("settings").addEventListener("input", (event) => {
    readSettings();
    if (event.target === byId("function")) changeFunction();
    restart();
  });
  byId("plot").addEventListener("click", (event) => {
    const box = plot.getBoundingClientRect();
    start = fromPlot([((event.clientX - box.left) / box.width) * WIDTH, ((event.clientY - box.top) / box.height) * HEIGHT]);
    restart();
  });
  byId("plot").addEventListener("keydown", (event) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!way) return;
    event.preventDefault();
    const [left, bottom] = fromPlot([0, HEIGHT]), [right, top] = fromPlot([WIDTH, 0]);
    const to = (i, from, until) => Math.min(until, Math.max(from, start[i] + way[i] / 10));
    start = [to(0, left, right), to(1, bottom, top)];
    restart();
  });
  // mdBook turns pages with the arrow keys.
  root.addEventListener("keydown", (event) => event.stopPropagation());
  new MutationObserver(drawFunction).observe(document.documentElement, { attributeFilter: ["class"] });

  root.hidden = false;
  readSettings();
  changeFunction();
  restart();
  root.dataset.ready = "true";
})();
