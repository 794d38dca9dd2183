// One call ----------------------------------------------------------------------------------------------------------
function evaluations_of(entry) { return (entry.trail && entry.trail.evaluations) || []; }
function kernels_of(entry) {
  const names = (entry.evidence.kernels || []).map(k => k.kernel);
  for (const e of evaluations_of(entry)) if (!names.includes(e.kernel)) names.push(e.kernel);
  // Those that were measured, the chosen first.
  const tried = names.filter(n => evaluations_of(entry).some(e => e.kernel === n));
  return [entry.kernel, ...tried.filter(n => n !== entry.kernel)];
}
// A kernel has one colour in all calls of the page, in the order in which they are drawn first.
const painted = [];
function color_of(kernel) {
  if (!painted.includes(kernel)) painted.push(kernel);
  return color(painted.indexOf(kernel));
}
const shown = e => e.time_ns || e.raced_ns;
function describe(e, index) {
  const lines = [`${e.kernel}${e.default ? "  (its default)" : ""}`, config_text(e.config)];
  if (e.failure) lines.push(`rejected: ${e.failure}`, e.reason || "");
  if (!e.failure && shown(e)) {
    lines.push(`${time(shown(e))}${e.low_ns ? `  (${time(e.low_ns)} to ${time(e.high_ns)}, ${count(e.samples, "sample", "samples")})` : ""}`);
    if (e.raced_ns && Math.abs(e.raced_ns / shown(e) - 1) > .001) lines.push(`${time(e.raced_ns)} in the race`);
    if (e.dropped) lines.push("dropped early: clearly slower than the best");
    if (e.max_error !== undefined) lines.push(`error ${digits(e.max_error, 2)} of what is allowed`);
  }
  lines.push(`evaluation ${index + 1}, ${digits(e.at, 3)} s${e.resumed ? ", from the store" : ""}`);
  return lines.filter(Boolean).join("\n");
}
function cross(svg, x, y, r) { return draw(svg, "path", {class: "fail", d: `M${x - r},${y - r}l${2 * r},${2 * r}m${-2 * r},0l${2 * r},${-2 * r}`}); }

function time_axis(svg, box, from, to) {
  const y = logarithmic(from, to, box.bottom, box.top);
  for (const t of log_steps(from, to)) {
    draw(svg, "line", {class: "grid", x1: box.left, x2: box.right, y1: y(t), y2: y(t)});
    draw(svg, "text", {x: box.left - 8, y: y(t) + 4, "text-anchor": "end"}, time(t));
  }
  return y;
}

// The slowest that is drawn in its place: defaults of slow kernels are hundreds of times off, and would press the rest flat.
function reach(times) {
  const s = [...times].sort((a, b) => a - b);
  return Math.min(s[s.length - 1], Math.max(3 * s[0], 1.3 * s[Math.floor(.95 * (s.length - 1))]));
}

function progress_chart(entry, by_seconds) {
  const all = evaluations_of(entry), timed = all.filter(e => !e.failure && shown(e));
  const svg = canvas(1060, 340, "time of every config in the order they were measured, and the best so far");
  const box = {left: 74, right: 1046, top: 34, bottom: 300};
  const at = (e, i) => by_seconds ? e.at : i + 1;
  const last = Math.max(by_seconds ? 0 : 2, ...all.map(at));
  const x = linear(0, last * 1.01, box.left, box.right);
  const times = timed.map(shown).concat(timed.map(e => e.raced_ns).filter(Boolean));
  const most = reach(times);
  const y = time_axis(svg, box, Math.min(...times) / 1.08, most * 1.08);
  for (const s of steps(0, last, 8)) draw(svg, "text", {x: x(s), y: box.bottom + 18, "text-anchor": "middle"}, by_seconds ? `${digits(s || 0, 3)} s` : s);
  draw(svg, "line", {class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom});
  draw(svg, "text", {x: (box.left + box.right) / 2, y: box.bottom + 36, "text-anchor": "middle"}, by_seconds ? "seconds since the contest began" : "evaluations");
  let best = Infinity, path = "";
  all.forEach((e, i) => {
    const now = e.raced_ns || shown(e);
    if (e.failure || !now || now >= best) return;
    const py = y(Math.min(now, most));
    path += path ? `H${x(at(e, i))}V${py}` : `M${x(at(e, i))},${py}`;
    best = now;
  });
  const dots = draw(svg, "g", {});
  if (path) draw(svg, "path", {class: "best", d: path + `H${x(last)}`, "pointer-events": "none"});
  all.forEach((e, i) => {
    const px = x(at(e, i));
    if (e.failure || !shown(e)) { hint(cross(svg, px, box.top - 14, 4), describe(e, i)); return; }
    const now = e.raced_ns || shown(e), fill = color_of(e.kernel);
    const mark = now > most
      ? draw(dots, "path", {class: "dot", d: `M${px - 5},${box.top + 5}l5,-8l5,8z`, fill, "fill-opacity": .6})
      : draw(dots, "circle", {class: "dot", cx: px, cy: y(now), r: e.default ? 5 : 3.6, fill, "fill-opacity": e.dropped ? .5 : .92});
    hint(mark, describe(e, i));
  });
  return svg;
}

