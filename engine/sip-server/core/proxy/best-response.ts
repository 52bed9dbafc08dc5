/** Which of the final answers of several destinations the caller gets: RFC 3261 §16.7 steps 6 and 7. */
import type { SipMessage } from '../../message/message.ts'

/** The end of one branch. Without a message it was made here: silence, or no way to send. */
export interface BranchEnd {
  readonly status: number
  readonly message: SipMessage | undefined
}

/** What tells the caller how to try again comes before other refusals of its class. */
const helpful = new Set([401, 407, 415, 420, 484])

function rank({ status, message }: BranchEnd): number {
  if (status >= 600) return 0
  if (helpful.has(status)) return 1
  if (status >= 400 && status < 500) return message === undefined ? 4 : 2
  return status >= 500 ? 3 : 2
}

/** The best of them; undefined when there is none. Among equals the first to come. */
export function bestOf(ends: readonly BranchEnd[]): BranchEnd | undefined {
  let best: BranchEnd | undefined
  for (const end of ends) if (best === undefined || rank(end) < rank(best)) best = end
  return best
}

/** Step 7: a caller that is challenged learns of the challenges of all branches. */
export function challengesOfOthers(best: BranchEnd, ends: readonly BranchEnd[]): string {
  if (best.status !== 401 && best.status !== 407) return ''
  let lines = ''
  for (const { status, message } of ends) {
    if (message === undefined || message === best.message) continue
    if (status !== 401 && status !== 407) continue
    for (const name of ['WWW-Authenticate', 'Proxy-Authenticate'])
      for (const value of message.all(name)) lines += `${name}: ${value}\r\n`
  }
  return lines
}
