/**
 * The surroundings of the machine of calls: who calls, where calls may go, what the OCS and the
 * journal say, what the API and the rights of the parties allow. All of it random, none of it what
 * the real ones could not do.
 */
import type { CallCommand, MachineEvent } from '../../../engine/call/call-machine/protocol.ts'
import { oppositeSide, partnerOf } from '../../../engine/call/call-machine/calling.ts'
import type { Call, Forward, Leg } from '../../../engine/call/call-machine/state.ts'
import { cause, type End } from '../../../engine/call/cdr/end-reason.ts'
import { asOffer } from '../../../engine/call/sdp.ts'
import { sampleInvite } from '../../support/call-machine.ts'
import { CallBeginnings, free, phone } from './call-beginnings.ts'

const maxCalls = 12

type Asked = Extract<
  CallCommand,
  {
    readonly type:
      | 'calleeLeft'
      | 'connectSource'
      | 'count'
      | 'decideForward'
      | 'decideRedirect'
      | 'display'
      | 'extend'
      | 'forwardOut'
      | 'journal'
      | 'probe'
      | 'refer'
      | 'measure'
      | 'reportHealth'
      | 'takeRoom'
      | 'transfer'
  }
>

export class Control extends CallBeginnings {
  readonly #answeredAt = new Map<string, number>()
  readonly #places = new Map<string, string>()

  /** When the call was answered, as it was shown. */
  answeredAt(callUuid: string): number | null {
    return this.#answeredAt.get(callUuid) ?? null
  }

  begin(takesRinging = false): void {
    const chance = this.chance
    if (takesRinging)
      for (let count = 0; count < 3; count++)
        this.at(chance.between(200, 30_000), () => this.#replaceRinging())
    for (let count = chance.pick([1, 1, 1, 2, 2, 3]); count > 0; count--) {
      const way = chance.weighted({ invite: 75, source: 25 })
      this.at(chance.between(0, 20_000), () => (way === 'invite' ? this.invited() : this.source()))
    }
    if (chance.is(0.5)) this.at(chance.between(0, 60_000), () => this.invited())
    for (let count = chance.pick([0, 1, 1, 2, 3]); count > 0; count--) {
      const act = chance.weighted({ hangUp: 20, transfer: 40, replace: 30, supervise: 20, lost: 2 })
      this.at(chance.between(200, 120_000), () => this.#act(act))
    }
  }

  /** Drain, or the end of the history. */
  stopAll(): void {
    for (const callUuid of [...this.scene.world.calls.keys()])
      this.emit({ type: 'stop', callUuid, end: cut('system', cause.shutdown, 'shutdown') })
  }

  perform(command: Asked): void {
    switch (command.type) {
      case 'journal':
        return this.#journal(command.callUuid)
      case 'extend':
        return this.#extend(command)
      case 'probe':
        return this.#later([0, 200, 2_000, 32_000], {
          type: 'probed',
          legId: command.legId,
          isThere: this.chance.is(0.6),
        })
      case 'takeRoom': {
        const { callUuid } = command
        return this.emit({ type: 'roomTaken', callUuid, isTaken: this.chance.is(0.8) })
      }
      case 'decideForward':
        return this.#decideForward(command)
      case 'decideRedirect':
        return this.#decideRedirect(command)
      case 'forwardOut':
        return this.#forwardOut(command)
      case 'connectSource':
        return this.#connectSource(command)
      case 'refer':
        return this.#refer(command)
      case 'count':
        return this.#count(command)
      case 'display':
        return this.#displayed(command.callUuid)
      case 'transfer':
      case 'calleeLeft':
      case 'measure':
      case 'reportHealth':
      default:
        return undefined
    }
  }

