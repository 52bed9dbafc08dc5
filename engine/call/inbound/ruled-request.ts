/** An INVITE of a carrier as the carrier's header rules make it, before anything is read of it. */
import { isPrivateHeader } from '../application/private-headers.ts'
import { applyHeaderRules } from '../header-rules.ts'
import type { Headers, SipRequest } from '../signalling.ts'
import { calledOf, callerOf, CALL_UUID, partyOf } from '../sip-headers.ts'
import type { Origin, Routing } from '../../routing/routing.ts'

export interface RuledRequest {
  readonly request: SipRequest
  /** Absent: no rule has changed it. */
  readonly ruled?: { readonly carrier: string; readonly rules: readonly number[] }
  /** `X-` headers that rules have written: the called side gets them. */
  readonly added?: Headers
}

export function ruledRequest(
  request: SipRequest,
  callUuid: string,
  origin: Origin,
  routing: Pick<Routing, 'headerRulesOf'>,
): RuledRequest {
  const rules = origin.kind === 'carrier' ? routing.headerRulesOf(origin.carrierId) : undefined
  if (rules === undefined || origin.kind !== 'carrier') return { request }
  const { headers, uri, sourceAddress: source } = request
  const caller = callerOf(headers['p-asserted-identity'], partyOf(headers['from'] ?? ''))
  const facts = {
    callUuid,
    caller: caller.number,
    called: calledOf(uri).number,
    carrier: origin.name,
    customerId: origin.customerId,
    source,
  }
  const after = applyHeaderRules(rules, { uri, headers }, facts)
  if (after.ruledBy.length === 0) return { request }
  const ruled = { carrier: origin.name, rules: after.ruledBy }
  const added = writtenX(headers, after.headers)
  return {
    request: { ...request, uri: after.uri, headers: after.headers },
    ruled,
    ...(added && { added }),
  }
}

function writtenX(before: Headers, after: Headers): Headers | undefined {
  const written = Object.entries(after).filter(([name, value]) => {
    const isOwn = name.toLowerCase() === CALL_UUID.toLowerCase() || isPrivateHeader(name)
    return /^x-/i.test(name) && !isOwn && before[name] !== value
  })
  return written.length === 0 ? undefined : Object.fromEntries(written)
}
