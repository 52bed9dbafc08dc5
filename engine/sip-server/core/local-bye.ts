/** Ends a dialog from this side. */
import type { Transactions } from './transactions.ts'
import type { Dialog } from '../dialog/dialog.ts'
import type { DialogTable } from '../dialog/dialog-table.ts'
import type { ApplicationEvents } from './application-events.ts'
import { type RequestWriter, otherBranch, sessionExpired } from './request-writer.ts'

export class LocalBye {
  readonly #dialogs: DialogTable
  readonly #writer: RequestWriter
  readonly #transactions: Transactions
  readonly #events: ApplicationEvents

  constructor(
    dialogs: DialogTable,
    writer: RequestWriter,
    transactions: Transactions,
    events: ApplicationEvents,
  ) {
    this.#dialogs = dialogs
    this.#writer = writer
    this.#transactions = transactions
    this.#events = events
  }

  /** Ends a dialog from our side. `notify`: its application still counts on it. */
  send(dialog: Dialog, text: string, audience: 'notify' | 'silent', now: number): void {
    if (dialog.state === 'terminated') return
    this.#dialogs.remove(dialog)
    // Only calls end by BYE; a subscription is not asked for any more, and so lapses.
    if (dialog.usage !== 'invite') return
    // A peer that cannot be reached by it ends by its own timers.
    const flow = this.#writer.flowInDialog(dialog)
    const lines = `Reason: SIP ;cause=200 ;text="${text}"\r\n`
    const bye = this.#writer.numbered(dialog, 'BYE', dialog.nextLocalCseq(), flow, { lines })
    this.#transactions.sendUnattended(bye, bye.branch, flow, now)
    const isExpired = text === sessionExpired
    const reason = isExpired ? 'session-expired' : 'system-initiated-termination'
    if (text !== otherBranch) this.#events.callStopped('application', reason, bye.text, now)
    if (audience === 'notify')
      this.#events.unsolicited(dialog.clientId, dialog.id, bye.text, flow, now)
  }
}
