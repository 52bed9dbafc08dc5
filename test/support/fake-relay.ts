/**
 * A relay behind the socket of the ng client: it answers as the test says, at once or when told to.
 */
import { decodeBencode, encodeBencode, isDictionary } from '../../engine/media/relay/bencode.ts'
import type { NgSocket, NgSocketEvents } from '../../engine/media/relay/ng-client.ts'
import type { NgDictionary } from '../../engine/media/relay/relays.ts'

export interface ReceivedRequest {
  readonly cookie: string
  readonly command: NgDictionary
}

export class FakeRelay {
  /** Every datagram, repetitions too. */
  readonly received: ReceivedRequest[] = []
  isAnswering = true
  isRefusing = false
  /** Sockets that were opened to it and not closed. */
  connections = 0
  /** The time of its start, by `now`. */
  startedAt = 0
  sessions = 0
  sessionsSoFar = 0
  readonly #now: () => number
  #events: NgSocketEvents | undefined

  constructor(now: () => number) {
    this.#now = now
  }

  connect(events: NgSocketEvents): NgSocket {
    this.#events = events
    this.connections += 1
    return {
      send: (datagram) => this.#onDatagram(datagram),
      close: () => (this.connections -= 1),
    }
  }

  /** The requests, by their commands. */
  get commands(): unknown[] {
    return this.received.map(({ command }) => command['command'])
  }

  answer(cookie: string, values: NgDictionary): void {
    this.sendRaw(`${cookie} ${encodeBencode(values)}`)
  }

  sendRaw(datagram: string): void {
    this.#events?.onDatagram(Buffer.from(datagram))
  }

  refuse(): void {
    this.#events?.onRefusal()
  }

  #onDatagram(datagram: string): void {
    const space = datagram.indexOf(' ')
    const cookie = datagram.slice(0, space)
    const command = decodeBencode(Buffer.from(datagram.slice(space + 1)))
    if (!isDictionary(command)) throw new Error(`not a request: ${datagram}`)
    this.received.push({ cookie, command })
    if (this.isRefusing) this.refuse()
    else if (this.isAnswering) this.answer(cookie, this.#answerTo(command))
  }

  #answerTo(command: NgDictionary): NgDictionary {
    if (command['command'] === 'ping') return { result: 'pong' }
    if (command['command'] !== 'statistics') return { result: 'ok' }
    const uptime = Math.floor((this.#now() - this.startedAt) / 1_000)
    const statistics = {
      currentstatistics: { sessionstotal: this.sessions },
      totalstatistics: { uptime: `${uptime}`, managedsessions: this.sessionsSoFar },
    }
    return { result: 'ok', statistics }
  }
}
