// One store or several ----------------------------------------------------------------------------------------------
const decisions = report.decisions, answered_names = ["store", "autotune", "memory", "lock", "overlay", "override", "bundle"];
const call_of = d => d.call || `${d.algorithm} ${d.key}`;
const link = d => el("a", {href: `#decision-${d.index}`, class: "mono"}, call_of(d));
const percent = x => `${digits(100 * x, x < .1 ? 2 : 3)}\u202f%`;
const day = text => (text || "").slice(0, 10);
const device_name = i => {
  const words = report.devices[i].split("|");
  return words.length > 1 ? `${words[0]} ${words[1].split(",").slice(0, 2).join(" ")}` : report.devices[i];
};
// Two of one name are told apart by their numbers.
const device_text = i => report.devices.filter((_, k) => device_name(k) === device_name(i)).length > 1 ? `${device_name(i)} (${i + 1})` : device_name(i);
const duration = s => s < 120 ? `${digits(s, 3)} s` : s < 7200 ? `${Math.round(s / 60)} min` : `${digits(s / 3600, 3)} h`;
const short_url = url => url.length > 60 ? "\u2026" + url.slice(-59) : url;
const kernel_names = [...new Set(decisions.map(d => d.kernel).concat(report.contests.flatMap(c => c.configs.map(m => m.kernel))))].sort();
const kernel_color = name => color(kernel_names.indexOf(name));
const swatch = name => el("span", {class: "swatch", style: `background:${kernel_color(name)}`});
const decided = new Set(decisions.map(d => d.name.replace(/ \d$/, "")));

function card(title, words, ...children) {
  return el("div", {class: "card"}, el("div", {class: "head"}, el("h3", {}, title), el("p", {class: "sub"}, words)), ...children);
}
// A long table begins with its first rows.
function long_table(columns, rows, shown) {
  const place = el("div", {}, table(columns, rows.slice(0, shown)));
  if (rows.length <= shown) return place;
  const more = el("button", {class: "more"}, `all ${rows.length}`);
  more.addEventListener("click", () => place.replaceChildren(table(columns, rows)));
  place.append(more);
  return place;
}

// What is known to be faster than what was chosen: by a measurement whose interval lies below the choice's.
function regret_of(d) {
  const best = report.fastest[d.name];
  if (!best || !best.high_ns || !d.low_ns || best.high_ns >= d.low_ns || best.time_ns >= d.time_ns) return 0;
  return d.time_ns / best.time_ns - 1;
}

