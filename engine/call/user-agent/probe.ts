/** The dispatcher's OPTIONS, sent by call control. */
import type { SendProbe } from '../../dispatcher/prober.ts'
import type { Schedule } from '../deadlines.ts'
import type { UserAgent } from './user-agent.ts'

/** The longest extension of a timeout while this process is busy. */
const MAX_EXTRA_MS = 3_000

/** A server confirms a request at once; one that has not by then is not there. */
const TAKEN_SHARE = 0.75

/** A response after the timeout is dropped, unless this process was late. */
export function probeThrough(client: UserAgent, schedule: Schedule): SendProbe {
  return (destination, timeoutMs) =>
    new Promise((resolve) => {
      let isTaken = (): boolean => false
      const giveUp = (): void => {
        const extraMs = Math.min(client.lagMs(), MAX_EXTRA_MS)
        if (extraMs < 1) return resolve({ kind: 'silence' })
        cancel = schedule(() => resolve({ kind: 'silence' }), extraMs)
      }
      const takenMs = timeoutMs * TAKEN_SHARE
      let cancel = schedule(() => {
        if (!isTaken()) return resolve({ kind: 'unsent' })
        cancel = schedule(giveUp, timeoutMs - takenMs)
      }, takenMs)
      isTaken = client.sendOptions(destination, (answer) => {
        cancel()
        if ('isUnsent' in answer) return resolve({ kind: 'unsent' })
        if ('status' in answer) {
          const { status, reason } = answer
          resolve({ kind: 'answered', status, reason })
        } else resolve({ kind: 'transport-error', reason: answer.reason })
      })
    })
}
