/**
 * A planned upgrade: for a while the old process and the new one have the same sockets. Whichever of them reads a
 * datagram that belongs to the other passes it on. The old process keeps what it has begun; what is new is for the new
 * process. Stream connections stay where they were opened.
 */
import type { Belonging } from './core/transactions.ts'
import { sideFor, type Flow, type Listener } from './flow.ts'
import { decodeMessage } from './message/message.ts'
import type { SharedSocket } from './transport/transport.ts'

/** A datagram for the other process. */
export interface PassedDatagram {
  /** Which listener has read it, in the order of the options. */
  readonly listener: number
  readonly address: string
  readonly port: number
  /** Its bytes, in Base64. */
  readonly data: string
}

export type Pass = (datagram: PassedDatagram) => void

export interface SocketSharingDeps {
  readonly listeners: () => readonly Listener[]
  readonly sockets: () => readonly (SharedSocket | undefined)[]
  readonly belongingOf: (text: string) => Belonging
  readonly busyConnections: () => ReadonlySet<number>
  /** Handles a datagram here. */
  readonly take: (bytes: Buffer, flow: Flow) => void
  /** What is read waits, until `release`. */
  readonly hold: () => void
  readonly release: () => void
  /** Nothing happens any more. */
  readonly silence: () => void
  /** Whether the queues of the sockets are those of this process alone. */
  readonly measureQueues: (isAlone: boolean) => void
}

type Role = 'alone' | 'old' | 'new' | 'new, and the old one remembers nothing'

/** What goes to the other process when it is read here. */
const passed: Readonly<Record<Role, ReadonlySet<Belonging>>> = {
  alone: new Set(),
  old: new Set(['new', 'stray']),
  // A copy of a request that the old process has answered looks new: it gets them all, and returns those that are.
  new: new Set(['new', 'stray']),
  'new, and the old one remembers nothing': new Set(['stray']),
}

export class SocketSharing {
  readonly #deps: SocketSharingDeps
  #role: Role = 'alone'
  #pass: Pass = () => undefined

  constructor(deps: SocketSharingDeps) {
    this.#deps = deps
  }

  /**
   * File descriptors for the next process, in the order of the options.
   * @throws {TypeError} this Node.js does not show them.
   */
  descriptors(): readonly number[] {
    return this.#deps.sockets().map((socket) => {
      if (socket === undefined) throw new TypeError('a listener has no socket')
      return socket.descriptor
    })
  }

  /** This is the old process from now on. */
  keepOld(pass: Pass): void {
    this.#role = 'old'
    this.#pass = pass
    this.#deps.measureQueues(false)
  }

  /** This is the new process from now on. */
  takeNew(pass: Pass): void {
    this.#role = 'new'
    this.#pass = pass
  }

  /** In the new process: so much later no copies come any more of what the old one has answered. */
  forgetCopies(): void {
    if (this.#role === 'new') this.#role = 'new, and the old one remembers nothing'
  }

  get isAlone(): boolean {
    return this.#role === 'alone'
  }

  /** There is no other process any more. */
  alone(): void {
    this.#role = 'alone'
    this.#deps.measureQueues(true)
  }

  /** The new process reads: here nothing is read any more, but for the connections that there are. */
  leave(): void {
    for (const socket of this.#deps.sockets()) socket?.leave()
  }

  /** Their peers connect again, to the new process. */
  closeIdleConnections(): void {
    const busy = this.#deps.busyConnections()
    for (const socket of this.#deps.sockets()) socket?.closeAllBut(busy)
  }

  /** Whether anything is under way on stream connections, whose peers cannot be found in another process. */
  get hasStreams(): boolean {
    return [...this.#deps.busyConnections()].some((connectionId) => connectionId !== 0)
  }

  /** In the new process: the old one ends, and what it was in the middle of is read from the journal first. */
  hold(): void {
    this.#deps.hold()
  }

  release(): void {
    this.#deps.release()
  }

  /** In the old process: the new one goes on with its calls. */
  silence(): void {
    this.#deps.silence()
  }

  /** Whether the datagram went to the other process. */
  passes(bytes: Buffer, flow: Flow): boolean {
    if (this.#role === 'alone') return false
    if (!passed[this.#role].has(this.#deps.belongingOf(decodeMessage(bytes)))) return false
    const { listener, address, port } = flow
    const index = this.#deps.listeners().indexOf(listener.outside ?? listener)
    this.#pass({ listener: index, address, port, data: bytes.toString('base64') })
    return true
  }

  /** One that the other process has read. What is new is handled in the new process, all else here. */
  receive(datagram: PassedDatagram): void {
    const { listener: index, address, port, data } = datagram
    const listener = this.#deps.listeners()[index]
    if (listener === undefined) return
    const bytes = Buffer.from(data, 'base64')
    const isReturned =
      this.#role === 'old' && this.#deps.belongingOf(decodeMessage(bytes)) === 'new'
    if (isReturned) this.#pass(datagram)
    else
      this.#deps.take(bytes, {
        listener: sideFor(listener, address),
        address,
        port,
        connectionId: 0,
      })
  }
}
