// Runs Python for the page: loads Pyodide and what config.json names, then programs, one at a time.
//
// Messages from the page: {type: "start", config, base, files, interrupt}, {type: "run", code, columns}.
// Messages to the page: {type: "status", text}, {type: "ready", text}, {type: "failed", text},
// {type: "done", right, line, seconds}, and those of runtime.py: {type: "said", said, data}.
let pyodide, runtime, interrupt, optional

const silent = {messageCallback: () => {}, errorCallback: text => console.warn(text)}

async function bytes(url) {
  const response = await fetch(url)
  if (!response.ok) throw new Error(`${url}: ${response.status} ${response.statusText}`)
  return new Uint8Array(await response.arrayBuffer())
}

function post(message, data) {
  let copy = null
  if (data) {
    copy = data.toJs()
    data.destroy()
  }
  postMessage({type: "said", said: JSON.parse(message), data: copy}, copy ? [copy.buffer] : [])
}

async function start({config, base, files, shared}) {
  const at = path => new URL(path, base).href
  const folder = at(config.pyodide)
  postMessage({type: "status", text: "Loading Python …"})
  const archives = config.archives.map(path => bytes(at(path)))  // while Python is loading
  const kernels = config.kernels ? bytes(at(config.kernels)).catch(() => null) : null
  const modules = ["runtime", "figures"].map(name => [name, bytes(at(`${name}.py`))])
  for (const each of [...archives, ...modules.map(([, content]) => content)]) each.catch(() => {})  // is reported when it is awaited
  const {loadPyodide} = await import(folder + "pyodide.mjs")
  pyodide = await loadPyodide({indexURL: folder})
  postMessage({type: "status", text: "Loading NumPy and tinytorch …"})
  await pyodide.loadPackage(config.packages, silent)
  optional = config.optional
  const packages = pyodide.runPython("import sysconfig; sysconfig.get_path('purelib')")
  for (const archive of archives) pyodide.unpackArchive(await archive, "zip", {extractDir: packages})
  const library = await kernels
  if (library) pyodide.FS.writeFile(`${packages}/tinytorch/kernels/native/_native.abi3.so`, library)
  for (const [name, content] of modules) pyodide.FS.writeFile(`${packages}/playground_${name}.py`, await content)
  const home = "/playground"
  pyodide.FS.mkdirTree(home)
  for (const {name, data} of files) {
    pyodide.FS.mkdirTree(`${home}/${name}`.replace(/\/[^/]*$/, ""))
    pyodide.FS.writeFile(`${home}/${name}`, data)
  }
  runtime = pyodide.pyimport("playground_runtime").Runtime(post, home, Object.keys(optional).join(", "))
  if (shared) {
    interrupt = shared
    pyodide.setInterruptBuffer(interrupt)
  }
  postMessage({type: "ready", text: runtime.versions()})
  runtime.warm()
}

async function run({code, columns}) {
  for (const [name, pattern] of Object.entries(optional)) {
    if (!new RegExp(pattern, "m").test(code) || name in pyodide.loadedPackages) continue
    postMessage({type: "status", text: `Loading ${name} …`})
    await pyodide.loadPackage(name, silent)
    postMessage({type: "status", text: "Running …"})
  }
  const since = performance.now()
  let right = false, line = 0
  try {
    const ended = runtime.run(code, columns);
    [right, line] = ended.toJs()
    ended.destroy()
  } catch (error) {  // the runtime was interrupted between two of its own lines, or Python itself has failed
    if (!String(error.message).includes("KeyboardInterrupt")) throw error
    post(JSON.stringify({kind: "output", stream: "stderr", text: "\nStopped.\n"}))
  }
  if (interrupt) Atomics.store(interrupt, 0, 0)
  postMessage({type: "done", right, line, seconds: (performance.now() - since) / 1000})
}

let last = Promise.resolve()
self.onmessage = ({data}) => {
  const task = data.type === "start" ? start : run
  last = last.then(() => task(data)).catch(error => {
    postMessage({type: "failed", text: String(error.message ?? error)})
  })
}
