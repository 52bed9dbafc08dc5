/**
 * Connects the legs of call control to the user agent: its callbacks become events, commands become
 * its calls.
 */
import { ReleasingMap } from '../../../schema/sip/index.ts'
import type {
  DigestLogin,
  Headers,
  InviteToSend,
  LegCommand,
  LegCommandOf,
  LegEventData,
} from '../signalling.ts'
import { ACCEPTED_TYPES, requiredType, UNSUPPORTED } from '../multipart.ts'
import { asAnswer } from '../sdp.ts'
import { respond } from '../sip-headers.ts'
import type { Acknowledge, CallDialog } from './dialog.ts'
import type { OutgoingRequest } from './outgoing-request.ts'
import type { ReceivedRequest } from './received-request.ts'
import type { PendingOffer, UacEnd, UserAgent } from './user-agent.ts'
import type { SavedDialog, SavedInvite } from '../../sip-server/application.ts'

/** The SIP objects of one leg. */
interface Handles {
  /** The INVITE that was received, until its final response, or the one that was sent. */
  received: ReceivedRequest | undefined
  sent: OutgoingRequest | undefined
  offer: PendingOffer | undefined
  dialog: CallDialog | undefined
  release: (() => void) | undefined
  /** Id of a transaction of the leg: its other leg is on the same server, if possible. */
  near: string | undefined
  /** The called side has described itself, and no dialog is confirmed yet. */
  isDescribed: boolean
  /** The description in our last answer to an offer of an early dialog. */
  lastAnswer: string | undefined
}

/** Runs `act` once after `delayMs`; the returned function calls it off. */
type After = (act: () => void, delayMs: number) => () => void

/** The longest that a BYE waits for its 200. */
const BYE_ANSWER_MS = 4_000

const noHandles = (): Handles => ({
  received: undefined,
  sent: undefined,
  offer: undefined,
  dialog: undefined,
  release: undefined,
  near: undefined,
  isDescribed: false,
  lastAnswer: undefined,
})

export class LegSignalling {
  readonly #userAgent: UserAgent
  readonly #emit: (event: LegEventData) => void
  readonly #legs = new ReleasingMap<string, Handles>()
  /** Requests in dialogs that wait for our response. */
  readonly #answers = new ReleasingMap<string, ReceivedRequest>()
  /** ACKs of re-INVITEs that are ours to send. */
  readonly #acknowledges = new Map<string, Acknowledge>()
  /** BYEs that wait for their 200, by leg. */
  readonly #byes = new ReleasingMap<string, () => void>()
  readonly #after: After
  readonly #onByeHeaders: (legId: string, headers: Headers) => void
  #requestCount = 0

  /**
   * `emit` is called in the very event of the server: a BYE may be the next one. `onByeHeaders`
   * gets those of each BYE from a peer, before its event, and those of each answer to ours.
   */
  constructor(
    userAgent: UserAgent,
    emit: (event: LegEventData) => void,
    after: After,
    onByeHeaders: (legId: string, headers: Headers) => void = () => undefined,
  ) {
    this.#userAgent = userAgent
    this.#emit = emit
    this.#after = after
    this.#onByeHeaders = onByeHeaders
  }

  /** Watches a received INVITE. To be called at once: a CANCEL may be the next event. */
  receive(legId: string, request: ReceivedRequest): void {
    const handles = noHandles()
    handles.received = request
    handles.near = request.transactionId
    this.#legs.set(legId, handles)
    request.onCancel = (headers: Headers) =>
      this.#emit({ type: 'cancelled', legId, reason: headers['reason'] })
  }

  /** Undefined: it cannot be saved now. */
  save(legId: string): SavedLeg | undefined {
    const { dialog, received } = this.#legs.get(legId) ?? {}
    if (dialog) {
      const saved = dialog.link.saved?.saveDialog(dialog.id)
      return saved && { dialog: saved }
    }
    const invite = received?.link.saved?.saveInvite(received.transactionId)
    return received && invite && { invite, media: received.body }
  }

  /** `credentials`: for challenges in the dialog. False: it cannot be restored. */
  restore(legId: string, saved: SavedLeg, credentials: DigestLogin | undefined): boolean {
    const { dialog: savedDialog, invite, media = '' } = saved
    const received = invite && this.#userAgent.restoreInvite(invite, media)
    if (received) this.receive(legId, received)
    const dialog = savedDialog && this.#userAgent.restoreDialog(savedDialog, credentials)
    if (dialog === undefined) return received !== undefined
    const handles = noHandles()
    this.#legs.set(legId, handles)
    this.#watch(legId, handles, dialog)
    return true
  }

