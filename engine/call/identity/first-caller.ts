/** Who has called first, of a call that is forwarded or transferred. Pure. */
import type { Origin } from '../../routing/routing.ts'
import { headerNamed, splitList } from '../../../schema/sip/index.ts'
import type { FirstCaller } from './decide.ts'
import { type SentCaller, wantsPrivacy } from './privacy.ts'

/** The caller of a call that is forwarded or transferred, for the call that follows from it. */
export interface KnownFirstCaller extends FirstCaller {
  /** The number in From when the call was forwarded: a hook may change that. */
  readonly sentAs: string
  /** RFC 5806 §4: why it was forwarded. */
  readonly reason?: string | undefined
}

interface ForwardedInvite extends SentCaller {
  readonly callerNumber: string
  readonly callerName: string | null
}

/** The caller of a call that a phone forwards; `origin`: where that call has come from. */
export function forwardedCaller(
  invite: ForwardedInvite,
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
