// Stage 2: an id picks its row of the embedding matrix; a position turns queries and keys.

const GHOSTS = 4;

function embedStage(recording) {
  const said = h("p");
  const body = h("div", { class: "columns" });
  return {
    name: "embed",
    title: "Embed: ids to vectors",
    panel: [said, body],
    show(state) {
      const ids = recording.read(state.step);
      const fed = state.step === 0 ? ids : ids.slice(-1);
      said.textContent =
        state.step === 0
          ? `All ${some(ids.length, "token")} go in at once: prefill. Each id picks its row of the embedding matrix.`
          : "Only the token chosen last goes in; the cache has what the layers need of all others.";
      body.replaceChildren(lookUp(recording, state, ids, fed), dials(recording, ids.length - 1));
    },
  };
}

function lookUp(recording, state, ids, fed) {
  const { hidden_size: width, tie_word_embeddings: tied } = recording.config;
  const last = ids[ids.length - 1];
  const facts = [
    ["matrix", `${count(recording.vocabulary)} rows × ${count(width)} numbers${tied ? ", the output matrix too" : ""}`],
    ["goes in", some(fed.length, "id")],
    ["comes out", `${some(fed.length, "vector")} of ${count(width)} numbers`],
    ["last token", [chip(recording, last), ` id ${last}`]],
    ["its vector’s length", length(recording.steps[state.step].residual_norms[0])],
    ["its position", String(ids.length - 1)],
  ];
  return h("div", {}, h("h3", {}, "The look-up"), definitions(facts));
}

function definitions(facts) {
  return h("dl", {}, facts.map(([term, what]) => h("div", {}, h("dt", {}, term), h("dd", {}, what))));
}

// A dial for each pair of numbers in a head: the hand stands at the angle by which RoPE turns the pair at this position;
// fainter hands show the positions just before.
function dials(recording, position) {
  const { head_dim: size, rope_theta: base } = recording.config;
  const faces = Array.from({ length: size / 2 }, (_, pair) => {
    const speed = base ** ((-2 * pair) / size); // radians a position
    const hands = Array.from({ length: Math.min(GHOSTS, position) + 1 }, (_, back) => {
      const angle = (position - back) * speed;
      const end = { x2: 20 + 15 * Math.cos(angle), y2: 20 - 15 * Math.sin(angle) };
      return svg("line", { class: back ? "ghost" : "hand", x1: 20, y1: 20, ...end, "--back": back });
    });
    return svg("svg", { viewBox: "0 0 40 40" }, svg("circle", { cx: 20, cy: 20, r: 18 }), hands.reverse());
  });
  const turn = (pair) => count(Number(((2 * Math.PI) / base ** ((-2 * pair) / size)).toPrecision(2)));
  const label = `${faces.length} dials; the first turns by one radian a position, each next one more slowly.`;
  return h(
    "div",
    {},
    h("h3", {}, `Position ${position} as RoPE has it: ${faces.length} angles`),
    h("div", { class: "dials", role: "img", "aria-label": label }, faces),
    h(
      "p",
      { class: "legend" },
      "The position isn’t added to the vector. Inside every attention head it turns each pair of numbers of the query and " +
        `the key by these angles. The first pair is round after ${turn(0)} positions, the last after ` +
        `${turn(faces.length - 1)}; the fainter hands are the positions just before.`,
    ),
  );
}
