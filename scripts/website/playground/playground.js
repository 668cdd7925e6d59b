// The page of the playground: the editor, the terminal, the curves, and the worker that runs Python (worker.js).
(() => {
  const base = new URL(".", document.currentScript.src)
  const part = name => document.getElementById("pg-" + name)
  const make = (name, className, text = "") => {
    const element = document.createElement(name)
    element.className = className
    element.textContent = text
    return element
  }

  // The editor ------------------------------------------------------------------------------------

  const editor = part("text")
  const KEYWORDS = "False None True and as assert async await break class continue def del elif else except finally for " +
    "from global if import in is lambda nonlocal not or pass raise return try while with yield match case"
  const TOKENS = new RegExp([
    "(?<comment>#[^\\n]*)",
    "(?<string>\\b[rbfuRBFU]{0,2}(?:\"\"\"[^]*?(?:\"\"\"|$)|'''[^]*?(?:'''|$)" +
      "|\"(?:\\\\.|[^\"\\\\\\n])*\"?|'(?:\\\\.|[^'\\\\\\n])*'?)|\"\"\"[^]*?(?:\"\"\"|$)|'''[^]*?(?:'''|$)" +
      "|\"(?:\\\\.|[^\"\\\\\\n])*\"?|'(?:\\\\.|[^'\\\\\\n])*'?)",
    `(?<keyword>\\b(?:${KEYWORDS.replaceAll(" ", "|")})\\b)`,
    "(?<number>\\b\\d[\\w.]*)",
    "(?<decorator>(?<=^|\\n) *@[\\w.]+)",
    "(?<prompt>(?<=^|\\n)(?:>>>|\\.\\.\\.)(?= |\\n|$))",
    "(?<call>[A-Za-z_]\\w*(?=\\())",
    "(?:[A-Za-z_]\\w*)",
  ].join("|"), "g")

  let wrong = 0  // the line of an error
  function paint() {
    const code = editor.value
    const colours = part("colours")
    colours.replaceChildren()
    let end = 0
    for (const match of code.matchAll(TOKENS)) {
      const kind = Object.keys(match.groups).find(name => match.groups[name] !== undefined)
      if (!kind) continue
      colours.append(code.slice(end, match.index), make("span", "pg-" + kind, match[0]))
      end = match.index + match[0].length
    }
    colours.append(code.slice(end) + "\n")
    const count = code.split("\n").length
    part("gutter").replaceChildren(...Array.from({length: count}, (_, k) =>
      make("div", k + 1 === wrong ? "pg-wrong" : "", String(k + 1))))
  }

  function insert(text) {  // (unlike a change of `value`, it can be undone)
    editor.focus({preventScroll: true})
    if (!document.execCommand(text ? "insertText" : "delete", false, text)) {
      editor.setRangeText(text, editor.selectionStart, editor.selectionEnd, "end")
      changed()
    }
  }

  function changed() {
    wrong = 0
    try { sessionStorage.setItem("playground", editor.value) } catch { /* it is switched off */ }
    paint()
  }

  function show(code, undoable) {
    if (undoable) {
      editor.select()
      insert(code)
    } else editor.value = code
    editor.setSelectionRange(0, 0)
    part("editor").scrollTo(0, 0)
    changed()
  }

  const lineStart = () => editor.value.lastIndexOf("\n", editor.selectionStart - 1) + 1

  function indent(outwards) {
    const {selectionStart: from, selectionEnd: to, value} = editor
    if (!outwards && !value.slice(from, to).includes("\n")) {
      insert(" ".repeat(4 - (from - lineStart()) % 4))
      return
    }
    const start = lineStart()
    const before = value.slice(start, to)
    const after = before.replace(/^.*$/gm, line =>
      outwards ? line.replace(/^ {1,4}/, "") : line && "    " + line)
    if (after === before) return
    const first = after.indexOf("\n") - before.indexOf("\n")
    editor.setSelectionRange(start, to)
    insert(after)
    editor.setSelectionRange(Math.max(start, from + (from === to ? after.length - before.length : first)),
      start + after.length)
  }

  let leaves = false  // whether Tab leaves the editor
  editor.addEventListener("input", changed)
  editor.addEventListener("blur", () => { leaves = false })
  editor.addEventListener("keydown", event => {
    if (event.key === "Escape") leaves = true
    else if (event.key === "Tab" && !leaves && !event.ctrlKey && !event.altKey && !event.metaKey) {
      event.preventDefault()
      indent(event.shiftKey)
    } else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey && !event.isComposing) {
      event.preventDefault()
      const line = editor.value.slice(lineStart(), editor.selectionStart)
      insert("\n" + /^ */.exec(line)[0] + (/[:([{]\s*$/.test(line) ? "    " : ""))
    } else if (event.key !== "Shift") leaves = false
  })

  // The output ------------------------------------------------------------------------------------

  const MOST_LINES = 2000

  class Terminal {
    constructor(element) {
      this.element = element
      this.clear()
      let last = 0
      element.addEventListener("scroll", () => {
        if (element.scrollHeight - element.scrollTop - element.clientHeight < 40) this.follows = true
        else if (element.scrollTop < last) this.follows = false  // (else the output has grown since)
        last = element.scrollTop
      })
      new ResizeObserver(() => this.follow()).observe(element)
    }

    follow() {  // show the end, unless the reader has scrolled away from it
      if (this.follows) this.element.scrollTop = this.element.scrollHeight
    }

    clear() {
      this.items = []  // lines, and elements that are shown between them
      this.element.replaceChildren()
      this.follows = true
      this.open()
    }

    open() {
      this.line = {characters: [], streams: [], element: null, stale: true}
      this.column = 0
      this.items.push(this.line)
    }

    write(stream, text) {
      const lines = text.split("\n")
      if (lines.length > MOST_LINES) text = lines.slice(-MOST_LINES).join("\n")
      for (const token of text.match(/\x1b\[[\d;?]*[A-Za-z]|[^]/gu) ?? []) {
        if (token === "\n") this.down()
        else if (token === "\r") this.column = 0
        else if (token === "\b") this.column = Math.max(0, this.column - 1)
        else if (token.length > 1 && token[0] === "\x1b") this.obey(token)
        else {
          while (this.line.characters.length < this.column) this.put(this.line.characters.length, " ", stream)
          this.put(this.column++, token, stream)
        }
      }
      this.draw()
    }

    put(column, character, stream) {
      this.line.characters[column] = character
      this.line.streams[column] = stream
      this.line.stale = true
    }

    down() {
      const next = this.items[this.items.lastIndexOf(this.line) + 1]
      if (next?.characters) {
        this.line = next
        this.column = 0
      } else this.open()
    }

    obey(sequence) {
      const count = parseInt(sequence.slice(2)) || 1
      if (sequence.endsWith("A")) {  // up
        const place = this.items.indexOf(this.line)
        for (let k = place - 1; k >= 0 && k >= place - count && this.items[k].characters; k--) this.line = this.items[k]
      } else if (sequence.endsWith("K")) {
        this.line.characters.length = this.line.streams.length = Math.min(this.column, this.line.characters.length)
        this.line.stale = true
      }
    }

    display(element) {
      if (!this.line.characters.length) {
        this.items.splice(this.items.indexOf(this.line), 1)
        this.line.element?.remove()
      }
      this.items.push({element, stale: true})
      this.open()
      this.draw()
    }

    draw() {
      const over = this.items.length - MOST_LINES
      if (over > 0) for (const item of this.items.splice(0, over)) item.element?.remove()
      if (this.waits) return
      this.waits = true
      requestAnimationFrame(() => {
        this.waits = false
        for (const item of this.items) {
          if (!item.stale) continue
          item.stale = false
          if (item.characters) {
            const parts = []
            let start = 0
            for (let k = 1; k <= item.characters.length; k++) {
              if (k < item.characters.length && item.streams[k] === item.streams[start]) continue
              parts.push(make("span", "pg-" + item.streams[start], item.characters.slice(start, k).join("")))
              start = k
            }
            item.element ??= make("div", "pg-line")
            item.element.replaceChildren(...parts)
          }
          if (!item.element.parentNode) this.element.append(item.element)
        }
        this.follow()
      })
    }
  }

  const terminal = new Terminal(part("output"))

  // Show HTML or SVG that a program made, without the scripts in it. Its styles hold for it alone.
  function display({html, svg}) {
    const made = new DOMParser().parseFromString(html ?? svg, "text/html")
    for (const each of made.querySelectorAll("script, iframe, object, embed, link, meta, base, form")) each.remove()
    for (const each of made.querySelectorAll("*")) {
      for (const {name, value} of [...each.attributes]) {
        if (/^on/i.test(name) || /^\s*javascript:/i.test(value)) each.removeAttribute(name)
      }
    }
    const element = make("div", "pg-display" + (svg ? " pg-drawing" : ""))
    const inner = element.attachShadow({mode: "open"})
    inner.innerHTML = "<style>svg { max-width: 100%; height: auto }</style>"
    inner.append(...made.head.childNodes, ...made.body.childNodes)
    terminal.display(element)
  }

  // The curves ------------------------------------------------------------------------------------

  const MOST_POINTS = 3000
  const curves = new Map()  // by name: points [x, y], and how many points of the program each is the mean of
  let logarithmic = false, drawing = 0

  function addPoints(points) {
    for (const [name, added] of Object.entries(points)) {
      if (!curves.has(name)) curves.set(name, {points: [], each: 1, rest: []})
      const curve = curves.get(name)
      for (const point of added) {
        curve.rest.push(point)
        if (curve.rest.length < curve.each) continue
        curve.points.push(mean(curve.rest))
        curve.rest = []
        if (curve.points.length < MOST_POINTS) continue
        curve.points = curve.points.flatMap((_, k, all) => k % 2 ? [mean([all[k - 1], all[k]])] : [])
        curve.each *= 2
      }
      curve.latest = added[added.length - 1]
    }
    if (!drawing) drawing = setTimeout(drawCurves, 80)
  }

  function mean(points) {
    const known = points.filter(([, y]) => y !== null)
    const total = known.reduce((sum, [, y]) => sum + y, 0)
    return [points[points.length - 1][0], known.length ? total / known.length : null]
  }

  function ticks(low, high, count) {
    const rough = (high - low) / count
    const power = 10 ** Math.floor(Math.log10(rough))
    const step = [1, 2, 5, 10].find(factor => factor * power >= rough) * power
    const found = []
    for (let k = Math.ceil(low / step); k * step <= high * (1 + 1e-9); k++) found.push(k * step)
    return found
  }

  const short = x => x === 0 ? "0" : Math.abs(x) >= 1e5 || Math.abs(x) < 1e-3 ? x.toExponential(0) : String(+x.toPrecision(3))

  // Return a smoothed curve: an average with weights that fall exponentially over a thirtieth of the points.
  function smoothed(points) {
    const keep = 1 - 1 / Math.max(1, points.length / 30)
    let sum = 0, weight = 0
    return points.map(([x, y]) => {
      if (y === null) return [x, null]
      sum = keep * sum + y
      weight = keep * weight + 1
      return [x, sum / weight]
    })
  }

  function drawCurves() {
    drawing = 0
    const figure = part("curves")
    const shown = [...curves].filter(([, curve]) => curve.points.length >= 3)
    figure.hidden = !shown.length
    if (!shown.length) return
    const width = Math.max(240, figure.clientWidth - 16), height = 190
    const [left, right, top, bottom] = [46, 8, 8, 24]
    const usable = ([, y]) => y !== null && (!logarithmic || y > 0)
    const all = shown.flatMap(([, curve]) => curve.points.filter(usable))
    const f = logarithmic ? Math.log10 : y => y
    let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity]
    for (const [x, y] of all) {
      x0 = Math.min(x0, x); x1 = Math.max(x1, x); y0 = Math.min(y0, f(y)); y1 = Math.max(y1, f(y))
    }
    if (!all.length) [x0, x1, y0, y1] = [0, 1, 0, 1]
    if (x1 === x0) x1 = x0 + 1
    if (y1 === y0) [y0, y1] = [y0 - 0.5 * (Math.abs(y0) || 1), y1 + 0.5 * (Math.abs(y1) || 1)]
    const px = x => left + (x - x0) / (x1 - x0) * (width - left - right)
    const py = y => height - bottom - (f(y) - y0) / (y1 - y0) * (height - top - bottom)
    const path = points => {
      let pen = "M"
      return points.map(point => {
        if (!usable(point)) { pen = "M"; return "" }
        const text = `${pen}${px(point[0]).toFixed(1)} ${py(point[1]).toFixed(1)}`
        pen = "L"
        return text
      }).join("")
    }
    let inside = ""
    for (const value of ticks(y0, y1, 4)) {
      const y = height - bottom - (value - y0) / (y1 - y0) * (height - top - bottom)
      inside += `<path class="grid" d="M${left} ${y}H${width - right}"/>` +
        `<text x="${left - 6}" y="${y + 4}" text-anchor="end">${short(logarithmic ? 10 ** value : value)}</text>`
    }
    for (const value of ticks(x0, x1, width / 110)) {
      if (!Number.isInteger(value)) continue
      const anchor = px(value) > width - 25 ? "end" : "middle"
      inside += `<text x="${Math.min(px(value), width - 2)}" y="${height - 6}" text-anchor="${anchor}">${value}</text>`
    }
    shown.forEach(([, {points}], k) => {
      const many = points.length > 60
      inside += `<path class="curve c${k % 6}${many ? " faint" : ""}" d="${path(points)}"/>`
      if (many) inside += `<path class="curve c${k % 6}" d="${path(smoothed(points))}"/>`
    })
    const legend = make("figcaption", "pg-legend")
    shown.forEach(([name, {latest: [x, y]}], k) => {
      const entry = make("span", "pg-entry c" + k % 6)
      entry.append(make("i", ""), make("b", "", name), ` ${y === null ? "not finite" : y.toPrecision(4)} at ${x}`)
      legend.append(entry)
    })
    const scale = make("button", "pg-scale", "log")
    scale.type = "button"
    scale.setAttribute("aria-pressed", logarithmic)
    scale.title = "Logarithmic scale"
    scale.addEventListener("click", () => { logarithmic = !logarithmic; drawCurves(); figure.querySelector("button").focus() })
    legend.append(scale)
    const focused = figure.contains(document.activeElement)
    const label = shown.map(([name, {latest: [x, y]}]) => `${name}: ${y} at step ${x}`).join("; ")
    figure.innerHTML = `<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">${inside}</svg>`
    figure.firstChild.setAttribute("aria-label", label)
    figure.prepend(legend)
    if (focused) scale.focus()
  }
  new ResizeObserver(() => { if (curves.size && !drawing) drawing = setTimeout(drawCurves, 80) }).observe(part("output"))

  // Files -----------------------------------------------------------------------------------------

  const files = new Map()  // what programs saved, by name; a new worker gets them, too

  function addFile({name, size}, data) {
    if (data) files.set(name, data)
    const buttons = [...part("files").querySelectorAll("button")]
    const button = buttons.find(each => each.dataset.name === name) ?? make("button", "pg-button")
    const unit = size < 1e3 ? `${size} B` : size < 1e6 ? `${(size / 1e3).toFixed(1)} kB` : `${(size / 1e6).toFixed(1)} MB`
    button.type = "button"
    button.dataset.name = name
    button.replaceChildren(make("b", "", name), ` ${unit}`)
    button.disabled = !data
    button.title = data ? "Download" : "This file is too large to be handed to the page"
    button.onclick = () => {
      const link = make("a", "")
      link.href = URL.createObjectURL(new Blob([data]))
      link.download = name.split("/").pop()
      link.click()
      setTimeout(() => URL.revokeObjectURL(link.href), 10000)
    }
    if (!button.parentNode) part("files").append(button)
    part("files").hidden = false
  }

  // The worker ------------------------------------------------------------------------------------

  let worker, config, interrupt
  let state = "starting"  // or "ready", "running", "failed"
  let waiting = null  // a program that runs as soon as Python is ready
  let about = ""  // what runs programs
  let patience = 0

  function say(text) {
    part("status").textContent = text
  }

  function enter(next, text) {
    state = next
    say(text)
    part("run").disabled = next === "running" || next === "failed" || waiting !== null
    part("stop").disabled = next !== "running" && waiting === null
    document.getElementById("playground").dataset.state = next
  }

  function start() {
    interrupt = self.crossOriginIsolated ? new Int32Array(new SharedArrayBuffer(4)) : null
    worker = new Worker(new URL("worker.js", base), {type: "module"})
    worker.onmessage = ({data}) => heard(data)
    worker.onerror = event => heard({type: "failed", text: event.message || "the worker could not be started"})
    const saved = [...files].map(([name, data]) => ({name, data}))
    worker.postMessage({type: "start", config, base: base.href, files: saved, shared: interrupt})
    enter("starting", "Loading Python …")
  }

  function heard({type, text, said, data, right, line, seconds}) {
    if (type === "status") say(waiting ? `${text} Your program runs then.` : text)
    else if (type === "ready") {
      about = text
      const code = waiting
      waiting = null
      enter("ready", about)
      if (code !== null) run(code)
    } else if (type === "failed" && state === "running") {
      terminal.write("stderr", `${text}\nPython has failed, and is started again.\n`)
      worker.terminate()
      start()
    } else if (type === "failed") {
      waiting = null
      notice("Python could not be started. ", `It is loaded from ${new URL(config.pyodide, base).host || "this site"}: connect ` +
        "to the network and reload this page, or run the program with tinytorch on your computer: python -m tinytorch " +
        `program.py. (The browser says: ${text})`)
      enter("failed", "")
    } else if (type === "done") {
      clearTimeout(patience)
      wrong = line
      paint()
      enter("ready", `${right ? "Done" : "Ended"} in ${seconds.toFixed(seconds < 10 ? 1 : 0)} s. ${about}`)
    } else if (said.kind === "output") terminal.write(said.stream, said.text)
    else if (said.kind === "points") addPoints(said.curves)
    else if (said.kind === "display") display(said)
    else if (said.kind === "file") addFile(said, data)
  }

  function run(code = editor.value) {
    if (state === "failed" || state === "running") return
    if (state === "starting") {
      waiting = code
      enter("starting", "Your program runs as soon as Python is ready …")
      return
    }
    terminal.clear()
    curves.clear()
    part("curves").hidden = true
    wrong = 0
    paint()
    const probe = make("span", "", "0".repeat(50))
    part("output").append(probe)
    const columns = Math.floor((part("output").clientWidth - 28) / (probe.offsetWidth / 50))
    probe.remove()
    enter("running", "Running …")
    worker.postMessage({type: "run", code, columns: Math.max(30, Math.min(120, columns))})
    const results = part("output").parentNode
    if (results.getBoundingClientRect().top > innerHeight - 100) results.scrollIntoView({block: "nearest"})  // on a phone
  }

  function stop() {
    if (waiting !== null) {
      waiting = null
      enter("starting", "Loading Python …")
      return
    }
    if (state !== "running") return
    if (interrupt) {
      Atomics.store(interrupt, 0, 2)
      say("Stopping …")
      patience = setTimeout(replace, 500)  // a long computation outside of Python
    } else replace()
  }

  // End the worker with its Python, and start another.
  function replace() {
    worker.terminate()
    terminal.write("stderr", "\nStopped.\n")
    start()
  }

  function notice(strong, text) {
    part("notice").replaceChildren(make("b", "", strong), text)
    part("notice").hidden = false
  }

  part("run").addEventListener("click", () => run())
  part("stop").addEventListener("click", stop)
  document.getElementById("playground").addEventListener("keydown", event => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault()
      run()
    }
  })
  document.addEventListener("keydown", event => {
    if (event.key === "Escape" && !event.target.closest?.(".md-search")) stop()
  })

  // Links, examples, and the start ----------------------------------------------------------------

  part("share").addEventListener("click", async () => {
    const fragment = await programLink.encode(editor.value)
    history.replaceState(null, "", fragment)
    try {
      await navigator.clipboard.writeText(location.href)
      say("The link is copied: it holds the program, which whoever opens it can read and run.")
    } catch {
      say("The link stands in the address bar: it holds the program.")
    }
  })

  async function openLink() {
    if (!location.hash.startsWith("#code=")) return false
    const code = await programLink.decode(location.hash)
    if (code === null) {
      notice("The link is damaged. ", "It holds no program that can be read: perhaps its end is missing.")
      return false
    }
    show(code, false)
    return true
  }
  window.addEventListener("hashchange", openLink)

  async function open() {
    if (location.protocol === "file:") {
      notice("The playground needs a web server. ", "This page was opened from a folder, where browsers start no worker " +
        "and load no WebAssembly. In the folder of this site run “python -m http.server”, and open " +
        "http://localhost:8000/playground.html. (All other pages work from the folder.)")
      enter("failed", "")
      part("examples").hidden = true
      part("output").parentNode.parentNode.hidden = !await openLink()
      return
    }
    const get = name => fetch(new URL(name, base)).then(answer => answer.json())
    const opened = openLink()
    try {
      config = await get("config.json")
      start()
      const examples = await get("examples.json")
      let draft = null
      try { draft = sessionStorage.getItem("playground") } catch { /* it is switched off */ }
      for (const {title, code} of examples) {
        const button = make("button", "pg-button", title)
        button.type = "button"
        button.addEventListener("click", () => show(code, true))
        part("examples").append(button)
      }
      if (!await opened) show(draft || examples[0].code, false)
    } catch (error) {
      notice("The playground is incomplete. ", String(error))
      enter("failed", "")
    }
  }
  open()
})()
