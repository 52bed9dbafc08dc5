/**
 * The SIP server and the peer behind one leg, in a dialog: what a user agent may do at any time,
 * with messages on their way in both directions, and the rules for what it is told.
 */
import type { LegCommand, LegEventData, SipResponse } from '../../../engine/call/signalling.ts'
import type { Line } from './line.ts'
import { describedIn, OwnDescriptions, ToldDescriptions } from './descriptions.ts'

export type Said<Type extends LegCommand['type']> = Extract<LegCommand, { readonly type: Type }>

/** As the SIP server has it; `answered`: the ACK of the 2xx is still awaited, or owed. */
type Stage = 'inviting' | 'answered' | 'confirmed' | 'over'

const noAckMs = 32_000
const reasons: Readonly<Record<number, string>> = { 200: 'OK', 487: 'Request Terminated' }

export abstract class Peer {
  readonly legId: string
  protected stage: Stage = 'inviting'
  protected readonly line: Line
  protected readonly own: OwnDescriptions
  /** Offers and INVITEs that are under way: whose. */
  protected readonly open = new Map<string, 'ours' | 'theirs'>()
  readonly #told = new ToldDescriptions()
  #arrivesAt = 0
  #requestCount = 0
  /** Requests of the peer that we have to answer. */
  readonly #unanswered = new Map<string, { method: string; hasBody: boolean; isGlare: boolean }>()
  /** 2xx of the peer that we have to acknowledge; true: it has brought an offer. */
  readonly #owed = new Map<string, boolean>()
  /** Our requests that the peer has not answered. */
  readonly #asked = new Map<string, Said<'request'>>()
  /** As the peer sees it: an offer or INVITE of its own, or of ours. */
  #isOffering = false
  #isAnswering = false
  /** Its connection is gone. */
  #isLost = false

  constructor(legId: string, line: Line) {
    this.legId = legId
    this.line = line
    this.own = new OwnDescriptions(legId, line.chance)
  }

  /** The things that are still open at the end, although nothing can happen any more. */
  get leftovers(): readonly string[] {
    return [
      ...(this.stage === 'over' ? [] : [`its dialog is ${this.stage}`]),
      ...[...this.#unanswered].map(([id, { method }]) => `${method} ${id} has no response`),
      ...[...this.#owed.keys()].map((id) => `the 2xx to ${id} has no ACK`),
    ]
  }

  get isConfirmed(): boolean {
    return this.stage === 'confirmed'
  }

  protected complain(what: string): void {
    this.line.complain(`${this.legId}: ${what}`)
  }

  protected after(ms: number, run: () => void): void {
    const { agenda } = this.line
    agenda.at(agenda.now + ms, run)
  }

  /** A message of the peer: none overtakes another. */
  protected toUs(event: () => LegEventData | undefined): void {
    const { agenda, chance } = this.line
    this.#arrivesAt = Math.max(this.#arrivesAt, agenda.now + chance.between(2, 80))
    agenda.at(this.#arrivesAt, () => {
      const happened = event()
      if (happened) this.line.emit(happened)
    })
  }

  protected tell(description: string | undefined, sdpOwner: string | undefined): void {
    if (!description) return
    const named = describedIn(description)
    if (named !== sdpOwner || named === this.legId)
      this.complain(`a description of ${named} is said to be of ${sdpOwner}`)
    const isOwn = this.line.hasOwnOrigin(this.legId)
    const complaint = this.#told.complaint(description, isOwn)
    if (complaint !== undefined) this.complain(complaint)
  }

  protected response(
    status: number,
    body?: string,
    headers: Record<string, string> = {},
  ): SipResponse {
    const reason = reasons[status] ?? `reason ${status}`
    const described = body ? { 'content-type': 'application/sdp' } : {}
    const to = { to: `<sip:peer>;tag=tag-of-${this.legId}` }
    return {
      status,
      reason,
      headers: { ...to, ...described, ...headers },
      body,
      peer: '10.9.9.9:5060',
    }
  }

  protected get dialog() {
    const { legId } = this
    return { callId: `id-${legId}`, localTag: `our-${legId}`, remoteTag: `tag-of-${legId}` }
  }

  /** The dialog is there, and the peer does as it likes. */
  protected confirm(): void {
    this.stage = 'confirmed'
    this.#actLater()
  }

  /** Every dialog on the connection is gone. */
  lose(): void {
    const told = this.stage === 'inviting' ? this.lostInvite : undefined
    this.stage = 'over'
    this.#isLost = true
    this.#unanswered.clear()
    this.#owed.clear()
    this.#asked.clear()
    if (told && this.line.chance.is(0.5)) this.line.emit(told)
    else if (told) this.after(1, () => this.line.emit(told))
  }

  /** The event of an INVITE whose connection is gone. */
  protected abstract readonly lostInvite: LegEventData | undefined

  perform(command: LegCommand): void {
    switch (command.type) {
      case 'request':
        return this.#request(command)
      case 'acknowledgeReinvite':
        return this.#acknowledged(command)
      case 'answerRequest':
        return this.#answered(command)
      case 'bye':
        return this.#bye()
      default:
        return this.performInvite(command)
    }
  }

  protected abstract performInvite(
    command: Exclude<
      LegCommand,
      { readonly type: 'request' | 'acknowledgeReinvite' | 'answerRequest' | 'bye' }
    >,
  ): void

  #bye(): void {
    if (this.stage === 'over') return
    if (this.stage !== 'confirmed') this.complain(`BYE in a dialog that is ${this.stage}`)
    this.endDialog()
  }

