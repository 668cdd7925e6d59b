// Links to the playground: a program stands in the fragment of its address. Blocks of code get a button "Run".
globalThis.programLink = {
  // Return the fragment that holds a program: deflated, in the URL's variant of base64.
  async encode(code) {
    const bytes = await through(new Blob([code]).stream(), new CompressionStream("deflate-raw"))
    const text = Array.from(bytes, byte => String.fromCharCode(byte)).join("")
    return "#code=" + btoa(text).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "")
  },

  // Return the program in a fragment; null if there is none, or if it is damaged.
  async decode(fragment) {
    const found = /^#code=([\w-]+)$/.exec(fragment)
    if (!found) return null
    try {
      const text = atob(found[1].replace(/-/g, "+").replace(/_/g, "/"))
      const bytes = Uint8Array.from(text, char => char.charCodeAt(0))
      const code = await through(new Blob([bytes]).stream(), new DecompressionStream("deflate-raw"))
      return new TextDecoder("utf-8", {fatal: true}).decode(code)
    } catch {
      return null
    }
  },
}

async function through(stream, transform) {
  return new Uint8Array(await new Response(stream.pipeThrough(transform)).arrayBuffer())
}

if (typeof document !== "undefined") {
  const playground = new URL("../playground.html", document.currentScript.src)

  // Return the program of a block: of a page that is one program, all parts up to it; of a session, its section.
  const programOf = block => {
    const part = /\brun-(\d+)\b/.exec(block.className)
    if (part) {
      const parts = JSON.parse(document.getElementById("parts-of-program").textContent)
      const last = Number(part[1])  // (a part may have another text where it is not the last one)
      const texts = parts.slice(0, last + 1).map((each, k) => Array.isArray(each) ? each[k === last ? 0 : 1] : each)
      return texts.map(text => text.trim()).join("\n\n\n") + "\n"
    }
    if (block.matches(".run")) return block.querySelector("code").textContent
    let first = [], section = [], headings = 0
    for (const each of document.querySelectorAll("article h2, article .language-pycon")) {
      if (each.matches("h2")) {
        if (headings++ === 0) first = section
        section = []
      } else section.push(each.querySelector("code").textContent.trimEnd())
      if (each === block) break
    }
    const code = (headings ? [...first, ...section] : section).join("\n") + "\n"
    return /^>>> import \w+ as torch$/m.test(code) ? code : ">>> import tinytorch as torch\n" + code
  }

  document.addEventListener("DOMContentLoaded", () => {
    for (const block of document.querySelectorAll("article .highlight.run, article .highlight[class*='run-'], article .language-pycon")) {
      const button = document.createElement("button")
      button.type = "button"
      button.className = "run-button"
      button.textContent = "Run"
      button.title = "Open this code in the playground"
      button.addEventListener("click", async () => {
        window.open(playground.href + await programLink.encode(programOf(block)), "_blank")
      })
      block.append(button)
    }
  })
}
