/** How calls begin, and what is decided before they are dialled. */
import type { MachineEvent } from '../../../engine/call/call-machine/protocol.ts'
import {
  beginCall,
  beginInvitedCall,
  type NewCall,
} from '../../../engine/call/call-machine/call.ts'
import type { Call, World } from '../../../engine/call/call-machine/state.ts'
import type { IncomingInvite } from '../../../engine/call/inbound/incoming-invite.ts'
import type { Route } from '../../../engine/call/inbound/route.ts'
import type { Origin } from '../../../engine/routing/routing.ts'
import { sampleInvite } from '../../support/call-machine.ts'
import { CallerPeer } from './caller-peer.ts'
import type { Line } from './line.ts'
import { Routes } from './routes.ts'

/** The history that it is part of. */
export interface Scene extends Omit<Line, 'emit'> {
  readonly world: World
  readonly now: number
  /** The seconds that the OCS has granted last. */
  readonly granted: Map<string, number | null>
  emit(event: MachineEvent): void
  /** A call has begun in the world. */
  began(callUuid: string): void
  /** An INVITE has begun it. */
  invited(peer: CallerPeer): void
  /** A call ends without record: the API was told that it cannot be. */
  finish(callUuid: string): void
  /** Every connection of the SIP server is gone. */
  lose(): void
}

const carrier: Origin = {
  kind: 'carrier',
  carrierId: 1,
  gatewayId: 1,
  name: 'c',
  customerId: 1,
  payer: 'customer',
  tenantId: null,
  inboundSetId: null,
}
export const phone: Origin = {
  kind: 'extension',
  extensionId: 1,
  tenantId: 1,
  customerId: 1,
  domain: 'd',
  extension: '100',
  displayName: '',
}
const account = {
  customerId: 1,
  tenantId: 1,
  ratePrefix: '49',
  currency: 'EUR',
  isUnauthorizedByOcs: false,
}
export const free = { account, grantedSeconds: null, isFree: true } as const

export abstract class CallBeginnings {
  protected readonly scene: Scene
  protected readonly routes: Routes
  protected callCount = 0

  constructor(scene: Scene) {
    this.scene = scene
    this.routes = new Routes(scene.chance)
  }

  protected get chance() {
    return this.scene.chance
  }

  protected at(ms: number, run: () => void): void {
    const { agenda } = this.scene
    agenda.at(agenda.now + ms, run)
  }

  protected emit(event: MachineEvent): void {
    this.scene.emit(event)
  }

  protected call(callUuid: string): Call | undefined {
    return this.scene.world.calls.get(callUuid)
  }

  protected begun(): Omit<NewCall, 'calling'> {
    const callUuid = `c${this.callCount++}`
    const { now } = this.scene
    return {
      start: {
        callUuid,
        callId: `id-${callUuid}`,
        callerNumber: '1',
        callerName: null,
        calledNumber: '2',
        sourceAddress: '10.0.0.1:5060',
        startedAt: now,
      },
      stampOffsetMs: 0,
    }
  }

  protected ownCall(more: Partial<NewCall> = {}): Call {
    const { start, stampOffsetMs } = this.begun()
    const { world } = this.scene
    const call = beginCall(world, { start: { ...start, isOurs: true }, stampOffsetMs, ...more })
    this.scene.began(start.callUuid)
    return call
  }

  protected receive(): { peer: CallerPeer; callUuid: string } {
    const begun = this.begun()
    const { callUuid } = begun.start
    const peer = new CallerPeer(`${callUuid}.0`, this.scene)
    const { offer, isReliable } = peer
    const isPhone = this.chance.is(0.4)
    const { world } = this.scene
    beginInvitedCall(world, begun, { callerTag: 'a', offer, isReliable, isPhone })
    this.scene.began(callUuid)
    this.scene.invited(peer)
    return { peer, callUuid }
  }

  protected invited(): void {
    if (this.scene.isQuiet) return
    const { peer, callUuid } = this.receive()
    this.admit(callUuid, (isEmergency) =>
      this.dial(callUuid, sampleInvite(callUuid, peer.offer), isEmergency),
    )
  }

  protected source(): void {
    if (this.scene.isQuiet) return
    const { callUuid } = this.ownCall().start
    const denied = (): void => this.scene.finish(callUuid)
    this.admit(callUuid, (isEmergency) => this.ring(callUuid, isEmergency), denied)
  }

  protected ring(callUuid: string, isEmergency: boolean, route = this.knownRoute()): void {
    const invite = sampleInvite(callUuid, undefined)
    const phones = this.routes.phones(this.chance.pick([1, 1, 2, 3]))
    const ringMs = this.chance.pick([10_000, 60_000])
    const connect = { invite, isEmergency, ...(route && { route }) }
    this.emit({ type: 'ring', callUuid, phones, invite, ringMs, connect })
  }

  protected knownRoute(): Route | undefined {
    return this.chance.is(0.5) ? this.routes.route() : undefined
  }

  /** As `admit`: free, or by the answer of the OCS, which may take its time. */
  protected admit(
    callUuid: string,
    proceed: (isEmergency: boolean) => void,
    denied?: () => void,
  ): void {
    const chance = this.chance
    const isEmergency = chance.is(0.02)
    const origin = chance.pick([carrier, phone, { kind: 'trusted' } as const])
    const direction = chance.pick(['inbound', 'outbound', 'internal'] as const)
    const known = { type: 'admit', callUuid, origin, direction, isEmergency, notes: [] } as const
    if (isEmergency || chance.is(0.4)) {
      this.emit({ ...known, ...free })
      if (chance.is(0.05)) return this.refuse(callUuid, 404, denied)
      return proceed(isEmergency)
    }
    const unpaid = { account: null, grantedSeconds: null, isFree: false }
    this.emit({ ...known, ...unpaid })
    const answer = chance.weighted({ granted: 80, denied: 5, unreachable: 3, unlimited: 12 })
    const wait = answer === 'unreachable' ? 2_000 : chance.pick([1, 20, 500, 1_900])
    return this.at(wait, () => {
      const grantedSeconds = answer === 'granted' ? chance.pick([1, 6, 20, 60, 300]) : 0
      const granted = answer === 'unlimited' ? null : grantedSeconds
      this.scene.granted.set(callUuid, granted)
      const payer = answer === 'unreachable' ? null : account
      this.emit({ ...known, account: payer, grantedSeconds: granted, isFree: false })
      const end = this.call(callUuid)?.end
      if (end && denied === undefined) return this.emit({ type: 'refuse', callUuid, end })
      if (answer === 'denied' || answer === 'unreachable')
        return this.refuse(callUuid, answer === 'denied' ? 402 : 503, denied)
      return proceed(false)
    })
  }

  protected refuse(callUuid: string, status: number, denied?: () => void): void {
    if (denied && this.call(callUuid)?.end === undefined) return denied()
    const end = { kind: 'refused', status, reason: 'no', code: 'no' } as const
    return this.emit({ type: 'refuse', callUuid, end })
  }

  protected dial(
    callUuid: string,
    invite: IncomingInvite,
    isEmergency: boolean,
    route = this.routes.route(),
  ): void {
    this.emit({ type: 'dial', callUuid, route, invite, isEmergency })
  }
}