// Coverage ----------------------------------------------------------------------------------------------------------
const states = [["decided", "var(--good)"], ["undecided", "var(--warn)"], ["stale", "var(--old)"], ["not decided", "var(--bad)"]];
function state_of_call(call) {
  const name = call.name.replace(/ \d$/, ""), all = decisions.filter(d => d.name.replace(/ \d$/, "") === name);
  if (!all.length) return answered_names.includes(call.answered) ? "decided" : "not decided";
  if (all.every(d => d.stale)) return "stale";
  return all.every(d => d.undecided) ? "undecided" : "decided";
}
function state_of(d) { return d.stale ? "stale" : d.undecided ? "undecided" : "decided"; }
function shares(pairs) { // [state, weight]
  const sums = Object.fromEntries(states.map(([name]) => [name, 0]));
  for (const [state, weight] of pairs) sums[state] += weight;
  return sums;
}
function bar(sums, unit) {
  const all = sum(sums), place = el("div", {class: "cover", role: "img", "aria-label": states.map(([n]) => `${n} ${sums[n]}`).join(", ")});
  for (const [name, tint] of states) {
    if (!sums[name]) continue;
    const part = el("span", {style: `background:${tint};flex:${sums[name]}`});
    hint(part, `${name}: ${sums[name].toLocaleString("en")} of ${all.toLocaleString("en")} ${unit} (${percent(sums[name] / all)})`);
    place.append(part);
  }
  return all ? place : el("p", {class: "sub"}, "none");
}
function coverage_card() {
  const rows = report.devices.map((fingerprint, i) => {
    const calls = report.calls.filter(c => c.device === i), mine = decisions.filter(d => d.device === i);
    const runs = shares(calls.map(c => [state_of_call(c), c.count])), stored = shares(mine.map(d => [state_of(d), 1]));
    const all = sum(runs);
    const where = el("span", {}, device_text(i));
    hint(where, fingerprint);
    return {cells: [where, bar(stored, "stored decisions"), String(mine.length), bar(runs, "recorded runs"), all ? percent((runs.decided + runs.undecided) / all) : "\u2013"]};
  });
  const keys = el("div", {class: "keys"}, ...states.map(([name, tint]) => el("span", {}, el("span", {class: "swatch", style: `background:${tint}`}), name)));
  return card("Coverage", "Of each device: what is stored, and of the runs that programs recorded (HONE_RECORD=1), how many are answered by it.",
    table([{name: "device"}, {name: "stored decisions"}, {name: "", n: true}, {name: "recorded runs"}, {name: "answered", n: true}], rows), keys);
}
function missing_card() {
  const rows = report.calls.filter(c => state_of_call(c) === "not decided").map(c => ({cells: [String(c.count), el("code", {}, c.call || `${c.algorithm} ${c.key}`), device_text(c.device), c.kernel || "", day(c.last)]}));
  if (!rows.length) return null;
  return card(count(rows.length, "recorded call is not decided", "recorded calls are not decided"), "The most frequent first; hone tune --recorded tunes them.",
    long_table([{name: "runs", n: true}, {name: "call"}, {name: "device"}, {name: "runs now"}, {name: "last"}], rows, 12));
}

// What is to be looked at -------------------------------------------------------------------------------------------
function regret_card() {
  const rows = decisions.map(d => ({d, regret: regret_of(d), best: report.fastest[d.name]})).filter(r => r.regret > 0);
  rows.sort((a, b) => b.regret * b.d.weight - a.regret * a.d.weight);
  if (!rows.length) return card("Regret", "No stored measurement is certainly faster than the choice of its call.");
  return card(count(rows.length, "choice has regret", "choices have regret"), "A stored measurement of the call is faster, and the intervals do not touch: hone tune --fresh, or --audit --update, looks again.",
    long_table([{name: "call"}, {name: "device"}, {name: "chosen"}, {name: "time", n: true}, {name: "measured faster"}, {name: "time", n: true}, {name: "regret", n: true}],
      rows.map(r => ({cells: [link(r.d), device_text(r.d.device), r.d.kernel, time(r.d.time_ns), el("span", {}, r.best.kernel, " ", el("code", {}, config_text(r.best.config))), time(r.best.time_ns), percent(r.regret)]})), 12));
}
function reasons_card(title, words, rows, reason) {
  if (!rows.length) return null;
  rows.sort((a, b) => b.weight - a.weight);
  return card(title, words, long_table([{name: "call"}, {name: "device"}, {name: "chosen"}, {name: "why"}],
    rows.map(d => ({cells: [link(d), device_text(d.device), d.kernel, el("span", {class: "why"}, reason(d))]})), 12));
}
function disagree_card() {
  const by = new Map();
  for (const d of decisions) by.set(d.name, [...(by.get(d.name) || []), d]);
  const rows = [...by.values()].filter(all => all.length > 1 && new Set(all.map(d => d.kernel + JSON.stringify(d.config))).size > 1);
  if (!rows.length) return null;
  return card(count(rows.length, "call is chosen differently", "calls are chosen differently"), "By stores of this page, for one device; hone store merge keeps the better.",
    long_table([{name: "call"}, {name: "device"}, {name: "store"}, {name: "chosen"}, {name: "time", n: true}],
      rows.flatMap(all => all.map((d, i) => ({cells: [i ? "" : link(d), i ? "" : device_text(d.device), short_url(report.stores[d.store].url), el("span", {}, d.kernel, " ", el("code", {}, config_text(d.config))), time(d.time_ns)]}))), 20));
}

