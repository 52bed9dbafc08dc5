/**
 * HTTP clients that cost next to nothing: prepared bytes go out, and of an answer only its status and
 * its end are looked at. So the server is measured, and not the client.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { requestText } from '../http-connection.ts'

const everyMillisecond = (): Promise<unknown> => sleep(1)
export const withoutRest = (): Promise<unknown> => nextTurn()

const success = Buffer.from('HTTP/1.1 200 ')
/** The envelope ends so, and no part of a head does. */
const endOfAnswer = Buffer.from('}}')

interface Client {
  readonly socket: Socket
  /** Asked one after the other, again and again. */
  readonly requests: readonly Buffer[]
  asked: number
  /** When the present request should have gone out, whether it could or not. */
  dueAt: number
}

export class HttpLoad {
  readonly #clients: Client[]
  #idle: Client[] = []
  #isClosed = false
  #onAnswer: (client: Client) => void = () => undefined

  private constructor(clients: Client[]) {
    this.#clients = clients
    this.#idle = [...clients]
  }

  /** `GET path` with these tokens, which are dealt out to the connections; by default one for each. */
  static async open(
    port: number,
    path: string,
    tokens: readonly string[],
    connections = tokens.length,
  ): Promise<HttpLoad> {
    const requests = tokens.map((token) => Buffer.from(requestText('GET', path, token)))
    const clients = await Promise.all(
      Array.from({ length: connections }, async (_, place): Promise<Client> => {
        const socket = connect({ host: '127.0.0.1', port, noDelay: true })
        await once(socket, 'connect')
        const own = requests.filter((_request, index) => index % connections === place)
        return { socket, requests: own, asked: 0, dueAt: 0 }
      }),
    )
    const load = new HttpLoad(clients)
    for (const client of clients) load.#listen(client)
    return load
  }

  close(): void {
    this.#isClosed = true
    for (const { socket } of this.#clients) socket.destroy()
  }

  /** Every connection asks again as soon as it is answered. Answers how many were answered. */
  async saturate(forMs: number, isOver: () => boolean = () => false): Promise<number> {
    const until = performance.now() + forMs
    let answered = 0
    let waiting = this.#clients.length
    await new Promise<void>((resolve) => {
      this.#onAnswer = (client) => {
        answered += 1
        if (performance.now() < until && !isOver()) return this.#ask(client)
        waiting -= 1
        if (waiting === 0) resolve()
      }
      for (const client of this.#clients) this.#ask(client)
    })
    return answered
  }

  /**
   * Requests at a steady rate, whether or not earlier ones were answered. Answers how long each took
   * from the moment it was due: waiting for a free connection counts. Milliseconds, unordered. What
   * became due between two turns goes out at once: `everyMillisecond` costs the driver little, with
   * `withoutRest` each request goes out in its own time, for a core of the driver's own.
   */
  async paced(
    perSecond: number,
    forMs: number,
    turn: () => Promise<unknown> = everyMillisecond,
  ): Promise<readonly number[]> {
    const latencies: number[] = []
    const due: number[] = []
    const sendDue = (): void => {
      while (due.length > 0 && this.#idle.length > 0) {
        const client = this.#idle.shift()
        if (client === undefined) return
        client.dueAt = due.shift() ?? 0
        this.#ask(client)
      }
    }
    this.#idle = [...this.#clients]
    this.#onAnswer = (client) => {
      latencies.push(performance.now() - client.dueAt)
      this.#idle.push(client)
      sendDue()
    }
    const total = Math.floor((perSecond * forMs) / 1_000)
    const start = performance.now()
    const dueAt = (request: number): number => start + (request / perSecond) * 1_000
    for (let planned = 0; latencies.length < total; await turn()) {
      const now = performance.now()
      for (; planned < total && dueAt(planned) <= now; planned += 1) due.push(dueAt(planned))
      sendDue()
    }
    return latencies
  }

  #ask(client: Client): void {
    const request = client.requests[client.asked % client.requests.length]
    client.asked += 1
    if (request !== undefined) client.socket.write(request)
  }

  #listen(client: Client): void {
    let isBegun = false
    client.socket.on('data', (chunk: Buffer) => {
      if (!isBegun && chunk.compare(success, 0, success.length, 0, success.length) !== 0)
        throw new Error(`the server answered ${chunk.toString()}`)
      isBegun = chunk.compare(endOfAnswer, 0, 2, chunk.length - 2) !== 0
      if (!isBegun) this.#onAnswer(client)
    })
    client.socket.on('error', () => undefined)
    client.socket.on('close', () => {
      if (!this.#isClosed) throw new Error('the server closed a connection')
    })
  }
}
