/** The legs of call control on drachtio-srf: what the library does becomes an event, commands become its calls. */
import type {
  LegCommand,
  LegEventData,
  SipResponse as PlainResponse,
  LegCommandOf,
} from '../signalling.ts'
import { respond } from '../sip/answers.ts'
import type {
  Acknowledge,
  Agent,
  Answer,
  PendingOffer,
  SipRequest,
  SipResponse,
  SrfDialog,
} from './drachtio.ts'
import { hostPort } from '../../sip-server/message/index.ts'
import type { InviteToSend, SrfClient, UacEnd } from './srf-client.ts'

/** What the library holds of one leg. */
interface Handles {
  /** The INVITE that was received, or the one that was sent. */
  received?: { readonly request: SipRequest; readonly answer: Answer }
  sent?: SipRequest
  offer?: PendingOffer
  dialog?: SrfDialog
  /** The last final response. */
  response?: SipResponse
}

export class LegSignalling {
  readonly #client: SrfClient
  readonly #emit: (event: LegEventData) => void
  readonly #legs = new Map<string, Handles>()
  /** Requests in dialogs that wait for our response. */
  readonly #answers = new Map<string, Answer>()
  /** ACKs of re-INVITEs that are ours to send. */
  readonly #acknowledges = new Map<string, Acknowledge>()
  #requestCount = 0

  /** `emit` is called in the very callback of the library: a BYE may be its next message. */
  constructor(client: SrfClient, emit: (event: LegEventData) => void) {
    this.#client = client
    this.#emit = emit
  }

  /** Watches a received INVITE. To be called at once: a CANCEL reaches only a listener that exists when it comes. */
  receive(legId: string, request: SipRequest, answer: Answer): void {
    this.#legs.set(legId, { received: { request, answer } })
    request.on('cancel', ({ headers }) =>
      this.#emit({ type: 'cancelled', legId, reason: headers['reason'] }),
    )
  }

