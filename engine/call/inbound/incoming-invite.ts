/** Reads an INVITE, once. */
import { readNumber } from '../../../schema/rules/numbers.ts'
import type { OutgoingCall } from '../dialing/outgoing-invite.ts'
import { wantsPrivacy } from '../identity/privacy.ts'
import type { RouteQuestion } from './route.ts'
import type { Headers, SipRequest } from '../signalling.ts'
import { type RuledRequest, ruledRequest } from './ruled-request.ts'
import { callerVerstat, isVerifier, numberParameters } from './number-parameters.ts'
import {
  calledOf,
  callerOf,
  identityClaims,
  type Irregular,
  isAnonymous,
  numberedPartyOf,
  type Party,
  partyOf,
  renumbered,
} from '../sip-headers.ts'
import type { ExtensionOrigin, Origin, Routing } from '../../routing/routing.ts'
import { detachString, escapeUser, formatNameAddr, headerNamed } from '../../../schema/sip/index.ts'

/** The facts of a call that its beginning fixes. */
export interface CallStart {
  readonly callUuid: string
  readonly callId: string
  readonly callerNumber: string
  readonly callerName: string | null
  readonly calledNumber: string
  /** The number that was dialled, where a hook has chosen another one. */
  readonly dialledNumber?: string
  /** The called number as it came; absent: the call began here. */
  readonly asDialled?: string | undefined
  /** `address:port` of the sender, or which part of Tollgate began the call. */
  readonly sourceAddress: string
  /** The call began here: no INVITE was received. */
  readonly isOurs?: boolean
  /**
   * The call connects another instance to a call of this instance, and that instance records the
   * audio.
   */
  readonly isRecordedElsewhere?: boolean
  /** The caller does not want to be shown. */
  readonly isPrivate?: true
  /** The run of the application that calls. */
  readonly applicationRun?: number | undefined
  /** Milliseconds by the steady clock, as all times of a call (schema/clock.ts). */
  readonly startedAt: number
}

export interface IncomingInvite extends OutgoingCall, RouteQuestion {
  readonly callerNumber: string
  readonly callerName: string | null
  /** The called number as it came. */
  readonly asDialled?: string | undefined
  /** Why the called party is not a number. Undefined: it is a number, or empty. */
  readonly irregular?: Irregular | undefined
  /** Header rules of its carrier have changed it. */
  readonly ruled?: RuledRequest['ruled'] | undefined
}

export type InviteReader = Pick<
  Routing,
  'inboundNumber' | 'dialledNumber' | 'registeredUser' | 'headerRulesOf'
>

/** RFC 3261 §8.1.1.6: for an INVITE without Max-Forwards. */
const DEFAULT_HOPS = 70

/** The INVITE as the rules of its carrier make it; `received` stays as it came. */
export function readInvite(
  received: SipRequest,
  callUuid: string,
  origin: Origin,
  routing: InviteReader,
): IncomingInvite {
  const { request, ruled, added } = ruledRequest(received, callUuid, origin, routing)
  const claimed = partyOf(request.headers['from'] ?? '')
  const isPhone = origin.kind === 'extension'
  const headers = isPhone ? phoneHeaders(request.headers, claimed, origin) : request.headers
  const from = isPhone && !isAnonymous(claimed) ? { ...claimed, name: origin.displayName } : claimed
  const caller = callerOf(headers['p-asserted-identity'], claimed)
  const dialled = calledParty(request, routing.registeredUser(origin))
  const called = renumbered(
    dialled,
    routing.dialledNumber(routing.inboundNumber(origin, dialled.number)),
  )
  const isDialled = calledOf(request.uri).number === dialled.number
  const ported =
    isDialled && called.irregular === undefined
      ? numberParameters(request.uri, called.number, isPhone, (rn) => routing.dialledNumber(rn))
      : undefined
  const checked = isVerifier(origin) ? callerVerstat(request.headers) : undefined
  return {
    origin,
    callUuid,
    callId: headers['call-id'] ?? '',
    ...(ported && { ported }),
    ...(checked && { checked }),
    ...(ruled && { ruled }),
    ...(added && { added }),
    received: {
      headers: received.headers,
      host: calledOf(received.uri).host,
      protocol: request.protocol,
      address: request.sourceAddress,
      port: request.sourcePort,
    },
    headers,
    body: request.body || undefined,
    from,
    home: isPhone ? origin.domain : undefined,
    alerts: alertedBy(origin),
    callerNumber: renumbered(caller, routing.inboundNumber(origin, caller.number)).number,
    callerName: (origin.kind === 'extension' ? origin.displayName : caller.name) || null,
    calledNumber: called.number,
    calledUser: called.user,
    asDialled: (ruled ? calledOf(received.uri) : dialled).user,
    irregular: called.irregular,
    domain: called.host.replace(/:[^:\]]*$/, ''),
    isSecure: /^sips:/i.test(request.uri),
    hopsLeft: hopsLeftOf(headers),
  }
}

