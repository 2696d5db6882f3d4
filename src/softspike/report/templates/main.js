// What is shown is what the address says: #run=1&atom=17 or #input=3. Everything else follows from it.
const state = { run: -1, atom: null, input: null };
const mosaic = $("mosaic") && new Mosaic($("mosaic"), (atom) => goTo({ run: state.run, atom }));
const SORTS = {
  rate: "usage", probability: "activation probability", norm: "norm", likeness: "similarity, alike side by side", number: "number",
};
const firstRun = page.runs.findIndex((run) => run.kind);

function goTo({ run, atom = null, input = null }, quietly = false) {
  const parts = [];
  if (run !== firstRun) parts.push(`run=${run}`);
  if (atom !== null) parts.push(`atom=${atom}`);
  if (input !== null) parts.push(`input=${input}`);
  const address = `#${parts.join("&") || "dictionary"}`;
  if (quietly || address === location.hash) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  return follow();
}

// The atom that was typed in, if there is one of that number; otherwise that is said, and the address stays.
function goToAtom(field) {
  const { value, validity } = field;
  const count = page.runs[state.run].atoms;
  const known = /^\d+$/.test(value) && Number(value) < count;
  const empty = value === "" && !validity.badInput;
  $("goto-note").textContent = known || empty ? "" : `There is no atom ${value || "of that name"}: they are 0 to ${whole(count - 1)}.`;
  if (known) goTo({ run: state.run, atom: Number(value) });
}

// A number from the address, if it is one of 0 … count − 1.
function numberIn(words, name, count) {
  const value = words.get(name);
  return value !== null && /^\d+$/.test(value) && Number(value) < count ? Number(value) : null;
}