function legend(entry, names) {
  const keys = el("div", {class: "keys"});
  names.forEach(n => {
    if (!evaluations_of(entry).some(e => e.kernel === n)) return;
    keys.append(el("span", {}, el("span", {class: "swatch", style: `background:${color_of(n)}`}), n));
  });
  const line = el("span", {}, "\u2501 best so far");
  keys.append(line);
  if (evaluations_of(entry).some(e => e.failure)) keys.append(el("span", {class: "bad"}, "\u2715 rejected"));
  if (evaluations_of(entry).some(e => e.default)) keys.append(el("span", {}, "large: a kernel's default"));
  const all = evaluations_of(entry).filter(e => !e.failure && shown(e)).map(e => e.raced_ns || shown(e));
  if (Math.max(...all) > reach(all)) keys.append(el("span", {}, "\u25b2 slower than the chart reaches"));
  if (evaluations_of(entry).some(e => e.dropped)) keys.append(el("span", {}, "pale: dropped early, surely slower"));
  return keys;
}

function switcher(names, chosen, show) {
  const bar = el("div", {class: "choice"});
  const press = name => {
    for (const b of bar.children) b.setAttribute("aria-pressed", b.textContent === name);
    show(name);
  };
  for (const name of names) {
    const b = el("button", {type: "button"}, name);
    b.addEventListener("click", () => press(name));
    bar.append(b);
  }
  press(chosen);
  return bar;
}

function progress_card(entry, names) {
  const place = el("div", {class: "scroll wide"});
  const bar = switcher(["by evaluations", "by seconds"], "by evaluations",
    which => place.replaceChildren(progress_chart(entry, which === "by seconds")));
  return el("div", {class: "card"}, el("div", {class: "head"}, el("h3", {}, "Progress"),
    el("p", {class: "sub"}, "Every config as a point, and the best so far. Time of one run, logarithmic."), bar), place, legend(entry, names));
}

// Parameters --------------------------------------------------------------------------------------------------------
function in_order(values) {
  return values.every(v => typeof v === "number") ? [...values].sort((a, b) => a - b) : [...values];
}
function effect_chart(entry, kernel, parameter, tint) {
  const rows = evaluations_of(entry).map((e, i) => ({e, i})).filter(r => r.e.kernel === kernel && !r.e.failure && shown(r.e));
  const values = in_order([...new Set(rows.map(r => r.e.config[parameter]))]);
  const svg = canvas(340, 190, `time by ${parameter}`);
  const box = {left: 64, right: 334, top: 26, bottom: 150};
  draw(svg, "text", {class: "name", x: 4, y: 12, "font-weight": 600}, parameter);
  const times = rows.map(r => shown(r.e));
  const most = reach(times), y = time_axis(svg, box, Math.min(...times) / 1.05, most * 1.05);
  draw(svg, "line", {class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom});
  const width = (box.right - box.left) / values.length;
  values.forEach((value, v) => {
    const middle = box.left + (v + .5) * width, mine = rows.filter(r => r.e.config[parameter] === value);
    const label = String(value).length * 6.6 > width ? String(value).slice(0, Math.max(1, Math.floor(width / 6.6) - 1)) + "\u2026" : String(value);
    draw(svg, "text", {x: middle, y: box.bottom + 17, "text-anchor": "middle"}, label);
    mine.forEach((r, k) => {
      const jitter = ((k * 0.618034) % 1 - .5) * Math.min(width * .6, 34);
      hint(draw(svg, "circle", {class: "dot", cx: middle + jitter, cy: y(Math.min(shown(r.e), most * 1.05)), r: 3, fill: tint, "fill-opacity": .6}), describe(r.e, r.i));
    });
    const all = mine.map(r => shown(r.e)), half = Math.min(width * .36, 22);
    const least = draw(svg, "line", {x1: middle - half, x2: middle + half, y1: y(Math.min(...all, most)), y2: y(Math.min(...all, most)), stroke: "var(--ink)", "stroke-width": 2.2});
    draw(svg, "line", {x1: middle - half, x2: middle + half, y1: y(Math.min(median(all), most)), y2: y(Math.min(median(all), most)), stroke: "var(--soft)", "stroke-width": 1.4, "stroke-dasharray": "3 2", "pointer-events": "none"});
    hint(least, `${parameter} = ${value}\nfastest ${time(Math.min(...all))}, median ${time(median(all))}, ${count(all.length, "config", "configs")}`);
  });
  return svg;
}
function varied(entry, kernel) {
  const rows = evaluations_of(entry).filter(e => e.kernel === kernel && !e.failure && shown(e));
  const names = Object.keys((rows[0] || {}).config || {});
  return names.filter(p => new Set(rows.map(e => e.config[p])).size > 1);
}
function effects_card(entry, names) {
  const tuned = names.filter(n => varied(entry, n).length > 0);
  if (tuned.length === 0) return null;
  const place = el("div", {class: "effects"});
  const bar = switcher(tuned, tuned.includes(entry.kernel) ? entry.kernel : tuned[0], kernel =>
    place.replaceChildren(...varied(entry, kernel).map(p => effect_chart(entry, kernel, p, color_of(kernel)))));
  return el("div", {class: "card"}, el("div", {class: "head"}, el("h3", {}, "Parameters"),
    el("p", {class: "sub"}, "Each config by one parameter's value: what counts is the fastest at each value (bar); the median is dashed."), bar), place);
}

