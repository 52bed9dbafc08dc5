/**
 * Requests to one relay by the ng protocol: a datagram is a cookie, a space, and a dictionary in
 * bencode. A request is repeated with the same cookie, and the relay answers a repetition from its
 * memory, so that nothing is done twice.
 */
import { createSocket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import type { Cancel, Schedule } from '../../../schema/clock.ts'
import { decodeBencode, encodeBencode, isDictionary, type SkippedKeys } from './bencode.ts'
import type { NgAnswer, NgRequest } from './relays.ts'
import { ReleasingMap } from '../../../schema/sip/index.ts'

/** A socket that is connected to one relay: nothing else reaches it. */
export interface NgSocket {
  send(datagram: string): void
  close(): void
}

export interface NgSocketEvents {
  readonly onDatagram: (bytes: Buffer) => void
  /** Nothing listens there, or there is no way to it. */
  readonly onRefusal: () => void
}

interface NgClientDeps {
  readonly open: (events: NgSocketEvents) => NgSocket
  /**
   * Never the same again for this relay, in other processes either: relays know requests by their
   * cookies alone.
   */
  readonly newCookie: () => string
  readonly now: () => number
  readonly schedule: Schedule
  /** The relay has answered a request. */
  readonly onAnswer: (answer: NgAnswer, tookMs: number) => void
  /** A request that was sent at `sentAt` had no answer. */
  readonly onTimeout: (sentAt: number) => void
  /** The relay cannot be reached. Outstanding requests end. */
  readonly onRefusal: () => void
  /** Entries of answers that are left out. */
  readonly skippedKeys?: SkippedKeys
}

/** Times of repetitions, since the request was sent. A failover has to happen within one second. */
const REPEAT_AFTER_MS: readonly number[] = [150, 350]
const TIMEOUT_MS = 600
const TICK_MS = 50
/** A tick that comes so late finds answers that the process has not read yet. */
const LATE_MS = 100

/** Seconds of calls; further requests end as if there was no answer. */
const MAX_OUTSTANDING = 4_096
/** UDP carries 65,507 bytes; of text each character is at most three. */
const MAX_REQUEST_LENGTH = 20_000
const MAX_COOKIE_LENGTH = 64
const SPACE = 0x20

const timedOut: NgAnswer = { kind: 'timeout' }

interface Outstanding {
  readonly datagram: string
  readonly sentAt: number
  repetitions: number
  readonly done: (answer: NgAnswer) => void
}

export class NgClient {
  readonly #deps: NgClientDeps
  readonly #socket: NgSocket
  /** Outstanding requests by cookie, oldest first. */
  readonly #outstanding = new ReleasingMap<string, Outstanding>()
  #cancelTick: Cancel | undefined
  #tickAt = 0
  #wasLate = false

  constructor(deps: NgClientDeps) {
    this.#deps = deps
    this.#socket = deps.open({
      onDatagram: (bytes) => this.#onDatagram(bytes),
      onRefusal: () => this.#onRefusal(),
    })
  }

  get outstanding(): number {
    return this.#outstanding.size
  }

  /** Never rejects; resolves within a second. */
  request(command: NgRequest): Promise<NgAnswer> {
    return new Promise((resolve) => this.ask(command, resolve))
  }

  /** `done` is called once, within a second, or at once. */
  ask(command: NgRequest, done: (answer: NgAnswer) => void): void {
    const cookie = this.#deps.newCookie()
    const datagram = `${cookie} ${encodeBencode(command)}`
    if (datagram.length > MAX_REQUEST_LENGTH)
      return done({ kind: 'error', reason: 'the request is too long' })
    if (this.#outstanding.size >= MAX_OUTSTANDING) return done(timedOut)
    const sentAt = this.#deps.now()
    this.#outstanding.set(cookie, { datagram, sentAt, repetitions: 0, done })
    if (this.#cancelTick === undefined) this.#tickLater(sentAt)
    return this.#socket.send(datagram)
  }

  /** Outstanding requests end without an answer. */
  close(): void {
    this.#socket.close()
    this.#endAll()
  }

  #onDatagram(bytes: Buffer): void {
    const space = bytes.indexOf(SPACE)
    if (space > MAX_COOKIE_LENGTH) return
    const cookie = bytes.toString('latin1', 0, Math.max(space, 0))
    const request = this.#outstanding.get(cookie)
    if (request === undefined) return
    this.#outstanding.delete(cookie)
    const answer = answerOf(bytes, space + 1, this.#deps.skippedKeys)
    this.#deps.onAnswer(answer, this.#deps.now() - request.sentAt)
    request.done(answer)
  }

  #onRefusal(): void {
    // First, because the end of a request may lead to a request to another relay.
    this.#deps.onRefusal()
    this.#endAll()
  }

  #endAll(): void {
    this.#cancelTick?.()
    this.#cancelTick = undefined
    const ended = [...this.#outstanding.values()]
    this.#outstanding.clear()
    for (const { done } of ended) done(timedOut)
  }

  /** Starts the timer of all requests, which runs only while some are outstanding. */
  #tickLater(now: number): void {
    this.#tickAt = now + TICK_MS
    this.#cancelTick = this.#deps.schedule(() => this.#tick(), TICK_MS)
  }

  #tick(): void {
    this.#cancelTick = undefined
    const now = this.#deps.now()
    // Not twice in a row, so that a process that is always late gives up, too.
    this.#wasLate = !this.#wasLate && now - this.#tickAt > LATE_MS
    if (!this.#wasLate) this.#repeatAndGiveUp(now)
    if (this.#outstanding.size > 0 && this.#cancelTick === undefined) this.#tickLater(now)
  }

  #repeatAndGiveUp(now: number): void {
    for (const [cookie, request] of this.#outstanding) {
      const age = now - request.sentAt
      if (age >= TIMEOUT_MS) this.#giveUp(cookie, request)
      else if (age >= (REPEAT_AFTER_MS[request.repetitions] ?? Infinity)) {
        request.repetitions += 1
        this.#socket.send(request.datagram)
      } else if (request.repetitions === 0) return
    }
  }

  #giveUp(cookie: string, { sentAt, done }: Outstanding): void {
    this.#outstanding.delete(cookie)
    this.#deps.onTimeout(sentAt)
    done(timedOut)
  }
}

