/**
 * When a crash ends no call of a transfer any more: its two calls are in the journal as parties of
 * each other.
 */
import { expect } from 'vitest'
import type { TollgateProcess } from './tollgate-process.ts'
import { eventually } from './waiting.ts'

/** A call as it was saved, and the legs that exchange media. */
const saved =
  /"callUuid":"([^"]+)","call":\{.*?"exchange":\{"id":"[^"]*","legs":\["([^"]+)","([^"]+)"\]/

const callOf = (legId: string): string => legId.slice(0, legId.lastIndexOf('.'))

/** Waits until the two calls of a transfer are saved, and with the legs of each other. */
export const transferSaved = (tollgate: TollgateProcess): Promise<void> =>
  eventually(() => {
    const joined = new Map<string, boolean>()
    for (const line of tollgate.journal()) {
      const [, callUuid, one = '', other = ''] = saved.exec(line) ?? []
      if (callUuid !== undefined) joined.set(callUuid, callOf(one) !== callOf(other))
    }
    expect([...joined.values()].filter(Boolean)).toHaveLength(2)
  })