// Finals ------------------------------------------------------------------------------------------------------------
// What a config has other than the winner's of the same kernel.
function differing(config, other) {
  return config_text(Object.fromEntries(Object.entries(config).filter(([name, value]) => value !== other[name])));
}
function finals_card(entry) {
  const finals = entry.trail && entry.trail.finals, all = evaluations_of(entry);
  if (!finals || !finals.finalists.length || !finals.finalists[0].samples_ns.length) return null;
  const rows = finals.finalists.map((f, i) => ({e: all[f.evaluation], index: f.evaluation, samples: f.samples_ns, won: i === finals.winner, ...interval(f.samples_ns)}));
  rows.sort((a, b) => (b.won - a.won) || a.middle - b.middle);
  const winner = rows[0], height = 40 + rows.length * 46;
  const svg = canvas(1060, height, "finalists with their 95 % intervals");
  const box = {left: 310, right: 960, top: 10, bottom: height - 30};
  const least = .995 * Math.min(...rows.flatMap(r => r.samples));
  // Disturbed rounds may lie far out: they are drawn at the edge.
  const most = least + 1.25 * (Math.max(...rows.map(r => r.high)) - least);
  const x = linear(least, most, box.left, box.right);
  for (const t of steps(least, most, 6)) {
    draw(svg, "line", {class: "grid", x1: x(t), x2: x(t), y1: box.top, y2: box.bottom});
    draw(svg, "text", {x: x(t), y: box.bottom + 20, "text-anchor": "middle"}, time(t));
  }
  rows.forEach((r, i) => {
    const y = box.top + 24 + i * 46, tint = color_of(r.e.kernel);
    draw(svg, "text", {class: "name", x: 4, y: y - 1, "font-weight": r.won ? 700 : 500}, r.e.kernel + (r.e.default ? " (default)" : "") + (r.won ? "  \u2713" : ""));
    const words = r.won || r.e.kernel !== winner.e.kernel ? config_text(r.e.config) : differing(r.e.config, winner.e.config);
    hint(draw(svg, "text", {class: "small", x: 4, y: y + 14}, words.length > 48 ? words.slice(0, 47) + "\u2026" : words), config_text(r.e.config));
    for (const s of r.samples) draw(svg, "circle", {cx: Math.min(x(s), box.right), cy: y + 9, r: 2.4, fill: tint, "fill-opacity": .35});
    draw(svg, "line", {class: "bar", x1: x(r.low), x2: x(r.high), y1: y - 4, y2: y - 4, stroke: tint});
    const dot = draw(svg, "circle", {cx: x(r.middle), cy: y - 4, r: 5.5, fill: tint, stroke: "var(--card)", "stroke-width": 1.5});
    hint(dot, `${describe(r.e, r.index)}\nfinals: ${time(r.middle)} (${time(r.low)} to ${time(r.high)}), ${count(r.samples.length, "round", "rounds")}`);
    draw(svg, "text", {class: "name", x: 1056, y: y, "text-anchor": "end"}, r.won ? time(r.middle) : enough(r.samples.length) ? `${(r.middle / winner.middle).toFixed(3)}\u00d7` : "too few samples");
  });
  return el("div", {class: "card"}, el("div", {class: "head"}, el("h3", {}, "Finals"),
    el("p", {class: "sub"}, `Median of one run with its 95 % interval, ${count(rows[0].samples.length, "interleaved round", "interleaved rounds")}; small dots are the rounds, the slowest at the edge. Of the winner's kernel, what differs is named. At the right the winner's time, and the others' ratio to it.`)), el("div", {class: "scroll wide"}, svg));
}

