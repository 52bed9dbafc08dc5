/** A probe as a promise. */
import { probeThrough } from '../../engine/call/user-agent/probe.ts'
import type { ProbeResult } from '../../engine/dispatcher/probe-loop.ts'

export function promisedProbe(
  ...deps: Parameters<typeof probeThrough>
): (destination: string, timeoutMs: number) => Promise<ProbeResult> {
  const send = probeThrough(...deps)
  return (destination, timeoutMs) => new Promise((resolve) => send(destination, timeoutMs, resolve))
}
