/** A caller: its INVITE, the CANCEL that may cross our answer, and its ACK. */
import type { LegCommand, LegEventData } from '../../../engine/call/signalling.ts'
import type { Line } from './line.ts'
import { Peer } from './peer.ts'

export class CallerPeer extends Peer {
  readonly offer: string | undefined
  readonly isReliable: boolean
  #hasFinal = false
  #isCancelled = false
  #wasAnsweredReliably = false
  /** It has got our 200. */
  isAccepted = false

  constructor(legId: string, line: Line) {
    super(legId, line)
    const { chance } = line
    this.offer = chance.is(0.85) ? this.own.next(1) : undefined
    this.isReliable = chance.is(0.15)
    this.open.set('INVITE', 'theirs')
  }

  protected override get lostInvite(): LegEventData | undefined {
    return this.#hasFinal ? { type: 'gone', legId: this.legId } : undefined
  }

  /** The INVITE has come: the caller may give up from now on. */
  begin(): void {
    const { chance } = this.line
    if (chance.is(0.2))
      this.after(chance.between(0, chance.is(0.5) ? 500 : 30_000), () => this.#cancel())
  }

  #cancel(): void {
    if (this.stage !== 'inviting' || this.#isCancelled) return
    this.toUs(() => {
      if (this.stage !== 'inviting' || this.#isCancelled) return undefined
      this.#isCancelled = true
      if (!this.#hasFinal) this.stage = 'over'
      const reason = this.line.chance.is(0.3) ? 'SIP;cause=200;text="elsewhere"' : undefined
      return { type: 'cancelled', legId: this.legId, reason }
    })
  }

  protected override performInvite(command: LegCommand): void {
    if (command.type === 'respond')
      return this.#respond(command.status, command.body, command.sdpOwner)
    if (command.type === 'accept') return this.#accept(command.sdp, command.sdpOwner)
    return this.complain(`${command.type} for a caller`)
  }

  #respond(status: number, body: string | undefined, sdpOwner: string | undefined): void {
    if (this.#hasFinal) this.complain(`${status} after a final response`)
    if (status >= 200) {
      this.#hasFinal = true
      this.stage = 'over'
    } else if (body) {
      if (this.isReliable && this.offer === undefined)
        this.complain('our offer in a reliable response')
      if (this.isReliable && this.#wasAnsweredReliably) this.complain('a second reliable answer')
      this.#wasAnsweredReliably = this.isReliable
      this.tell(body, sdpOwner)
    }
  }

  #accept(sdp: string, sdpOwner: string | undefined): void {
    if (this.#hasFinal) this.complain('200 after a final response')
    const { legId } = this
    if (this.stage !== 'inviting')
      return this.after(0, () => this.line.emit({ type: 'gone', legId }))
    this.#hasFinal = true
    this.tell(sdp, sdpOwner)
    const { chance } = this.line
    const isLate = this.offer === undefined && sdp !== ''
    return this.after(chance.pick([0, 0, 1, 40]), () => {
      if (this.stage !== 'inviting') return
      if (chance.is(this.#isCancelled ? 0.6 : 0.04)) {
        this.stage = 'over'
        this.line.emit({ type: 'gone', legId })
        return
      }
      this.stage = 'answered'
      this.isAccepted = true
      if (isLate) this.open.set('INVITE', 'ours')
      else this.open.clear()
      const dialog = { ...this.dialog, media: this.offer ?? '' }
      this.line.emit({ type: 'accepted', legId, dialog })
      if (chance.is(0.03)) this.after(chance.between(0, 100), () => this.hangUp())
      this.after(chance.between(2, 80), () =>
        this.acknowledge(() => {
          this.open.clear()
          this.confirm()
          return isLate ? this.own.next(1) : undefined
        }),
      )
    })
  }
}