// Who tuned what when -----------------------------------------------------------------------------------------------
function when_card() {
  const all = decisions.filter(d => d.started && !isNaN(Date.parse(d.started)));
  if (!all.length) return null;
  const lanes = [...new Set(all.map(d => `${d.who || "somebody"} on ${device_text(d.device)}`))].sort();
  const lane = d => lanes.indexOf(`${d.who || "somebody"} on ${device_text(d.device)}`);
  const height = 50 + lanes.length * 44, svg = canvas(1060, height, "contests by the time at which they began, a row for each who and where");
  const times = all.map(d => Date.parse(d.started)), hour = 3600e3;
  const middle = (Math.min(...times) + Math.max(...times)) / 2, half = Math.max(hour / 4, (Math.max(...times) - Math.min(...times)) / 2), from = middle - half, to = middle + half;
  const x = linear(from, to, 14, 1046);
  for (let i = 0; i <= 4; i++) {
    const at = from + i / 4 * (to - from);
    draw(svg, "line", {class: "grid", x1: x(at), x2: x(at), y1: 8, y2: height - 28});
    const text = new Date(at).toISOString();
    draw(svg, "text", {x: x(at), y: height - 10, "text-anchor": i === 0 ? "start" : i === 4 ? "end" : "middle"}, to - from > 3 * 24 * hour ? text.slice(0, 10) : text.slice(5, 16).replace("T", " "));
  }
  lanes.forEach((name, i) => {
    draw(svg, "text", {class: "name", x: 4, y: 22 + i * 44}, name);
    draw(svg, "line", {class: "axis", x1: 14, x2: 1046, y1: 36 + i * 44, y2: 36 + i * 44});
  });
  for (const d of all)
    hint(draw(svg, "circle", {class: "dot", cx: x(Date.parse(d.started)), cy: 36 + lane(d) * 44, r: Math.min(9, 3 + Math.sqrt(d.seconds || 0)), fill: kernel_color(d.kernel), "fill-opacity": .75}),
      `${call_of(d)}\n${d.kernel} ${config_text(d.config)}\n${d.started}, ${digits(d.seconds || 0, 3)} s\n${d.who || "HONE_PROVENANCE=1 keeps who"}`);
  const total = decisions.reduce((a, d) => a + (d.seconds || 0), 0);
  const spent = {"preparing": 0, "verifying": 0, "running": 0, "waiting": 0};
  for (const d of decisions) { spent.preparing += d.prepare; spent.verifying += d.verify; spent.running += d.run; spent.waiting += d.wait; }
  return card("Who tuned what, when", `${count(all.length, "contest", "contests")}, ${duration(total)}${sum(spent) ? ": " + Object.entries(spent).map(([n, s]) => `${n} ${duration(s)}`).join(", ") : ""}. A dot's colour is the chosen kernel's, its size the seconds.`,
    el("div", {class: "scroll wide"}, svg));
}

