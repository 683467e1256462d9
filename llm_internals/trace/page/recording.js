// The recorded response, with the few things that every stage asks of it.

const MARKS = { " ": "␣", "\n": "↵", "\r": "␍", "\t": "⇥", "\u00a0": "⍽" };

// A token's text so that every character of it can be seen.
function visible(text) {
  return text.replace(/[\p{C}\p{Z}]/gu, (character) => {
    return MARKS[character] ?? `\\u${character.codePointAt(0).toString(16).padStart(4, "0")}`;
  });
}

function hex(byte) {
  return byte.toString(16).padStart(2, "0");
}

function readRecording() {
  const data = JSON.parse(document.getElementById("recording").textContent);
  const special = new Set(data.special_ids);
  const unpacked = new Map();
  return {
    ...data,
    layers: data.config.num_hidden_layers,
    heads: data.config.num_attention_heads,
    vocabulary: data.config.vocab_size,

    isSpecial: (id) => special.has(id),

    // A token is text, or a list of bytes where it is a part of a character.
    bytes(id) {
      const token = data.tokens[id];
      return typeof token === "string" ? [...new TextEncoder().encode(token)] : token;
    },
    spell(id) {
      const token = data.tokens[id];
      return typeof token === "string" ? visible(token) : token.map((byte) => `\\x${hex(byte)}`).join("");
    },

    // The ids that the pass of a step has read: the prompt, and what was chosen before.
    read: (index) => [...data.prompt_ids, ...data.steps.slice(0, index).map((step) => step.id)],

    // Probability under the model's own distribution, at T = 1.
    share: (step, logit) => Math.exp(logit - step.log_normalizer),

    // Attention of the last position as bytes [layers, heads, positions]; 255 is a weight of 1.
    attention(index) {
      if (!unpacked.has(index)) unpacked.set(index, inflate(data.steps[index].attention));
      return unpacked.get(index);
    },
  };
}

async function inflate(base64) {
  const packed = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function operatorName(name) {
  return name.replace(/_(p|k)$/, "-$1").replace("ngram_size", "n-gram").replaceAll("_", " ");
}

function settingText(setting) {
  if (Array.isArray(setting)) return some(setting.length, "token");
  if (setting !== null && typeof setting === "object") return some(Object.keys(setting).length, "token");
  return setting === null ? "" : String(setting);
}
