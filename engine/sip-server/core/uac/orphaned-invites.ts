/**
 * After a crash, callees still ring. Their responses to an INVITE of the process before this one
 * show them: who rings gets CANCEL, who answers gets ACK and BYE. These requests go back to the
 * source of the response, at a bounded rate.
 */
import type { CoreParts } from '../parts.ts'
import { viaOf } from '../request-writer.ts'
import { Dialog } from '../../dialog/dialog.ts'
import type { Flow } from '../../flow.ts'
import { hostPort } from '../../../../schema/sip/index.ts'
import type { SipMessage } from '../../../../schema/sip/message.ts'
import { ackOfFailure, type SentRequest, transactionTimeoutMs } from '../../transaction/machine.ts'

/** Far more responses than ringing callees send within one second after a crash. */
const MAX_PER_SECOND = 200

export class OrphanedInvites {
  readonly #parts: CoreParts
  /** Undefined: a response without a transaction is dropped (RFC 3261 §17.1.3). */
  #isToBeEnded: ((source: Flow) => boolean) | undefined
  /** INVITEs that were cancelled here, by branch, with the fields that their responses show. */
  readonly #cancelled = new Map<string, SentRequest>()
  /** ACKs of answers that were ended here. */
  readonly #ended = new Map<string, string>()
  #second = 0
  #inSecond = 0

  constructor(parts: CoreParts) {
    this.#parts = parts
  }

  /** Works for as long as a 2xx is repeated (§13.3.1.4). */
  end(isToBeEnded: (source: Flow) => boolean, now: number): void {
    const { deadlines, timers } = this.#parts.transactions
    this.#isToBeEnded = isToBeEnded
    deadlines.start(this, 'over', transactionTimeoutMs(timers), now)
  }

  onTimer(_timer: 'over'): void {
    this.#isToBeEnded = undefined
    this.#cancelled.clear()
    this.#ended.clear()
  }

  /** A response without a transaction. */
  receive(response: SipMessage, flow: Flow, now: number): void {
    if (this.#isToBeEnded === undefined || response.method !== 'INVITE') return
    if (response.status === 100 || !isAnswerToUs(response, flow)) return
    if (!this.#mayAct(now) || !this.#isToBeEnded(flow)) return
    if (response.status < 200) this.#cancel(response, flow, now)
    else if (response.status < 300) this.#release(response, flow, now)
    else this.#acknowledge(response, flow)
  }

  #mayAct(now: number): boolean {
    const second = Math.floor(now / 1_000)
    if (second !== this.#second) {
      this.#second = second
      this.#inSecond = 0
    }
    this.#inSecond += 1
    return this.#inSecond <= MAX_PER_SECOND
  }

  #cancel(response: SipMessage, flow: Flow, now: number): void {
    const { transactions, dialogs } = this.#parts
    const { branch = '' } = response.via ?? {}
    // A re-INVITE in a restored dialog: the peer decides on it.
    if (this.#cancelled.has(branch) || dialogs.ofResponse(response) !== undefined) return
    const invite = inviteOf(response, flow, branch)
    this.#cancelled.set(branch, invite)
    transactions.cancel(invite, flow, '', now)
  }

  /** The 487 that a CANCEL leads to. */
  #acknowledge(response: SipMessage, flow: Flow): void {
    const invite = this.#cancelled.get(response.via?.branch ?? '')
    const ack = invite && ackOfFailure(invite, response.get('To') ?? invite.to)
    if (ack !== undefined) this.#parts.transactions.send(ack, flow, '')
  }

  #release(response: SipMessage, flow: Flow, now: number): void {
    const { transactions, writer, dialogs } = this.#parts
    const { callId, fromTag, toTag, cseq } = response
    const number = cseq?.number ?? 0
    const restored = dialogs.ofResponse(response)
    if (restored) {
      const way = writer.flowInDialog(restored)
      return transactions.send(writer.numbered(restored, 'ACK', number, way, {}).text, way, '')
    }
    const key = `${callId} ${fromTag} ${toTag} ${number}`
    const copy = this.#ended.get(key)
    if (copy !== undefined) return transactions.send(copy, flow, '')
    const dialog = dialogOf(response, flow, number)
    const ack = writer.numbered(dialog, 'ACK', number, flow, {}).text
    this.#ended.set(key, ack)
    transactions.send(ack, flow, '')
    const lines = 'Reason: SIP ;cause=480 ;text="Caller is gone"\r\n'
    const bye = writer.numbered(dialog, 'BYE', dialog.nextLocalCseq(), flow, { lines })
    transactions.sendUnattended(bye, bye.branch, flow, now)
  }
}

/**
 * §18.1.2: the first Via is ours, as this listener shows itself, with a branch as it is made here.
 * Another one follows if the process before this one only passed the INVITE on: whoever sent it
 * gives that call up, and does not hear of the answer.
 */
function isAnswerToUs(response: SipMessage, { listener }: Flow): boolean {
  const { via } = response
  if (via === undefined) return false
  const { advertisedHost, advertisedPort } = listener
  const isOurs = via.host === advertisedHost && via.port === advertisedPort
  if (!isOurs || !/^z9hG4bK[\da-z]+$/.test(via.branch)) return false
  const hops = response.list('Via').length
  return hops === 1 || (hops === 2 && isPassedOn(response, listener))
}

/** A response that is passed on has a Record-Route with a token of ours as its user part. */
function isPassedOn(
  response: SipMessage,
  { advertisedHost, advertisedPort }: Flow['listener'],
): boolean {
  const own = `@${hostPort(advertisedHost, advertisedPort)}`
  return response.list('Record-Route').some((route) => route.includes(own))
}

/** The INVITE of a response. Its Request-URI is unknown: branch and sent-by identify it (§9.2). */
function inviteOf(response: SipMessage, { listener }: Flow, branch: string): SentRequest {
  const { callId, cseq } = response
  const to = withoutTag(response.get('To') ?? '')
  const from = response.get('From') ?? ''
  const uri = response.to?.uri ?? response.contact?.uri ?? ''
  return {
    method: 'INVITE',
    uri,
    via: viaOf(listener, branch),
    branch,
    routes: [],
    maxForwards: '70',
    from,
    to,
    callId,
    cseq: cseq?.number ?? 0,
    credentials: '',
    text: '',
  }
}

const withoutTag = (to: string): string => {
  const params = to.lastIndexOf('>') + 1
  return to.slice(0, params) + to.slice(params).replace(/;\s*tag\s*=[^;]*/i, '')
}

/** A dialog outside the table, for one ACK and one BYE. */
function dialogOf(response: SipMessage, flow: Flow, localCseq: number): Dialog {
  const { callId, fromTag: localTag, toTag: remoteTag, contact, to } = response
  return new Dialog({
    role: 'uac',
    usage: 'invite',
    state: 'confirmed',
    clientId: 0,
    callId,
    local: response.get('From') ?? '',
    remote: response.get('To') ?? '',
    localTag,
    remoteTag,
    localCseq,
    remoteCseq: -1,
    contact: '',
    // The way to the phone of a call that was passed on is its flow: the routes lead from there to
    // us.
    routeSet: response.list('Via').length > 1 ? [] : response.list('Record-Route').toReversed(),
    remoteTarget: contact?.uri ?? to?.uri ?? '',
    flow,
    isFlowBound: true,
  })
}
