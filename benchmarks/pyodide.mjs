// node pyodide.mjs FOLDER WHEEL ...: load Pyodide from a folder, unpack wheels in it, and run the program that is read
// from the standard input. Prints its `answer`, with the seconds of unpacking and the sizes of what was unpacked.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [folder, ...wheels] = process.argv.slice(2);
const program = fs.readFileSync(0, "utf8");
const { loadPyodide } = await import(pathToFileURL(path.join(folder, "pyodide.mjs")));
const python = await loadPyodide({ indexURL: folder + path.sep, stdout: (line) => console.error(line) });
const begin = performance.now();
for (const wheel of wheels) {
  const [major, minor] = python.version_info ?? python.runPython("import sys; list(sys.version_info)").toJs();
  python.unpackArchive(new Uint8Array(fs.readFileSync(wheel)), "wheel", {
    extractDir: `/lib/python${major}.${minor}/site-packages`,
  });
}
const install = (performance.now() - begin) / 1000;
const installed = python.runPython(`
import pathlib, sysconfig
def size(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
packages = pathlib.Path(sysconfig.get_path("purelib"))
[size(packages / "tinytorch"), size(packages)]
`).toJs();
python.runPython(program);
const answer = JSON.parse(python.globals.get("answer"));
console.log(JSON.stringify({ ...answer, install, installed: { own: installed[0], all: installed[1] } }));
