// Values → pixels. Pictures are drawn one pixel per value and enlarged by the browser; other data as bars.
const barKind = new Set(); // runs whose guessed pictures the reader wants as bars

const kindOf = (run) => (barKind.has(run) ? "bars" : page.runs[run].kind);
const nValues = (run) => page.runs[run].values;

// Width and height of one drawn thing.
function sizeOf(run) {
  if (kindOf(run) !== "bars") return { width: page.runs[run].size[1], height: page.runs[run].size[0] };
  const most = page.runs[run].atoms > 1024 ? 48 : 96;
  const width = nValues(run) * Math.max(Math.floor(most / nValues(run)), 1); // bars of whole pixels, if there is room
  return { width: Math.min(width, most), height: Math.round(most * 0.6) };
}

// Bytes 0 … 255 as grey or colour, written into RGBA pixels at (left, top) of a picture `stride` pixels wide.
function paintPicture(run, rgba, stride, left, top, byteAt) {
  const { width, height } = sizeOf(run);
  const colour = kindOf(run) === "colour";
  for (let y = 0, value = 0; y < height; y++) {
    let at = ((top + y) * stride + left) * 4;
    for (let x = 0; x < width; x++, at += 4) {
      const first = byteAt(value++);
      rgba[at] = first;
      rgba[at + 1] = colour ? byteAt(value++) : first;
      rgba[at + 2] = colour ? byteAt(value++) : first;
      rgba[at + 3] = 255;
    }
  }
}

// One bar per value or column, from the zero line up or down; `share` gives values with 1 as the full half height.
function paintBars(run, rgba, stride, left, top, share, zero = 0.5) {
  const { width, height } = sizeOf(run);
  const n = nValues(run);
  const middle = Math.round((1 - zero) * (height - 1));
  for (let x = 0; x < width; x++) {
    const first = Math.floor((x * n) / width);
    const last = Math.max(Math.floor(((x + 1) * n) / width), first + 1);
    let value = 0; // the largest of the values that share a column
    for (let i = first; i < last; i++) if (Math.abs(share(i)) > Math.abs(value)) value = share(i);
    const end = Math.min(Math.max(Math.round(middle - value * (value > 0 ? middle : height - 1 - middle)), 0), height - 1);
    const [r, g, b] = value >= 0 ? barColours.plus : barColours.minus;
    for (let y = Math.min(middle, end); y <= Math.max(middle, end); y++) {
      const at = ((top + y) * stride + left + x) * 4;
      rgba[at] = r; rgba[at + 1] = g; rgba[at + 2] = b; rgba[at + 3] = 255;
    }
  }
}

// Middle tones that can be told from a white and from a black ground.
const barColours = { plus: [30, 136, 176], minus: [208, 110, 30] };

function paintAtom(run, atom, rgba, stride, left, top, flip = 1) {
  const values = array(run, "atoms");
  const offset = atom * nValues(run);
  if (kindOf(run) === "bars") paintBars(run, rgba, stride, left, top, (i) => (flip * values[offset + i]) / 127);
  else paintPicture(run, rgba, stride, left, top, (i) => 127.5 + (flip * values[offset + i] * 127.5) / 127);
}

// Values of an input, its reconstruction or residual, given as shares 0 … 1 of its range; bars start from where 0 lies.
function paintShares(run, shares, rgba, stride, left, top, zero) {
  const at = Math.min(Math.max(zero, 0), 1);
  if (kindOf(run) !== "bars") paintPicture(run, rgba, stride, left, top, (i) => 255 * shares(i));
  else paintBars(run, rgba, stride, left, top, (i) => (shares(i) - at) / Math.max(shares(i) >= at ? 1 - at : at, 1e-6), at);
}

function canvasOf(run, label, paint) {
  const { width, height } = sizeOf(run);
  const canvas = make("canvas", { width, height, class: "picture", role: "img", "aria-label": label });
  const context = canvas.getContext("2d");
  const picture = context.createImageData(width, height);
  paint(picture.data, width);
  context.putImageData(picture, 0, 0);
  return canvas;
}

const atomCanvas = (run, atom, flip = 1) => canvasOf(run, `Atom ${atom}`, (rgba, stride) => paintAtom(run, atom, rgba, stride, 0, 0, flip));

// Paper does not wait: while this is set nothing pauses, and pictures are encoded on the spot.
let hurried = false;

// One picture of `count` things side by side, for tiles to show a part of each; painted in slices, so that scrolling
// stays smooth meanwhile.
async function makeSprite(run, count, paint) {
  const { width, height } = sizeOf(run);
  const columns = Math.ceil(Math.sqrt(count));
  const rows = Math.ceil(count / columns);
  const canvas = make("canvas", { width: columns * width, height: rows * height });
  const context = canvas.getContext("2d");
  const picture = context.createImageData(canvas.width, canvas.height);
  let begun = performance.now();
  for (let i = 0; i < count; i++) {
    paint(i, picture.data, canvas.width, (i % columns) * width, Math.floor(i / columns) * height);
    if (hurried || performance.now() - begun < 12) continue;
    await new Promise((done) => setTimeout(done));
    begun = performance.now();
  }
  context.putImageData(picture, 0, 0);
  const address = hurried ? canvas.toDataURL() : URL.createObjectURL(await new Promise((done) => canvas.toBlob(done)));
  return { url: `url(${address})`, columns, rows, aspect: `${width} / ${height}` };
}

function showPart(tile, sprite, i) {
  const { columns, rows } = sprite;
  const x = columns > 1 ? ((i % columns) / (columns - 1)) * 100 : 0;
  const y = rows > 1 ? (Math.floor(i / columns) / (rows - 1)) * 100 : 0;
  tile.style.backgroundSize = `${columns * 100}% ${rows * 100}%`;
  tile.style.backgroundPosition = `${x}% ${y}%`;
}

function useSprite(element, sprite, run) {
  element.style.setProperty("--sprite", sprite.url);
  element.style.setProperty("--aspect", sprite.aspect);
  element.classList.toggle("bars-kind", kindOf(run) === "bars");
}

const atomSprites = new Map();

function atomSprite(run) {
  const key = `${run}:${kindOf(run)}`;
  const kept = atomSprites.get(key);
  if (kept && (kept.made || !hurried)) return kept.sprite;
  const fresh = { made: false, sprite: makeSprite(run, page.runs[run].atoms, (i, ...place) => paintAtom(run, i, ...place)) };
  fresh.sprite.then(() => (fresh.made = true));
  atomSprites.set(key, fresh);
  return fresh.sprite;
}
