// A page that is opened from a folder may start no worker, in which the theme searches. There, a hidden frame does its work.
if (location.protocol === "file:") {
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
      else this.frame.contentWindow.dispatchEvent(new MessageEvent("message", {data}))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
