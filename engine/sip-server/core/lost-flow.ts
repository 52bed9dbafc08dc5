/** One dialog whose stream ended with the process before this one. */
import type { CoreParts } from './parts.ts'
import { sessionExpired } from './request-writer.ts'
import type { Dialog } from '../dialog/dialog.ts'
import { type Flow, isWebSocket } from '../flow.ts'
import type { SipMessage } from '../../../schema/sip/message.ts'
import { LongDeadline } from '../transaction/deadlines.ts'
import type { ClientUser } from '../transaction/machine.ts'

const CHECK_INTERVAL_MS = 10_000
const ABOUT_MS = 500

export class LostFlow implements ClientUser {
  readonly #parts: CoreParts
  readonly #dialog: Dialog
  readonly #endsAt: number
  readonly #deadline: LongDeadline
  /** The branch of the OPTIONS that is under way; '' for none. */
  #branch = ''
  #checkedFlow: Flow | undefined

  constructor(parts: CoreParts, dialog: Dialog, endsAt: number) {
    this.#parts = parts
    this.#dialog = dialog
    this.#endsAt = endsAt
    this.#deadline = new LongDeadline(parts.transactions.deadlines, (at) => this.#check(at))
  }

  checkAt(at: number, now: number): void {
    this.#deadline.set(Math.min(at, this.#endsAt), now)
  }

  #check(now: number): void {
    const { writer, hops } = this.#parts
    const dialog = this.#dialog
    if (dialog.state === 'terminated' || dialog.isFlowBound) return
    const hop = writer.hopInDialog(dialog)
    if ('flow' in hop && hop.flow.connectionId !== 0) return
    // A long deadline comes up to a quarter of a second early: set again to the same time, it is
    // due at once, for ever.
    if (this.#endsAt - now < ABOUT_MS) return this.#end(now)
    this.checkAt(now + CHECK_INTERVAL_MS, now)
    if ('problem' in hop) return
    if (hop.question === undefined) return this.#ask(hop.flow, now)
    hops.lookUp(hop.question, ([flow], at) => this.#ask(flow, at))
  }

  #ask(flow: Flow | undefined, now: number): void {
    if (flow === undefined || this.#branch !== '' || isWebSocket(flow.listener.protocol)) return
    const dialog = this.#dialog
    if (dialog.state === 'terminated') return
    const { transactions, writer } = this.#parts
    const lines = `Contact: ${dialog.contact}\r\n`
    const options = writer.numbered(dialog, 'OPTIONS', dialog.nextLocalCseq(), flow, { lines })
    this.#branch = options.branch
    this.#checkedFlow = flow
    transactions.startClient(options, flow, this, now)
  }

  onResponse({ status }: SipMessage, _from: Flow, now: number): void {
    if (status < 200) return
    this.#deadline.cancel()
    if (status === 408 || status === 481) return this.#end(now)
    if (this.#checkedFlow) this.#dialog.rememberNextHop(this.#checkedFlow)
  }

  /** The next check tries again. */
  onFailure(): void {}

  onTerminated(): void {
    this.#parts.transactions.endClient(this.#branch)
    this.#branch = ''
  }

  #end(now: number): void {
    this.#parts.localBye.send(this.#dialog, sessionExpired, 'notify', now)
  }
}
