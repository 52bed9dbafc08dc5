/** The SIP status and the reason of a call that charging refuses. */
import type { Verdict } from '../../../schema/contracts/charging.ts'
import type { IncomingInvite } from './incoming-invite.ts'
import { refused, type End } from '../cdr/end-reason.ts'
import { nowhere, isKnownOutside, retryAfter, type RouteDeps } from './route.ts'

/** The end of a call that charging refuses. Undefined: the call continues. */
export function refusalBy(
  verdict: Verdict,
  invite: IncomingInvite,
  deps: RouteDeps,
): End | undefined {
  if (verdict.kind === 'unreachable')
    return refused(503, 'Service Unavailable', verdict.by ?? 'ocs_unreachable', retryAfter(verdict))
  if (verdict.kind === 'granted') return undefined
  const { code, detail, lack } = verdict
  if (isPayerRefused(code) || code === 'spend_guard')
    return refused(403, 'Forbidden', code, undefined, detail)
  if (isUnknownNumber(invite, code, deps)) return nowhere(invite.calledNumber)
  const refusal = refused(402, 'Payment Required - Insufficient Funds', code, undefined, detail)
  return lack === undefined ? refusal : { ...refusal, lack }
}

/** There is no wallet that may be charged. */
const isPayerRefused = (code: string): boolean =>
  code === 'payer_of_other_tenant' || code === 'no_payer'

/** A phone has dialled a number without route and price: the reason is not a lack of funds. */
const isUnknownNumber = (invite: IncomingInvite, code: string, deps: RouteDeps): boolean =>
  invite.origin.kind === 'extension' &&
  (code === 'unknown_caller' || code === 'no_rate') &&
  !isKnownOutside(invite, deps)
