// Stands for Pyodide in the tests of the page: its programs are lines such as "print hello", which the page takes for
// Python's. What is tested with it is all that happens around Python.
export async function loadPyodide({indexURL}) {
  const files = {}
  let interrupt = null, unpacked = 0

  function runtime(post) {
    const bytes = data => ({toJs: () => data, destroy() {}})
    const say = (stream, text) => post(JSON.stringify({kind: "output", stream, text}), null)
    const commands = {
      print: text => say("stdout", JSON.parse(`"${text}"`)),
      error: text => { say("stderr", `${text}\n`); return false },
      points: text => post(JSON.stringify({kind: "points", curves: JSON.parse(text)}), null),
      html: text => post(JSON.stringify({kind: "display", html: text}), null),
      file: name => post(JSON.stringify({kind: "file", name, size: 3}), bytes(new Uint8Array([1, 2, 3]))),
      files: () => say("stdout", `${Object.keys(files).join(" ")}\n`),
      crash: text => { throw new Error(text) },
      busy: () => {  // does not look at the interrupt, as a long computation of NumPy
        for (const until = performance.now() + 60000; performance.now() < until;);
      },
      forever: () => {
        let next = 0
        for (let k = 0; !(interrupt && Atomics.load(interrupt, 0) === 2); k++) {
          if (performance.now() < next) continue
          next = performance.now() + 25
          say("stdout", `step ${k}\n`)
        }
        say("stderr", "Stopped by an interrupt.\n")
        return false
      },
    }
    return {
      versions: () => `a stub, ${unpacked} archives`,
      warm() {},
      run(code) {
        let right = true, line = 0
        for (const [k, text] of code.split("\n").entries()) {
          const [, name, rest] = /^(\w*) ?(.*)$/.exec(text) ?? []
          if (!commands[name] || commands[name](rest) !== false) continue
          right = false
          line = k + 1
          break
        }
        return {toJs: () => [right, line], destroy() {}}
      },
    }
  }

  return {
    loadedPackages: {},
    async loadPackage(names) { for (const name of [names].flat()) this.loadedPackages[name] = indexURL },
    runPython: () => "/packages",
    unpackArchive(data, format) { if (data.length && format === "zip") unpacked++ },
    FS: {mkdirTree() {}, writeFile(path, data) { files[path] = data }},
    setInterruptBuffer(buffer) { interrupt = buffer },
    pyimport: () => ({Runtime: runtime}),
  }
}
