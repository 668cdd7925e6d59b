// The theme searches in a worker, for words that begin with those of the query. Here common words are left out of a query,
// and its words themselves count more than longer ones that begin with them.
const COMMON = /^(?:a|an|and|are|be|by|do|does|for|from|how|i|in|is|it|my|no|not|of|on|or|the|to|what|why|with)$/i
const QUERY = 2  // the theme's number for a message that is a query

function weighted(message) {
  if (message?.type !== QUERY || /["+^~*:]/.test(message.data)) return message
  const words = message.data.trim().split(/\s+/)
  const asked = words.filter((word, k) => !COMMON.test(word) || words.length === 1)
  return {...message, data: (asked.length ? asked : words).flatMap(word => [`${word}^20`, word]).join(" ")}
}

if (location.protocol !== "file:") {
  window.Worker = class extends window.Worker {
    postMessage(data, ...rest) {
      super.postMessage(weighted(data), ...rest)
    }
  }
} else {  // A page that is opened from a folder may start no worker: a hidden frame does its work.
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.frame.srcdoc = `<script>
        window.importScripts = (...urls) => Promise.all(urls.map(url => new Promise(done => {
          const script = document.createElement("script")
          script.src = url
          script.onload = done
          document.head.append(script)
        })))
        window.postMessage = data => parent.dispatchEvent(new CustomEvent("worker:" + name, {detail: data}))
      </script><script src="${new URL(url, location)}"></script>`
      this.frame.name = "worker-" + Math.random().toString(36).slice(2)
      window.addEventListener("worker:" + this.frame.name, event => this.tell(event.detail))
      this.frame.onload = () => {
        const waiting = this.waiting
        this.waiting = null
        waiting.forEach(data => this.postMessage(data))
      }
      document.documentElement.append(this.frame)
    }

    tell(data) {
      const message = new MessageEvent("message", {data})
      this.dispatchEvent(message)
      if (this.onmessage) this.onmessage(message)
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data)
      else this.frame.contentWindow.dispatchEvent(new MessageEvent("message", {data: weighted(data)}))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
