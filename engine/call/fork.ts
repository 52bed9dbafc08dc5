/**
 * All phones of an extension ring at the same time: the first answer wins, the others are cancelled.
 * It ends as one value, like a single attempt (RFC 3261 §16.7).
 */
import { Bridge, type AttemptResult, type BridgeDeps } from './bridge.ts'
import type { Call } from './call.ts'
import type { Caller } from './legs/caller.ts'
import type { Announced, PhoneCandidate } from './dialing/outgoing-invite.ts'
import type { Refusal } from './cdr/end-reason.ts'
import type { Headers } from './srf/drachtio.ts'

export interface Parties {
  readonly call: Call
  readonly caller: Caller
  readonly announced: Announced
}

/** RFC 3326 §2, RFC 5057: another phone of the callee has answered. */
const answeredElsewhere: Headers = { Reason: 'SIP;cause=200;text="Call completed elsewhere"' }
const forwarded: Headers = { Reason: 'SIP;cause=302;text="Call forwarded"' }
const declinedElsewhere = (status: number): Headers => ({
  Reason: `SIP;cause=${status};text="Declined elsewhere"`,
})

/** A phone on a slow network may take longer than a node to say anything. */
const PHONE_TIMEOUT_MS = 4_000

export interface Ringing {
  readonly ringMs: number
  /** Nobody else is called after them. */
  readonly isLast: boolean
  /** True: the call goes where this 3xx of a phone says, and the others are to be given up. */
  readonly onRedirect: (headers: Headers) => boolean
}

/**
 * When nobody has answered after `ringMs`, all are given up. Nobody at all ends at once, like phones that are not there.
 */
export async function fork(
  phones: readonly PhoneCandidate[],
  parties: Parties,
  { ringMs, isLast, onRedirect }: Ringing,
  deps: BridgeDeps,
): Promise<AttemptResult> {
  const { call, caller, announced } = parties
  const abandonAllBut = (one: Bridge, why: string, farewell: Headers): void => {
    for (const other of bridges) if (other !== one) other.abandon(why, farewell)
  }
  const ring = async (bridge: Bridge, phone: PhoneCandidate): Promise<AttemptResult> => {
    const result = await bridge.run(phone)
    // Never after early media (decisions §3).
    const redirect = result.kind === 'rejected' && !result.isFinal ? result.redirect : undefined
    if (redirect && onRedirect(redirect)) abandonAllBut(bridge, 'forwarded', forwarded)
    return result
  }
  const timing = { ...deps, nodeTimeoutMs: PHONE_TIMEOUT_MS }
  const bridges = phones.map((phone): Bridge => {
    const abandonOthers = (why: string, farewell: Headers): void =>
      abandonAllBut(bridge, why, farewell)
    const onAnswered = (): void => abandonOthers('answered elsewhere', answeredElsewhere)
    // RFC 3261 §16.7 step 5.
    const onDeclined = (status: number): void =>
      abandonOthers('declined elsewhere', declinedElsewhere(status))
    // The early media of one would be contradicted by the answer of another.
    const branch = phones.length > 1 || !isLast ? { onAnswered, onDeclined } : undefined
    const bridge: Bridge = new Bridge(timing, call, caller, announced, phone.uri, branch)
    return bridge
  })
  const deadline = deps.deadlines.at(deps.now() + ringMs, () => {
    for (const bridge of bridges) bridge.abandon('no answer')
  })
  const results = await Promise.all(
    bridges.flatMap((bridge, index) => {
      const phone = phones[index]
      return phone ? ring(bridge, phone) : []
    }),
  )
  deps.deadlines.cancel(deadline)
  for (const bridge of bridges) call.attempts.push(bridge.record)
  return bestOf(results)
}

const nobody: AttemptResult = {
  kind: 'rejected',
  status: 480,
  reason: 'Temporarily Unavailable',
  headers: {},
  isFinal: true,
}

const heardOf = ({ status, reason, headers = {} }: Refusal) => ({ status, reason, headers })

/** RFC 3261 §16.7 step 6: the answer that tells the caller most. */
function bestOf(results: readonly AttemptResult[]): AttemptResult {
  const decisive = results.find(({ kind }) => kind === 'answered' || kind === 'stopped')
  if (decisive) return decisive
  let best = nobody
  for (const result of results)
    if (result.kind === 'rejected' && rankOf(result) > rankOf(best))
      best = { ...result, isFinal: true }
  if (best !== nobody) return best
  // None could be called as it was asked for: the caller hears why.
  const withheld = results.find((result) => result.kind === 'withheld' && result.end.status === 480)
  return withheld?.kind === 'withheld' ? { ...nobody, ...heardOf(withheld.end) } : nobody
}

/** Refused by a human before busy, busy before a device that cannot. */
function rankOf(result: AttemptResult): number {
  if (result.kind !== 'rejected') return 0
  const { status } = result
  if (status >= 600) return 5
  if (status === 486) return 4
  if (status === 480) return result === nobody ? 1 : 3
  return status < 500 ? 2 : 0
}
