// One call ----------------------------------------------------------------------------------------------------------
function evaluations_of(entry) { return (entry.trail && entry.trail.evaluations) || []; }
function kernels_of(entry) {
  const names = (entry.evidence.kernels || []).map(k => k.kernel);
  for (const e of evaluations_of(entry)) if (!names.includes(e.kernel)) names.push(e.kernel);
  // Colors go to those that were measured, the chosen first.
  const tried = names.filter(n => evaluations_of(entry).some(e => e.kernel === n));
  return [entry.kernel, ...tried.filter(n => n !== entry.kernel)];
}
const shown = e => e.time_ns || e.raced_ns;
function describe(e, index) {
  const lines = [`${e.kernel}${e.default ? "  (its default)" : ""}`, config_text(e.config)];
  if (e.failure) lines.push(`fell out: ${e.failure}`, e.reason || "");
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

function progress_chart(entry, names, by_seconds) {
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
    const now = e.raced_ns || shown(e), fill = color(names.indexOf(e.kernel));
    const mark = now > most
      ? draw(dots, "path", {class: "dot", d: `M${px - 5},${box.top + 5}l5,-8l5,8z`, fill, "fill-opacity": .6})
      : draw(dots, "circle", {class: "dot", cx: px, cy: y(now), r: e.default ? 5 : 3.6, fill, "fill-opacity": e.dropped ? .5 : .92});
    hint(mark, describe(e, i));
  });
  return svg;
}

function legend(entry, names) {
  const keys = el("div", {class: "keys"});
  names.forEach((n, i) => {
    if (!evaluations_of(entry).some(e => e.kernel === n)) return;
    keys.append(el("span", {}, el("span", {class: "swatch", style: `background:${color(i)}`}), n));
  });
  const line = el("span", {}, "\u2501 best so far");
  keys.append(line);
  if (evaluations_of(entry).some(e => e.failure)) keys.append(el("span", {class: "bad"}, "\u2715 fell out"));
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
    which => place.replaceChildren(progress_chart(entry, names, which === "by seconds")));
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
    place.replaceChildren(...varied(entry, kernel).map(p => effect_chart(entry, kernel, p, color(names.indexOf(kernel))))));
  return el("div", {class: "card"}, el("div", {class: "head"}, el("h3", {}, "Parameters"),
    el("p", {class: "sub"}, "Each config by one parameter's value: what counts is the fastest at each value (bar); the median is dashed."), bar), place);
}

// Finals ------------------------------------------------------------------------------------------------------------
// What a config has other than the winner's of the same kernel.
function differing(config, other) {
  return config_text(Object.fromEntries(Object.entries(config).filter(([name, value]) => value !== other[name])));
}
function finals_card(entry, names) {
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
    const y = box.top + 24 + i * 46, tint = color(names.indexOf(r.e.kernel));
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

function kernels_card(entry, names) {
  const rows = [...(entry.evidence.kernels || [])].sort((a, b) => (a.time_ns || Infinity) - (b.time_ns || Infinity));
  if (rows.length === 0) return null;
  const columns = [{name: "kernel"}, {name: "config"}, {name: "time", n: true}, {name: "\u00d7 chosen", n: true}, {name: "its default", n: true}, {name: "tried", n: true}, {name: "fell out", n: true}];
  const body = rows.map(k => {
    const at = names.indexOf(k.kernel), won = k.kernel === entry.kernel;
    const name = el("span", {}, el("span", {class: "swatch", style: at >= 0 && k.time_ns ? `background:${color(at)}` : "background:var(--line)"}), k.kernel);
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
function default_samples(e) {
  const row = (e.kernels || []).find(k => k.default_time_ns === e.default_time_ns);
  return row ? row.default_samples : 10;
}
function tiles(entry) {
  const e = entry.evidence, out = el("div", {class: "tiles"});
  out.append(tile(entry.kernel, config_text(entry.config), true), tile(time(e.time_ns), e.low_ns ? `${time(e.low_ns)} to ${time(e.high_ns)}, ${e.regime || "warm"} caches` : `${e.regime || "warm"} caches`));
  const second = e.runner_up === entry.kernel ? "its next config" : e.runner_up;
  if (e.floor_ns) out.append(tile(time(e.floor_ns), `no run takes less: ${e.floor.replace(/^[^,]*, for /, "")}`));
  if (e.default_time_ns) out.append(enough(e.samples) && enough(default_samples(e)) ? tile((e.default_time_ns / e.time_ns).toFixed(2) + "\u00d7", `the default, ${time(e.default_time_ns)}`) : tile("\u2013", "too few samples to compare with the default"));
  if (second) out.append(enough(e.rounds) && e.ratio ? tile(e.ratio.toFixed(2) + "\u00d7", `${second}, ${e.ratio_low.toFixed(2)} to ${e.ratio_high.toFixed(2)}`) : tile("\u2013", `too few samples to compare with ${second}`));
  out.append(tile(String(e.measured || 0), `configs measured, ${sum(e.rejected)} fell out, ${digits(e.seconds || 0, 3)} s`));
  out.append(tile(e.verified_against ? digits(100 * (e.max_error || 0), 2) + "\u202f%" : "not verified", e.verified_against ? `of the error that is allowed against the ${e.verified_against}` : "nothing to compare with"));
  return out;
}
function call_section(entry, index) {
  const names = kernels_of(entry), section = el("section", {class: "call", id: `call-${index}`}, el("h2", {class: "mono"}, entry.call || entry.key), tiles(entry));
  if (entry.evidence.undecided) section.append(el("div", {class: "card undecided"}, el("p", {class: "sub"}, "undecided: " + entry.evidence.undecided)));
  if (evaluations_of(entry).some(e => !e.failure && shown(e)))
    section.append(...[progress_card(entry, names), finals_card(entry, names), effects_card(entry, names)].filter(Boolean));
  else
    section.append(el("div", {class: "card"}, el("p", {class: "sub"}, "This answer was there already: nothing was measured for it now. --fresh measures again.")));
  const kernels = kernels_card(entry, names);
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
