/**
 * All dialogs, found by the id that applications quote and by what a request from the network
 * carries.
 */
import type { SipMessage } from '../../../schema/sip/message.ts'
import { ReleasingMap } from '../../../schema/sip/releasing-map.ts'
import { type Dialog, type DialogRole, dialogKey } from './dialog.ts'

export class DialogTable {
  readonly #byId = new ReleasingMap<string, Dialog>()
  readonly #byLocalTag = new ReleasingMap<string, Dialog>()

  add(dialog: Dialog): void {
    this.#byId.set(dialog.id, dialog)
    this.#byLocalTag.set(dialog.key, dialog)
  }

  /** Ends the dialog. */
  remove(dialog: Dialog): void {
    // A later dialog may have taken the same id: an INVITE that an upstream proxy forked and that
    // came twice.
    if (this.#byId.get(dialog.id) === dialog) this.#byId.delete(dialog.id)
    if (this.#byLocalTag.get(dialog.key) === dialog) this.#byLocalTag.delete(dialog.key)
    dialog.end()
  }

  find(id: string): Dialog | undefined {
    return this.#byId.get(id)
  }

  /**
   * RFC 3261 §12: Call-ID, local tag (To) and remote tag (From). Our tags are unique, so the remote
   * one only has to agree; before the 2xx each branch of an INVITE of ours brings its own.
   */
  ofRequest(request: SipMessage): Dialog | undefined {
    const dialog = this.#byLocalTag.get(dialogKey(request.callId, request.toTag))
    if (dialog === undefined || dialog.state === 'terminated') return undefined
    const { fromTag } = request
    if (dialog.remoteTag === fromTag) return dialog
    if (dialog.role === 'uac' && dialog.state === 'early') return dialog.branchOf(fromTag) ?? dialog
    return dialog.remoteTag.toLowerCase() === fromTag.toLowerCase() ? dialog : undefined
  }

  /** Finds the dialog of a response to a request of ours. */
  ofResponse({ callId, fromTag, toTag }: SipMessage): Dialog | undefined {
    const dialog = this.#byLocalTag.get(dialogKey(callId, fromTag))
    return dialog?.remoteTag === toTag ? dialog : undefined
  }

  ofClient(clientId: number): readonly Dialog[] {
    return [...this.#byId.values()].filter((dialog) => dialog.clientId === clientId)
  }

  onConnection(connectionId: number): readonly Dialog[] {
    return [...this.#byId.values()].filter((dialog) => dialog.flow.connectionId === connectionId)
  }

  countConfirmed(role: DialogRole): number {
    let count = 0
    for (const dialog of this.#byId.values())
      if (dialog.role === role && dialog.state === 'confirmed') count += 1
    return count
  }

  /** Dialogs in which a 2xx waits for the application's ACK. Linear: for statistics and tests. */
  countUnacknowledged(): number {
    let count = 0
    for (const { answeredInvite } of this.#byId.values()) if (answeredInvite) count += 1
    return count
  }

  get size(): number {
    return this.#byId.size
  }
}
