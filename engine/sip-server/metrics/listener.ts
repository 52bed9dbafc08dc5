/** An HTTP port for Prometheus: `GET /metrics`, and nothing else. */
import { createServer, type Server } from 'node:http'
import { listen, type BoundAddress } from '../transport/listen.ts'

export class MetricsListener {
  readonly #server: Server

  constructor(text: () => string) {
    this.#server = createServer({ requestTimeout: 5_000 }, ({ method, url }, response) => {
      if (url !== '/metrics' || (method !== 'GET' && method !== 'HEAD'))
        return void response.writeHead(404).end()
      return void response
        .writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
        .end(method === 'GET' ? text() : undefined)
    })
    this.#server.maxConnections = 64
  }

  /** @throws ListenError when the address cannot be bound. */
  start(host: string, port: number): Promise<BoundAddress> {
    return listen(this.#server, 'metrics', { host, port })
  }

  stop(): Promise<void> {
    this.#server.closeAllConnections()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }
}