/**
 * A carrier that we register with sends to our Contact (RFC 3261 §16.5); the dialled number is in
 * P-Called-Party-ID (RFC 7315 §4.2), else in To. To of a diverted call names the diverting party: a
 * Contact that is a number takes precedence. Without a number in either, the registered user name
 * is accepted.
 */
function calledParty({ uri, headers }: SipRequest, registeredUser: string | undefined): Party {
  const called = calledOf(uri)
  if (registeredUser === undefined) return called
  const registered = readNumber(registeredUser)
  if (called.number !== registered.text) return called
  const isNumber = registered.kind === 'number'
  const to = isNumber && isDiverted(headers) ? undefined : headers['to']
  const dialled = numberedPartyOf(headerNamed(headers, 'p-called-party-id') ?? to ?? '')
  if (dialled.number === '' || dialled.number === called.number)
    return { ...called, irregular: undefined }
  return { ...dialled, host: called.host }
}

const isDiverted = (headers: Headers): boolean =>
  headerNamed(headers, 'diversion') !== undefined ||
  headerNamed(headers, 'history-info') !== undefined

/**
 * Removes identity headers of a phone: only a trunk may assert an identity (RFC 3325 §5).
 * The number of a phone that hides it is asserted for the network (RFC 3325 §6).
 */
function phoneHeaders(headers: Headers, from: Party, origin: ExtensionOrigin): Headers {
  const passed: Headers = {}
  // Names of unknown headers have the sender's spelling.
  for (const [name, value] of Object.entries(headers))
    if (!identityClaims.has(name.toLowerCase())) passed[name] = value
  if (!isAnonymous(from)) return passed
  const uri = `sip:${escapeUser(origin.extension)}@${origin.domain}`
  return {
    ...passed,
    'p-asserted-identity': formatNameAddr(origin.displayName, uri),
    privacy: passed['privacy'] ?? 'id',
  }
}

/**
 * Tenants whose phones an INVITE from there may tell to answer by themselves: its own, and those
 * that it works for.
 */
function alertedBy(origin: Origin): IncomingInvite['alerts'] {
  switch (origin.kind) {
    case 'extension':
      return [origin.tenantId]
    case 'proxy':
      return origin.tenantIds
    case 'node':
      return origin.tenantId === undefined ? 'all' : [origin.tenantId]
    case 'trusted':
      return 'all'
    case 'application':
      return origin.tenantId === null ? 'all' : [origin.tenantId]
    case 'carrier':
    case 'unknown':
    default:
      return undefined
  }
}

/** `sourceAddress`: `address:port` of the sender, or which part of Tollgate begins the call. */
export function startOf(
  invite: IncomingInvite,
  sourceAddress: string,
  startedAt: number,
): CallStart {
  const { callUuid, callerName } = invite
  return {
    callUuid,
    // Copies: records and events outlive the text of the INVITE, of which these strings are parts.
    callId: detachString(invite.callId),
    callerNumber: detachString(invite.callerNumber),
    callerName: callerName && detachString(callerName),
    calledNumber: detachString(invite.calledNumber),
    ...(invite.asDialled !== undefined && {
      asDialled: detachString(invite.asDialled.slice(0, MAX_DIALLED)),
    }),
    sourceAddress,
    startedAt,
    ...(wantsPrivacy(invite) && { isPrivate: true as const }),
  }
}

/** A longer called number is cut in the record. */
const MAX_DIALLED = 128

/** The Max-Forwards for the next hop. Below 0: the request must not be forwarded. */
export function hopsLeftOf(headers: Headers): number {
  const hops = Number.parseInt(headers['max-forwards'] ?? '', 10)
  return (Number.isNaN(hops) ? DEFAULT_HOPS : Math.min(hops, 255)) - 1
}

/** The called number of a supervisor's call: this, and the uuid of the call that it is about. */
export const SPIED = 'spy:'

/**
 * Whether this is the call of a supervisor: only calls of the API have this source, and only a
 * supervisor's call has this destination. Only the supervisor may hear it: it is not recorded, and
 * nobody may replace the supervisor.
 */
export const isOfSupervisor = ({ sourceAddress, calledNumber }: CallStart): boolean =>
  sourceAddress === 'api' && calledNumber.startsWith(SPIED)
