import type { Schedule } from '../../../schema/clock.ts'
import type { RequestEnd, UserAgent } from './user-agent.ts'
import { escapeUser, formatNameAddr, parseAppMessage } from '../../sip-server/message/index.ts'
import type { SendRegister } from '../../trunks/carrier-registration.ts'
import type { ProbeResult, SendProbe } from '../../dispatcher/probe-loop.ts'

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

// Our own REGISTER to a carrier, sent by call control.

/** A registrar may be far away, and challenges the first request. */
const ANSWER_MS = 8_000

/** An answer that comes after the timeout is dropped. */
export function registerThrough(client: UserAgent, schedule: Schedule): SendRegister {
  return ({ registrar, username, password, realm, domain, expiresSeconds, callId, cseq }) =>
    new Promise((resolve) => {
      const cancel = schedule(() => resolve({ kind: 'silence' }), ANSWER_MS)
      const address = registrar.slice('sip:'.length).replace(/;.*$/, '')
      const user = escapeUser(username).replace('@', '%40')
      const record = formatNameAddr('', `sip:${user}@${domain ?? hostOf(address)}`)
      const headers = {
        From: record,
        To: record,
        Contact: `<sip:${user}@localhost>`,
        Expires: String(expiresSeconds),
        'Call-ID': callId,
        CSeq: `${cseq} REGISTER`,
      }
      const request = {
        method: 'REGISTER' as const,
        uri: `sip:${domain ?? address}`,
        headers,
        nextHop: registrar,
        credentials: { username, password, realm },
      }
      let ownContact: string | undefined
      const done = (answer: RequestEnd): void => {
        cancel()
        if ('isUnsent' in answer) return resolve({ kind: 'unsent' })
        if ('status' in answer) {
          const { status, reason, headers } = answer
          resolve({ kind: 'answered', status, reason, headers, ownContact })
        } else resolve({ kind: 'transport-error', reason: answer.reason })
      }
      // The SIP server writes the address of the listener that it sends from.
      client.send(request, done, (text) => {
        ownContact = parseAppMessage(text)?.contact?.uri
      })
    })
}

const hostOf = (address: string): string => address.replace(/:\d+$/, '')