function answerOf(bytes: Buffer, start: number, unread?: SkippedKeys): NgAnswer {
  const values = decodeBencode(bytes, start, unread)
  if (!isDictionary(values)) return { kind: 'error', reason: 'the answer is malformed' }
  const { result } = values
  if (result === 'ok' || result === 'pong') return { kind: 'ok', values }
  // `result` is `error`, or `load limit` with a message.
  const reason = values['error-reason'] ?? values['message'] ?? result
  return { kind: 'error', reason: typeof reason === 'string' ? reason : 'no reason given' }
}

/** The address of a relay, as a literal. */
export interface RelayAddress {
  readonly address: string
  readonly port: number
}

/**
 * Answers to `delete` have some kilobytes each, and hundreds may come between two turns of the
 * event loop.
 */
const RECEIVE_BUFFER_BYTES = 2 * 1024 * 1024

/**
 * A connected socket: the kernel drops datagrams from other addresses, and reports at once if
 * nothing listens there.
 */
export function openNgSocket({ address, port }: RelayAddress, events: NgSocketEvents): NgSocket {
  const family = isIPv6(address) ? 6 : 4
  const socket = createSocket({
    type: family === 6 ? 'udp6' : 'udp4',
    recvBufferSize: RECEIVE_BUFFER_BYTES,
    // Without it, the literal goes through dns.lookup.
    lookup: (hostname, _options, found) => found(null, hostname, family),
  })
  socket.on('message', events.onDatagram)
  socket.on('error', events.onRefusal)
  socket.connect(port, address)
  return {
    send: (datagram) => {
      try {
        socket.send(datagram)
      } catch {
        // The socket is not connected yet, or closed: the request is repeated, or ends by its
        // timeout.
      }
    },
    close: () => {
      socket.off('message', events.onDatagram)
      socket.off('error', events.onRefusal)
      socket.on('error', () => undefined)
      socket.close()
    },
  }
}
