/** The only place where the SIP core meets sockets and the clock. */
import type { AppCommand, AppEvent, PingDone, SavedDialogs } from './application.ts'
import type { Output } from './core/outbox.ts'
import type { SavedState } from './core/saved-state.ts'
import type { Flow, HopQuestion, HopTarget } from './flow.ts'
import { decodeMessage } from './message/message.ts'
import type { Log, RequestRoute } from './options.ts'

/** The side of the core that is driven from outside: events and `now` in, outputs and a deadline out. */
export interface DrivenCore {
  receive(text: string, flow: Flow, now: number): void
  sendFailed(reference: string, reason: string, now: number): void
  resolved(reference: string, targets: readonly HopTarget[], now: number): void
  routed(transactionId: string, route: RequestRoute | undefined, now: number): void
  connectionClosed(flow: Flow, now: number): void
  clientConnected(clientId: number, isInProcess: boolean): void
  handled(clientId: number, transactionId: string, now: number): void
  clientDisconnected(clientId: number, now: number): void
  endOrphans(now: number): void
  endStrays(isToBeEnded: (source: Flow) => boolean, now: number): void
  readonly saved: Pick<SavedState, keyof SavedDialogs>
  command(clientId: number, command: AppCommand, now: number): void
  ping(target: string, done: PingDone, now: number): boolean
  handleTimeout(now: number): void
  nextDeadline(): number | undefined
  nextOutput(): Output | undefined
}

/** Where outputs go. None may call the driver back before it returns, except for `disconnect`. */
export interface Ports {
  send(text: string, flow: Flow, reference: string): void
  close(flow: Flow): void
  deliver(clientId: number, event: AppEvent): void
  disconnect(clientId: number): void
  dialOut(clientId: number, uri: string): void
  resolve(question: HopQuestion, reference: string): void
}

export interface DriverOptions {
  readonly now: () => number
  /** Runs `work` once after `delayMs`; the returned function cancels it. */
  readonly schedule: (work: () => void, delayMs: number) => () => void
  readonly log: Log
  /**
   * Asked for each packet, a datagram before it is decoded; false drops it in silence. Asked for each
   * new connection with an empty packet.
   */
  readonly admit: (source: Flow, packet: Buffer | string) => boolean
}

/** Longest delay that `setTimeout` takes. */
const maxDelayMs = 2_147_483_647

/**
 * Under load a deadline is due every millisecond, most of them ends of transactions. A wake-up is a turn of the event
 * loop: those of 10 ms share one.
 */
const pauseMs = 10

/** What may come between the start and the end of the restore; a few seconds of a busy server. */
const maxHeld = 20_000
const maxHeldCharacters = 32 * 1_024 * 1_024
/** Of what was held, handled in one turn of the event loop. */
const turn = 50

/** A core that fails on a timeout is not asked again at once: the same deadline is still due. */
const pauseAfterFailureMs = 1_000

/**
 * Feeds the core one event at a time and performs what it wants done after each. An exception in the
 * core ends that event, is logged, and goes no further: one packet must not end the server.
 */
export class Driver {
  readonly #core: DrivenCore
  readonly #ports: Ports
  readonly #options: DriverOptions
  #cancelWakeup: () => void = () => undefined
  /** The deadline that the wake-up was set for. */
  #armedFor = Infinity
  #notBefore = 0
  #isPerforming = false
  #isStopped = false
  /** Messages from the network that wait, while nothing is to be handled yet. */
  #held: { readonly text: string; readonly flow: Flow }[] | undefined
  #heldCharacters = 0

  constructor(core: DrivenCore, ports: Ports, options: DriverOptions) {
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

  /** Handles what has waited, in its order, and then what comes as it comes. */
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

  /** What of an application's dialogs outlives this process. */
  savedDialogs(clientId: number): SavedDialogs {
    const { saved } = this.#core
    return {
      saveDialog: (id) => saved.saveDialog(clientId, id),
      saveInvite: (id) => saved.saveInvite(clientId, id),
      restoreDialog: (dialog) =>
        this.#restored((now) => saved.restoreDialog(clientId, dialog, now)) === true,
      restoreInvite: (invite) =>
        this.#restored((now) => saved.restoreInvite(clientId, invite, now)),
    }
  }

  command(clientId: number, command: AppCommand): void {
    if (this.#isStopped) return
    try {
      this.#core.command(clientId, command, this.#options.now())
    } catch (error) {
      this.#report('command', error, { clientId })
    }
    this.#settle()
  }

  ping(target: string, done: PingDone): boolean {
    let isSent = false
    this.#event('ping', (now) => (isSent = this.#core.ping(target, done, now)))
    return isSent
  }

  sendFailed(reference: string, reason: string): void {
    this.#event('failed send', (now) => this.#core.sendFailed(reference, reason, now))
  }

  resolved(reference: string, targets: readonly HopTarget[]): void {
    this.#event('resolved host', (now) => this.#core.resolved(reference, targets, now))
  }

  connectionClosed(flow: Flow): void {
    this.#event('closed connection', (now) => this.#core.connectionClosed(flow, now))
  }

  clientConnected(clientId: number, isInProcess: boolean): void {
    this.#event('new client', () => this.#core.clientConnected(clientId, isInProcess))
  }

  handled(clientId: number, transactionId: string): void {
    this.#event('handled request', (now) => this.#core.handled(clientId, transactionId, now))
  }

  clientDisconnected(clientId: number): void {
    this.#event('lost client', (now) => this.#core.clientDisconnected(clientId, now))
  }

  endOrphans(): void {
    this.#event('orphans', (now) => this.#core.endOrphans(now))
  }

  endStrays(isToBeEnded: (source: Flow) => boolean): void {
    this.#event('strays', (now) => this.#core.endStrays(isToBeEnded, now))
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

  #restored<T>(restore: (now: number) => T): T | undefined {
    try {
      return restore(this.#options.now())
    } catch (error) {
      this.#report('restore', error, {})
      return undefined
    } finally {
      this.#settle()
    }
  }

  #handle(text: string, flow: Flow): void {
    try {
      this.#core.receive(text, flow, this.#options.now())
    } catch (error) {
      this.#report('packet', error, { address: flow.address, port: flow.port })
    }
    this.#settle()
  }

  #event(what: string, transition: (now: number) => void): void {
    if (this.#isStopped) return
    try {
      transition(this.#options.now())
    } catch (error) {
      this.#report(what, error, {})
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
      case 'await-route':
        return this.#awaitRoute(output)
    }
  }

  #awaitRoute({ route, transactionId }: Extract<Output, { kind: 'await-route' }>): void {
    const found = (answer: RequestRoute | undefined): void =>
      this.#event('route', (now) => this.#core.routed(transactionId, answer, now))
    void route.then(found, (error: unknown) => {
      this.#options.log('warn', 'a request was not routed', { reason: String(error) })
      found({ reject: { status: 480 } })
    })
  }

  /**
   * Moves the wake-up only when the deadline came nearer. Most deadlines are withdrawn: a wake-up that
   * finds nothing due is cheaper than setting a timer for every packet.
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
