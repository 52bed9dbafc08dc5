/** Candidates in order: which ends of an attempt move on, and what the caller gets in the end. */
import type { AttemptResult } from './bridge.ts'
import type { End, Refusal } from './cdr/end-reason.ts'
import { listedStatus } from './sip/answers.ts'

export type Outcome =
  | { readonly kind: 'answered'; readonly ended: Promise<End> }
  | { readonly kind: 'over'; readonly end: End }

/** What the caller gets when no candidate has given any final answer, or there is none. */
export const noCandidate: Refusal = {
  kind: 'refused',
  status: 503,
  reason: 'No Backend PBX Nodes Available',
  code: 'no_candidate',
}

/**
 * Tries the candidates in order. `attempt` gives undefined for one that may not be tried now;
 * `stopped` tells why the call is over, as soon as it is.
 */
export async function cascade<T>(
  candidates: readonly T[],
  attempt: (candidate: T) => Promise<AttemptResult> | undefined,
  stopped: () => End | undefined,
): Promise<Outcome> {
  let last: End = noCandidate
  for (const candidate of candidates) {
    const result = await attempt(candidate)
    if (result?.kind === 'answered') return result
    const stop = stopped()
    if (stop) return { kind: 'over', end: stop }
    if (result?.kind === 'withheld' && last === noCandidate) last = result.end
    if (result?.kind !== 'rejected') continue
    last = endOf(result)
    if (result.isFinal || !movesOn(result.status)) break
  }
  return { kind: 'over', end: last }
}

/** Decisions §3: the node cannot, but another may. A 4xx or 6xx is the called side's word. */
export function movesOn(status: number): boolean {
  return status === 408 || status === 500 || (status >= 502 && status <= 504)
}

/** Decisions §3: what a live call tells about its node, in the eyes of the prober. */
export function healthShown(result: AttemptResult): 'answered' | 'failed' | undefined {
  switch (result.kind) {
    case 'silent':
      return 'failed'
    case 'not-sent':
      return result.isConnectionLost === true ? undefined : 'failed'
    case 'rejected':
      return result.status === 503 ? 'failed' : 'answered'
    case 'answered':
      return 'answered'
    case 'stopped':
    case 'withheld':
    default:
      return undefined
  }
}

/**
 * A challenge is for us, not for the caller, and a redirection that is not followed would show what
 * stands behind us: neither passes as it is.
 */
function endOf(result: AttemptResult & { readonly kind: 'rejected' }): End {
  const { status, reason, headers } = result
  if (status === 401 || status === 407) return refusedBySide(403, 'Forbidden')
  if (status < 400) return refusedBySide(480, 'Temporarily Unavailable')
  return { kind: 'rejected', status: listedStatus(status), reason, headers }
}

const refusedBySide = (status: number, reason: string): End => ({
  kind: 'rejected',
  status,
  reason,
  headers: {},
})