  /** BYE of either side: what is open gets 487 (RFC 3261 §15.1.2). */
  protected endDialog(): void {
    this.stage = 'over'
    this.open.clear()
    for (const { transactionId } of this.#asked.values())
      if (this.line.chance.is(0.8))
        this.toUs(() => this.#respond(transactionId, this.response(487)))
  }

  hangUp(isOurs = false): void {
    this.toUs(() => {
      if (this.stage !== 'confirmed' && this.stage !== 'answered') return undefined
      this.endDialog()
      const headers = this.line.chance.is(0.3) ? { reason: 'Q.850;cause=16' } : {}
      return { type: 'bye', legId: this.legId, headers, isOurs }
    })
  }

  // Requests to the peer.

  #request(command: Said<'request'>): void {
    const { transactionId, method, body } = command
    if (this.stage === 'over') {
      if (!this.#isLost) this.complain(`${method} after the end`)
      return
    }
    if (isOffer(method, body)) {
      if (this.open.size > 0)
        this.complain(`${method} while ${[...this.open].join(' and ')} is under way`)
      this.open.set(transactionId, 'ours')
      this.tell(body, command.sdpOwner)
    }
    this.#asked.set(transactionId, command)
    const { chance } = this.line
    if (chance.is(0.015)) return this.#fail(transactionId, chance.is(0.5))
    return this.after(chance.between(2, 80), () => this.#receive(command))
  }

  #fail(transactionId: string, isUnknownDialog: boolean): void {
    this.toUs(() => {
      if (!this.#asked.delete(transactionId)) return undefined
      this.open.delete(transactionId)
      return { type: 'requestFailed', legId: this.legId, transactionId, isUnknownDialog }
    })
  }

  #receive(command: Said<'request'>): void {
    const { transactionId, method, body } = command
    const { chance, isRemote } = this.line
    if (this.stage === 'over') return this.#answer(transactionId, 481)
    if (!isOffer(method, body)) {
      const status = chance.is(0.9) ? 200 : chance.pick([404, 408, 481, 500, 503])
      return this.after(chance.between(0, 500), () => this.#answer(transactionId, status))
    }
    if (this.#isOffering) return this.#answer(transactionId, 491)
    this.#isAnswering = true
    const end = (): void => {
      this.#isAnswering = false
      this.#answerOffer(command)
    }
    if (method !== 'INVITE' || chance.is(0.92)) return this.after(chance.between(0, 400), end)
    this.toUs(() =>
      this.#asked.has(transactionId)
        ? {
            type: 'response',
            legId: this.legId,
            transactionId,
            owesAck: false,
            response: this.response(180),
          }
        : undefined,
    )
    // Such a server tells of the first response alone.
    if (isRemote && chance.is(0.5))
      return this.after(chance.between(500, 20_000), () => {
        this.#isAnswering = false
        this.#asked.delete(transactionId)
        this.open.delete(transactionId)
      })
    return this.after(chance.pick([1_000, 30_000, 150_000]), end)
  }

  #answerOffer({ transactionId, method }: Said<'request'>): void {
    const { chance } = this.line
    if (this.stage === 'over') return this.#answer(transactionId, 487)
    if (chance.is(0.75)) return this.#answer(transactionId, 200, this.own.next(0.3))
    const status = chance.pick([488, 491, 500, 408, 481, 603, 415, 200])
    const retry = status === 500 && chance.is(0.7) ? { 'retry-after': '2' } : {}
    const isEmpty = status === 200 && method !== 'INVITE'
    return this.#answer(transactionId, status, isEmpty ? '' : undefined, retry)
  }

  #answer(
    transactionId: string,
    status: number,
    body?: string,
    headers?: Record<string, string>,
  ): void {
    this.toUs(() => this.#respond(transactionId, this.response(status, body, headers)))
  }

  #respond(transactionId: string, response: SipResponse): LegEventData | undefined {
    const command = this.#asked.get(transactionId)
    if (command === undefined) return undefined
    this.#asked.delete(transactionId)
    this.open.delete(transactionId)
    const owesAck = command.method === 'INVITE' && command.noAck && response.status < 300
    if (owesAck) {
      this.#owed.set(transactionId, Boolean(response.body))
      if (response.body && this.stage !== 'over') this.open.set(transactionId, 'theirs')
    }
    return { type: 'response', legId: this.legId, transactionId, response, owesAck }
  }

  #acknowledged({ transactionId, body, sdpOwner }: Said<'acknowledgeReinvite'>): void {
    const hasOffer = this.#owed.get(transactionId)
    if (hasOffer === undefined) {
      if (this.stage !== 'over') this.complain(`an ACK of ${transactionId}, which is not owed`)
      return
    }
    if (hasOffer && !body) this.complain(`the offer of ${transactionId} is not answered`)
    this.#owed.delete(transactionId)
    this.open.delete(transactionId)
    if (this.stage !== 'over') this.tell(body, sdpOwner)
  }

  // Requests of the peer.

  /** A request of the peer, from now on its way. */
  send(method: string, headers: Record<string, string> = {}, body?: string): void {
    const requestId = `${this.legId}!${this.#requestCount++}`
    const isOfferedNow = isOffer(method, body)
    if (isOfferedNow) this.#isOffering = true
    this.toUs(() => {
      const { chance, isRemote } = this.line
      const isGlare = this.open.size > 0 && isOfferedNow
      // The embedded server refuses by itself what must not cross in one dialog.
      const isRefused = isGlare && (!isRemote || chance.is(0.5))
      if (isRefused || (this.stage === 'over' && chance.is(0.8))) {
        this.after(10, () => {
          if (isOfferedNow) this.#isOffering = false
        })
        return undefined
      }
      this.#unanswered.set(requestId, { method, hasBody: Boolean(body), isGlare })
      if (isOfferedNow && this.stage !== 'over') this.open.set(requestId, 'theirs')
      return { type: 'request', legId: this.legId, requestId, method, headers, body }
    })
  }

  #answered({ requestId, status, body, sdpOwner }: Said<'answerRequest'>): void {
    const asked = this.#unanswered.get(requestId)
    if (asked === undefined) {
      // The connection is lost.
      if (this.stage !== 'over') this.complain(`a second response to ${requestId}`)
      return
    }
    if (status < 200) return
    this.#unanswered.delete(requestId)
    const { method, hasBody, isGlare } = asked
    if (isGlare && status < 300)
      this.complain(`${status} to ${requestId} in spite of an open offer`)
    const isDescribed = (method === 'INVITE' || method === 'UPDATE') && status < 300
    this.open.delete(requestId)
    if (isDescribed) this.tell(body, sdpOwner)
    if (!isOffer(method, hasBody ? 'body' : undefined)) return
    const isLate = isDescribed && !hasBody && Boolean(body)
    if (isLate && this.stage !== 'over') this.open.set(requestId, 'ours')
    this.after(this.line.chance.between(2, 80), () => {
      if (method !== 'INVITE' || status >= 300) {
        this.#isOffering = false
        return
      }
      this.acknowledge(() => {
        this.open.delete(requestId)
        this.#isOffering = false
        return isLate ? this.own.next(0.5) : undefined
      })
    })
  }

