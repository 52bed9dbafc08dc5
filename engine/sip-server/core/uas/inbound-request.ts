/** A request from the network, until an application has answered it. */
import { dialogId, type Dialog } from '../../dialog/dialog.ts'
import type { Flow } from '../../flow.ts'
import { detachString } from '../../message/detach-string.ts'
import type { SipMessage } from '../../message/message.ts'
import type { ServerUser } from '../../transaction/context.ts'
import type { Deadline } from '../../transaction/deadlines.ts'
import { InviteServerTransaction } from '../../transaction/invite-server.ts'
import { NonInviteServerTransaction } from '../../transaction/non-invite-server.ts'
import type { TimedCall } from '../call-times.ts'
import type { ResponseContext } from '../proxy/response-context.ts'
import type { Stack } from '../stack.ts'
import type { Vias } from './request-text.ts'
import { echoOf, type Echo } from './response-text.ts'
import { answer } from './send-response.ts'

export class InboundRequest implements TimedCall {
  readonly transactionId: string
  readonly clientId: number
  readonly request: SipMessage
  readonly transaction: InviteServerTransaction | NonInviteServerTransaction
  /** What every response copies. */
  readonly echo: Echo
  /** The dialog that it came in, or that the application's answer has begun. */
  dialog: Dialog | undefined
  readonly isInitial: boolean
  /** Who answers it instead of the application: it is forwarded. */
  forwardedBy: ResponseContext | undefined
  /** The application has said something about it, so the dialog id is known to it. */
  wasAnswered = false
  wasCancelled = false
  readonly startedAt: number
  hasRung = false
  readonly #stack: Stack
  readonly #end: ServerEnd
  readonly #applicationTimer: Deadline<'application'>

  constructor(
    stack: Stack,
    start: {
      readonly clientId: number
      readonly request: SipMessage
      readonly vias: Vias
      readonly key: string
      readonly flow: Flow
      readonly dialog: Dialog | undefined
    },
    now: number,
  ) {
    const { request, dialog, key } = start
    const isInvite = request.method === 'INVITE'
    this.#stack = stack
    this.transactionId = stack.newTransactionId()
    this.clientId = start.clientId
    this.request = request
    this.echo = echoOf(request, start.vias)
    this.dialog = dialog
    this.isInitial = dialog === undefined
    this.startedAt = now
    const localTag = dialog?.localTag ?? stack.options.token()
    this.#end = new ServerEnd(stack, key, localTag, request.toTag === '' ? mergeKey(request) : '')
    const Transaction = isInvite ? InviteServerTransaction : NonInviteServerTransaction
    this.transaction = new Transaction(key, start.flow, this.#end, stack)
    const { applicationMs } = stack.timers
    this.#applicationTimer = stack.deadlines.start(this, 'application', applicationMs, now)
  }

  /** Our tag; the application may choose it in its first response. */
  get localTag(): string {
    return this.#end.toTag
  }

  set localTag(tag: string) {
    this.#end.toTag = detachString(tag)
  }

  /** The id by which the application knows the dialog of this request. */
  get dialogId(): string {
    return this.dialog?.id ?? dialogId(this.request.callId, this.request.fromTag)
  }

  /** It is forwarded: its answer comes from elsewhere, and the application owes none. */
  handOver(context: ResponseContext): void {
    this.forwardedBy = context
    this.#end.forwarded(this.request.uri)
    this.#applicationTimer.cancel()
    this.#stack.inbound.delete(this.transactionId)
  }

  /** Nobody will answer it; a non-INVITE request may end so (RFC 4320 §4.2). */
  abandon(now: number): void {
    this.finished()
    if (this.transaction instanceof NonInviteServerTransaction) this.transaction.abandon(now)
  }

  /** The application owes nothing any more. */
  finished(): void {
    this.#applicationTimer.cancel()
    this.#stack.inbound.delete(this.transactionId)
    this.#stack.inboundByKey.delete(this.transaction.key)
    const { dialog } = this
    if (dialog === undefined) return
    if (this.request.method === 'UPDATE') dialog.hasRemoteUpdate = false
    if (this.request.method !== 'INVITE') return
    if (!this.isInitial) dialog.hasRemoteInvite = false
    dialog.reliable1xx?.stop()
  }

  /**
   * RFC 3261 §8.2.2.2 speaks of ongoing transactions. Once it is refused nothing goes on, and a proxy that
   * tries its destinations one after the other may come back to this server by another one.
   */
  refused(): void {
    this.#end.forgetMerge()
  }

  /** The application is silent: the peer must not wait for ever. */
  onTimer(_timer: 'application', now: number): void {
    const [status, reason] =
      this.request.method === 'INVITE'
        ? ([480, 'Temporarily Unavailable'] as const)
        : ([500, 'Server Internal Error'] as const)
    answer(this.#stack, this, status, reason, '', now)
  }
}

/** What outlives the answer: a server transaction lingers for 64·T1, the request that it had does not. */
export class ServerEnd implements ServerUser {
  toTag: string
  readonly #stack: Stack
  readonly #key: string
  /** Of a request outside dialogs; else ''. */
  #mergeKey: string

  constructor(stack: Stack, key: string, toTag: string, mergeKey = '') {
    this.#stack = stack
    this.#key = key
    this.toTag = toTag
    this.#mergeKey = mergeKey
  }

  onAckTimeout(): void {
    this.#stack.options.log('debug', 'no ACK for a failure response', { transaction: this.#key })
  }

  onTerminated(): void {
    this.#stack.serverTransactions.delete(this.#key)
    this.forgetMerge()
  }

  /**
   * A forwarded request may come back with another Request-URI, as a spiral (§6): not for the same, which
   * would go round for ever (§16.3 step 4).
   */
  forwarded(uri: string): void {
    if (this.#mergeKey === '') return
    this.forgetMerge()
    this.#mergeKey = detachString(spiralKey(this.#mergeKey, uri))
    this.#stack.merged.set(this.#mergeKey, this.#key)
    this.#stack.hasForwarded = true
  }

  forgetMerge(): void {
    const { merged } = this.#stack
    if (merged.get(this.#mergeKey) === this.#key) merged.delete(this.#mergeKey)
  }
}

export const spiralKey = (merge: string, uri: string): string => `${merge} ${uri}`

/** RFC 3261 §8.2.2.2: what two copies of one request have in common, whichever way they came. */
export const mergeKey = (request: SipMessage, method = request.method): string =>
  detachString(`${request.callId} ${request.fromTag} ${request.cseq?.number ?? 0} ${method}`)