// The machine -------------------------------------------------------------------------------------------------------
// Samples in the order in which they were taken: {at, disturbed, taken} an evaluation, and how slow each round of the finals was.
const is_disturbed = mark => mark > 0;
function looked_at(entry) {
  return evaluations_of(entry).filter(e => !e.resumed && e.runs_ns && e.runs_ns.length)
    .map(e => ({e, taken: e.runs_ns.length, disturbed: (e.marks || []).filter(is_disturbed).length}));
}
// Of each round the mean of the finalists' times over their medians: above 1 the machine was slower than it mostly was.
function rounds_of(finals) {
  const all = (finals ? finals.finalists : []).filter(f => f.samples_ns.length > 0);
  const rounds = [];
  for (let r = 0; r < Math.max(0, ...all.map(f => f.samples_ns.length)); r++) {
    const mine = all.filter(f => r < f.samples_ns.length);
    rounds.push({slow: mine.reduce((a, f) => a + f.samples_ns[r] / median(f.samples_ns), 0) / mine.length, disturbed: mine.filter(f => is_disturbed((f.marks || [])[r])).length, of: mine.length});
  }
  return rounds;
}
function disturbed_chart(rows) {
  const svg = canvas(500, 190, "share of the samples that other work disturbed, over the contest");
  const box = {left: 44, right: 490, top: 26, bottom: 150}, last = Math.max(...rows.map(r => r.e.at));
  const x = linear(0, last * 1.02, box.left, box.right), y = linear(0, 1, box.bottom, box.top);
  draw(svg, "text", {class: "name", x: 4, y: 12, "font-weight": 600}, "disturbed samples of each config");
  for (const s of [0, .5, 1]) {
    draw(svg, "line", {class: "grid", x1: box.left, x2: box.right, y1: y(s), y2: y(s)});
    draw(svg, "text", {x: box.left - 6, y: y(s) + 4, "text-anchor": "end"}, `${100 * s}\u202f%`);
  }
  for (const s of steps(0, last, 5)) draw(svg, "text", {x: x(s), y: box.bottom + 17, "text-anchor": "middle"}, `${digits(s || 0, 3)} s`);
  for (const r of rows) {
    const mark = draw(svg, "line", {x1: x(r.e.at), x2: x(r.e.at), y1: y(0), y2: Math.min(y(r.disturbed / r.taken), y(0) - 2), stroke: r.disturbed ? "var(--bad)" : "var(--good)", "stroke-width": 2.4});
    hint(mark, `${r.e.kernel} ${config_text(r.e.config)}\n${r.disturbed} of ${count(r.taken, "sample", "samples")} disturbed`);
  }
  return svg;
}
function speed_chart(rounds) {
  const svg = canvas(500, 190, "how fast the machine was in each round of the finals");
  const box = {left: 44, right: 490, top: 26, bottom: 150};
  const speeds = rounds.map(r => 1 / r.slow), least = Math.min(.9, ...speeds), most = Math.max(1.1, ...speeds);
  const x = linear(0, Math.max(1, rounds.length - 1), box.left + 6, box.right - 6), y = linear(least, most, box.bottom, box.top);
  draw(svg, "text", {class: "name", x: 4, y: 12, "font-weight": 600}, "speed of the machine, by rounds of the finals");
  for (const s of steps(least, most, 4)) {
    draw(svg, "line", {class: "grid", x1: box.left, x2: box.right, y1: y(s), y2: y(s)});
    draw(svg, "text", {x: box.left - 6, y: y(s) + 4, "text-anchor": "end"}, `${Math.round(100 * s)}\u202f%`);
  }
  draw(svg, "path", {class: "best", d: "M" + speeds.map((s, r) => `${x(r)},${y(s)}`).join("L"), "pointer-events": "none"});
  rounds.forEach((r, i) => hint(draw(svg, "circle", {class: "dot", cx: x(i), cy: y(speeds[i]), r: 3.6, fill: r.disturbed ? "var(--bad)" : "var(--good)"}),
    `round ${i + 1}: ${Math.round(100 * speeds[i])} % of the usual speed, ${r.disturbed} of ${r.of} samples disturbed`));
  draw(svg, "text", {x: (box.left + box.right) / 2, y: box.bottom + 17, "text-anchor": "middle"}, count(rounds.length, "round", "rounds"));
  return svg;
}
function machine_card(entry) {
  const rows = looked_at(entry), rounds = rounds_of(entry.trail && entry.trail.finals), charts = [];
  if (rows.length > 0) charts.push(disturbed_chart(rows));
  if (rounds.length > 1) charts.push(speed_chart(rounds));
  if (charts.length === 0) return null;
  const taken = rows.reduce((a, r) => a + r.taken, 0), disturbed = rows.reduce((a, r) => a + r.disturbed, 0);
  const words = taken > 0 ? `${disturbed} of ${count(taken, "sample", "samples")} of the search were disturbed by other work. ` : "";
  return el("div", {class: "card machine"}, el("div", {class: "head"}, el("h3", {}, "Machine"),
    el("p", {class: "sub"}, words + "In a round of the finals all finalists run: where all were slower, the machine was. Red: something disturbed it.")), el("div", {class: "effects two"}, ...charts));
}

