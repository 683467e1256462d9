// The draw as a number line: move the number, see which token it hits.
// data: {"bins": [{"piece": text as shown, "share": width}, ...] in the order of ids, "u": where to begin}
function mount(root, data) {
  const total = data.bins.reduce((sum, bin) => sum + bin.share, 0);
  let edge = 0;
  const bins = data.bins.map((bin) => ({ piece: bin.piece, left: edge / total, right: (edge += bin.share) / total }));
  bins[bins.length - 1].right = 1;

  const element = (tag, style, text = "") => {
    const made = document.createElement(tag);
    made.style.cssText = style;
    made.textContent = text;
    return made;
  };

  const line = element("div", "position: relative; height: 3em; margin: 2.2em 0 .3em; font-family: monospace");
  line.setAttribute("aria-hidden", "true");
  for (const bin of bins) {
    bin.element = element(
      "div",
      `position: absolute; top: 0; bottom: 0; left: ${100 * bin.left}%; width: ${100 * (bin.right - bin.left)}%;` +
        "display: flex; align-items: center; justify-content: center; overflow: hidden; white-space: pre;" +
        "box-sizing: border-box; border: 1px solid var(--pst-color-background, Canvas)",
      bin.right - bin.left > 0.02 * bin.piece.length ? bin.piece : "",
    );
    line.append(bin.element);
  }
  const needle = element(
    "div",
    "position: absolute; top: -.7em; bottom: -.3em; width: 0; border-left: 3px solid currentColor; margin-left: -1.5px",
  );
  line.append(needle);

  const label = element("label", "display: block", "Move the number u: ");
  const slider = element("input", "display: block; width: calc(100% + 16px); margin: 0 -8px");
  Object.assign(slider, { type: "range", min: "0", max: "0.999", step: "0.001", value: String(data.u) });
  label.append(slider);
  const result = element("output", "display: block; margin-top: .4em");
  result.setAttribute("aria-live", "polite");

  const update = () => {
    const u = Number(slider.value);
    const hit = bins.find((bin) => u < bin.right);
    for (const bin of bins) {
      bin.element.style.background = bin === hit ? "var(--llm-chosen, #c24e00)" : "rgba(91, 160, 205, .35)";
      bin.element.style.color = bin === hit ? "var(--pst-color-background, Canvas)" : "inherit";
      bin.element.style.fontWeight = bin === hit ? "700" : "400";
    }
    needle.style.left = `${100 * u}%`;
    const range = `${hit.left.toFixed(3)} to ${hit.right.toFixed(3)}`;
    result.textContent = `u = ${u.toFixed(3)} falls into ${range}: the next token is ${hit.piece}`;
    slider.setAttribute("aria-valuetext", `${u.toFixed(3)}, ${hit.piece}`);
  };
  slider.addEventListener("input", update);
  root.append(line, label, result);
  update();
}
