// A grid of tiles: one stop for the Tab key, arrow keys inside, real buttons all of them.
class Mosaic {
  constructor(element, onOpen) {
    this.element = element;
    this.onOpen = onOpen;
    this.tiles = [];
    this.order = [];
    element.addEventListener("click", (event) => {
      const tile = event.target.closest(".tile");
      if (tile) this.onOpen(Number(tile.dataset.i));
    });
    element.addEventListener("keydown", (event) => this.key(event));
  }

  // `describe(i)` names tile i and says whether it is dead.
  fill(count, sprite, run, describe) {
    useSprite(this.element, sprite, run);
    this.tiles = Array.from({ length: count }, (_, i) => {
      const tile = document.createElement("button");
      const { label, dead } = describe(i);
      tile.type = "button";
      tile.className = dead ? "tile dead" : "tile";
      tile.dataset.i = i;
      tile.tabIndex = -1;
      tile.title = label;
      tile.setAttribute("aria-label", label);
      showPart(tile, sprite, i);
      return tile;
    });
    this.element.classList.toggle("tall", count > 600);
    this.arrange([...Array(count).keys()]);
  }

  arrange(order) {
    this.order = order;
    this.place = new Map(order.map((i, place) => [i, place]));
    this.element.replaceChildren(...order.map((i) => this.tiles[i]));
    this.stop(this.current ?? order[0]);
  }

  // The tile that the Tab key stops at.
  stop(i) {
    if (this.at !== undefined && this.tiles[this.at]) this.tiles[this.at].tabIndex = -1;
    this.at = i;
    if (this.tiles[i]) this.tiles[i].tabIndex = 0;
  }

  select(i) {
    if (this.current !== undefined) this.tiles[this.current]?.removeAttribute("aria-current");
    this.current = i ?? undefined;
    if (i === null || i === undefined || !this.tiles[i]) return;
    this.tiles[i].setAttribute("aria-current", "true");
    this.stop(i);
    this.reveal(i);
  }

  // Scrolls inside the mosaic only; the page stays where it is.
  reveal(i) {
    const box = this.element;
    const tile = this.tiles[i];
    if (box.scrollHeight <= box.clientHeight) return;
    const top = tile.offsetTop - box.offsetTop;
    if (top < box.scrollTop || top + tile.offsetHeight > box.scrollTop + box.clientHeight) {
      box.scrollTop = top - box.clientHeight / 2;
    }
  }

  columns() {
    return getComputedStyle(this.element).gridTemplateColumns.split(" ").length;
  }

  key(event) {
    const moves = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns(), ArrowUp: -this.columns(), Home: -Infinity, End: Infinity };
    if (!(event.key in moves)) return;
    event.preventDefault();
    const next = Math.min(Math.max(this.place.get(this.at) + moves[event.key], 0), this.order.length - 1);
    this.stop(this.order[next]);
    this.tiles[this.at].focus();
  }

  // The neighbour of tile i in the order shown.
  beside(i, step) {
    const n = this.order.length;
    return this.order[(this.place.get(i) + step + n) % n];
  }
}
