/**
 * A planned upgrade as the old process sees it: it starts the program anew, hands over when that has read and checked
 * everything, and is done when that serves. Until then it goes on as if nothing had been, whatever happens to the other.
 */
import type { Schedule } from '../../schema/clock.ts'
import type { Log } from '../../schema/contracts/log.ts'
import type { HeardDigit } from '../media/digits/heard-digits.ts'
import type { PassedDatagram } from '../sip-server/index.ts'
import type { FromNew, FromOld, HandedOver, Link } from './messages.ts'

export type NewProcess = Link<FromOld, FromNew>

export type UpgradeOutcome =
  | { readonly kind: 'upgraded'; readonly pid: number; readonly version: string }
  | { readonly kind: 'refused'; readonly reason: string }

export interface UpgradeDeps {
  /** Resolves when nothing is under way that a new process must not meet. Never rejects. Absent: nothing ever is. */
  readonly quiet?: () => Promise<void>
  /** Starts the program on disk, with the sockets of this process. */
  readonly startProgram: () => NewProcess
  /** Why it cannot be; undefined: it can. */
  readonly obstacle: () => string | undefined
  /** The new process reads the database next: writes what waits. Never rejects. */
  readonly writeAll: () => Promise<void>
  /** From now on what is new is passed on. */
  readonly handOver: (pass: (datagram: PassedDatagram) => void) => HandedOver
  /** Undoes `handOver`. */
  readonly takeBack: () => void
  /** The new process of an upgrade that has failed has ended, and this one goes on. */
  readonly alone: () => void
  /** The other process serves: nothing is read or accepted here any more. */
  readonly leave: () => void
  /** What the new process has read and is ours. */
  readonly receive: (datagram: PassedDatagram) => void
  readonly receiveDigit: (digit: HeardDigit) => void
  readonly held: () => HandedOver['held']
  readonly schedule: Schedule
  readonly log: Log
}

/** So long what is under way may take: it waits for the database, which may be away. */
const QUIET_MS = 10_000
/** So long the new process may take until it serves. */
const START_MS = 30_000
const HELD_MS = 1_000
/** So long it may take until it passes nothing on any more. */
const ALONE_MS = 1_000

type State = 'alone' | 'starting' | 'handing over' | 'left'

export class Upgrade {
  readonly #deps: UpgradeDeps
  #state: State = 'alone'
  #newProcess: NewProcess | undefined
  #complaint: string | undefined
  #cancelTimer: () => void = () => undefined
  #settle: (outcome: UpgradeOutcome) => void = () => undefined
  #tellLeft: (newProcess: NewProcess) => void = () => undefined
  #isAbandoned = false
  #alone: () => void = () => undefined
  /** Resolves when another process serves. */
  readonly left = new Promise<NewProcess>((resolve) => {
    this.#tellLeft = resolve
  })

  constructor(deps: UpgradeDeps) {
    this.#deps = deps
  }

  /** The new process has ended, though it served: what it had to do is left undone. */
  get isAbandoned(): boolean {
    return this.#isAbandoned
  }

  run(): Promise<UpgradeOutcome> {
    if (this.#state !== 'alone') return Promise.resolve(refused('an upgrade is under way already'))
    const obstacle = this.#deps.obstacle()
    if (obstacle !== undefined) return Promise.resolve(refused(obstacle))
    const { log, quiet } = this.#deps
    return new Promise((resolve) => {
      this.#settle = (outcome) => {
        if (outcome.kind === 'upgraded') log('info', 'another process serves now', { ...outcome })
        else log('warn', 'the upgrade is refused; this process goes on', { ...outcome })
        resolve(outcome)
      }
      this.#state = 'starting'
      if (quiet === undefined) this.#start()
      else this.#startWhenQuiet(quiet)
    })
  }

