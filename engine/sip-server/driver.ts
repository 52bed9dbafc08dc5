/** The only place where the SIP core meets sockets and the clock. */
import type { AppCommand, AppEvent } from './application.ts'
import type { Output } from './core/outbox.ts'
import type { Flow, HopQuestion } from './flow.ts'
import { decodeMessage } from '../../schema/sip/message.ts'
import type { ServerLog, RequestRoute } from './options.ts'

/** The calls that the driver makes by itself; all others come with `run`. */
export interface DrivenCore {
  receive(text: string, flow: Flow, now: number): void
  command(clientId: number, command: AppCommand, now: number): void
  routed(transactionId: string, route: RequestRoute | undefined, now: number): void
  handleTimeout(now: number): void
  nextDeadline(): number | undefined
  nextOutput(): Output | undefined
}

/** Outputs go there. None may call the driver back before it returns, except for `disconnect`. */
export interface Ports {
  send(text: string, flow: Flow, reference: string): void
  close(flow: Flow): void
  deliver(clientId: number, event: AppEvent): void
  disconnect(clientId: number): void
  dialOut(clientId: number, uri: string): void
  resolve(question: HopQuestion, reference: string): void
  registeredFlowClosed(flow: Flow): void
}

export interface DriverOptions {
  readonly now: () => number
  /** Runs `work` once after `delayMs`; the returned function cancels it. */
  readonly schedule: (work: () => void, delayMs: number) => () => void
  readonly log: ServerLog
  /**
   * Asked for each packet, a datagram before it is decoded; false drops it in silence. Asked for
   * each new connection with an empty packet.
   */
  readonly admit: (source: Flow, packet: Buffer | string) => boolean
}

/** Longest delay that `setTimeout` takes. */
const maxDelayMs = 2_147_483_647

/**
 * Under load a deadline is due every millisecond, most of them ends of transactions. A wake-up is a
 * turn of the event loop: those of 10 ms share one.
 */
const pauseMs = 10

/**
 * Messages that may wait between the start and the end of the restore: a few seconds of a busy
 * server.
 */
const maxHeld = 20_000
const maxHeldCharacters = 32 * 1_024 * 1_024
/** Messages of those that have waited, handled in one turn of the event loop. */
const turn = 50

/** A core that fails on a timeout is not asked again at once: the same deadline is still due. */
const pauseAfterFailureMs = 1_000

/**
 * Feeds the core one event at a time and performs what it wants done after each. An exception in
 * the core ends that event, is logged, and goes no further: one packet must not end the server.
 */
export class Driver<Core extends DrivenCore> {
  readonly #core: Core
  readonly #ports: Ports
  readonly #options: DriverOptions
  #cancelWakeup: () => void = () => undefined
  /** The deadline that the wake-up was set for. */
  #armedFor = Infinity
  #notBefore = 0
  #isPerforming = false
  #isStopped = false
  /** Messages from the network that wait for `release`. */
  #held: { readonly text: string; readonly flow: Flow }[] | undefined
  #heldCharacters = 0

  constructor(core: Core, ports: Ports, options: DriverOptions) {
    this.#core = core
    this.#ports = ports
    this.#options = options
  }

