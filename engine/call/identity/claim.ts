/** Reads who calls, and by which number it wants to be shown, out of the INVITE of a call. Pure. */
import type { CallerClaim } from './decide.ts'
import type { IncomingInvite } from '../inbound/incoming-invite.ts'
import { isAnonymous, numberedPartyOf, type Party, partyOf } from '../sip-headers.ts'
import type { Headers } from '../signalling.ts'
import { type SentCaller, wantsPrivacy } from './privacy.ts'
import { headerNamed, splitList } from '../../../schema/sip/index.ts'

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

const asSent = (headers: Headers): SentCaller => ({ headers, from: partyOf(headers['from'] ?? '') })

function sentParty({ from, headers }: SentCaller): Party {
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