  /** Sends an INVITE, beside the leg `near` where there are several servers. */
  invite(legId: string, invite: Omit<InviteToSend, 'near'>, near: string | undefined): void {
    const handles: Handles = {}
    this.#legs.set(legId, handles)
    const neighbour = near === undefined ? undefined : this.#agentOf(near)
    this.#client.invite(
      { ...invite, near: neighbour },
      {
        onSent: (request) => {
          handles.sent = request
          this.#emit({ type: 'sent', legId, callId: request.headers['call-id'] ?? '' })
        },
        onProvisional: (response) =>
          this.#emit({ type: 'provisional', legId, response: plain(response) }),
        onEnd: (end) => this.#ended(legId, handles, end),
      },
    )
  }

  #ended(legId: string, handles: Handles, end: UacEnd): void {
    switch (end.kind) {
      case 'answered': {
        const { dialog } = end
        handles.response = dialog.res
        this.#watch(legId, handles, dialog)
        const response = plain(dialog.res)
        this.#emit({ type: 'answered', legId, response, dialog: idsOf(dialog) })
        return this.#tellIfGone(legId, dialog)
      }
      case 'offered':
        handles.offer = end.offer
        handles.response = end.offer.res
        return this.#emit({
          ...{ type: 'offered', legId, response: plain(end.offer.res), offer: end.offer.sdp },
        })
      case 'unusable':
      case 'rejected':
        handles.response = end.response
        return this.#emit({ type: end.kind, legId, response: plain(end.response) })
      case 'not-sent':
      default: {
        const { reason, isConnectionLost } = end
        const lost = isConnectionLost ? { isConnectionLost } : {}
        return this.#emit({ type: 'failed', legId, reason, ...lost })
      }
    }
  }

  /** Performs what is wanted of a leg. */
  perform(command: LegCommand): void {
    const { legId } = command
    const handles = this.#legs.get(legId)
    switch (command.type) {
      case 'answerRequest':
        return this.#answerRequest(command)
      case 'acknowledgeReinvite':
        this.#acknowledges.get(command.transactionId)?.({ body: command.body })
        return void this.#acknowledges.delete(command.transactionId)
      case 'cancel':
        if (handles?.sent) this.#client.cancel(handles.sent, command.headers)
        return undefined
      case 'accept':
        return handles && this.#accept(handles, command)
      case 'respond': {
        const { status, reason, headers, body } = command
        if (handles?.received) respond(handles.received.answer, status, reason, { headers, body })
        return undefined
      }
      case 'acknowledge':
        return handles && this.#acknowledge(handles, command)
      case 'abandonOffer':
        return void handles?.offer?.destroy()
      case 'release':
        if (handles?.response) this.#client.release(handles.response)
        return undefined
      case 'bye':
        return handles?.dialog?.destroy({ headers: command.headers }, () => undefined)
      case 'request':
      default:
        return this.#request(handles?.dialog, command)
    }
  }

  /** The leg is over. Responses that are still owed are given all the same. */
  forget(legId: string): void {
    this.#legs.delete(legId)
  }

  #accept(handles: Handles, command: LegCommandOf<'accept'>): void {
    const { legId, sdp: localSdp, headers } = command
    const { request, answer } = handles.received ?? {}
    if (!request || !answer) return
    this.#client.accept(request, answer, { localSdp, headers }, (dialog) => {
      if (!dialog) return this.#emit({ type: 'gone', legId })
      this.#watch(legId, handles, dialog)
      this.#emit({ type: 'accepted', legId, dialog: idsOf(dialog) })
      return this.#tellIfGone(legId, dialog)
    })
  }

  #acknowledge(handles: Handles, { legId, sdp }: LegCommandOf<'acknowledge'>): void {
    handles.offer?.ack(sdp).then(
      (dialog) => {
        this.#watch(legId, handles, dialog)
        this.#emit({ type: 'acknowledged', legId, dialog: idsOf(dialog) })
        return this.#tellIfGone(legId, dialog)
      },
      () => this.#emit({ type: 'acknowledgeFailed', legId }),
    )
  }

  /**
   * Only BYE is left to the library. What it does with the others fails on a re-INVITE after a late offer,
   * answers 200 to what was not done, and prints what it does not know.
   */
  #watch(legId: string, handles: Handles, dialog: SrfDialog): void {
    handles.dialog = dialog
    dialog.on('destroy', ({ headers, source }) =>
      this.#emit({ type: 'bye', legId, headers, isOurs: source === 'application' }),
    )
    const byLibrary = dialog.handle.bind(dialog)
    dialog.handle = (request, answer) => {
      const { method, headers, body } = request
      if (method === 'BYE') return byLibrary(request, answer)
      if (method === 'ACK') return this.#emit({ type: 'ack', legId, body: body || undefined })
      const requestId = `${legId}!${this.#requestCount++}`
      this.#answers.set(requestId, answer)
      return this.#emit({ type: 'request', legId, requestId, method, headers, body })
    }
  }

  /** Reports a dialog that was gone before it could be watched: the library emits no event for it. */
  #tellIfGone(legId: string, { connected }: SrfDialog): void {
    if (!connected) this.#emit({ type: 'bye', legId, headers: {}, isOurs: false })
  }

  /** Not `dialog.modify`: one refused re-INVITE blocks it for the rest of the call. */
  #request(dialog: SrfDialog | undefined, command: LegCommandOf<'request'>): void {
    const { legId, transactionId, method, headers, body, noAck } = command
    if (!dialog) {
      this.#emit({ type: 'requestFailed', legId, transactionId, isUnknownDialog: true })
      return
    }
    dialog.request({ method, headers, body, noAck }, (error, response, acknowledge) => {
      if (error || !response) {
        const isUnknownDialog = /unable to find dialog/i.test(String(error))
        return this.#emit({ type: 'requestFailed', legId, transactionId, isUnknownDialog })
      }
      const owesAck =
        noAck && method === 'INVITE' && response.status < 300 && response.status >= 200
      if (owesAck && acknowledge) this.#acknowledges.set(transactionId, acknowledge)
      return this.#emit({
        ...{ type: 'response', legId, transactionId, response: plain(response), owesAck },
      })
    })
  }

  #answerRequest(command: LegCommandOf<'answerRequest'>): void {
    const { requestId, status, reason, headers = {}, body } = command
    const answer = this.#answers.get(requestId)
    if (!answer) return
    if (status >= 200) this.#answers.delete(requestId)
    respond(answer, status, reason, { headers, body })
  }

  /** Whose connection a leg is on. */
  #agentOf(legId: string): Agent | undefined {
    const { received, dialog, response, sent } = this.#legs.get(legId) ?? {}
    return dialog?.agent ?? received?.request.agent ?? response?.agent ?? sent?.agent
  }
}

const plain = (response: SipResponse): PlainResponse => ({
  status: response.status,
  reason: response.reason,
  headers: response.headers,
  body: response.body,
  peer: hostPort(response.source_address, response.source_port),
})

const idsOf = ({ sip, remote }: SrfDialog) => ({
  callId: sip.callId,
  localTag: sip.localTag,
  remoteTag: sip.remoteTag,
  media: remote.sdp ?? '',
})
