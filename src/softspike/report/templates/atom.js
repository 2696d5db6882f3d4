// Everything about one atom.
function rankOf(values, i) {
  let above = 0;
  for (const value of values) if (value > values[i]) above++;
  return above + 1;
}

function factsOf(run, atom) {
  const info = page.runs[run];
  const facts = [["norm", short(array(run, "norm")[atom])]];
  if (info.measured) {
    const rate = array(run, "rate");
    const fired = rate[atom] > 0 ? `${percent(rate[atom])} of inputs, rank ${whole(rankOf(rate, atom))} of ${whole(info.atoms)}` : `never on ${whole(info.inputs)} inputs: dead`;
    facts.push(["active on", fired], ["mean probability", percent(array(run, "probability")[atom])]);
    facts.push(["mean |z| when active", short(array(run, "size")[atom])]);
  }
  facts.push(["scale", `±${short(array(run, "peak")[atom])}`]);
  return make("dl", { class: "facts" }, ...facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

function histogramOf(run, atom) {
  const bins = page.runs[run].blocks.histogram.shape[1];
  const counts = array(run, "histogram").subarray(atom * bins, (atom + 1) * bins);
  const reach = array(run, "reach")[atom];
  const most = Math.max(...counts, 1);
  const width = 380, height = 96, base = height - 18;
  const bars = [...counts].map((count, bin) => {
    const tall = (count / most) * (base - 4);
    return makeSvg("rect", { x: (bin * width) / bins + 0.5, width: width / bins - 1, y: base - tall, height: tall });
  });
  const label = `Histogram of the values of atom ${atom} where it is active, from ${short(-reach)} to ${short(reach)}`;
  return makeSvg("svg", { viewBox: `0 0 ${width} ${height}`, class: "histogram", role: "img", "aria-label": label },
    makeSvg("line", { x1: 0, x2: width, y1: base, y2: base }), makeSvg("line", { x1: width / 2, x2: width / 2, y1: 4, y2: base }), ...bars,
    makeSvg("text", { x: 0, y: height - 4 }, `−${short(reach)}`), makeSvg("text", { x: width / 2, y: height - 4, "text-anchor": "middle" }, "0"),
    makeSvg("text", { x: width, y: height - 4, "text-anchor": "end" }, short(reach)));
}

function atomLink(run, atom, sprite, flip = 1) {
  const tile = make("button", { type: "button", class: "tile", title: `Atom ${atom}`, "aria-label": `Open atom ${atom}`, onclick: () => goTo({ run, atom }) });
  useSprite(tile, sprite, run);
  showPart(tile, sprite, atom);
  if (flip < 0) tile.style[kindOf(run) === "bars" ? "transform" : "filter"] = kindOf(run) === "bars" ? "scaleY(-1)" : "invert(1)";
  return tile;
}

// A strip of other atoms, from index and number arrays with a row per atom.
function stripOf(run, atom, sprite, names, words) {
  const k = page.runs[run].blocks[names[0]].shape[1];
  const index = array(run, names[0]).subarray(atom * k, (atom + 1) * k);
  const value = array(run, names[1]).subarray(atom * k, (atom + 1) * k);
  const shown = [...index.keys()].filter((j) => index[j] >= 0);
  if (!shown.length) return make("p", { class: "small" }, "None.");
  return make("div", { class: "strip" }, ...shown.map((j) =>
    make("figure", {}, atomLink(run, index[j], sprite), caption(`atom ${index[j]}`, ...words(value[j], index[j])))));
}

function strongestOf(run, atom) {
  const k = page.runs[run].blocks.strongest.shape[1];
  const inputs = array(run, "strongest").subarray(atom * k, (atom + 1) * k);
  const values = array(run, "strongestValue").subarray(atom * k, (atom + 1) * k);
  const shown = [...inputs.keys()].filter((j) => inputs[j] >= 0);
  if (!shown.length) return make("p", { class: "small" }, "It is active in none of the inputs.");
  return make("div", { class: "strip" }, ...shown.map((j) =>
    make("figure", {}, inputCanvas(run, inputs[j], "original"), inputCanvas(run, inputs[j], "reconstruction"),
      caption(`z = ${short(values[j])}`, `${percent(1 - array(run, "unexplained")[inputs[j]])} expl.`, `row ${whole(array(run, "row")[inputs[j]])}`))));
}

function partnersElsewhere(run, atom) {
  return page.pairs.flatMap((pair) => {
    const [mine, theirs] = pair.base === run ? ["first", "second"] : pair.other === run ? ["second", "first"] : [];
    if (!mine) return [];
    const at = pairArray(pair, mine).indexOf(atom);
    const other = pair.base === run ? pair.other : pair.base;
    if (at < 0) return [{ other, partner: null }];
    return [{ other, partner: pairArray(pair, theirs)[at], cosine: pairArray(pair, "cosine")[at] }];
  });
}

async function matchesOf(run, atom) {
  const found = partnersElsewhere(run, atom);
  if (!found.length) return [];
  const figures = await Promise.all(found.map(async ({ other, partner, cosine }) => {
    const name = page.runs[other].name;
    if (partner === null) return make("figure", {}, caption(name, "no partner"));
    const tile = atomLink(other, partner, await atomSprite(other), Math.sign(cosine));
    return make("figure", {}, tile, caption(name, `atom ${partner}`, `|cos| ${Math.abs(cosine).toFixed(2)}`, cosine < 0 ? "mirrored" : ""));
  }));
  return [make("h3", {}, "Its partner in other runs"), make("div", { class: "strip" }, ...figures)];
}

async function renderAtom(run, atom, mosaic) {
  const sprite = await atomSprite(run);
  const info = page.runs[run];
  const step = (by) => goTo({ run, atom: mosaic.beside(atom, by) }, true);
  const parts = [
    make("header", {}, make("h3", {}, `Atom ${atom}`),
      make("button", { type: "button", "aria-label": "Previous atom", onclick: () => step(-1) }, "‹"),
      make("button", { type: "button", "aria-label": "Next atom", onclick: () => step(1) }, "›"),
      make("button", { type: "button", "aria-label": "Close", onclick: () => goTo({ run }) }, "×")),
    make("div", { class: "portrait" }, atomCanvas(run, atom), factsOf(run, atom)),
  ];
  if (info.measured) {
    const rate = array(run, "rate");
    parts.push(make("h3", {}, "Its values where it is active"), histogramOf(run, atom),
      make("h3", {}, "Strongest in these inputs, rebuilt below"), strongestOf(run, atom),
      make("h3", {}, "Fires together with"),
      stripOf(run, atom, sprite, ["partner", "partnerShare"], (share, other) => [`${percent(share)} with it`, `${percent(rate[other])} overall`]),
      make("h3", {}, "Looks most like"), stripOf(run, atom, sprite, ["near", "nearCosine"], (cosine) => [`cos ${sign(cosine.toFixed(2))}`]));
  }
  parts.push(...(await matchesOf(run, atom)));
  const likeness = make("button", { type: "button", onclick: () => sortBy("like") }, "Sort the dictionary by likeness to it");
  parts.push(make("p", {}), likeness);
  if (state.run === run && state.atom === atom) $("atom").replaceChildren(...parts);
}
