// A reading of each chart where the pointer is.
for (const svg of document.querySelectorAll("svg[data-chart]")) {
  const chart = page.charts[svg.dataset.chart];
  const readout = svg.closest("figure").querySelector(".readout");
  const cursor = makeSvg("line", { class: "cursor", y1: chart.top, y2: chart.bottom, visibility: "hidden" });
  svg.append(cursor);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * chart.width;
    const near = chart.lines.map(([name, points]) => [name, points.reduce((a, b) => (Math.abs(b[0] - x) < Math.abs(a[0] - x) ? b : a))]);
    const at = near.reduce((a, b) => (Math.abs(b[1][0] - x) < Math.abs(a[1][0] - x) ? b : a))[1];
    cursor.setAttribute("x1", at[0]);
    cursor.setAttribute("x2", at[0]);
    cursor.setAttribute("visibility", "visible");
    const here = near.filter(([, point]) => point[0] === at[0]).map(([name, point]) => (near.length > 1 ? `${name} ${point[3]}` : point[3]));
    readout.textContent = `${chart.x} ${at[2]}: ${here.join(", ")}`;
  });
  svg.addEventListener("pointerleave", () => {
    cursor.setAttribute("visibility", "hidden");
    readout.textContent = "";
  });
}

for (const radio of document.querySelectorAll('input[name="axis"]')) {
  radio.addEventListener("change", () => {
    $("training").classList.toggle("by-time", radio.value === "time");
    $("training").classList.toggle("by-step", radio.value === "step");
  });
}
