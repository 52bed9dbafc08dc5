/** BYEs that the stack sends by itself; the application learns of them as `unsolicited` requests. */
import type { DialogTable } from '../dialog/dialog-table.ts'
import type { Dialog } from '../dialog/dialog.ts'
import type { ApplicationEvents } from './applications/events.ts'
import type { RequestWriter } from './request-writer.ts'
import type { Transactions } from './transactions.ts'

/** Its BYE ends no call. */
export const otherBranch = 'Call completed elsewhere'
export const sessionExpired = 'Session timer expired'

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

  /** Ends a dialog from our side. `tell`: its application still counts on it. */
  send(dialog: Dialog, text: string, audience: 'tell' | 'silent', now: number): void {
    if (dialog.state === 'terminated') return
    this.#dialogs.remove(dialog)
    // Only calls end by BYE; a subscription is not asked for any more, and so lapses.
    if (dialog.usage !== 'invite') return
    // A peer that cannot be reached by it ends by its own timers.
    const flow = this.#writer.flowInDialog(dialog)
    const lines = `Reason: SIP ;cause=200 ;text="${text}"\r\n`
    const sent = this.#writer.numbered(dialog, 'BYE', dialog.nextLocalCseq(), flow, { lines })
    this.#transactions.sendUnattended(sent, sent.branch, flow, now)
    if (text !== otherBranch) this.#tellStop(text, sent.text, now)
    if (audience === 'tell')
      this.#events.unsolicited(dialog.clientId, dialog.id, sent.text, flow, now)
  }

  #tellStop(why: string, bye: string, now: number): void {
    const isExpired = why === sessionExpired
    const reason = isExpired ? 'session-expired' : 'system-initiated-termination'
    this.#events.callStopped('application', reason, bye, now)
  }
}
