/** The dispatcher's OPTIONS, sent by call control. */
import type { ProbeResult, SendProbe } from '../../dispatcher/prober.ts'
import type { Schedule } from '../../../schema/clock.ts'
import type { UserAgent } from './user-agent.ts'

/** The longest extension of a timeout while this process is busy. */
const MAX_EXTRA_MS = 3_000

/** The part of the timeout in which a server has to confirm the request. */
const TAKEN_SHARE = 0.75

type ProbeClient = Pick<UserAgent, 'ping' | 'sendOptions' | 'lagMs'>

export const probeThrough = (client: ProbeClient, schedule: Schedule): SendProbe => {
  const sendOptions = optionsThrough(client, schedule)
  return (destination, timeoutMs, done) => {
    const isSent = client.ping(destination, ({ status, reason }) =>
      done({ kind: 'answered', status, reason }),
    )
    if (!isSent) sendOptions(destination, timeoutMs, done)
  }
}

/** A response after the timeout is dropped, unless this process was late. */
const optionsThrough =
  (client: ProbeClient, schedule: Schedule): SendProbe =>
  (destination, timeoutMs, done) => {
    let isTaken = (): boolean => false
    let isOver = false
    const end = (result: ProbeResult): void => {
      cancel()
      if (!isOver) done(result)
      isOver = true
    }
    const giveUp = (): void => {
      const extraMs = Math.min(client.lagMs(), MAX_EXTRA_MS)
      if (extraMs < 1) return end({ kind: 'silence' })
      cancel = schedule(() => end({ kind: 'silence' }), extraMs)
    }
    const takenMs = timeoutMs * TAKEN_SHARE
    let cancel = schedule(() => {
      if (!isTaken()) return end({ kind: 'unsent' })
      cancel = schedule(giveUp, timeoutMs - takenMs)
    }, takenMs)
    isTaken = client.sendOptions(destination, (answer) => {
      if ('isUnsent' in answer) return end({ kind: 'unsent' })
      const { reason } = answer
      if ('status' in answer) return end({ kind: 'answered', status: answer.status, reason })
      return end({ kind: 'transport-error', reason })
    })
  }
