/** A callee: how our INVITE goes on, and what a CANCEL meets. */
import type { CallCommand } from '../../../engine/call/call-machine/protocol.ts'
import type { LegCommand, LegEventData } from '../../../engine/call/signalling.ts'
import type { Line } from './line.ts'
import { Peer } from './peer.ts'

type Invite = Extract<CallCommand, { readonly type: 'invite' }>

const finals = [300, 302, 302, 302, 305, 400, 401, 403, 404, 408, 415, 480, 486, 486, 488] as const
const failures = [500, 500, 502, 503, 503, 504, 580, 600, 603, 603, 606] as const

export class CalleePeer extends Peer {
  readonly #hasOffer: boolean
  #isSent = false
  #isCancelled = false
  /** It has said nothing, not even Trying. */
  #isSilent = true
  /** A final response is on its way, or has come. */
  #hasFinal = false
  #isUsable = true
  #early = ''
  #isWaitingForAck = false

  constructor(legId: string, line: Line, { invite, sdpOwner }: Invite) {
    super(legId, line)
    this.#hasOffer = invite.body !== undefined
    this.open.set('INVITE', 'ours')
    this.tell(invite.body, sdpOwner)
  }

  protected override get lostInvite(): LegEventData | undefined {
    const { legId } = this
    return { type: 'failed', legId, reason: 'no connection', isConnectionLost: true }
  }

  /** It must not leave. */
  withhold(): void {
    this.stage = 'over'
  }

