// Inputs: original, reconstruction, residual, and the contributions that build the reconstruction up.
function inputShares(run, input, what) {
  const n = nValues(run);
  const bytes = array(run, "inputs");
  const at = input * 2 * n;
  if (what === "original") return (i) => bytes[at + i] / 255;
  if (what === "reconstruction") return (i) => bytes[at + n + i] / 255;
  return (i) => Math.min(Math.max(0.5 + (bytes[at + i] - bytes[at + n + i]) / 255, 0), 1); // the same scale, 0 in the middle
}

// Where the value 0 lies in the range of an input.
function zeroOf(run, input) {
  const bounds = array(run, "bounds");
  const [low, high] = [bounds[2 * input], bounds[2 * input + 1]];
  return Math.min(Math.max(-low / Math.max(high - low, 1e-30), 0), 1);
}

function inputCanvas(run, input, what) {
  const zero = what === "residual" ? 0.5 : zeroOf(run, input);
  const label = `${what} of row ${array(run, "row")[input]}`;
  return canvasOf(run, label, (rgba, stride) => paintShares(run, inputShares(run, input, what), rgba, stride, 0, 0, zero));
}

// The active atoms of an input by falling size of what they add, |z|·‖a‖.
function contributionsOf(run, input) {
  const start = array(run, "codeStart");
  const norm = array(run, "norm");
  const list = [];
  for (let at = start[input]; at < start[input + 1]; at++) {
    const atom = array(run, "codeAtom")[at];
    const value = array(run, "codeValue")[at];
    list.push({ atom, value, size: Math.abs(value) * norm[atom] });
  }
  return list.sort((a, b) => b.size - a.size);
}

// mean + Σ z·a over the first few contributions, as shares of the input's range.
function partialSum(run, input, list) {
  const n = nValues(run);
  const [atoms, peak, bounds] = [array(run, "atoms"), array(run, "peak"), array(run, "bounds")];
  const sum = Float32Array.from(array(run, "mean"));
  for (const { atom, value } of list) {
    const factor = (value * peak[atom]) / 127;
    for (let i = 0; i < n; i++) sum[i] += factor * atoms[atom * n + i];
  }
  const low = bounds[2 * input];
  const span = Math.max(bounds[2 * input + 1] - low, 1e-30);
  return sum.map((value) => Math.min(Math.max((value - low) / span, 0), 1));
}

const picture = (canvas, words) => make("figure", {}, canvas, make("figcaption", {}, words));

async function renderInput(run, input) {
  const sprite = await atomSprite(run);
  const list = contributionsOf(run, input);
  const original = inputShares(run, input, "original");
  const trio = make("div", { class: "trio" });
  const words = make("output", {});
  const rows = list.map((item) => contributionRow(run, item, list[0].size, sprite));
  const slider = make("input", { type: "range", min: 0, max: list.length, value: list.length, "aria-label": "Number of atoms used" });
  const show = () => {
    const count = Number(slider.value);
    const sum = count === list.length ? inputShares(run, input, "reconstruction") : ((part) => (i) => part[i])(partialSum(run, input, list.slice(0, count)));
    const left = (i) => Math.min(Math.max(0.5 + original(i) - sum(i), 0), 1);
    const draw = (label, shares, zero) => canvasOf(run, label, (rgba, stride) => paintShares(run, shares, rgba, stride, 0, 0, zero));
    trio.replaceChildren(picture(inputCanvas(run, input, "original"), "original"),
      picture(draw("reconstruction", sum, zeroOf(run, input)), "reconstruction"), picture(draw("residual", left, 0.5), "residual"));
    words.textContent = `${count} of ${list.length} atoms`;
    rows.forEach((row, i) => row.classList.toggle("off", i >= count));
  };
  slider.addEventListener("input", show);
  const title = `Row ${whole(array(run, "row")[input])}: ${several(list.length, "atom")} explain${list.length === 1 ? "s" : ""} ${percent(1 - array(run, "unexplained")[input])}`;
  const additive = page.runs[run].additive; // otherwise there are no partial sums
  $("input").replaceChildren(make("header", {}, make("h3", {}, title)), trio,
    make("div", additive ? { class: "buildup" } : { hidden: true }, slider, words),
    make("h3", {}, additive ? "What each atom adds, the largest first" : "Its active atoms, the largest first"),
    make("ol", { class: "contributions" }, ...rows));
  show();
}

function contributionRow(run, { atom, value, size }, largest, sprite) {
  const share = (50 * size) / largest;
  const bar = makeSvg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    makeSvg("rect", { class: value < 0 ? "minus" : "plus", x: value < 0 ? 50 - share : 50, width: share, height: 10 }));
  return make("li", {}, atomLink(run, atom, sprite), make("span", {}, `atom ${atom}`), bar, make("span", { class: "number" }, `z = ${short(value)}`));
}

const inputMosaic = $("input-mosaic") && new Mosaic($("input-mosaic"), (i) => goTo({ run: state.run, input: i }));

// The input whose count of atoms is nearest to the mean: a typical one to begin with.
function typicalInput(run) {
  const start = array(run, "codeStart");
  const count = page.runs[run].shown;
  const miss = (i) => Math.abs(start[i + 1] - start[i] - start[count] / count);
  return [...Array(count).keys()].reduce((a, b) => (miss(b) < miss(a) ? b : a));
}

let inputsOf = -1; // the run whose inputs are drawn

async function openInput(run) {
  state.input ??= typicalInput(run);
  inputMosaic.select(state.input);
  await renderInput(run, state.input);
}

async function showInputs(run) {
  const count = page.runs[run].shown;
  $("inputs").hidden = !count;
  if (!count) return;
  const sprite = await makeSprite(run, count, (i, ...place) => paintShares(run, inputShares(run, i, "original"), ...place, zeroOf(run, i)));
  if (run !== state.run) return; // another was chosen meanwhile
  inputMosaic.fill(count, sprite, run, (i) => ({ label: `Row ${whole(array(run, "row")[i])}, ${percent(1 - array(run, "unexplained")[i])} explained`, dead: false }));
  sortInputs(run);
  inputsOf = run;
  await openInput(run);
}

function sortInputs(run) {
  const by = $("input-sort").value;
  const start = array(run, "codeStart");
  const keys = { row: (i) => array(run, "row")[i], unexplained: (i) => -array(run, "unexplained")[i], active: (i) => start[i] - start[i + 1] };
  inputMosaic.arrange([...Array(page.runs[run].shown).keys()].sort((a, b) => keys[by](a) - keys[by](b)));
}