  #later(waits: readonly number[], event: MachineEvent): void {
    const wait = this.chance.pick(waits) ?? 0
    if (wait === 0 && this.chance.is(0.5)) this.emit(event)
    else this.at(wait, () => this.emit(event))
  }

  #displayed(callUuid: string): void {
    const call = this.call(callUuid)
    if (call === undefined || call.answeredAt === null || this.#answeredAt.has(callUuid)) return
    this.#answeredAt.set(callUuid, this.scene.now)
  }

  /** It counts where it was counted before, and from now on elsewhere. */
  #count({ callUuid, before, place }: Extract<Asked, { readonly type: 'count' }>): void {
    const known = this.#places.get(callUuid)
    if (known !== undefined && known !== JSON.stringify(before))
      this.scene.complain(`${callUuid} does not count where it is said to`)
    this.#places.set(callUuid, JSON.stringify(place))
  }

  // The questions of the machine.

  #journal(callUuid: string): void {
    const isStored = this.chance.is(0.97)
    this.#later([0, 1, 5, 100, 2_000], { type: 'journalled', callUuid, isStored })
  }

  #extend({ callUuid, grantedSeconds }: Extract<Asked, { readonly type: 'extend' }>): void {
    const chance = this.chance
    const wait = chance.pick([1, 20, 500, 9_000, 15_000])
    const answer = chance.weighted({ granted: 60, denied: 25, same: 5, unreachable: 10 })
    this.at(wait, () => {
      if (answer === 'denied' || answer === 'unreachable')
        return this.emit({ type: 'notExtended', callUuid, code: answer })
      const more = answer === 'same' ? grantedSeconds : grantedSeconds + chance.pick([1, 30, 60])
      const isLive = this.call(callUuid)?.phase === 'answered'
      if (isLive) this.scene.granted.set(callUuid, more)
      return this.emit({ type: 'extended', callUuid, grantedSeconds: more })
    })
  }

  #decideForward({ callUuid, legId }: Extract<Asked, { readonly type: 'decideForward' }>): void {
    const chance = this.chance
    const call = this.call(callUuid)
    if (call?.dialing?.current?.kind !== 'extension') return
    const { invite, visited } = call.dialing
    const mayGoOut = call.start.isOurs !== true && invite.body !== undefined
    const way = chance.weighted({ none: 30, inside: 40, outside: mayGoOut ? 40 : 0 })
    let forward: Forward | undefined
    if (way === 'outside') forward = { invite, route: undefined }
    else if (way === 'inside' && visited.length < 3)
      forward = { invite, route: this.routes.route() }
    if (forward?.route?.kind === 'refused') forward = undefined
    this.emit({ type: 'forwardDecided', callUuid, legId, forward })
  }

  #decideRedirect({ callUuid }: Extract<Asked, { readonly type: 'decideRedirect' }>): void {
    const call = this.call(callUuid)
    if (call?.dialing?.current?.kind !== 'gateway') return
    const isFar = (call.dialing.redirections ?? 0) >= 5
    const found = Array.from({ length: isFar ? 0 : this.chance.pick([0, 1, 1, 2]) }, () =>
      this.routes.gateway(),
    )
    const event = { type: 'redirectDecided', callUuid, gateways: found, passedOver: [] } as const
    this.emit(event)
  }

  #forwardOut({ callUuid, by, invite }: Extract<Asked, { readonly type: 'forwardOut' }>): void {
    const call = this.call(callUuid)
    if (call === undefined) return
    const calling = { kind: 'forwarded', callUuid } as const
    const forwarded = this.ownCall({ calling, near: call.near, forwardedBy: by })
    const to = forwarded.start.callUuid
    const startedAt = this.scene.now
    this.emit({
      type: 'forwardStarted',
      callUuid,
      to: { callUuid: to, destination: 'd', startedAt },
    })
    this.admit(to, () => this.dial(to, { ...invite, callUuid: to }, false))
  }

  #connectSource({ callUuid, offer }: Extract<Asked, { readonly type: 'connectSource' }>): void {
    const { connect } = this.call(callUuid) ?? {}
    if (connect === undefined) return
    const { isEmergency, route, invite } = connect
    this.dial(callUuid, { ...invite, body: offer }, isEmergency, route)
  }

  #refer({ legId, requestId, headers }: Extract<Asked, { readonly type: 'refer' }>): void {
    const chance = this.chance
    const { world } = this.scene
    const refuse = (status: number): void =>
      this.emit({ type: 'referRefused', legId, requestId, status, reason: undefined })
    const transferor = world.legs.get(legId)
    if (!transferor || !this.call(transferor.callUuid)) return refuse(481)
    if (chance.is(0.05)) return refuse(403)
    const transferee = partnerOf({ world }, transferor)
    if (!transferee || this.#isTransferring(transferor, transferee)) return refuse(491)
    if (transferee.media === '') return refuse(488)
    const [id, isSilent] = [requestId, chance.is(0.1)]
    this.emit({ type: 'referAccepted', legId, requestId, id, isSilent })
    if (headers['refer-to'] === 'blind') return this.#transfer(transferor, transferee, true)
    if (headers['refer-to'] === 'early') return this.#semiAttended(transferor, transferee)
    return this.#attended(transferor, transferee)
  }

  #isTransferring(...legs: readonly Leg[]): boolean {
    return legs.some(({ callUuid }) => this.call(callUuid)?.transfer?.state === 'transferring')
  }

  #referFailed({ id: legId }: Leg): void {
    this.emit({ type: 'referFailed', legId, status: 481, reason: 'none' })
  }

  #attended(transferor: Leg, transferee: Leg): void {
    const { world } = this.scene
    const legs = [...world.legs.values()].filter(({ id, callUuid }) => {
      const { caller, callee } = this.call(callUuid)?.legs ?? {}
      return id === caller || id === callee
    })
    const others = legs.filter(
      (leg) => leg !== transferor && partnerOf({ world }, leg) !== transferor,
    )
    const consulting = this.chance.pick(others)
    const target = consulting && partnerOf({ world }, consulting)
    if (!consulting || !target || this.#isTransferring(consulting, target))
      return this.#referFailed(transferor)
    return this.emit({
      type: 'attend',
      transferor: transferor.id,
      transferee: transferee.id,
      consulting: consulting.id,
      target: target.id,
    })
  }

  #semiAttended(transferor: Leg, transferee: Leg): void {
    const ringing = [...this.scene.world.calls.values()].find(canBeReplaced)
    if (ringing?.offer === undefined) return this.#referFailed(transferor)
    return this.emit({
      type: 'transferTo',
      transferor: transferor.id,
      transferee: transferee.id,
      callUuid: ringing.start.callUuid,
      destination: '2',
      offered: ringing.offer,
      isReferred: true,
    })
  }

  #transfer(transferor: Leg, transferee: Leg, isReferred: boolean): void {
    const before = this.call(transferor.callUuid)?.transfersBefore ?? 0
    const call = this.ownCall({ near: transferee.id, transfersBefore: before + 1 })
    const { callUuid } = call.start
    const body = asOffer(transferee.media) || undefined
    this.emit({
      type: 'transferTo',
      transferor: transferor.id,
      transferee: transferee.id,
      callUuid,
      destination: '3',
      offered: body ?? '',
      isReferred,
    })
    if (before > 4 || this.callCount > maxCalls) return this.refuse(callUuid, 483)
    return this.admit(callUuid, (isEmergency) =>
      this.dial(callUuid, sampleInvite(callUuid, body), isEmergency),
    )
  }

  // Events from outside.

  #act(act: 'hangUp' | 'transfer' | 'replace' | 'supervise' | 'lost'): void {
    if (this.scene.isQuiet) return undefined
    const call = this.chance.pick([...this.scene.world.calls.values()])
    if (call === undefined) return undefined
    switch (act) {
      case 'hangUp': {
        const { callUuid } = call.start
        if (call.end) return undefined
        const end = this.chance.is(0.5)
          ? cut('api', 16, null)
          : cut('system', cause.barred, 'inactive')
        return this.emit({ type: 'stop', callUuid, end })
      }
      case 'transfer':
        return this.#transferByApi(call)
      case 'replace':
        return this.#replace(call)
      case 'supervise':
        return this.#supervise(call)
      case 'lost':
      default:
        return this.#lost()
    }
  }

  #transferByApi(call: Call): void {
    const { world } = this.scene
    if (call.end || call.answeredAt === null) return
    const moved = this.chance.pick(['caller', 'callee'] as const)
    const other = world.legs.get(call.legs[oppositeSide(moved)] ?? '')
    const transferee =
      world.legs.get(call.legs[moved] ?? '') ?? (other && partnerOf({ world }, other))
    const transferor = transferee && partnerOf({ world }, transferee)
    if (!transferee || !transferor || transferee.media === '') return
    if (this.#isTransferring(transferor, transferee)) return
    this.#transfer(transferor, transferee, false)
  }

  /** An INVITE with Replaces. */
  #replace(call: Call): void {
    if (call.answeredAt === null && this.chance.is(0.8)) return undefined
    const { callUuid } = this.receive()
    const { world } = this.scene
    if (canBeReplaced(call) && this.call(callUuid)?.offer !== undefined)
      return this.#takeRinging(callUuid, call)
    const legId = this.chance.is(0.5) ? call.legs.caller : call.legs.callee
    const replaced = world.legs.get(legId ?? '')
    const partner = replaced && partnerOf({ world }, replaced)
    if (!replaced || !partner) return this.refuse(callUuid, 481)
    if (this.#isTransferring(replaced, partner)) return this.refuse(callUuid, 491)
    this.#admitFree(callUuid)
    return this.emit({ type: 'replace', callUuid, replaced: replaced.id, partner: partner.id })
  }

  #replaceRinging(): void {
    const ringing = [...this.scene.world.calls.values()].find(canBeReplaced)
    if (this.scene.isQuiet || ringing === undefined) return
    const { callUuid } = this.receive()
    if (this.call(callUuid)?.offer === undefined) return this.refuse(callUuid, 488)
    return this.#takeRinging(callUuid, ringing)
  }

  /**
   * As an INVITE of another instance does: it takes the place of the caller when the call is
   * answered.
   */
  #takeRinging(callUuid: string, ringing: Call): void {
    this.#admitFree(callUuid)
    this.emit({ type: 'replaceEarly', callUuid, ringing: ringing.start.callUuid })
  }

  #admitFree(callUuid: string): void {
    const known = { direction: 'internal', isEmergency: false, notes: [], origin: phone } as const
    this.emit({ type: 'admit', callUuid, ...known, ...free })
  }

  #supervise(spied: Call): void {
    if (spied.end || spied.answeredAt === null || spied.place.node === null) return
    const { setId, nodeId, node } = spied.place
    const { callUuid } = this.ownCall().start
    this.#admitFree(callUuid)
    this.emit({ type: 'supervise', callUuid: spied.start.callUuid, by: callUuid })
    const place = { setId, nodeId, node }
    const candidates = [
      { kind: 'spy', uri: 'sip:spy', nextHop: node, tenantId: null, ...place },
    ] as const
    this.ring(callUuid, false, { kind: 'candidates', direction: 'internal', candidates })
  }

  /** The connection to the SIP server is lost, and every dialog with it. */
  #lost(): void {
    const { world } = this.scene
    this.scene.lose()
    const end = cut('system', cause.connectionLost, 'connection_lost')
    for (const callUuid of [...world.calls.keys()]) this.emit({ type: 'stop', callUuid, end })
    for (const legId of [...this.scene.world.legs.keys()]) this.emit({ type: 'lost', legId })
  }
}

const cut = (by: 'system' | 'api', q850: number, code: string | null): End => ({
  kind: 'cut',
  by,
  cause: q850,
  code,
})

/** It rings, and its caller can give way. */
const canBeReplaced = ({ calling, phase, answeredAt, end, offer }: Call): boolean =>
  (phase === 'dialing' || phase === 'forwarding') &&
  answeredAt === null &&
  !end &&
  offer !== undefined &&
  calling.kind === 'invite' &&
  calling.replacedBy === undefined