  #startWhenQuiet(quiet: () => Promise<void>): void {
    let isWaiting = true
    const cancel = this.#deps.schedule(() => {
      isWaiting = false
      this.#fail(
        `what is under way with the database did not end within ${QUIET_MS / 1_000} s: try again`,
      )
      this.#deps.alone()
    }, QUIET_MS)
    this.#cancelTimer = cancel
    const begin = (): void => {
      // Too late: another upgrade may wait by now.
      if (!isWaiting) return
      cancel()
      this.#start()
    }
    void quiet().then(begin)
  }

  #start(): void {
    // This process may have been told to stop meanwhile.
    if (this.#state !== 'starting') return this.#deps.alone()
    const { log, schedule, startProgram } = this.#deps
    try {
      const newProcess = startProgram()
      this.#complaint = undefined
      this.#newProcess = newProcess
      log('info', 'an upgrade begins', { newProcess: newProcess.pid })
      this.#cancelTimer = schedule(
        () => this.#fail(`the new process did not serve within ${START_MS / 1_000} s`),
        START_MS,
      )
      newProcess.onMessage((message) => this.#take(message, newProcess))
      newProcess.onEnd((how) => this.#ended(newProcess, how))
    } catch (error) {
      this.#fail(error instanceof Error ? error.message : String(error))
      this.#deps.alone()
    }
  }

  /** This process stops: the new one is not to serve. Without effect once it does. */
  cancel(): void {
    if (this.#state === 'starting' || this.#state === 'handing over')
      this.#fail('the process stops')
  }

  /** Nothing is left here. Resolves when the new process passes nothing on any more. */
  async done(): Promise<void> {
    const alone = new Promise<void>((resolve) => {
      this.#alone = resolve
    })
    this.#newProcess?.send({ kind: 'done' })
    const cancel = this.#deps.schedule(() => this.#alone(), ALONE_MS)
    await alone
    cancel()
  }

  #take(message: FromNew, newProcess: NewProcess): void {
    if (newProcess !== this.#newProcess) return
    switch (message.kind) {
      case 'complaint':
        this.#complaint = message.line.replace(/^tollgate: /, '')
        return
      case 'loaded':
        return void this.#handOver(newProcess)
      case 'serving':
        return this.#leave(newProcess, message)
      case 'datagram':
        return this.#deps.receive(message.datagram)
      case 'digit':
        return this.#deps.receiveDigit(message.digit)
      case 'alone':
        return this.#alone()
    }
  }

  async #handOver(newProcess: NewProcess): Promise<void> {
    if (this.#state !== 'starting') return
    await this.#deps.writeAll()
    // It may have ended meanwhile.
    if (newProcess !== this.#newProcess || this.#state !== 'starting') return
    this.#state = 'handing over'
    const pass = (datagram: PassedDatagram) => newProcess.send({ kind: 'datagram', datagram })
    newProcess.send({ kind: 'handed over', ...this.#deps.handOver(pass) })
  }

  #leave(
    newProcess: NewProcess,
    { pid, version }: { readonly pid: number; readonly version: string },
  ): void {
    if (this.#state !== 'handing over') return
    this.#state = 'left'
    this.#cancelTimer()
    this.#deps.leave()
    newProcess.send({ kind: 'left' })
    this.#tellHeld(newProcess)
    this.#settle({ kind: 'upgraded', pid, version })
    this.#tellLeft(newProcess)
  }

  #tellHeld(newProcess: NewProcess): void {
    newProcess.send({ kind: 'held', held: this.#deps.held() })
    this.#cancelTimer = this.#deps.schedule(() => this.#tellHeld(newProcess), HELD_MS)
  }

  #ended(newProcess: NewProcess, how: string): void {
    if (newProcess === this.#newProcess && this.#state === 'left') return this.#abandon(how)
    if (newProcess === this.#newProcess) this.#fail(this.#complaint ?? `the new process ${how}`)
    // Otherwise the next upgrade has begun.
    if (this.#state === 'alone') this.#deps.alone()
  }

  #abandon(how: string): void {
    this.#cancelTimer()
    this.#isAbandoned = true
    this.#deps.log('error', 'the process that serves has ended', { how })
  }

  #fail(reason: string): void {
    const isHandedOver = this.#state === 'handing over'
    const newProcess = this.#newProcess
    this.#state = 'alone'
    this.#newProcess = undefined
    this.#cancelTimer()
    newProcess?.end()
    if (isHandedOver) this.#deps.takeBack()
    this.#settle(refused(reason))
  }
}

const refused = (reason: string): UpgradeOutcome => ({ kind: 'refused', reason })
