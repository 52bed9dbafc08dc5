/** One call to an extension: its phones, and its voicemail when nobody takes the call. */
import { Bridge, type AttemptResult, type BridgeDeps } from '../bridge.ts'
import { fork, type Parties } from '../fork.ts'
import type { Headers } from '../srf/drachtio.ts'
import type { ExtensionDestination } from '../inbound/extension-route.ts'

/** How long the phones of somebody with a voicemail ring. */
const RING_BEFORE_VOICEMAIL_MS = 25_000

/** `onRedirect` is asked about the 3xx of a phone: true, the call goes there, and to nobody else here. */
export async function callExtension(
  { phones, voicemail }: ExtensionDestination,
  parties: Parties,
  onRedirect: (headers: Headers) => boolean,
  deps: BridgeDeps,
): Promise<AttemptResult> {
  const { call, caller, announced } = parties
  const { ringTimeoutMs } = deps
  const ringMs =
    voicemail === undefined ? ringTimeoutMs : Math.min(RING_BEFORE_VOICEMAIL_MS, ringTimeoutMs)
  let isForwarded = false
  const ringing = {
    ...{ ringMs, isLast: voicemail === undefined },
    onRedirect: (headers: Headers) => (isForwarded ||= onRedirect(headers)),
  }
  const result = await fork(phones, parties, ringing, deps)
  if (voicemail === undefined || isForwarded || call.stopped || !isUntaken(result)) return result
  const bridge = new Bridge(deps, call, caller, announced, voicemail.uri)
  const recorded = await bridge.run(voicemail)
  call.attempts.push(bridge.record)
  return isLost.has(recorded.kind) ? result : recorded
}

/** The voicemail has said nothing. */
const isLost: ReadonlySet<AttemptResult['kind']> = new Set(['silent', 'not-sent', 'withheld'])

/** Nobody there, nobody answers, busy, or sent nowhere: not when the callee has declined. */
function isUntaken(result: AttemptResult): boolean {
  if (result.kind !== 'rejected') return false
  const { status } = result
  const isFailed = status < 400 || (status >= 500 && status < 600)
  return isFailed || status === 408 || status === 480 || status === 486
}