// Contests ----------------------------------------------------------------------------------------------------------
function contest_chart(d, configs) {
  const timed = configs.filter(m => m.time_ns && !m.failure), names = [...new Set(timed.map(m => m.kernel))];
  const best = n => Math.min(...timed.filter(m => m.kernel === n).map(m => m.time_ns));
  names.sort((a, b) => best(a) - best(b));
  const height = 46 + names.length * 34, svg = canvas(1060, height, "time of every stored config, a row for each kernel");
  const times = timed.map(m => m.time_ns), least = Math.min(...times), most = Math.max(least * 1.05, Math.min(Math.max(...times), least * 50));
  const x = logarithmic(least / 1.02, most * 1.02, 200, 1040);
  for (const t of log_steps(least, most)) {
    draw(svg, "line", {class: "grid", x1: x(t), x2: x(t), y1: 6, y2: height - 30});
    draw(svg, "text", {x: x(t), y: height - 10, "text-anchor": "middle"}, time(t));
  }
  if (d.floor_ns && d.floor_ns > least / 1.02) hint(draw(svg, "line", {class: "fail", x1: x(d.floor_ns), x2: x(d.floor_ns), y1: 6, y2: height - 30}), `no run takes less than ${time(d.floor_ns)}`);
  names.forEach((name, i) => {
    const y = 24 + i * 34;
    draw(svg, "text", {class: "name", x: 4, y: y + 4, "font-weight": name === d.kernel ? 700 : 400}, name.length > 26 ? name.slice(0, 25) + "\u2026" : name);
    for (const m of timed.filter(m => m.kernel === name)) {
      const chosen = name === d.kernel && JSON.stringify(m.config) === JSON.stringify(d.config);
      const at = Math.min(x(m.time_ns), 1046);
      if (chosen) draw(svg, "circle", {cx: at, cy: y, r: 8, fill: "none", stroke: "var(--ink)", "stroke-width": 1.6});
      hint(draw(svg, "circle", {class: "dot", cx: at, cy: y, r: chosen ? 5 : 3.6, fill: kernel_color(name), "fill-opacity": chosen ? 1 : .6}),
        `${name}${chosen ? "  (chosen)" : ""}\n${config_text(m.config)}\n${time(m.time_ns)}${m.low_ns ? ` (${time(m.low_ns)} to ${time(m.high_ns)})` : ""}`);
    }
  });
  return svg;
}
function contest_card(contest) {
  const d = decisions[contest.decision], failed = contest.configs.filter(m => m.failure);
  const gain = d.default_ns ? `, ${(d.default_ns / d.time_ns).toFixed(2)}\u00d7 the default` : "";
  const title = el("summary", {}, swatch(d.kernel), el("span", {class: "mono"}, call_of(d)), " ",
    el("span", {class: "sub"}, `${d.kernel}, ${time(d.time_ns)}${gain} \u00b7 ${device_text(d.device)}${d.count ? ` \u00b7 ${count(d.count, "run", "runs")}` : ""}`));
  const place = el("details", {class: "card", id: `decision-${d.index}`}, title);
  let drawn = false;
  place.addEventListener("toggle", () => {
    if (drawn) return;
    drawn = true;
    const kinds = {};
    for (const m of failed) kinds[m.failure] = (kinds[m.failure] || 0) + 1;
    const words = [`${count(contest.configs.length - failed.length, "config", "configs")} measured${contest.left_out ? ` (${contest.left_out} more are not shown)` : ""}`,
      ...Object.entries(kinds).map(([kind, n]) => `${n} ${kind}`), `chosen: ${config_text(d.config)}`, d.verified ? "verified" : "not verified",
      d.undecided ? `undecided: ${d.undecided}` : "", d.stale ? `stale: ${d.stale}` : "", d.disturbed ? `${percent(d.disturbed)} of the samples disturbed` : "", d.started || ""];
    place.append(el("p", {class: "sub"}, words.filter(Boolean).join(" \u00b7 ")), el("div", {class: "scroll wide"}, contest_chart(d, contest.configs)));
  });
  return place;
}
function all_card() {
  const drawn = new Set(report.contests.map(c => c.decision)), rest = decisions.filter(d => !drawn.has(d.index));
  if (!rest.length) return null;
  const cell = d => el("span", {id: `decision-${d.index}`, class: "mono"}, call_of(d));
  return card(drawn.size ? "Other decisions" : "Decisions", drawn.size ? "Lighter ones, and those without measurements in their store." : "No measurements are stored beside them.",
    long_table([{name: "call"}, {name: "device"}, {name: "chosen"}, {name: "config"}, {name: "time", n: true}, {name: "\u00d7 default", n: true}, {name: "began"}],
      rest.sort((a, b) => b.weight - a.weight).map(d => ({cells: [cell(d), device_text(d.device), d.kernel, el("code", {}, config_text(d.config)), time(d.time_ns), d.default_ns ? (d.default_ns / d.time_ns).toFixed(2) : "", day(d.started)]})), 40));
}

