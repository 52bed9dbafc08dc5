/** BYEs that the stack sends by itself; the application learns of them as `unsolicited` requests. */
import type { DialogTable, Dialog } from '../dialog/dialog.ts'
import type { RequestWriter } from './request-writer.ts'
import type { Transactions } from './transactions.ts'
import type { ApplicationEvents } from './outbox.ts'

/** Its BYE ends no call. */
export const otherBranch = 'Call completed elsewhere'
export const sessionExpired = 'Session timer expired'

interface ByePorts {
  readonly dialogs: DialogTable
  readonly writer: RequestWriter
  readonly transactions: Transactions
  readonly events: ApplicationEvents
}

export class LocalBye {
  readonly #ports: ByePorts

  constructor(ports: ByePorts) {
    this.#ports = ports
  }

  /** Ends a dialog from our side. `tell`: its application still counts on it. */
  send(dialog: Dialog, text: string, audience: 'tell' | 'silent', now: number): void {
    if (dialog.state === 'terminated') return
    const { dialogs, writer, transactions, events } = this.#ports
    dialogs.remove(dialog)
    // Only calls end by BYE; a subscription is not asked for any more, and so lapses.
    if (dialog.usage !== 'invite') return
    // A peer that cannot be reached by it ends by its own timers.
    const flow = writer.flowInDialog(dialog)
    const lines = `Reason: SIP ;cause=200 ;text="${text}"\r\n`
    const bye = writer.numbered(dialog, 'BYE', dialog.nextLocalCseq(), flow, { lines })
    transactions.sendUnattended(bye, bye.branch, flow, now)
    const isExpired = text === sessionExpired
    const reason = isExpired ? 'session-expired' : 'system-initiated-termination'
    if (text !== otherBranch) events.callStopped('application', reason, bye.text, now)
    if (audience === 'tell') events.unsolicited(dialog.clientId, dialog.id, bye.text, flow, now)
  }
}
