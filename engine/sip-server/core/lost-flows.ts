/**
 * Dialogs whose stream has ended with the process before this one. Their peer comes back by itself (a phone
 * registers again), or is asked over a new connection whether it is still there. One that cannot be reached
 * within a minute ends, and its application is told as of a session that has expired.
 */
import type { Identifiers } from './identifiers.ts'
import type { HopFinder } from './next-hop.ts'
import { type RequestWriter } from './request-writer.ts'
import type { Transactions } from './transactions.ts'
import type { Dialog } from '../dialog/dialog.ts'
import { type Flow, isWebSocket } from '../flow.ts'
import type { SipMessage } from '../message/message.ts'
import { LongDeadline } from '../transaction/deadlines.ts'
import type { ClientUser } from '../transaction/machine.ts'
import { type LocalBye, sessionExpired } from './local-bye.ts'

const LIMIT_MS = 60_000
/** A phone that was cut off needs a moment to come back. */
const FIRST_LOOK_MS = 5_000
const LOOK_EVERY_MS = 10_000
const ABOUT_MS = 500

interface LostFlowPorts {
  readonly transactions: Transactions
  readonly writer: RequestWriter
  readonly hops: HopFinder
  readonly localBye: LocalBye
  readonly ids: Identifiers
}

export class LostFlows {
  readonly #ports: LostFlowPorts

  constructor(ports: LostFlowPorts) {
    this.#ports = ports
  }

  watch(dialog: Dialog, now: number): void {
    // There may be thousands: their looks are spread.
    const firstLookMs = FIRST_LOOK_MS + (this.#ports.ids.number() % FIRST_LOOK_MS)
    new LostFlow(this.#ports, dialog, now + LIMIT_MS).lookAt(now + firstLookMs, now)
  }
}

class LostFlow implements ClientUser {
  readonly #ports: LostFlowPorts
  readonly #dialog: Dialog
  readonly #endsAt: number
  readonly #deadline: LongDeadline
  /** The branch of the OPTIONS that is under way; '' for none. */
  #asking = ''
  #way: Flow | undefined

  constructor(ports: LostFlowPorts, dialog: Dialog, endsAt: number) {
    this.#ports = ports
    this.#dialog = dialog
    this.#endsAt = endsAt
    this.#deadline = new LongDeadline(ports.transactions.deadlines, (at) => this.#look(at))
  }

  lookAt(at: number, now: number): void {
    this.#deadline.set(Math.min(at, this.#endsAt), now)
  }

  #look(now: number): void {
    const { writer, hops } = this.#ports
    const dialog = this.#dialog
    if (dialog.state === 'terminated' || dialog.isFlowBound) return
    const hop = writer.hopInDialog(dialog)
    if ('flow' in hop && hop.flow.connectionId !== 0) return
    // A long deadline comes up to a quarter of a second early: set again to the same time, it is due at once, for ever.
    if (this.#endsAt - now < ABOUT_MS) return this.#end(now)
    this.lookAt(now + LOOK_EVERY_MS, now)
    if ('problem' in hop) return
    if (hop.question === undefined) return this.#ask(hop.flow, now)
    hops.lookUp(hop.question, ([flow], at) => this.#ask(flow, at))
  }

  #ask(flow: Flow | undefined, now: number): void {
    if (flow === undefined || this.#asking !== '' || isWebSocket(flow.listener.protocol)) return
    const dialog = this.#dialog
    if (dialog.state === 'terminated') return
    const { transactions, writer } = this.#ports
    const options = writer.numbered(dialog, 'OPTIONS', dialog.nextLocalCseq(), flow, {})
    this.#asking = options.branch
    this.#way = flow
    transactions.startClient(options, flow, this, now)
  }

  onResponse({ status }: SipMessage, _from: Flow, now: number): void {
    if (status < 200) return
    this.#deadline.cancel()
    if (status === 408 || status === 481) return this.#end(now)
    if (this.#way) this.#dialog.rememberNextHop(this.#way)
  }

  /** It is tried again. */
  onFailure(): void {}

  onTerminated(): void {
    this.#ports.transactions.endClient(this.#asking)
    this.#asking = ''
  }

  #end(now: number): void {
    this.#ports.localBye.send(this.#dialog, sessionExpired, 'tell', now)
  }
}
