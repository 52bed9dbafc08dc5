/** One call to an extension: its phones, and its voicemail when nobody takes the call. */
import { Bridge, type AttemptResult, type BridgeDeps } from '../bridge.ts'
import { fork, type Parties } from '../fork.ts'
import type { ExtensionDestination } from './extension-route.ts'

/** How long the phones of somebody with a voicemail ring. */
const RING_BEFORE_VOICEMAIL_MS = 25_000

export async function callExtension(
  { phones, voicemail }: ExtensionDestination,
  parties: Parties,
  deps: BridgeDeps,
): Promise<AttemptResult> {
  const { call, caller, announced } = parties
  const { ringTimeoutMs } = deps
  const ringMs =
    voicemail === undefined ? ringTimeoutMs : Math.min(RING_BEFORE_VOICEMAIL_MS, ringTimeoutMs)
  const result = await fork(phones, parties, { ringMs, isLast: voicemail === undefined }, deps)
  if (voicemail === undefined || call.stopped || !isUntaken(result)) return result
  const bridge = new Bridge(deps, call, caller, announced, voicemail.uri)
  const recorded = await bridge.run(voicemail)
  call.attempts.push(bridge.record)
  return recorded.kind === 'silent' || recorded.kind === 'not-sent' ? result : recorded
}

/** Nobody there, nobody answers, or busy: not when the callee has declined. */
function isUntaken(result: AttemptResult): boolean {
  if (result.kind !== 'rejected') return false
  const { status } = result
  return status === 408 || status === 480 || status === 486 || (status >= 500 && status < 600)
}
