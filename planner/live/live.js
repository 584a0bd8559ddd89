"use strict";
/* One question at a time: a change hangs up on the one that runs. What is shown says at every moment what it is of. */
(() => {
  const $ = (id) => document.getElementById(id);
  const all = (query) => [...document.querySelectorAll(query)];
  const form = $("knobs"), answer = $("answer"), badge = $("badge");
  const fields = all("#knobs input[type=text][data-path]");
  const switches = all("#knobs input[type=checkbox][data-path]");
  const sliders = new Map(all("#knobs input[type=range]").map((one) => [one.dataset.of, one]));
  const devices = all("#devices input[data-device]");
  const denied = JSON.parse($("devices").dataset.denied);
  const DENY = "hardware.deny", WAIT_MS = 40, TOGETHER_MS = 800, MOST_PAST = 200;
  const texts = new Set([DENY, ...fields.map((one) => one.dataset.path)]);
  const shows = (path, value) => texts.has(path) || switches.some((one) =>
    one.dataset.path === path && [one.dataset.on, one.dataset.off].includes(value));

  let state = {};  // path -> text or list, what differs from the scenario as it was
  let others = {};  // the part of it that no control shows
  let shown = null;  // the state that the last whole answer is of
  let linkedTo = linked();  // what the address asks for, after the scenario as it is
  let past = [], lastTurned = {path: "", at: 0};
  let number = 0, running = null, timer = 0, began = 0;

  const key = (of) => JSON.stringify(Object.keys(of).sort().map((path) => [path, of[path]]));

  function turned() {
    const found = {...others};
    for (const one of fields) {
      const text = one.value.trim();
      if (text !== one.dataset.base) found[one.dataset.path] = text;
    }
    for (const one of switches) {
      if (one.checked !== (one.dataset.base === "on")) {
        found[one.dataset.path] = one.checked ? one.dataset.on : one.dataset.off;
      }
    }
    const off = devices.filter((one) => !one.checked).map((one) => one.dataset.device);
    if (off.length) found[DENY] = [...denied, ...off];
    return found;
  }

  function put(next) {
    others = {};
    for (const path of Object.keys(next)) if (!shows(path, next[path])) others[path] = next[path];
    for (const one of fields) {
      one.value = one.dataset.path in next ? next[one.dataset.path] : one.dataset.base;
      follow(one);
    }
    for (const one of switches) {
      const on = one.dataset.base === "on";
      one.checked = one.dataset.path in next && !(one.dataset.path in others) ? next[one.dataset.path] === one.dataset.on : on;
    }
    for (const one of devices) one.checked = !(next[DENY] || []).includes(one.dataset.device);
    $("chips").replaceChildren(...Object.keys(others).map(chip));
  }

  function chip(path) {
    const item = document.createElement("li"), button = document.createElement("button");
    button.type = "button";
    button.textContent = `${path} = ${others[path]} ✕`;
    button.setAttribute("aria-label", `Take back ${path}`);
    button.addEventListener("click", () => { delete others[path]; put({...turned()}); change(path); });
    item.append(button);
    return item;
  }

  /* A slider goes where its field says, if the field says a number with the same words around it. */
  function follow(field) {
    const slider = sliders.get(field.id);
    if (!slider) return;
    const {before, after} = slider.dataset, text = field.value.trim();
    slider.setAttribute("aria-valuetext", text);
    if (!text.startsWith(before) || !text.endsWith(after)) return;
    const amount = Number(text.slice(before.length, text.length - after.length));
    if (Number.isFinite(amount)) slider.value = amount;
  }

  function change(path) {
    const next = turned();
    if (key(next) === key(state)) return;
    const now = performance.now();
    if (!(path && path === lastTurned.path && now - lastTurned.at < TOGETHER_MS)) past.push(state);
    past = past.slice(-MOST_PAST);
    lastTurned = {path, at: now};
    go(next);
  }

  function go(next) {
    state = next;
    const text = new URLSearchParams(Object.entries(state).map(([path, value]) =>
      [path, Array.isArray(value) ? JSON.stringify(value) : value])).toString();
    history.replaceState(null, "", text ? `#${text}` : location.pathname);
    $("undo").disabled = !past.length;
    $("again").disabled = !Object.keys(state).length;
    ask();
  }

  function linked() {
    const found = {};
    for (const [path, value] of new URLSearchParams(location.hash.slice(1))) {
      try {
        found[path] = path === DENY ? JSON.parse(value) : value;
      } catch { /* a link that was cut */ }
    }
    return found;
  }

  function now(what) {
    answer.dataset.now = what;
    $("told").setAttribute("aria-busy", what === "working" || what === "sofar" ? "true" : "false");
  }

  function say(text, tone) {
    badge.textContent = text;
    badge.dataset.tone = tone;
  }

  function ask() {
    const mine = ++number, wasRunning = running;
    if (running) running.abort();
    running = null;
    clearTimeout(timer);
    now("working");
    began = performance.now();
    say("working", "soft");
    $("copy").disabled = true;
    timer = setTimeout(() => send(mine), wasRunning ? WAIT_MS : 0);
  }

  async function send(mine) {
    const stop = running = new AbortController(), of = state;
    try {
      const response = await fetch("ask", {
        method: "POST", signal: stop.signal, headers: {"content-type": "application/json"},
        body: JSON.stringify({changes: of, before: shown}),
      });
      if (!response.ok) throw new Error(await response.text());
      await lines(response, (line) => { if (mine === number) take(line, of); });
      if (mine === number && answer.dataset.now === "working") ended("no answer came");
    } catch (error) {
      if (mine === number && error.name !== "AbortError") ended(error.name === "TypeError" ? "plan live has ended" : error.message);
    }
    if (mine === number) running = null;
  }

  function ended(why) {
    now("earlier");
    say(`${why.trim()}: what is shown is older`, "bad");
    $("status").textContent = badge.textContent;
  }

  async function lines(response, each) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = "";;) {
      const {value, done} = await reader.read();
      if (done) return;
      rest += value;
      for (let at = rest.indexOf("\n"); at >= 0; at = rest.indexOf("\n")) {
        each(JSON.parse(rest.slice(0, at)));
        rest = rest.slice(at + 1);
      }
    }
  }

  function take(line, of) {
    if (line.kind === "answer" || line.kind === "mended") answered(line, of);
    else if (line.kind === "traded") $("traded").innerHTML = line.html;
    else if (line.kind === "refused") refused(line.wrong);
    else ended(line.text);
    if (linkedTo && !["traded", "mended"].includes(line.kind) && line.last !== false) {
      put({...linkedTo, ...state});
      linkedTo = null;
      change("");
    }
  }

  function answered(line, of) {
    mark({});
    $("told").innerHTML = line.html;
    $("more").replaceChildren(...$("told").querySelectorAll(":scope > .more"));  // on a phone the knobs lie between
    if (!answer.querySelector("#more svg.chart") || key(of) !== answer.dataset.of) $("traded").replaceChildren();
    answer.dataset.of = key(of);
    answer.dataset.proven = line.proven ? "yes" : "no";
    now(line.last ? "current" : "sofar");
    if (line.last) shown = of;
    if (line.last && line.kind === "answer") answer.dataset.took = Math.round(performance.now() - began);
    $("total").textContent = line.total;
    say(line.badge, line.tone);
    $("status").textContent = `${line.total || "No plan"}: ${line.badge}`;
    $("command").textContent = line.command;
    $("copy").disabled = false;
  }

  function refused(wrong) {
    mark(wrong);
    now("earlier");
    say("cannot be read: what is shown is the last good answer", "bad");
    $("status").textContent = Object.values(wrong).join(" ");
  }

  function mark(wrong) {
    const rest = {...wrong};
    for (const one of [...fields, ...switches]) {
      const place = $(one.getAttribute("aria-describedby")), text = rest[one.dataset.path];
      delete rest[one.dataset.path];
      one.toggleAttribute("aria-invalid", false);
      if (text) one.setAttribute("aria-invalid", "true");
      place.textContent = text || "";
      place.hidden = !text;
    }
    const of = {"wrong-devices": rest[DENY] || ""};
    delete rest[DENY];
    of.wrong = Object.entries(rest).map(([path, text]) => (path ? `${path}: ${text}` : text)).join("\n");
    for (const id of Object.keys(of)) { $(id).textContent = of[id]; $(id).hidden = !of[id]; }
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => {
    const one = event.target;
    if (one.type !== "range") return;
    const field = $(one.dataset.of);
    field.value = one.dataset.before + String(Number(Number(one.value).toPrecision(12))) + one.dataset.after;
    one.setAttribute("aria-valuetext", field.value);
    change(field.dataset.path);
  });
  form.addEventListener("change", (event) => {
    const one = event.target;
    if (one.type === "range" || one.id === "save-name") return;
    if (one.type === "text") follow(one);
    change("");
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.type === "text") { event.preventDefault(); event.target.blur(); event.target.focus(); }
  });
  answer.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-set]");
    if (!button) return;
    put({...state, ...JSON.parse(button.dataset.set)});
    change("");
    answer.focus();
  });
  $("undo").addEventListener("click", () => {
    const before = past.pop();
    lastTurned = {path: "", at: 0};
    put(before);
    go(before);
  });
  $("again").addEventListener("click", () => { put({}); change(""); });
  $("link").addEventListener("click", () => copied(location.href, "The link"));
  $("copy").addEventListener("click", () => copied($("command").textContent, "The command"));
  $("save").addEventListener("click", async () => {
    const told = $("saved");
    try {
      const response = await fetch("save", {
        method: "POST", headers: {"content-type": "application/json"},
        body: JSON.stringify({changes: state, name: $("save-name").value}),
      });
      told.textContent = response.ok ? (await response.json()).text : await response.text();
    } catch {
      told.textContent = "plan live has ended: nothing was saved";
    }
  });
  window.addEventListener("hashchange", () => { put(linked()); change(""); });

  async function copied(text, what) {
    try {
      await navigator.clipboard.writeText(text);
      $("done").textContent = `${what} was copied.`;
    } catch {
      $("done").textContent = text;
    }
  }

  /* The scenario as it is comes first: it is what every later answer is compared with. */
  put(linkedTo);
  ask();
})();
