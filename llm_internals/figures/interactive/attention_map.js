// Where any head looks: pick a text, a block and a head, then the token that looks.
// data: {
//   "layers": 30, "heads": 9, "kv_heads": 3,
//   "prompts": [{"name": its label, "tokens": their text with white space made visible,
//                "weights": the lower triangles of all patterns, block by block and head by head, row by row, as bytes
//                           (255 is a weight of 1), compressed and in base64: llm_internals/trace/attention_map.py}],
//   "places": [{"name": what there is to see, "prompt": a name, "layer": l, "head": h, "token": who looks}]
// }
// The first of the places is where it begins.
function mount(root, data) {
  if (!("DecompressionStream" in window)) throw new Error("this browser can't unpack the weights");
  const BLUE = "var(--llm-kept, #0072b2)";
  const GROUND = "var(--pst-color-background, var(--jp-layout-color1, Canvas))";
  const INK = "var(--pst-color-text-base, var(--jp-ui-font-color1, CanvasText))";
  const BOX = `padding: .3em .6em; border: 1px solid; border-radius: .3em; background: ${GROUND}; color: ${INK}`;
  const GRID = "display: grid; grid-template-columns: repeat(auto-fit, minmax(max(12em, 30%), 1fr)); gap: .6em 2em";
  const SHORT = "overflow: hidden; text-overflow: ellipsis; white-space: pre";
  const state = { ...data.places[0] };

  const element = (tag, style, ...inside) => {
    const made = document.createElement(tag);
    made.style.cssText = style;
    made.append(...inside);
    return made;
  };

  // The numbers.

  const inflate = async (base64) => {
    const packed = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  };
  const levels = new Map();
  const prompt = () => data.prompts.find(({ name }) => name === state.prompt);
  const row = (reader) => {
    const size = prompt().tokens.length;
    const start = ((state.layer * data.heads + state.head) * size * (size + 1)) / 2 + (reader * (reader + 1)) / 2;
    return [...levels.get(state.prompt).subarray(start, start + reader + 1)].map((level) => level / 255);
  };

  // The controls.

  const choice = element("select", `display: block; width: 100%; font: inherit; ${BOX}`);
  choice.append(...data.prompts.map(({ name }) => new Option(name, name)));
  choice.addEventListener("change", () => {
    state.prompt = choice.value;
    state.token = prompt().tokens.length - 1;
    update();
  });

  const slider = (key, label, count) => {
    const value = element("span", "font-variant-numeric: tabular-nums");
    const bar = element("input", `display: block; width: 100%; margin: .5em 0; accent-color: ${BLUE}`);
    Object.assign(bar, { type: "range", min: "0", max: String(count - 1), step: "1", name: key });
    bar.addEventListener("input", () => {
      state[key] = Number(bar.value);
      update();
    });
    const name = element("span", "display: flex; gap: .6em", label, value);
    const show = () => {
      bar.value = String(state[key]);
      value.textContent = String(state[key]);
    };
    return { label: element("label", "display: block", name, bar), show };
  };
  const layer = slider("layer", "Block", data.layers);
  const head = slider("head", "Head", data.heads);

  const places = element("div", "display: flex; flex-wrap: wrap; gap: .4em; margin: .8em 0");
  places.setAttribute("role", "group");
  places.setAttribute("aria-label", "places to look at");
  for (const { name, ...place } of data.places) {
    const button = element("button", `${BOX}; font: inherit; font-size: .9em; cursor: pointer`, name);
    button.type = "button";
    button.addEventListener("click", () => {
      Object.assign(state, place);
      update();
    });
    places.append(button);
  }

  // The map: a row for each token that looks, its name a radio button; a column for each that can be seen.

  const result = element("output", "display: block; margin: .8em 0");
  result.setAttribute("aria-live", "polite");
  const map = element("div", "");
  map.setAttribute("role", "radiogroup");
  map.setAttribute("aria-label", "The token that looks");

  const pick = (reader) => {
    state.token = Math.max(0, Math.min(reader, prompt().tokens.length - 1));
    update();
    map.querySelector("[aria-checked=true]").focus();
  };
  const STEPS = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
  map.addEventListener("keydown", (event) => {
    if (!(event.key in STEPS) || event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    pick(state.token + STEPS[event.key]);
  });

  // A root makes small weights visible; a pale ground shows what could have been seen.
  const cell = (from, to, weight) => {
    const tint = `color-mix(in srgb, ${BLUE} ${(100 * weight ** 0.6).toFixed(0)}%, transparent)`;
    const made = element("div", `background: linear-gradient(${tint} 0 0), rgba(128, 128, 128, .13)`);
    made.title = `${from} → ${to}: ${weight.toFixed(2)}`;
    return made;
  };

  const rowOf = (reader, tokens) => {
    const chosen = reader === state.token;
    const look = "padding: 0 .3em 0 0; border: 0; background: none; color: inherit; font: inherit; cursor: pointer";
    const name = element("button", `${look}; ${SHORT}; text-align: right`, tokens[reader]);
    Object.assign(name, { type: "button", tabIndex: chosen ? 0 : -1 });
    name.setAttribute("role", "radio");
    name.setAttribute("aria-checked", String(chosen));
    name.setAttribute("aria-label", `${tokens[reader]}, position ${reader}`);
    const cells = row(reader).map((weight, position) => cell(tokens[reader], tokens[position], weight));
    const line = element("div", columns(tokens.length, `height: 1.5em; ${chosen ? `outline: 2px solid ${INK}` : ""}`));
    line.append(name, ...cells);
    line.addEventListener("click", () => pick(reader));
    return line;
  };
  const columns = (count, more) =>
    `display: grid; grid-template-columns: 6.8em repeat(${count}, minmax(0, 1fr)); gap: 1px; margin-bottom: 1px; ` +
    `max-width: ${6.8 + 2.5 * count}em; font-size: max(.8rem, 12px); ` +
    `font-family: var(--pst-font-family-monospace, monospace); ${more}`;

  const header = (tokens) => {
    const line = element("div", columns(tokens.length, "align-items: end"), element("span", ""));
    line.setAttribute("aria-hidden", "true");
    const upright = `writing-mode: vertical-rl; transform: rotate(180deg); line-height: 1; max-height: 6.5em; ${SHORT}`;
    line.append(...tokens.map((token) => element("span", `${upright}; justify-self: center`, token)));
    return line;
  };

  // What is said in words.

  const place = (tokens, position) => `${tokens[position]} (position ${position})`;
  const looks = (tokens) => {
    const seen = row(state.token).map((weight, position) => ({ weight, position }));
    const most = seen.sort((a, b) => b.weight - a.weight).slice(0, 3).filter(({ weight }) => weight >= 0.005);
    const named = most.map(({ weight, position }) => `${place(tokens, position)} ${weight.toFixed(2)}`);
    return `${place(tokens, state.token)} looks at ${named.join(", ")}.`;
  };
  const strongest = (tokens) => {
    const links = tokens.flatMap((_, reader) => {
      return row(reader).map((weight, position) => ({ weight, reader, position })).slice(1, -1);
    });
    const { weight, reader, position } = links.reduce((best, link) => (link.weight > best.weight ? link : best));
    return (
      `The strongest link of this head, the first token and the looking one aside: ` +
      `${place(tokens, reader)} to ${place(tokens, position)}, ${weight.toFixed(2)}.`
    );
  };
  const sharing = () => {
    const group = data.heads / data.kv_heads;
    const first = Math.floor(state.head / group) * group;
    return `Block ${state.layer}, head ${state.head}; heads ${first} to ${first + group - 1} share keys and values.`;
  };

  const update = () => {
    const { tokens } = prompt();
    choice.value = state.prompt;
    layer.show();
    head.show();
    map.replaceChildren(header(tokens), ...tokens.map((_, reader) => rowOf(reader, tokens)));
    const said = [element("strong", "", looks(tokens)), strongest(tokens), sharing()];
    result.replaceChildren(...said.map((sentence) => element("span", "display: block", sentence)));
  };

  const unpacked = data.prompts.map(async ({ name, weights }) => levels.set(name, await inflate(weights)));
  Promise.all(unpacked).then(() => {
    const text = element("label", "display: block", "The text", choice);
    root.append(element("div", GRID, text, layer.label, head.label), places, map, result);
    update();
  });
}
