/** A call as it begins. */
import { newLeg } from './leg.ts'
import type { CallStart } from '../inbound/incoming-invite.ts'
import { type Call, type Calling, type Leg, nowhere, type World } from './state.ts'

/** The beginning of a call, with or without an INVITE. */
export interface NewCall {
  readonly start: CallStart
  readonly stampOffsetMs: number
  readonly calling?: Calling
  /** The leg beside which new legs are placed. */
  readonly near?: string | undefined
  /** `address:port` of the caller. */
  readonly callerPeer?: string | null
  readonly payerTenantId?: number | null
  readonly forwardedBy?: string
  readonly transfersBefore?: number
}

/** The facts of an INVITE that its leg keeps. */
export interface ReceivedInvite {
  readonly callerTag: string
  readonly offer: string | undefined
  /** It asks for reliable provisional responses. */
  readonly isReliable: boolean
  /** It comes from a phone. */
  readonly isPhone: boolean
}

const noCaller: Calling = { kind: 'source', offer: '', heard: '', isWanted: false }

export function beginCall(world: World, begun: NewCall): Call {
  const { start, stampOffsetMs, calling, near, callerPeer, forwardedBy } = begun
  const caller = callerPeer ?? (start.isOurs === true ? null : start.sourceAddress)
  // One shape for all calls, and no spreads: they took 6 µs of every call.
  const call: Call = {
    start,
    instance: world.instance,
    stampOffsetMs,
    phase: 'admitting',
    display: 'DIALING',
    direction: 'inbound',
    calling: calling ?? { ...noCaller },
    callerTag: '',
    offer: undefined,
    account: null,
    payerTenantId: begun.payerTenantId ?? null,
    origin: undefined,
    destination: undefined,
    dialing: undefined,
    answering: undefined,
    legs: { caller: undefined, callee: undefined },
    departing: [],
    transferIds: [],
    supervisedBy: [],
    near,
    forwardedBy,
    transfersBefore: begun.transfersBefore ?? 0,
    failedTransfers: 0,
    place: nowhere,
    attempts: [],
    callIds: [start.callId],
    notes: [],
    peers: { caller, callee: null },
    isFree: false,
    isEmergency: false,
    grantedSeconds: null,
    firstProgressAt: null,
    answeredAt: null,
    end: undefined,
    byeHeaders: {},
    legCount: 0,
  }
  world.calls.set(start.callUuid, call)
  return call
}

/** A call that an INVITE begins, and the leg of its caller. */
export function beginInvitedCall(world: World, begun: NewCall, invite: ReceivedInvite): Leg {
  const call = beginCall(world, begun)
  const leg = newLeg({ world }, call, 'caller', false)
  leg.callId = call.start.callId
  leg.remoteTag = invite.callerTag
  leg.isPhone = invite.isPhone
  if (invite.isReliable) leg.isReliable = true
  call.calling = { kind: 'invite', legId: leg.id }
  call.callerTag = invite.callerTag
  if (invite.offer !== undefined) call.offer = invite.offer
  call.near = leg.id
  return leg
}
