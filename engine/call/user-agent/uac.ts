/** What we send as user agent client: an INVITE until the dialog that it begins, other requests until their answer. */
import { tagOf } from '../../sip-server/message/index.ts'
import type { InviteToSend, SipResponse } from '../signalling.ts'
import type { Dialog } from './dialog.ts'
import type { OutgoingRequest, RequestParts } from './outgoing-request.ts'
import { NOT_CONNECTED, type ServerLink } from './server-link.ts'

/** How an INVITE that we sent ended. */
export type UacEnd =
  | { readonly kind: 'answered'; readonly dialog: Dialog; readonly response: SipResponse }
  /** Answered with an offer, because the INVITE had none; not yet acknowledged. */
  | { readonly kind: 'offered'; readonly offer: PendingOffer; readonly response: SipResponse }
  | { readonly kind: 'rejected'; readonly response: SipResponse }
  /** Answered, but no dialog can be formed from it: no Contact, or a 2xx other than 200. */
  | {
      readonly kind: 'unusable'
      readonly response: SipResponse
      /** Sends BYE. */
      readonly release: () => void
    }
  /** `isConnectionLost`: the server is away, which says nothing about the destination. */
  | { readonly kind: 'not-sent'; readonly reason: string; readonly isConnectionLost?: true }

/** The offer of a 200 to an INVITE without body. */
export interface PendingOffer {
  readonly sdp: string
  /** Sends the ACK with our answer; undefined: no dialog can be formed. */
  acknowledge(sdp: string): Dialog | undefined
  /** ACK and BYE. */
  abandon(): void
}

/** Of a request outside any dialog. `isUnsent`: the server was away, which says nothing about the destination. */
export type RequestEnd = SipResponse | { readonly reason: string; readonly isUnsent?: true }

export interface UacHandlers {
  /** It has left; from now on it can be cancelled. */
  readonly onSent: (request: OutgoingRequest) => void
  readonly onProvisional: (response: SipResponse) => void
  /** Exactly once. */
  readonly onEnd: (end: UacEnd) => void
}

const unsent: RequestEnd = { reason: NOT_CONNECTED, isUnsent: true }
export const lostEnd: UacEnd = { kind: 'not-sent', reason: NOT_CONNECTED, isConnectionLost: true }

/** `done` gets the final answer, at most once. The returned function says whether the server has taken it. */
export function sendRequest(
  link: ServerLink | undefined,
  parts: RequestParts,
  done: (end: RequestEnd) => void,
): () => boolean {
  if (!link) {
    done(unsent)
    return () => false
  }
  let [isTaken, isOver] = [link.isInProcess, false]
  const end = (result: RequestEnd): void => {
    if (isOver) return
    isOver = true
    forget()
    done(result)
  }
  const forget = link.whenLost(() => end(unsent))
  link.request(parts, {
    onSent: () => {
      isTaken = true
    },
    onResponse: (response) => {
      if (response.status >= 200) end(response)
    },
    onRefused: (reason) => {
      isTaken = true
      end({ reason })
    },
  })
  return () => isTaken
}

/** Sends an INVITE. What comes of it is told exactly once. */
export function sendInvite(link: ServerLink, invite: InviteToSend, handlers: UacHandlers): void {
  let isOver = false
  const end = (result: UacEnd): void => {
    if (isOver) return
    isOver = true
    forget()
    handlers.onEnd(result)
  }
  const forget = link.whenLost(() => end(lostEnd))
  const { uri, nextHop = '', headers, body = '', credentials } = invite
  let sent: OutgoingRequest | undefined
  const onSent = (request: OutgoingRequest): void => {
    sent = request
    handlers.onSent(request)
  }
  const parts = { method: 'INVITE', uri, nextHop, headers, body, credentials, dialogId: '' }
  link.request(parts, {
    onSent,
    onRefused: (reason) => end({ kind: 'not-sent', reason }),
    onResponse: (response, { message, dialogId }) => {
      const { status } = response
      if (status < 200) {
        handlers.onProvisional(response)
        const rseq = message.get('RSeq')
        if (rseq !== undefined) link.prack(dialogId, `${rseq} ${message.get('CSeq') ?? ''}`)
      } else if (status >= 300) end({ kind: 'rejected', response })
      else end(answeredBy(link, { response, dialogId, toTag: message.toTag }, sent, parts))
    },
  })
}

/** What a 2xx begins. It is acknowledged, unless our answer is to go with the ACK. */
function answeredBy(
  link: ServerLink,
  answer: { readonly response: SipResponse; readonly dialogId: string; readonly toTag: string },
  request: OutgoingRequest | undefined,
  { body, credentials }: Pick<RequestParts, 'body' | 'credentials'>,
): UacEnd {
  const { response, dialogId, toTag: remoteTag } = answer
  const media = response.body ?? ''
  const isUsable = response.status === 200 && (response.headers['contact'] ?? '') !== ''
  const { callId = '', from = '' } = request?.sent ?? {}
  const begin = (): Dialog | undefined => {
    const ids = { callId, localTag: tagOf(from), remoteTag, media }
    return isUsable ? link.addDialog(dialogId, ids, credentials) : undefined
  }
  if (body === '' && response.status === 200 && media !== '') {
    link.owesAck(dialogId)
    const acknowledge = (sdp: string): Dialog | undefined => {
      link.acknowledge(dialogId, sdp)
      return begin()
    }
    const abandon = (): void => acknowledge(media)?.bye({})
    return { kind: 'offered', response, offer: { sdp: media, acknowledge, abandon } }
  }
  link.acknowledge(dialogId, undefined)
  const dialog = begin()
  return dialog
    ? { kind: 'answered', dialog, response }
    : { kind: 'unusable', response, release: () => link.release(dialogId) }
}
