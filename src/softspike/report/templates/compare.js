// Dictionaries matched one to one: pairs, the most different first or last, a screenful at a time.
const PAIRS_AT_A_TIME = 60;

function pairArray(pair, name) {
  const block = pair.blocks[name];
  if (!decoded.has(block.id)) decoded.set(block.id, new TYPES[block.type](bytesOf($(block.id).textContent).buffer));
  return decoded.get(block.id);
}

async function showPairs(from = 0) {
  const pair = page.pairs[Number($("pair-run").value)];
  const n = pair.blocks.first.shape[0];
  const [ours, theirs] = await Promise.all([atomSprite(pair.base), atomSprite(pair.other)]);
  const [first, second, cosine] = ["first", "second", "cosine"].map((name) => pairArray(pair, name));
  const order = [...Array(n).keys()]; // by falling |cos|
  if ($("pair-sort").value === "least") order.reverse();
  const cards = order.slice(from, from + PAIRS_AT_A_TIME).map((k) => {
    const alike = Math.abs(cosine[k]);
    const differs = alike < pair.alike;
    return make("figure", { class: differs ? "pair differs" : "pair" },
      make("div", {}, atomLink(pair.base, first[k], ours), atomLink(pair.other, second[k], theirs, Math.sign(cosine[k]))),
      caption(`${first[k]} and ${second[k]}`, `|cos| ${alike.toFixed(2)}${cosine[k] < 0 ? ", mirrored" : ""}`, differs ? "differs" : "alike"));
  });
  if (from) $("pairs").append(...cards);
  else $("pairs").replaceChildren(...cards);
  const shown = from + cards.length;
  $("more-pairs").hidden = shown >= n;
  $("more-pairs").onclick = () => showPairs(shown);
}