  datagram(bytes: Buffer, flow: Flow): void {
    if (!this.#isStopped && this.#admits(flow, bytes)) this.#receive(decodeMessage(bytes), flow)
  }

  /** Whether a peer that connects is served. */
  accepts(source: Flow): boolean {
    return !this.#isStopped && this.#admits(source, '')
  }

  /** One message from a stream. */
  message(text: string, flow: Flow): void {
    if (!this.#isStopped && this.#admits(flow, text)) this.#receive(text, flow)
  }

  /** From here on messages from the network wait for `release`. */
  hold(): void {
    this.#held ??= []
  }

  /**
   * Handles the messages that have waited, in their order; later ones are handled at once again.
   */
  release(): void {
    const held = this.#held
    if (held === undefined || this.#isStopped) return
    for (const { text, flow } of held.splice(0, turn)) this.#handle(text, flow)
    if (held.length > 0) this.#options.schedule(() => this.release(), 0)
    else {
      this.#held = undefined
      this.#heldCharacters = 0
    }
  }

  /** A command of a connected application. */
  command(clientId: number, command: AppCommand): void {
    if (this.#isStopped) return
    try {
      this.#core.command(clientId, command, this.#options.now())
    } catch (error) {
      this.#report('command', error, { clientId })
    }
    this.#settle()
  }

  /**
   * Gives the core an event, and performs what it wants done after it.
   * @param event names the event in the log, should the core fail
   * @returns undefined when it has failed, or nothing reaches it any more
   */
  run<Result>(event: string, transition: (core: Core, now: number) => Result): Result | undefined {
    if (this.#isStopped) return undefined
    try {
      return transition(this.#core, this.#options.now())
    } catch (error) {
      this.#report(event, error, {})
      return undefined
    } finally {
      this.#settle()
    }
  }

  /** Nothing reaches the core from here on. */
  stop(): void {
    this.#isStopped = true
    this.#cancelWakeup()
  }

  #admits(flow: Flow, packet: Buffer | string): boolean {
    try {
      return this.#options.admit(flow, packet)
    } catch (error) {
      this.#report('admission', error, { address: flow.address, port: flow.port })
      return false
    }
  }

  #receive(text: string, flow: Flow): void {
    if (this.#held === undefined) return this.#handle(text, flow)
    const isFull = this.#held.length >= maxHeld || this.#heldCharacters > maxHeldCharacters
    // A datagram is repeated by its sender; of a stream nothing may be missing.
    if (isFull) return flow.connectionId === 0 ? undefined : this.#ports.close(flow)
    this.#heldCharacters += text.length
    this.#held.push({ text, flow })
  }

  #handle(text: string, flow: Flow): void {
    try {
      this.#core.receive(text, flow, this.#options.now())
    } catch (error) {
      this.#report('packet', error, { address: flow.address, port: flow.port })
    }
    this.#settle()
  }

  /** Outputs run after the transition has finished, so nothing can re-enter a machine. */
  #settle(): void {
    if (this.#isPerforming) return
    this.#isPerforming = true
    for (let output = this.#nextOutput(); output !== undefined; output = this.#nextOutput()) {
      try {
        this.#perform(output)
      } catch (error) {
        this.#report(`output ${output.kind}`, error, {})
      }
    }
    this.#isPerforming = false
    this.#arm()
  }

  #nextOutput(): Output | undefined {
    try {
      return this.#core.nextOutput()
    } catch (error) {
      this.#report('next output', error, {})
      return undefined
    }
  }

  #perform(output: Output): void {
    switch (output.kind) {
      case 'send':
        return this.#ports.send(output.text, output.flow, output.reference)
      case 'deliver':
        return this.#ports.deliver(output.clientId, output.event)
      case 'disconnect':
        return this.#ports.disconnect(output.clientId)
      case 'dial-out':
        return this.#ports.dialOut(output.clientId, output.uri)
      case 'resolve':
        return this.#ports.resolve(output.question, output.reference)
      case 'pinged':
        return output.done(output.answer)
      case 'close':
        return this.#ports.close(output.flow)
      case 'registered-flow-closed':
        return this.#ports.registeredFlowClosed(output.flow)
      case 'await-route':
        return this.#awaitRoute(output)
    }
  }

  #awaitRoute({ route, transactionId }: Extract<Output, { kind: 'await-route' }>): void {
    const routed = (answer: RequestRoute | undefined): void =>
      this.run('route', (core, now) => core.routed(transactionId, answer, now))
    void route.then(routed, (error: unknown) => {
      this.#options.log('warn', 'a request was not routed', { reason: String(error) })
      routed({ reject: { status: 480 } })
    })
  }

  /**
   * Moves the wake-up only when the deadline came nearer. Most deadlines are withdrawn: a wake-up
   * that finds nothing due is cheaper than setting a timer for every packet.
   */
  #arm(): void {
    const deadline = this.#core.nextDeadline()
    if (deadline === undefined || deadline >= this.#armedFor || this.#isStopped) return
    this.#cancelWakeup()
    this.#armedFor = deadline
    const { now, schedule } = this.#options
    const delay = Math.ceil(Math.max(deadline, this.#notBefore) - now())
    this.#cancelWakeup = schedule(this.#onWakeup, Math.min(Math.max(0, delay), maxDelayMs))
  }

  readonly #onWakeup = (): void => {
    this.#armedFor = Infinity
    const now = this.#options.now()
    this.#notBefore = now + pauseMs
    try {
      this.#core.handleTimeout(now)
    } catch (error) {
      this.#notBefore = now + pauseAfterFailureMs
      this.#report('timeout', error, {})
    }
    this.#settle()
  }

  #report(what: string, error: unknown, fields: Readonly<Record<string, unknown>>): void {
    const stack = error instanceof Error ? error.stack : String(error)
    this.#options.log('error', `SIP core failed, event dropped: ${what}`, { ...fields, stack })
  }
}
