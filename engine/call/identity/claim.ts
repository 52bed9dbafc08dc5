/** Reads who calls, and by which number it wants to be shown, out of the INVITE of a call. Pure. */
import type { CallerClaim, FirstCaller } from './decide.ts'
import type { IncomingInvite } from '../inbound/incoming-invite.ts'
import { isAnonymous, numberedPartyOf, type Party, partyOf } from '../sip-headers.ts'
import type { Headers } from '../signalling.ts'
import type { Origin } from '../../routing/routing.ts'
import { headerNamed, splitList } from '../../../schema/sip/index.ts'

type Sent = Pick<IncomingInvite, 'from' | 'headers'>

/** RFC 3325 §7, RFC 3323 §4.2: the called side is not told who calls. */
export const wantsPrivacy = ({ from, headers }: Sent): boolean =>
  isAnonymous(from) || /\b(?:id|user|header)\b/i.test(headers['privacy'] ?? '')

/** The caller of a call as its source has sent it, or as a hook has changed it. */
export function claimOf(invite: IncomingInvite): CallerClaim {
  const { origin, firstCaller, from } = invite
  if (origin.kind === 'extension') {
    const { extension: number, displayName } = origin
    const usual = { number, name: displayName, isUsual: true }
    if (firstCaller === undefined) return phoneClaim(invite, usual)
    const isByHook = from.number !== firstCaller.sentAs
    return { ...usual, isPrivate: false, ...(isByHook && byHook(from)) }
  }
  const claim = trunkClaim(invite)
  // Who transfers a call has not asked for a number.
  const isUsual = firstCaller !== undefined && claim.number === firstCaller.sentAs
  return { ...claim, isUsual, isPrivate: wantsPrivacy(invite) || isAnonymousUser(from) }
}

const byHook = ({ number, name }: Party) => ({ number, name, isUsual: false })

/** A phone has its own number, unless it prefers another one (RFC 3325 §9.2), or a hook does. */
function phoneClaim(
  invite: IncomingInvite,
  usual: Pick<CallerClaim, 'number' | 'name' | 'isUsual'>,
): CallerClaim {
  const { from, headers } = invite
  const isPrivate = wantsPrivacy(invite)
  // The number of a hidden caller is asserted by us, or by the hook.
  const shown = isAnonymous(from) ? numberedPartyOf(headers['p-asserted-identity'] ?? '') : from
  if (shown.number !== '' && shown.number !== usual.number)
    return { number: shown.number, name: shown.name, isPrivate, isUsual: false }
  const preferred = numberedPartyOf(headerNamed(headers, 'p-preferred-identity') ?? '')
  if (preferred.number === '' || preferred.number === usual.number)
    return { ...usual, name: shown.name || usual.name, isPrivate }
  const name = preferred.name || usual.name
  return { number: preferred.number, name, isPrivate, isUsual: false }
}

/** The asserted number counts, else that in From: nodes and trunks are trusted to say either. */
function trunkClaim(invite: IncomingInvite): Pick<CallerClaim, 'number' | 'name'> {
  const { received, callerNumber, from } = invite
  const party = sentParty(invite)
  const before = received && sentParty(asSent(received.headers))
  // The rules of a carrier have made the caller's number of this one; a hook's is as it says.
  const number = before?.number === party.number ? callerNumber : party.number
  return { number, name: party.name || from.name }
}

const asSent = (headers: Headers): Sent => ({ headers, from: partyOf(headers['from'] ?? '') })

function sentParty({ from, headers }: Sent): Party {
  const asserted = numberedPartyOf(headers['p-asserted-identity'] ?? '')
  if (asserted.number !== '' || isAnonymous(from)) return asserted
  return from
}

/** RFC 3323 §4.1.1.3: some write the user, and keep a host of their own. */
const isAnonymousUser = ({ user }: Party): boolean => user.toLowerCase() === 'anonymous'

/** The latest number that a node or trunk says the call was forwarded by (RFC 5806 §4). */
export function divertingIn({ origin, headers, firstCaller }: IncomingInvite): string | undefined {
  if (origin.kind === 'extension' || firstCaller !== undefined) return undefined
  const [latest] = splitList(headerNamed(headers, 'diversion') ?? '')
  const { number, irregular } = numberedPartyOf(latest ?? '')
  return number === '' || irregular !== undefined ? undefined : number
}

/** The caller of a call that is forwarded or transferred, for the call that follows from it. */
export interface KnownFirstCaller extends FirstCaller {
  /** The number in From when the call was forwarded: a hook may change that. */
  readonly sentAs: string
  /** RFC 5806 §4: why it was forwarded. */
  readonly reason?: string | undefined
}

/** The caller of a call that a phone forwards; `origin`: where that call has come from. */
export function forwardedCaller(
  invite: Pick<IncomingInvite, 'from' | 'headers' | 'callerNumber' | 'callerName'>,
  origin: Origin | undefined,
): KnownFirstCaller {
  const { from, headers, callerNumber, callerName } = invite
  const [latest = ''] = splitList(headerNamed(headers, 'diversion') ?? '')
  return {
    number: callerNumber,
    name: callerName ?? '',
    isPrivate: wantsPrivacy({ from, headers }),
    isVouched: isNetwork(origin),
    sentAs: from.number,
    reason: /;reason=([\w-]+)$/.exec(latest)?.[1],
  }
}

/** A carrier of the platform that is no customer's trunk: nobody of ours writes its numbers. */
export const isNetwork = (origin: Origin | undefined): boolean =>
  origin?.kind === 'carrier' &&
  origin.customerId === null &&
  origin.tenantId === null &&
  origin.payer !== 'from_number'

/** The part of Privacy that the next network has to keep (RFC 3323 §5). */
export function privacyOf(headers: Headers, isPrivate: boolean): string | undefined {
  const asked = headers['privacy'] ?? ''
  if (isPrivate) return /\bcritical\b/i.test(asked) ? 'id;critical' : 'id'
  return /\bnone\b/i.test(asked) ? 'none' : undefined
}