// Where the seconds went --------------------------------------------------------------------------------------------
function seconds_card(entry) {
  const e = entry.evidence, parts = [["prepare", e.prepare_seconds, "compiling and loading"], ["verify", e.verify_seconds, "comparing with the reference"],
    ["run", e.run_seconds, "timed runs"], ["wait", e.wait_seconds, "waiting for others and for a quiet machine"]].filter(p => p[1] > 0);
  const known = parts.reduce((a, p) => a + p[1], 0);
  if (known <= 0 || !(e.seconds > 0)) return null;
  if (e.seconds > 1.01 * known) parts.push(["rest", e.seconds - known, "choosing configs, starting workers, storing"]);
  const whole = Math.max(e.seconds, known), bar = el("div", {class: "cover", style: "height:22px"}), keys = el("div", {class: "keys"});
  parts.forEach(([name, seconds, words], i) => {
    const part = el("span", {style: `background:${color(i)};flex:${seconds / whole} 1 0`});
    hint(part, `${name}: ${digits(seconds, 3)} s\n${words}`);
    bar.append(part);
    keys.append(el("span", {}, el("span", {class: "swatch", style: `background:${color(i)}`}), `${name} ${digits(seconds, 3)} s (${Math.round(100 * seconds / whole)} %), ${words}`));
  });
  return el("div", {class: "card seconds"}, el("div", {class: "head"}, el("h3", {}, "Where the seconds went"), el("p", {class: "sub"}, `${digits(e.seconds, 3)} s in all.`)), bar, keys);
}