  /** The INVITE is handed over to the SIP server. */
  begin(): void {
    const { chance, isRemote } = this.line
    if (chance.is(0.02)) return this.#fail(chance.is(0.3))
    if (isRemote && chance.is(0.05)) return this.after(8_000, () => this.#fail(chance.is(0.5)))
    return this.after(isRemote ? chance.between(0, 200) : 0, () => this.#send())
  }

  #fail(isConnectionLost: boolean): void {
    if (this.stage !== 'inviting' || this.#hasFinal) return
    this.#hasFinal = true
    this.stage = 'over'
    const lost = isConnectionLost ? { isConnectionLost } : {}
    this.line.emit({ type: 'failed', legId: this.legId, reason: 'not sent', ...lost })
  }

  #send(): void {
    if (this.stage !== 'inviting') return
    const { chance, isRemote } = this.line
    // A response may be told first.
    if (isRemote && chance.is(0.05)) this.after(chance.between(100, 4_000), () => this.#emitSent())
    else this.#emitSent()
    // Nothing that it says before is heard.
    const fate = chance.weighted({
      silent: 8,
      rings: 50,
      answers: 25,
      refuses: 22,
      refusesAtOnce: 5,
    })
    if (fate === 'silent') {
      this.after(chance.pick([32_000, 70_000]), () => this.#end(408))
      return
    }
    // RFC 4028: asked once more, with a longer interval.
    if (chance.is(0.03)) this.after(30, () => this.#emitSent())
    this.after(chance.between(2, 200), () => this.#proceed(fate))
  }

  #emitSent(): void {
    this.#isSent = true
    // A new transaction each time.
    this.#isCancelled = false
    if (this.stage === 'inviting' && !this.#hasFinal)
      this.line.emit({ type: 'sent', legId: this.legId, callId: `id-${this.legId}` })
  }

  #proceed(fate: 'rings' | 'answers' | 'refuses' | 'refusesAtOnce'): void {
    const { chance, isRemote } = this.line
    this.#isSilent = false
    if (fate === 'refusesAtOnce') return this.#refuse()
    if (!isRemote) this.#provisional(100)
    const ms = chance.pick([100, 1_000, 5_000, 20_000])
    if (fate !== 'rings')
      return this.after(ms, () => (fate === 'answers' ? this.#accept() : this.#refuse()))
    for (let count = chance.between(1, 3); count > 0; count--)
      this.after(chance.between(50, 3_000), () => this.#ring())
    if (chance.is(0.85))
      this.after(3_000 + ms, () => (chance.is(0.85) ? this.#accept() : this.#refuse()))
    // Or it rings until it is given up, or the SIP server does so (timer C).
    return this.after(200_000, () => this.#end(408))
  }

  #ring(): void {
    const { chance } = this.line
    if (chance.is(0.5) || !this.#hasOffer) return this.#provisional(chance.pick([180, 180, 183]))
    this.#early = this.own.next(0.2)
    return this.#provisional(chance.pick([180, 183]), this.#early)
  }

  #provisional(status: number, body?: string): void {
    this.toUs(() => {
      if (this.stage !== 'inviting' || this.#hasFinal) return undefined
      return { type: 'provisional', legId: this.legId, response: this.response(status, body) }
    })
  }

  #refuse(): void {
    const { chance } = this.line
    this.#end(chance.is(0.6) ? chance.pick(finals) : chance.pick(failures))
  }

  #end(status: number): void {
    if (this.stage !== 'inviting' || this.#hasFinal) return
    this.#hasFinal = true
    this.toUs(() => {
      if (this.stage !== 'inviting') return undefined
      this.stage = 'over'
      const headers = status < 400 ? { contact: '<sip:elsewhere>' } : {}
      const response = this.response(status, undefined, headers)
      return { type: 'rejected', legId: this.legId, response }
    })
  }

  #accept(): void {
    if (this.stage !== 'inviting' || this.#hasFinal) return
    this.#hasFinal = true
    const { chance } = this.line
    this.toUs(() => {
      if (this.stage !== 'inviting') return undefined
      const { legId } = this
      if (chance.is(0.02)) {
        this.#isUsable = false
        this.stage = 'answered'
        return { type: 'unusable', legId, response: this.response(202, this.own.next(0)) }
      }
      if (!this.#hasOffer) {
        this.stage = 'answered'
        this.#isWaitingForAck = true
        this.open.set('INVITE', 'theirs')
        const offer = chance.is(0.99) ? this.own.next(0) : ''
        return { type: 'offered', legId, response: this.response(200, offer), offer }
      }
      // It does not repeat what it has said reliably.
      const isTold = this.#early !== '' && chance.is(0.15)
      const body = isTold || chance.is(0.01) ? undefined : this.own.next(0.2)
      this.open.clear()
      this.confirm()
      const dialog = { ...this.dialog, media: body ?? '' }
      return { type: 'answered', legId, response: this.response(200, body), dialog }
    })
  }

  protected override performInvite(command: LegCommand): void {
    switch (command.type) {
      case 'cancel':
        return this.#cancel()
      case 'acknowledge':
        return this.#acknowledge(command.sdp, command.sdpOwner)
      case 'abandonOffer':
        if (!this.#isWaitingForAck && this.stage !== 'over') this.complain('no offer to abandon')
        this.stage = 'over'
        return undefined
      case 'release':
        if (this.#isUsable && this.stage !== 'over') this.complain('a usable dialog is released')
        this.stage = 'over'
        return undefined
      default:
        return this.complain(`${command.type} for a callee`)
    }
  }

  #cancel(): void {
    if (this.#isCancelled) this.complain('a second CANCEL')
    if (!this.#isSent) this.complain('CANCEL before the INVITE was sent')
    this.#isCancelled = true
    const { chance } = this.line
    if (!this.#isSilent && chance.is(0.05)) this.#accept()
    else if (!this.#isSilent) this.after(chance.between(2, 80), () => this.#end(487))
  }

  #acknowledge(sdp: string, sdpOwner: string | undefined): void {
    if (!this.#isWaitingForAck) {
      if (this.stage !== 'over') this.complain('an ACK that is not awaited')
      return
    }
    this.#isWaitingForAck = false
    this.tell(sdp, sdpOwner)
    const { chance } = this.line
    this.after(chance.pick([0, 0, 20]), () => {
      if (this.stage !== 'answered') return
      const { legId } = this
      if (chance.is(0.03)) {
        this.#isUsable = false
        this.line.emit({ type: 'acknowledgeFailed', legId })
        return
      }
      this.open.clear()
      this.confirm()
      this.line.emit({
        type: 'acknowledged',
        legId,
        dialog: { ...this.dialog, media: this.own.last },
      })
    })
  }
}
