/** Our own REGISTER to a carrier, sent by call control. */
import { escapeUser, formatNameAddr, parseAppMessage } from '../../../schema/sip/index.ts'
import type { SendRegister } from '../../trunks/carrier-registration.ts'
import type { Schedule } from '../../../schema/clock.ts'
import type { RequestEnd, UserAgent } from './user-agent.ts'

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
