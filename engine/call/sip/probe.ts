/** The dispatcher's OPTIONS, sent by call control. */
import type { SendProbe } from '../../dispatcher/prober.ts'
import type { Schedule } from '../deadlines.ts'
import type { SrfClient } from './srf-client.ts'

/** An answer that comes after the timeout is dropped. */
export function probeThrough(client: SrfClient, schedule: Schedule): SendProbe {
  return (destination, timeoutMs) =>
    new Promise((resolve) => {
      const cancel = schedule(() => resolve({ kind: 'silence' }), timeoutMs)
      client.sendOptions(destination, (answer) => {
        cancel()
        if ('status' in answer) {
          const { status, reason } = answer
          resolve({ kind: 'answered', status, reason })
        } else resolve({ kind: 'transport-error', reason: answer.reason })
      })
    })
}
