/** A real HTTP server that stands for an external OCS, and does as a test tells it. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { freePort } from './free-port.ts'

export interface SeenRequest {
  readonly method: string
  readonly url: URL
  readonly headers: IncomingMessage['headers']
  readonly body: Record<string, unknown>
}

export type Behaviour =
  | { readonly kind: 'answer'; readonly status: number; readonly body?: unknown }
  /**
   * Writes these bytes in place of an answer, and closes the connection, or keeps it open for good.
   */
  | { readonly kind: 'write'; readonly bytes: string; readonly isClosed: boolean }
  /** Takes the request and never answers. */
  | { readonly kind: 'hang' }
  /** Closes the connection instead of answering. */
  | { readonly kind: 'drop' }

export class FakeOcs {
  readonly seen: SeenRequest[] = []
  connections = 0
  readonly #server = createServer((request, response) => void this.#take(request, response))
  #behave: (request: SeenRequest) => Behaviour
  #port = 0

  constructor(behave: (request: SeenRequest) => Behaviour) {
    this.#behave = behave
    this.#server.on('connection', () => (this.connections += 1))
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** Listens on the port of its last start, once it had one. */
  async start(): Promise<void> {
    this.#port ||= await freePort()
    await once(this.#server.listen(this.#port, '127.0.0.1'), 'listening')
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  behave(behaviour: (request: SeenRequest) => Behaviour): void {
    this.#behave = behaviour
  }

  dropConnections(): void {
    this.#server.closeAllConnections()
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += String(chunk)
    const seen: SeenRequest = {
      method: request.method ?? '',
      url: new URL(request.url ?? '/', this.url),
      headers: request.headers,
      body: text === '' ? {} : JSON.parse(text),
    }
    this.seen.push(seen)
    const behaviour = this.#behave(seen)
    if (behaviour.kind === 'drop') request.socket.destroy()
    if (behaviour.kind === 'write') {
      request.socket.write(behaviour.bytes)
      if (behaviour.isClosed) request.socket.end()
    }
    if (behaviour.kind === 'answer') {
      response.writeHead(behaviour.status, { 'content-type': 'application/json' })
      response.end(behaviour.body === undefined ? '' : JSON.stringify(behaviour.body))
    }
  }
}

/** Lets sockets work until a condition holds; the test's own timeout is the limit. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}
