/** Instances of one PostgreSQL database that count requests together. */
import { onTestFinished } from 'vitest'
import { RequestWindows } from '../../control/auth/rate-window.ts'
import { requestShares } from '../../engine/shares/instance-shares.ts'
import { freshDatabase } from './postgres.ts'
import { sharingInstances } from './sharing-nodes.ts'

/** @param now of the windows; what instances tell each other takes real time. */
export async function requestInstances(count: number, now: () => number) {
  const { url, drop } = await freshDatabase()
  onTestFinished(drop)
  const { instances, stop } = await sharingInstances(url, requestShares, count)
  onTestFinished(stop)
  return instances.map(({ shares, statements }) => ({
    windows: new RequestWindows({ requestShares: shares, steadyNow: now }),
    statements,
  }))
}
