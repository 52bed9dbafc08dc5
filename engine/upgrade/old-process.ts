/** A planned upgrade as the new process sees it: the process that still serves, and that hands over to it. */
import type { Config } from '../config.ts'
import type { HeardDigit } from '../media/digits/heard-digits.ts'
import { formatHostAndPort } from '../setting-kinds.ts'
import type { PassedDatagram } from '../sip-server/index.ts'
import {
  FIRST_DESCRIPTOR,
  type FromNew,
  type FromOld,
  UPGRADE_FORM,
  type HandedOver,
  type Link,
  type Offer,
} from './messages.ts'

/** Why this process does not take over; the other one goes on. */
export class UpgradeRefused extends Error {
  override readonly name = 'UpgradeRefused'
}

const instead = 'stop the running process and start this one instead'

/** What a process with these settings listens on, in the order of its sockets. */
export const listeningOf = ({ sip, apiListen, edgeListen }: Config): readonly string[] => [
  ...sip.listen.map(({ protocol, ...place }) => `${protocol}/${formatHostAndPort(place)}`),
  `api/${formatHostAndPort(apiListen)}`,
  `edge/${formatHostAndPort(edgeListen)}`,
]

export class OldProcess {
  readonly #link: Link<FromNew, FromOld>
  readonly #offer: Offer
  #handedOver: ((handedOver: HandedOver) => void) | undefined
  #left: () => void = () => undefined
  /** Read by the old process before this one could take them. */
  readonly #waiting: PassedDatagram[] = []
  #onDatagram = (datagram: PassedDatagram): void => void this.#waiting.push(datagram)
  #onHeld: (held: HandedOver['held']) => void = () => undefined
  #onDone: () => void = () => undefined
  #onEnd: () => void = () => undefined
  #hasEnded = false

  constructor(link: Link<FromNew, FromOld>, offer: Offer) {
    this.#link = link
    this.#offer = offer
    link.onMessage((message) => this.#take(message))
    link.onEnd(() => {
      this.#hasEnded = true
      this.#onEnd()
      this.#left()
    })
  }

  get leaseName(): string | undefined {
    return this.#offer.leaseName
  }

  /** The settings with the sockets of the old process. @throws {UpgradeRefused} it listens elsewhere. */
  withSockets(config: Config): Config {
    const { form, listening } = this.#offer
    if (form !== UPGRADE_FORM)
      throw new UpgradeRefused(`the running version cannot hand over to this one: ${instead}`)
    const wanted = listeningOf(config)
    if (wanted.join() !== listening.join())
      throw new UpgradeRefused(
        `the settings listen on ${wanted.join(', ')}, the running process on ${listening.join(', ')}: ${instead}`,
      )
    const shared = <P>(place: P, index: number): P & { readonly descriptor: number } => ({
      ...place,
      descriptor: FIRST_DESCRIPTOR + index,
    })
    const { sip, apiListen, edgeListen } = config
    const { length } = sip.listen
    return {
      ...config,
      sip: { ...sip, listen: sip.listen.map(shared) },
      apiListen: shared(apiListen, length),
      edgeListen: shared(edgeListen, length + 1),
    }
  }

  /** Everything is read and checked. @throws {UpgradeRefused} the old process has ended. */
  async handOver(): Promise<HandedOver> {
    const handedOver = new Promise<HandedOver>((resolve, reject) => {
      this.#handedOver = resolve
      const end = (): void => reject(new UpgradeRefused('the old process has ended'))
      if (this.#hasEnded) end()
      else this.#onEnd = end
    })
    this.#link.send({ kind: 'loaded' })
    return handedOver
  }

  /** Resolves when the old process reads nothing any more, which may be because it has ended. */
  async serving(pid: number, version: string): Promise<void> {
    if (this.#hasEnded) return
    const left = new Promise<void>((resolve) => {
      this.#left = resolve
    })
    this.#link.send({ kind: 'serving', pid, version })
    await left
  }

  readonly pass = (datagram: PassedDatagram): void =>
    this.#link.send({ kind: 'datagram', datagram })

  readonly passDigit = (digit: HeardDigit): void => this.#link.send({ kind: 'digit', digit })

  onDatagram(listener: (datagram: PassedDatagram) => void): void {
    this.#onDatagram = listener
    for (const datagram of this.#waiting.splice(0)) listener(datagram)
  }

  /** Nothing may be passed on from then. */
  onDone(listener: () => void): void {
    this.#onDone = listener
  }

  onHeld(listener: (held: HandedOver['held']) => void): void {
    this.#onHeld = listener
  }

  /** At once if it has ended. */
  onEnd(listener: () => void): void {
    if (this.#hasEnded) listener()
    else this.#onEnd = listener
  }

  get pid(): number {
    return this.#link.pid
  }

  get hasEnded(): boolean {
    return this.#hasEnded
  }

  #take(message: FromOld): void {
    switch (message.kind) {
      case 'handed over':
        return this.#handedOver?.(message)
      case 'left':
        return this.#left()
      case 'datagram':
        return this.#onDatagram(message.datagram)
      case 'held':
        return this.#onHeld(message.held)
      case 'done':
        this.#onDone()
        return this.#link.send({ kind: 'alone' })
    }
  }
}