  /** Sends the 200 to its BYE; nothing, if none waits for it. */
  answerBye(legId: string): void {
    this.#byes.get(legId)?.()
  }

  /** Sends an INVITE. With several servers it goes by the server of the leg `near`. */
  invite(legId: string, invite: InviteToSend, near: string | undefined): void {
    const handles = noHandles()
    this.#legs.set(legId, handles)
    this.#userAgent.invite(
      { ...invite, near: near === undefined ? undefined : this.#legs.get(near)?.near },
      {
        onSent: (request) => {
          handles.sent = request
          handles.near = request.transactionId
          this.#emit({ type: 'sent', legId, callId: request.sent?.callId ?? '' })
        },
        onProvisional: (response) => {
          if (response.body) handles.isDescribed = true
          this.#emit({ type: 'provisional', legId, response })
        },
        onUpdate: (update) => this.#updated(legId, handles, update),
        onEnd: (end) => this.#ended(legId, handles, end),
      },
    )
  }

  /**
   * RFC 3311 §5.2: an offer of the called side before its answer. What it was offered itself
   * stands, as far as it goes together with that; the caller hears of the new description.
   */
  #updated(legId: string, handles: Handles, update: ReceivedRequest): void {
    const { body: offer, headers, fromTag: tag } = update
    if (requiredType(headers) !== undefined)
      return respond(update, 415, UNSUPPORTED, { headers: { Accept: ACCEPTED_TYPES } })
    if (!handles.isDescribed) return respond(update, 491)
    const own = handles.sent?.parts.body ?? ''
    const { lastAnswer = own } = handles
    const answer = offer.startsWith('v=0') ? asAnswer(own, offer, lastAnswer) : undefined
    if (answer === undefined) return respond(update, 488)
    handles.lastAnswer = answer
    respond(update, 200, undefined, { body: answer })
    return this.#emit({ type: 'redescribed', legId, tag, sdp: offer })
  }

  #ended(legId: string, handles: Handles, end: UacEnd): void {
    handles.sent = undefined
    switch (end.kind) {
      case 'answered': {
        const { dialog, response } = end
        this.#watch(legId, handles, dialog)
        return this.#emit({ type: 'answered', legId, response, dialog: dialog.ids })
      }
      case 'offered': {
        const { offer, response } = end
        handles.offer = offer
        return this.#emit({ type: 'offered', legId, response, offer: offer.sdp })
      }
      case 'unusable':
        handles.release = end.release
        return this.#emit({ type: 'unusable', legId, response: end.response })
      case 'rejected':
        return this.#emit({ type: 'rejected', legId, response: end.response })
      case 'not-sent':
      default: {
        const { reason, isConnectionLost } = end
        const lost = isConnectionLost ? { isConnectionLost } : {}
        return this.#emit({ type: 'failed', legId, reason, ...lost })
      }
    }
  }

  /** Performs a command for a leg. */
  perform(command: LegCommand): void {
    const { legId } = command
    const handles = this.#legs.get(legId)
    switch (command.type) {
      case 'answerRequest':
        return this.#answerRequest(command)
      case 'acknowledgeReinvite':
        this.#acknowledges.get(command.transactionId)?.(command.body)
        return void this.#acknowledges.delete(command.transactionId)
      case 'cancel':
        return handles?.sent?.cancel(command.headers)
      case 'accept':
        return handles && this.#accept(handles, command)
      case 'respond':
        return handles?.received && this.#respond(handles, handles.received, command)
      case 'acknowledge':
        return handles && this.#acknowledge(handles, command)
      case 'abandonOffer':
        return handles?.offer?.abandon()
      case 'release':
        return handles?.release?.()
      case 'bye':
        return handles?.dialog?.bye(command.headers, (headers) =>
          this.#onByeHeaders(legId, headers),
        )
      case 'ask':
        return this.#ask(handles?.dialog, command)
      case 'request':
      default:
        return this.#request(handles?.dialog, command)
    }
  }

  /**
   * A refresh of the session (RFC 4028 §7.4), which a peer without the dialog refuses with 481:
   * UPDATE where it takes that, else a re-INVITE with the last description. To OPTIONS many answer
   * 200 without a look at the dialog: it is for the rest.
   */
  #ask(dialog: CallDialog | undefined, { legId, transactionId }: LegCommandOf<'ask'>): void {
    const { session } = dialog?.link.saved?.saveDialog(dialog.id) ?? {}
    const { takesUpdate = false, localSdp = '' } = session ?? {}
    const question = { type: 'request', legId, transactionId, headers: {}, noAck: false } as const
    const [method, body] = takesUpdate
      ? ['UPDATE', undefined]
      : localSdp === ''
        ? ['OPTIONS', undefined]
        : ['INVITE', localSdp]
    if (method === 'INVITE') this.#emit({ type: 'offering', legId, transactionId })
    return this.#request(dialog, { ...question, method, body, sdpOwner: undefined })
  }

  /** Forgets a leg that is over. Outstanding responses are still sent. */
  forget(legId: string): void {
    this.#legs.delete(legId)
  }

  #respond(handles: Handles, request: ReceivedRequest, command: LegCommandOf<'respond'>): void {
    const { status, reason, headers, body } = command
    respond(request, status, reason, { headers, body })
    if (request.finalResponseSent) handles.received = undefined
  }

  #accept(handles: Handles, { legId, sdp: body, headers }: LegCommandOf<'accept'>): void {
    const { received } = handles
    if (!received) return
    handles.received = undefined
    this.#userAgent.accept(received, { headers, body }, (dialog) => {
      if (!dialog) return this.#emit({ type: 'gone', legId })
      this.#watch(legId, handles, dialog)
      return this.#emit({ type: 'accepted', legId, dialog: dialog.ids })
    })
  }

  #acknowledge(handles: Handles, { legId, sdp }: LegCommandOf<'acknowledge'>): void {
    const { offer } = handles
    if (!offer) return
    const dialog = offer.acknowledge(sdp)
    if (!dialog) return this.#emit({ type: 'acknowledgeFailed', legId })
    this.#watch(legId, handles, dialog)
    this.#emit({ type: 'acknowledged', legId, dialog: dialog.ids })
  }

  #watch(legId: string, handles: Handles, dialog: CallDialog): void {
    handles.dialog = dialog
    dialog.listener = {
      onBye: (headers, isOurs, answer) => {
        if (!isOurs) this.#owesAnswer(legId, answer)
        this.#onByeHeaders(legId, headers)
        this.#emit({ type: 'bye', legId, headers, isOurs })
      },
      onAck: (body) => this.#emit({ type: 'ack', legId, body }),
      onRequest: (request) => {
        const { method, headers, body } = request
        const requestId = `${legId}!${this.#requestCount++}`
        this.#answers.set(requestId, request)
        this.#emit({ type: 'request', legId, requestId, method, headers, body })
      },
    }
  }

  /** Answers the BYE of a leg at once if the leg is over, else when its end is in the journal. */
  #owesAnswer(legId: string, answer: () => void): void {
    if (!this.#legs.has(legId)) return answer()
    const give = (): void => {
      cancel()
      this.#byes.delete(legId)
      answer()
    }
    const cancel = this.#after(give, BYE_ANSWER_MS)
    this.#byes.set(legId, give)
  }

  #request(dialog: CallDialog | undefined, command: LegCommandOf<'request'>): void {
    const { legId, transactionId } = command
    const failed = (isUnknownDialog: boolean): void =>
      this.#emit({ type: 'requestFailed', legId, transactionId, isUnknownDialog })
    if (!dialog) return failed(true)
    return dialog.request(command, {
      onRefused: (problem) => failed(/unable to find dialog/i.test(problem)),
      onResponse: (response, acknowledge) => {
        if (acknowledge) this.#acknowledges.set(transactionId, acknowledge)
        const owesAck = acknowledge !== undefined
        this.#emit({ type: 'response', legId, transactionId, response, owesAck })
      },
    })
  }

  #answerRequest(command: LegCommandOf<'answerRequest'>): void {
    const { requestId, status, reason, headers = {}, body } = command
    const request = this.#answers.get(requestId)
    if (!request) return
    if (status >= 200) this.#answers.delete(requestId)
    respond(request, status, reason, { headers, body })
  }
}

/**
 * A leg as plain JSON values: its confirmed dialog, or its received INVITE that is unanswered, with
 * the offer.
 */
export interface SavedLeg {
  readonly dialog?: SavedDialog
  readonly invite?: SavedInvite
  readonly media?: string
  /** The leg of a supervisor who listens: it has no dialog. */
  readonly listens?: true
  /** The saved state of a media gate. */
  readonly relayed?: object
}
