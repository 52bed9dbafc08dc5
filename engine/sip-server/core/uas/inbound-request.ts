/** A request from the network that an application has to answer. */
import { dialogId, type Dialog } from '../../dialog/dialog.ts'
import type { Flow } from '../../flow.ts'
import type { SipMessage } from '../../message/message.ts'
import type { ServerUser } from '../../transaction/context.ts'
import type { Deadline } from '../../transaction/deadlines.ts'
import { InviteServerTransaction } from '../../transaction/invite-server.ts'
import { NonInviteServerTransaction } from '../../transaction/non-invite-server.ts'
import type { Stack } from '../stack.ts'
import { answer } from './send-response.ts'

export class InboundRequest implements ServerUser {
  readonly transactionId: string
  readonly clientId: number
  readonly request: SipMessage
  readonly transaction: InviteServerTransaction | NonInviteServerTransaction
  /** Values of all Via headers, the top one with `received` and `rport`: what every response carries. */
  readonly vias: readonly string[]
  readonly receivedAt: number
  /** The dialog that it came in, or that the application's answer has begun. */
  dialog: Dialog | undefined
  readonly isInitial: boolean
  /** Our tag; the application may choose it in its first response. */
  localTag: string
  /** The application has said something about it, so the dialog id is known to it. */
  wasAnswered = false
  readonly #stack: Stack
  readonly #applicationTimer: Deadline<'application'>

  constructor(
    stack: Stack,
    start: {
      readonly clientId: number
      readonly request: SipMessage
      readonly vias: readonly string[]
      readonly key: string
      readonly flow: Flow
      readonly dialog: Dialog | undefined
    },
    now: number,
  ) {
    this.#stack = stack
    this.transactionId = stack.newTransactionId()
    this.clientId = start.clientId
    this.request = start.request
    this.vias = start.vias
    this.dialog = start.dialog
    this.isInitial = start.dialog === undefined
    this.receivedAt = now
    this.localTag = start.request.toTag === '' ? stack.options.token() : start.request.toTag
    const Transaction =
      start.request.method === 'INVITE' ? InviteServerTransaction : NonInviteServerTransaction
    this.transaction = new Transaction(start.key, start.flow, this, stack)
    this.#applicationTimer = stack.deadlines.start(
      this,
      'application',
      stack.timers.applicationMs,
      now,
    )
  }

  /** The id by which the application knows the dialog of this request. */
  get dialogId(): string {
    return this.dialog?.id ?? dialogId(this.request.callId, this.request.fromTag)
  }

  /** The application owes nothing any more. */
  finished(): void {
    this.#applicationTimer.cancel()
    this.#stack.inbound.delete(this.transactionId)
    if (!this.isInitial && this.dialog && this.request.method === 'INVITE')
      this.dialog.hasRemoteInvite = false
  }

  /** The application is silent: the peer must not wait for ever. */
  onTimer(_timer: 'application', now: number): void {
    const [status, reason] =
      this.request.method === 'INVITE'
        ? ([480, 'Temporarily Unavailable'] as const)
        : ([500, 'Server Internal Error'] as const)
    answer(this.#stack, this, status, reason, '', now)
  }

  onAckTimeout(): void {
    this.#stack.options.log('debug', 'no ACK for a failure response', {
      callId: this.request.callId,
    })
  }

  onTerminated(): void {
    const { key } = this.transaction
    this.#stack.serverTransactions.delete(key)
    this.#stack.inboundByKey.delete(key)
    if (this.request.method === 'INVITE') this.#stack.merged.delete(mergeKey(this.request))
  }
}

/** RFC 3261 §8.2.2.2: what two copies of one INVITE have in common, whichever way they came. */
export const mergeKey = (request: SipMessage): string =>
  `${request.callId} ${request.fromTag} ${request.cseq?.number ?? 0}`