  /** ACK of the peer, unless it is lost: the SIP server gives up then. */
  protected acknowledge(answer: () => string | undefined): void {
    const { chance } = this.line
    if (chance.is(0.03)) return this.after(noAckMs, () => this.hangUp(true))
    return this.toUs(() => {
      if (this.stage === 'over') return undefined
      const body = answer()
      return { type: 'ack', legId: this.legId, body }
    })
  }

  #actLater(): void {
    const { chance } = this.line
    this.after(chance.between(300, chance.is(0.3) ? 3_000 : 60_000), () => this.#act())
  }

  #act(): void {
    const { chance, isQuiet } = this.line
    if (this.stage !== 'confirmed' || isQuiet) return
    const isFree = !this.#isOffering && !this.#isAnswering
    const action = chance.weighted({
      bye: 20,
      dead: 2,
      refer: 12,
      info: 8,
      message: 2,
      options: 2,
      other: 3,
      refresh: 4,
      ...(isFree ? { reinvite: 20, late: 8, update: 10 } : { reinvite: 0, late: 0, update: 0 }),
    })
    this.#do(action)
    if (action !== 'bye' && action !== 'dead') this.#actLater()
  }

  #do(action: string): void {
    switch (action) {
      case 'bye':
        return this.hangUp()
      case 'dead':
        return this.hangUp(true)
      case 'reinvite':
        return this.send('INVITE', {}, this.own.next(0.8))
      case 'late':
        return this.send('INVITE')
      case 'update':
        return this.send('UPDATE', {}, this.own.next(0.8))
      case 'refresh':
        return this.send('UPDATE', this.line.chance.is(0.5) ? { 'session-expires': '1800' } : {})
      case 'refer':
        return this.send('REFER', {
          'refer-to': this.line.chance.pick(['blind', 'blind', 'attended', 'early']),
        })
      case 'info':
        return this.send('INFO', {}, 'Signal=1')
      case 'options':
        return this.send('OPTIONS')
      default:
        return this.send(this.line.chance.pick(['MESSAGE', 'NOTIFY', 'PRACK', 'PUBLISH']))
    }
  }
}

/** Offers must not cross each other. */
const isOffer = (method: string, body: string | undefined): boolean =>
  method === 'INVITE' || (method === 'UPDATE' && Boolean(body))