// Roofline ----------------------------------------------------------------------------------------------------------
const rate = (x, unit) => { for (const [p, by] of [["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]]) if (x >= by) return `${digits(x / by, 3)}\u202f${p}${unit}`; return `${digits(x, 3)}\u202f${unit}`; };
function roofline_card(entry) {
  const roof = entry.trail && entry.trail.roofline, rows = (entry.evidence.kernels || []).filter(k => k.time_ns > 0);
  if (!roof || rows.length === 0) return null;
  const at = roof.operations / roof.bytes, levels = Object.entries(roof.levels || {});
  const svg = canvas(1060, 340, "operations a second of each kernel under the device's limits"), box = {left: 84, right: 1046, top: 20, bottom: 296};
  const reached = rows.map(k => roof.operations / k.time_ns * 1e9);
  const ridge = levels.map(([, bytes]) => roof.arithmetic / bytes), from = Math.min(at, ...ridge) / 4, to = Math.max(at, ...ridge) * 4;
  const x = logarithmic(from, to, box.left, box.right), y = logarithmic(Math.min(...reached) / 1.6, Math.max(roof.arithmetic, ...reached) * 1.6, box.bottom, box.top);
  const low = Math.min(...reached) / 1.6;
  for (const t of log_steps(low, Math.max(roof.arithmetic, ...reached) * 1.6)) {
    draw(svg, "line", {class: "grid", x1: box.left, x2: box.right, y1: y(t), y2: y(t)});
    draw(svg, "text", {x: box.left - 8, y: y(t) + 4, "text-anchor": "end"}, rate(t, "FLOP/s"));
  }
  for (const t of log_steps(from, to)) draw(svg, "text", {x: x(t), y: box.bottom + 18, "text-anchor": "middle"}, t >= 1 ? String(Math.round(t)) : digits(t, 2));
  draw(svg, "text", {x: (box.left + box.right) / 2, y: box.bottom + 36, "text-anchor": "middle"}, "operations a byte");
  for (const [name, bytes] of levels) {
    const start = Math.max(from, low / bytes), bend = roof.arithmetic / bytes;
    if (start >= bend) continue;
    hint(draw(svg, "path", {class: "best", d: `M${x(start)},${y(start * bytes)}L${x(bend)},${y(roof.arithmetic)}`}), `${name}: ${rate(bytes, "B/s")} at best`);
    draw(svg, "text", {x: x(Math.sqrt(start * bend)) + 6, y: y(Math.sqrt(start * bend) * bytes) + 14}, name);
  }
  const first = Math.min(...ridge, to);
  hint(draw(svg, "path", {class: "best", d: `M${x(Math.max(first, from))},${y(roof.arithmetic)}H${box.right}`}), `arithmetic: ${rate(roof.arithmetic, "FLOP/s")} at best`);
  draw(svg, "line", {class: "axis", x1: x(at), x2: x(at), y1: box.top, y2: box.bottom, "stroke-dasharray": "3 3"});
  rows.forEach((k, i) => hint(draw(svg, "circle", {class: "dot", cx: x(at), cy: y(reached[i]), r: k.kernel === entry.kernel ? 6 : 4.2, fill: color_of(k.kernel)}),
    `${k.kernel}\n${rate(reached[i], "FLOP/s")}, ${Math.round(100 * reached[i] / roof.arithmetic)} % of the arithmetic\n${rate(roof.bytes / k.time_ns * 1e9, "B/s")} moved`));
  return el("div", {class: "card roofline"}, el("div", {class: "head"}, el("h3", {}, "Roofline"),
    el("p", {class: "sub"}, `A run computes ${rate(roof.operations, "FLOP")} on ${rate(roof.bytes, "B")}: ${digits(at, 3)} operations a byte (dashed). The lines are what this device reached at best out of each memory; each kernel's fastest config is a dot.`)), el("div", {class: "scroll wide"}, svg));
}

// Two parameters ----------------------------------------------------------------------------------------------------
// How much a parameter matters: the slowest of its values over the fastest, each value by its fastest config.
function weight_of(rows, parameter) {
  const best = new Map();
  for (const e of rows) best.set(e.config[parameter], Math.min(shown(e), best.get(e.config[parameter]) || Infinity));
  return Math.max(...best.values()) / Math.min(...best.values());
}
function heat_chart(entry, kernel, across, down) {
  const rows = evaluations_of(entry).map((e, i) => ({e, i})).filter(r => r.e.kernel === kernel && !r.e.failure && shown(r.e));
  const columns = in_order([...new Set(rows.map(r => r.e.config[across]))]), lines = in_order([...new Set(rows.map(r => r.e.config[down]))]);
  const cell = {w: Math.min(110, 900 / columns.length), h: 26}, left = 120;
  const svg = canvas(1060, 56 + lines.length * cell.h, `fastest time by ${across} and ${down}`);
  const best = Math.min(...rows.map(r => shown(r.e)));
  draw(svg, "text", {class: "name", x: 4, y: 14, "font-weight": 600}, `${down} \u2193  ${across} \u2192`);
  columns.forEach((c, i) => draw(svg, "text", {x: left + (i + .5) * cell.w, y: 38, "text-anchor": "middle"}, String(c)));
  lines.forEach((value, j) => {
    const top = 46 + j * cell.h;
    draw(svg, "text", {x: left - 8, y: top + cell.h / 2 + 4, "text-anchor": "end"}, String(value));
    columns.forEach((c, i) => {
      const here = rows.filter(r => r.e.config[across] === c && r.e.config[down] === value);
      const fastest = here.reduce((a, r) => a === null || shown(r.e) < shown(a.e) ? r : a, null);
      const slow = fastest ? shown(fastest.e) / best : 0;
      const box = draw(svg, "rect", {class: "heat", x: left + i * cell.w + 1, y: top + 1, width: cell.w - 2, height: cell.h - 2, rx: 3,
        fill: fastest ? `hsl(${Math.round(150 - 140 * Math.min(1, Math.log2(slow) / 2))} 55% ${dark.matches ? 38 : 62}%)` : "var(--grid)"});
      hint(box, fastest ? `${down} = ${value}, ${across} = ${c}: ${slow.toFixed(2)}\u00d7 the fastest of this kernel\n${describe(fastest.e, fastest.i)}` : `${down} = ${value}, ${across} = ${c}: none was measured`);
      if (fastest && cell.w > 40) draw(svg, "text", {class: "name", x: left + (i + .5) * cell.w, y: top + cell.h / 2 + 4, "text-anchor": "middle", "pointer-events": "none"}, slow.toFixed(2));
    });
  });
  return svg;
}
function heat_card(entry, names) {
  const able = names.filter(n => varied(entry, n).length > 1);
  if (able.length === 0) return null;
  const place = el("div", {class: "scroll wide"});
  const pick = kernel => {
    const rows = evaluations_of(entry).filter(e => e.kernel === kernel && !e.failure && shown(e));
    const by = varied(entry, kernel).sort((a, b) => weight_of(rows, b) - weight_of(rows, a)).slice(0, 6);
    const pairs = by.flatMap((a, i) => by.slice(i + 1).map(b => [a, b])).slice(0, 6), chart = el("div", {});
    const bar = pairs.length > 1 ? switcher(pairs.map(p => p.join(" \u00d7 ")), pairs[0].join(" \u00d7 "), name => {
      const [across, down] = pairs.find(p => p.join(" \u00d7 ") === name);
      chart.replaceChildren(heat_chart(entry, kernel, across, down));
    }) : null;
    if (!bar) chart.append(heat_chart(entry, kernel, ...pairs[0]));
    place.replaceChildren(...[bar, chart].filter(Boolean));
  };
  const bar = switcher(able, able.includes(entry.kernel) ? entry.kernel : able[0], pick);
  return el("div", {class: "card heatmap"}, el("div", {class: "head"}, el("h3", {}, "Two parameters"),
    el("p", {class: "sub"}, "The fastest config at each pair of values, as a multiple of the kernel's fastest; the pairs that matter most come first. Grey: none was measured."), bar), place);
}

// The last contest --------------------------------------------------------------------------------------------------
function before_card(entry) {
  const before = entry.trail && entry.trail.before;
  if (!before || !(before.time_ns > 0)) return null;
  const text = c => JSON.stringify(Object.entries(c || {}).sort());
  const again = evaluations_of(entry).find(e => e.kernel === before.kernel && text(e.config) === text(before.config) && !e.failure && shown(e));
  const same = before.kernel === entry.kernel && text(before.config) === text(entry.config), now = entry.evidence.time_ns;
  const ratio = x => `${digits(x, 3)} times as fast`;
  const rows = [{cells: ["the last contest's choice, then", before.kernel, el("code", {}, config_text(before.config)), time(before.time_ns), ""]}];
  if (again) rows.push({cells: ["the same, now", before.kernel, el("code", {}, config_text(before.config)), time(shown(again)), `${ratio(before.time_ns / shown(again))} as then`]});
  rows.push({won: true, cells: [same ? "chosen again" : "chosen now", entry.kernel, el("code", {}, config_text(entry.config)), time(now), again ? `${ratio(shown(again) / now)} as the last choice now` : `${ratio(before.time_ns / now)} as the last choice then`]});
  return el("div", {class: "card before"}, el("div", {class: "head"}, el("h3", {}, "Since the last contest"), el("p", {class: "sub"}, same ? "The choice stayed." : "The choice changed.")),
    table([{name: ""}, {name: "kernel"}, {name: "config"}, {name: "time", n: true}, {name: ""}], rows));
}

function kernels_card(entry) {
  const rows = [...(entry.evidence.kernels || [])].sort((a, b) => (a.time_ns || Infinity) - (b.time_ns || Infinity));
  if (rows.length === 0) return null;
  const columns = [{name: "kernel"}, {name: "config"}, {name: "time", n: true}, {name: "\u00d7 chosen", n: true}, {name: "its default", n: true}, {name: "tried", n: true}, {name: "rejected", n: true}];
  const body = rows.map(k => {
    const won = k.kernel === entry.kernel;
    const name = el("span", {}, el("span", {class: "swatch", style: k.time_ns ? `background:${color_of(k.kernel)}` : "background:var(--line)"}), k.kernel);
    const rejected = Object.entries(k.rejected || {}).map(([kind, n]) => `${n} ${kind}`).join(", ");
    const words = el("span", {}, k.time_ns ? el("code", {}, config_text(k.config)) : null);
    if (k.reason) words.append(...(k.time_ns ? [el("br")] : []), el("span", {class: "why"}, k.reason));
    return {won, cells: [name, words, k.time_ns ? time(k.time_ns) : "\u2013", k.time_ns ? (k.time_ns / entry.evidence.time_ns).toFixed(2) : "", k.default_time_ns ? time(k.default_time_ns) : "",
      String(k.tried || 0), el("span", rejected ? {class: "bad"} : {}, rejected)]};
  });
  return el("div", {class: "card"}, el("div", {class: "head"}, el("h3", {}, "Kernels"), el("p", {class: "sub"}, "The best config of each; of those that did not compete, why.")), table(columns, body));
}
function environment_card() {
  const rows = Object.entries(report.environment || {}).map(([name, value]) => ({cells: [name, el("code", {}, typeof value === "object" ? JSON.stringify(value) : String(value))]}));
  rows.unshift({cells: ["fingerprint", el("code", {}, report.device)]});
  return el("div", {class: "card"}, el("div", {class: "head"}, el("h3", {}, "Environment"), el("p", {class: "sub"}, "What it was measured with.")), table([{name: "fact"}, {name: "value"}], rows));
}

// The page ----------------------------------------------------------------------------------------------------------
// Ratios are told of as many samples as the tables of hone tune ask for.
const enough = samples => (samples || 0) >= 10;
const default_samples = e => e.default_samples || 10; // evidence of an earlier version does not say
function tiles(entry) {
  const e = entry.evidence, out = el("div", {class: "tiles"});
  out.append(tile(entry.kernel, config_text(entry.config), true), tile(time(e.time_ns), e.low_ns ? `${time(e.low_ns)} to ${time(e.high_ns)}, ${e.regime || "warm"} caches` : `${e.regime || "warm"} caches`));
  const second = e.runner_up === entry.kernel ? "its next config" : e.runner_up;
  if (e.floor_ns) out.append(tile(time(e.floor_ns), `no run takes less: ${e.floor.replace(/^[^,]*, for /, "")}`));
  if (e.default_time_ns && e.default_time_ns === e.time_ns) out.append(tile("default", "it is the default"));
  else if (e.default_time_ns) out.append(enough(e.samples) && enough(default_samples(e)) ? tile((e.default_time_ns / e.time_ns).toFixed(2) + "\u00d7", `as fast as the default, ${time(e.default_time_ns)}`) : tile("\u2013", "too few samples to compare with the default"));
  if (second) out.append(enough(e.rounds) && e.ratio ? tile(e.ratio.toFixed(2) + "\u00d7", `as fast as ${second}, ${e.ratio_low.toFixed(2)} to ${e.ratio_high.toFixed(2)}`) : tile("\u2013", `too few samples to compare with ${second}`));
  out.append(tile(String(e.measured || 0), `configs measured, ${sum(e.rejected)} rejected, ${digits(e.seconds || 0, 3)} s`));
  out.append(tile(e.verified_against ? digits(100 * (e.max_error || 0), 2) + "\u202f%" : "not verified", e.verified_against ? `of the error that is allowed against the ${e.verified_against}` : "nothing to compare with"));
  return out;
}
function call_section(entry, index) {
  const names = kernels_of(entry), section = el("section", {class: "call", id: `call-${index}`}, el("h2", {class: "mono"}, entry.call || entry.key), tiles(entry));
  if (entry.evidence.undecided) section.append(el("div", {class: "card undecided"}, el("p", {class: "sub"}, "undecided: " + entry.evidence.undecided)));
  if (evaluations_of(entry).some(e => !e.failure && shown(e)))
    section.append(...[before_card(entry), progress_card(entry, names), finals_card(entry), effects_card(entry, names), heat_card(entry, names),
      roofline_card(entry), machine_card(entry), seconds_card(entry)].filter(Boolean));
  else
    section.append(el("div", {class: "card"}, el("p", {class: "sub"}, "This answer was there already: nothing was measured for it now. --fresh measures again.")));
  const kernels = kernels_card(entry);
  if (kernels) section.append(kernels);
  return section;
}
function index_card() {
  const columns = [{name: "call"}, {name: "chosen"}, {name: "time", n: true}, {name: "default", n: true}, {name: "measured", n: true}, {name: "seconds", n: true}];
  const rows = report.entries.map((entry, i) => ({cells: [el("a", {href: `#call-${i}`, class: "mono"}, entry.call || entry.key), entry.kernel, time(entry.evidence.time_ns),
    entry.evidence.default_time_ns && enough(entry.evidence.samples) && enough(default_samples(entry.evidence)) ? (entry.evidence.default_time_ns / entry.evidence.time_ns).toFixed(2) + "\u00d7" : "", String(entry.evidence.measured || 0), digits(entry.evidence.seconds || 0, 3)]}));
  return el("div", {class: "card"}, el("div", {class: "head"}, el("h3", {}, count(rows.length, "call", "calls"))), table(columns, rows));
}
function failed_card() {
  const rows = report.failed.map(f => ({cells: [el("code", {}, f.call || f.key), el("span", {class: "bad"}, f.reason)]}));
  return el("div", {class: "card"}, el("div", {class: "head"}, el("h3", {}, count(rows.length, "call was not tuned", "calls were not tuned"))), table([{name: "call"}, {name: "why"}], rows));
}
function show() {
  const first = (report.entries[0] || {evidence: {}}).evidence, brand = (report.environment || {}).device;
  main.replaceChildren(el("h1", {}, "Tuning report"),
    el("p", {class: "sub"}, [brand, first.started, first.hone_version ? `hone ${first.hone_version}` : "", first.load ? `load ${digits(first.load, 2)}` : "", first.throttled ? `throttled ${first.throttled}\u00d7` : "", first.stolen ? `${digits(100 * first.stolen, 2)} % of the time taken by the host` : ""].filter(Boolean).join(" \u00b7 ")));
  if (report.entries.length !== 1) main.append(index_card());
  if (report.failed && report.failed.length) main.append(failed_card());
  report.entries.forEach((entry, i) => main.append(call_section(entry, i)));
  main.append(el("section", {class: "call"}, environment_card()));
  document.title = report.entries.length === 1 ? `${report.entries[0].call || "call"} \u00b7 hone` : "hone tuning report";
}
