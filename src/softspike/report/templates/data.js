// What the page holds: settings as JSON, arrays as base64 that is decoded when first asked for.
const page = JSON.parse(document.getElementById("softspike-data").textContent);
const TYPES = { Int8: Int8Array, Uint8: Uint8Array, Uint16: Uint16Array, Int32: Int32Array, Uint32: Uint32Array, Float32: Float32Array };
const decoded = new Map();

function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

// An array of a run by its name, or null where the page does not have it.
function array(run, name) {
  const block = page.runs[run].blocks[name];
  if (!block) return null;
  if (!decoded.has(block.id)) {
    const holder = document.getElementById(block.id);
    decoded.set(block.id, new TYPES[block.type](bytesOf(holder.textContent).buffer));
    holder.remove();
  }
  return decoded.get(block.id);
}

const $ = (id) => document.getElementById(id);
const percent = (share) => (share > 0 && share < 0.001 ? "<\u00a00.1\u00a0%" : `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}\u00a0%`);
const sign = (text) => text.replace("-", "−");
const short = (value) => sign(value !== 0 && (Math.abs(value) >= 1e4 || Math.abs(value) < 1e-3) ? value.toExponential(1) : Number(value.toPrecision(3)).toString());
const several = (n, noun) => `${whole(n)} ${noun}${n === 1 ? "" : "s"}`;
const whole = (n) => n.toLocaleString("en");

// An element with attributes and children; text only ever becomes text.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

// Short texts below one another.
const caption = (...lines) => make("figcaption", {}, ...lines.map((line) => make("span", {}, line)));

function makeSvg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