// The page ----------------------------------------------------------------------------------------------------------
function stores_card() {
  const bytes = n => n > 1e6 ? `${digits(n / 1e6, 3)} MB` : `${digits((n || 0) / 1e3, 3)} kB`;
  const rows = report.stores.map(s => s.failed && s.decisions === undefined ? {cells: [el("code", {}, s.url), el("span", {class: "bad"}, s.failed), "", "", "", "", ""]}
    : {cells: [el("code", {}, s.url), s.failed ? el("span", {class: "bad"}, s.failed) : String(s.decisions), String(s.measurements), String(s.failures), String(s.invocations), s.set_aside ? el("span", {class: "bad"}, String(s.set_aside)) : "0", bytes(s.bytes)]});
  return card(count(rows.length, "store", "stores"), "Set aside are records that were found damaged: hone store verify lists them.",
    table([{name: "store"}, {name: "decisions"}, {name: "measurements", n: true}, {name: "failures", n: true}, {name: "recorded calls", n: true}, {name: "set aside", n: true}, {name: "size", n: true}], rows));
}
function fleet_tiles() {
  const runs = shares(report.calls.map(c => [state_of_call(c), c.count])), all = sum(runs), regrets = decisions.map(regret_of).filter(r => r > 0);
  const out = el("div", {class: "tiles"});
  out.append(tile(String(decisions.length), `decisions of ${count(report.devices.length, "device", "devices")} in ${count(report.stores.length, "store", "stores")}`),
    tile(all ? percent((runs.decided + runs.undecided) / all) : "\u2013", all ? `of ${all.toLocaleString("en")} recorded runs answered` : "no runs are recorded"),
    tile(String(decisions.filter(d => d.undecided).length), "undecided"), tile(String(decisions.filter(d => d.stale).length), "stale"),
    tile(regrets.length ? percent(Math.max(...regrets)) : "none", regrets.length ? `largest known regret, of ${count(regrets.length, "choice", "choices")}` : "known regret"));
  return out;
}
function show_target() {
  const target = document.getElementById(location.hash.slice(1));
  if (target && target.tagName === "DETAILS") target.open = true;
  if (target) target.scrollIntoView();
}
function show() {
  document.documentElement.style.setProperty("--warn", dark.matches ? "#f2a25c" : "#d9730d");
  document.documentElement.style.setProperty("--old", dark.matches ? "#8793a6" : "#98a2b0");
  const undecided = reasons_card("Undecided", "The contest left open which is the fastest: the best that was seen serves. hone tune --recorded goes on with them.", decisions.filter(d => d.undecided), d => d.undecided);
  const stale = reasons_card("Stale", "Cannot be served by this hone, or is to be checked again.", decisions.filter(d => d.stale), d => d.stale);
  main.replaceChildren(...[el("h1", {}, report.stores.length > 1 ? "A fleet's stores" : "A store"),
    el("p", {class: "sub"}, [report.made, `hone ${report.hone}`, ...(report.stores.length === 1 ? [report.stores[0].url] : [])].join(" \u00b7 ")),
    el("div", {class: "call"}, fleet_tiles()), stores_card(), report.devices.length ? coverage_card() : null, missing_card(), decisions.length ? regret_card() : null, undecided, stale, disagree_card(), when_card()].filter(Boolean));
  if (report.contests.length) {
    const contests = report.contests.map(contest_card);
    contests.slice(0, 1).forEach(place => { place.open = true; });
    main.append(el("section", {class: "call"}, el("h2", {}, "Contests"), el("p", {class: "sub"}, `What is stored of ${count(contests.length, "call", "calls")}, the heaviest first: how often it was recorded, times its time. Open one to see what was measured.`), ...contests));
  }
  const rest = all_card();
  if (rest) main.append(rest);
  if (report.calls_left_out) main.append(el("p", {class: "sub"}, `${report.calls_left_out} recorded calls beyond the most frequent are left out.`));
  document.title = report.stores.length === 1 ? "A store \u00b7 hone" : "Stores \u00b7 hone";
  show_target();
}
addEventListener("hashchange", show_target);
