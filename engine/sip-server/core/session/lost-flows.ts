/**
 * Dialogs whose stream has ended with the process before this one. Their peer comes back by itself (a phone
 * registers again), or is asked over a new connection whether it is still there. One that cannot be reached
 * within a minute ends, and its application is told as of a session that has expired.
 */
import type { Dialog } from '../../dialog/dialog.ts'
import { LongDeadline } from '../../dialog/long-deadline.ts'
import { isWebSocket } from '../../flow.ts'
import type { SipMessage } from '../../message/message.ts'
import type { ClientUser } from '../../transaction/context.ts'
import type { Identifiers } from '../identifiers.ts'
import { sessionExpired, type LocalBye } from '../local-bye.ts'
import type { RequestWriter } from '../request-writer.ts'
import type { Transactions } from '../transactions.ts'

const LIMIT_MS = 60_000
/** A phone that was cut off needs a moment to come back. */
const FIRST_LOOK_MS = 5_000
const LOOK_EVERY_MS = 10_000

interface LostFlowPorts {
  readonly transactions: Transactions
  readonly writer: RequestWriter
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
    const { transactions, writer } = this.#ports
    const dialog = this.#dialog
    if (dialog.state === 'terminated' || dialog.isFlowBound) return
    const flow = writer.flowInDialog(dialog)
    if (flow.connectionId !== 0) return
    if (now >= this.#endsAt) return this.#end(now)
    this.lookAt(now + LOOK_EVERY_MS, now)
    if (this.#asking !== '' || isWebSocket(flow.listener.protocol)) return
    const options = writer.numbered(dialog, 'OPTIONS', dialog.nextLocalCseq(), flow, {})
    this.#asking = options.branch
    transactions.startClient(options, flow, this, now)
  }

  onResponse({ status }: SipMessage, _flow: unknown, now: number): void {
    if (status < 200) return
    this.#deadline.cancel()
    if (status === 408 || status === 481) this.#end(now)
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