async function follow() {
  const named = /(^|[#&])(run|atom|input)=/.test(location.hash) || location.hash === "#dictionary";
  if (!named && state.run >= 0) return; // a link to another section: what is open stays open
  const words = new URLSearchParams(location.hash.slice(1));
  const asked = numberIn(words, "run", page.runs.length);
  const run = asked !== null && page.runs[asked].kind ? asked : firstRun;
  const atom = numberIn(words, "atom", page.runs[run].atoms);
  const input = numberIn(words, "input", page.runs[run].shown);
  const before = { ...state };
  Object.assign(state, { run, atom, input: input ?? (run === before.run ? before.input : null) });
  if (run !== before.run) await showRun(run);
  if (atom !== before.atom || run !== before.run) await showAtom(atom, before.run >= 0);
  if (inputsOf === run && state.input !== before.input) await openInput(run);
  if (input !== null && before.run < 0) (landing = $("inputs")).scrollIntoView();
}

async function showRun(run) {
  const info = page.runs[run];
  if ($("run")) $("run").value = run;
  const known = Object.keys(SORTS).filter((key) => key === "number" || array(run, key));
  $("sort").replaceChildren(...known.map((key) => make("option", { value: key }, SORTS[key])));
  $("sort").append(make("option", { value: "like", hidden: true }, "likeness to the open atom"));
  $("goto").max = info.atoms - 1;
  $("draw-as").hidden = !info.guessed;
  $("dictionary-note").textContent = info.note;
  if ($("inputs-note")) $("inputs-note").textContent = info.inputsNote;
  if ($("inputs")) later(() => run === state.run && showInputs(run));
  await fillMosaic(run);
}

async function fillMosaic(run) {
  const info = page.runs[run];
  const rate = array(run, "rate");
  mosaic.element.setAttribute("aria-label", `${whole(info.atoms)} atoms`);
  mosaic.fill(info.atoms, await atomSprite(run), run, (i) => {
    const dead = rate !== null && rate[i] === 0;
    return { label: rate === null ? `Atom ${i}` : `Atom ${i}, ${dead ? "dead" : `active on ${percent(rate[i])} of inputs`}`, dead };
  });
  sortBy($("sort").value);
}

// Falling by the chosen number; ties by usage, then by number.
function sortBy(key) {
  const { run, atom } = state;
  const indices = [...Array(page.runs[run].atoms).keys()];
  if (key === "like" && atom === null) key = "number";
  if (key === "likeness") indices.splice(0, indices.length, ...array(run, "likeness"));
  else if (key !== "number") {
    const values = key === "like" ? likenessTo(run, atom) : array(run, key);
    const ties = array(run, "rate");
    indices.sort((a, b) => values[b] - values[a] || (ties ? ties[b] - ties[a] : 0) || a - b);
  }
  $("sort").value = key;
  mosaic.arrange(indices);
}

// |cos| of every atom with one of them, from what is drawn.
function likenessTo(run, atom) {
  const n = nValues(run);
  const values = array(run, "atoms");
  return Float32Array.from({ length: page.runs[run].atoms }, (_, other) => {
    let dot = 0, square = 0;
    for (let i = 0; i < n; i++) {
      dot += values[other * n + i] * values[atom * n + i];
      square += values[other * n + i] ** 2;
    }
    return Math.abs(dot) / Math.sqrt(square || 1);
  });
}

async function showAtom(atom, focus) {
  const panel = $("atom");
  const had = panel.classList.contains("open");
  const last = mosaic.current;
  const inside = panel.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : undefined;
  panel.classList.toggle("open", atom !== null);
  mosaic.select(atom);
  $("sort").querySelector('[value="like"]').hidden = atom === null;
  if (atom === null) {
    panel.replaceChildren();
    if (had && inside !== undefined) mosaic.tiles[last]?.focus();
    return;
  }
  await renderAtom(state.run, atom, mosaic);
  panel.scrollTop = 0;
  if (inside) panel.querySelector(`[aria-label="${CSS.escape(inside)}"]`)?.focus();
  else if (focus && matchMedia("(max-width: 999px)").matches) panel.focus();
  if (!focus) $("dictionary").scrollIntoView();
}

// What is below the dictionary is drawn one after the other when the page has nothing else to do, or at once for paper.
const waiting = [];
const idle = () => new Promise((done) => (window.requestIdleCallback ? requestIdleCallback(done, { timeout: 500 }) : setTimeout(done, 50)));

async function later(draw) {
  if (waiting.push(draw) > 1) return;
  while (waiting.length) {
    await idle();
    const next = waiting[0];
    await next?.();
    if (waiting[0] === next) waiting.shift();
  }
  landing?.scrollIntoView({ behavior: "instant" }); // sections above it have grown
  landing = null;
  document.documentElement.dataset.drawn = "true";
}

// Only what is left of a task that has begun is done before printing, so all of this must need no other.
addEventListener("beforeprint", () => {
  hurried = true;
  if (mosaic && !mosaic.tiles.length && state.run >= 0) fillMosaic(state.run);
  for (const draw of waiting.splice(0)) draw();
  setTimeout(() => (hurried = false));
});

// Where a link has led to, until the reader moves on.
const targetOf = (hash) => /^#[a-z]+$/.test(hash) ? $(hash.slice(1)) : null;
let landing = targetOf(location.hash);
addEventListener("hashchange", () => (landing = waiting.length ? targetOf(location.hash) : null));
for (const kind of ["wheel", "touchmove", "keydown"]) addEventListener(kind, () => (landing = null), { passive: true });

// Few atoms are shown large, many small; all of them larger where the screen is wide.
function firstSize(run) {
  const n = page.runs[run].atoms;
  const room = Math.min(Math.max(innerWidth / 1280, 1), 1.6);
  if (kindOf(run) === "bars") return n > 1024 ? 60 : 96;
  return Math.round(room * (n <= 64 ? 92 : n <= 160 ? 64 : n <= 600 ? 44 : 32));
}

function resize(width) {
  $("zoom").value = width;
  mosaic.element.style.setProperty("--tile", `${width}px`);
}

function start() {
  resize(firstSize(firstRun));
  $("zoom").addEventListener("input", () => resize($("zoom").value));
  $("sort").addEventListener("change", () => sortBy($("sort").value));
  $("run")?.addEventListener("change", () => goTo({ run: Number($("run").value) }));
  $("goto").addEventListener("change", () => goToAtom($("goto")));
  $("kind").addEventListener("change", async () => {
    barKind[$("kind").value ? "add" : "delete"](state.run);
    await fillMosaic(state.run);
    await showAtom(state.atom, true);
    if (inputsOf === state.run) await showInputs(state.run);
  });
  $("input-sort")?.addEventListener("change", () => sortInputs(state.run));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && state.atom !== null) goTo({ run: state.run });
  });
  addEventListener("hashchange", follow);
  addEventListener("popstate", follow);
  if ($("pairs")) {
    for (const id of ["pair-run", "pair-sort"]) $(id).addEventListener("change", () => showPairs());
    later(() => showPairs());
  }
  return follow();
}

$("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = getComputedStyle(root).colorScheme === "dark" || (root.dataset.theme === undefined && matchMedia("(prefers-color-scheme: dark)").matches);
  root.dataset.theme = dark ? "light" : "dark";
});

(firstRun >= 0 ? start() : Promise.resolve()).then(() => {
  performance.mark("softspike-ready");
  document.documentElement.dataset.ready = "true";
});
