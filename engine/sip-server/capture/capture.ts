/** Copies of SIP messages for Homer. */
import { isIP } from 'node:net'
import type { Flow, Listener } from '../flow.ts'
import type { Machine } from '../machine.ts'
import { decodeMessage, encodeMessage } from '../../../schema/sip/message.ts'
import type { CaptureOptions, ServerLog } from '../options.ts'
import { hepPacket } from './hep.ts'
import { openLink, PacketSender } from './packet-sender.ts'

interface PassedMessage {
  readonly message: string | Buffer
  readonly flow: Flow
  readonly isSent: boolean
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** Messages wait so long, until the call of an INVITE is known by its Call-ID. */
const waitMs = 500

/** Packets that are made in one go: about a millisecond. */
const batchSize = 200

/** Length of the messages that wait for the server; further ones are lost. */
const maxWaitingCharacters = 8 * 1024 * 1024

export class Capture {
  readonly #options: CaptureOptions
  readonly #now: () => number
  readonly #schedule: Machine['schedule']
  readonly #sender: PacketSender
  readonly #waiting: PassedMessage[] = []
  #waitingCharacters = 0
  #cancel: () => void = () => undefined

  /** @throws CertificateError when the file of the trusted certificates cannot be used. */
  constructor(
    options: CaptureOptions,
    { now, schedule, log }: Pick<Machine, 'schedule'> & { now: () => number; log: ServerLog },
  ) {
    this.#options = options
    this.#now = options.now ?? now
    this.#schedule = schedule
    this.#sender = new PacketSender({ ...options, open: openLink(options), schedule, log })
  }

  /** Packets since the start. */
  get figures() {
    const { sent, dropped } = this.#sender
    return { sent, dropped }
  }

  received(message: string | Buffer, flow: Flow): void {
    this.#take({ message, flow, isSent: false, now: this.#now() })
  }

  sent(message: string, flow: Flow): void {
    this.#take({ message, flow, isSent: true, now: this.#now() })
  }

  stop(): void {
    this.#cancel()
    for (const passed of this.#waiting.splice(0)) this.#send(passed)
    this.#sender.stop()
  }

  #take(passed: PassedMessage): void {
    this.#waitingCharacters += passed.message.length
    if (this.#waitingCharacters > maxWaitingCharacters) {
      this.#waitingCharacters -= passed.message.length
      return this.#sender.drop('too many messages at once')
    }
    if (this.#waiting.push(passed) === 1) this.#cancel = this.#schedule(this.#sendBatch, waitMs)
  }

  readonly #sendBatch = (): void => {
    for (const passed of this.#waiting.splice(0, batchSize)) this.#send(passed)
    if (this.#waiting.length > 0) this.#cancel = this.#schedule(this.#sendBatch, 1)
  }

  #send({ message, flow, isSent, now }: PassedMessage): void {
    this.#waitingCharacters -= message.length
    const { listener, address, port } = flow
    const [own, peer] = [placeOf(listener), { address, port }]
    const captured = {
      from: isSent ? own : peer,
      to: isSent ? peer : own,
      isDatagram: listener.protocol === 'udp',
      now,
      payload: typeof message === 'string' ? encodeMessage(message) : message,
      correlationId: this.#correlationOf(message),
    }
    const packet = hepPacket(captured, this.#options)
    if (packet === undefined) this.#sender.drop('a message is too long')
    else this.#sender.send(packet)
  }

  #correlationOf(message: string | Buffer): string | undefined {
    const { correlationOf } = this.#options
    if (correlationOf === undefined) return undefined
    const text = typeof message === 'string' ? message : decodeMessage(message)
    const [, callId] = /^(?:call-id|i)[ \t]*:[ \t]*(\S+)/im.exec(text) ?? []
    return callId === undefined ? undefined : correlationOf(callId)
  }
}

/** A socket of all addresses has none of its own. */
function placeOf({ address, port, advertisedHost }: Listener): Pick<Flow, 'address' | 'port'> {
  const isAny = address === '0.0.0.0' || address === '::'
  return { address: isAny && isIP(advertisedHost) !== 0 ? advertisedHost : address, port }
}
